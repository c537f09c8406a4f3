"""Multi-head attention and the Transformer against NumPy; masks."""

import numpy as np
import pytest
from scipy.special import softmax

import flambeau as fb
from flambeau import nn


def array(t):
    return t.detach().numpy()


def attend(module, q, k, v, mask=0.0):
    """Attention in NumPy; shapes (N, L, E). Returns (result, weights per head)."""
    if module.in_proj_weight is None:
        weights = [array(getattr(module, f"{n}_proj_weight")) for n in "qkv"]
    else:
        weights = np.split(array(module.in_proj_weight), 3)
    biases = np.split(array(module.in_proj_bias), 3)
    heads = module.num_heads

    def split(x, w, b):
        y = x @ w.T + b
        return y.reshape(*y.shape[:2], heads, -1).swapaxes(1, 2)

    q, k, v = (split(x, w, b) for x, w, b in zip((q, k, v), weights, biases, strict=True))
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask, axis=-1)
    y = (weights @ v).swapaxes(1, 2)
    y = y.reshape(*y.shape[:2], -1)
    return y @ array(module.out_proj.weight).T + array(module.out_proj.bias), weights


def test_self_attention():
    fb.manual_seed(0)
    module = nn.MultiheadAttention(6, 2, batch_first=True).double()
    x = fb.randn(3, 4, 6, dtype=fb.float64)
    expected, weights = attend(module, *[array(x)] * 3)
    output, average = module(x, x, x)
    np.testing.assert_allclose(array(output), expected, atol=1e-12)
    np.testing.assert_allclose(array(average), weights.mean(1), atol=1e-12)
    output, heads = module(x, x, x, average_attn_weights=False)
    np.testing.assert_allclose(array(heads), weights, atol=1e-12)
    output, nothing = module(x, x, x, need_weights=False)
    np.testing.assert_allclose(array(output), expected, atol=1e-12)
    assert nothing is None
    single, _ = module(x[0], x[0], x[0])
    np.testing.assert_allclose(array(single), expected[0], atol=1e-12)


def test_cross_attention_with_masks():
    fb.manual_seed(0)
    module = nn.MultiheadAttention(6, 3, kdim=4, vdim=5).double()
    q, k, v = (fb.randn(n, 2, e, dtype=fb.float64) for n, e in ((3, 6), (4, 4), (4, 5)))
    hidden = fb.tensor([[False, False, False, True], [False, True, False, False]])
    pairs = fb.zeros(3, 4, dtype=fb.bool)
    pairs[0, 0] = True
    mask = np.where(hidden.numpy()[:, None, None] | pairs.numpy(), -np.inf, 0)
    expected, weights = attend(module, *(array(t).swapaxes(0, 1) for t in (q, k, v)), mask)
    output, got = module(q, k, v, key_padding_mask=hidden, attn_mask=pairs)
    np.testing.assert_allclose(array(output).swapaxes(0, 1), expected, atol=1e-12)
    np.testing.assert_allclose(array(got), weights.mean(1), atol=1e-12)
    assert [name for name, _ in module.named_parameters()] == [
        "q_proj_weight",
        "k_proj_weight",
        "v_proj_weight",
        "in_proj_bias",
        "out_proj.weight",
        "out_proj.bias",
    ]


def test_learnt_and_zero_keys():
    module = nn.MultiheadAttention(4, 1, add_bias_kv=True, add_zero_attn=True)
    x = fb.ones(2, 1, 4)
    assert module(x, x, x)[1].shape == (1, 2, 4)  # two keys, one learnt, one zero
    with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
        nn.MultiheadAttention(5, 2)
    with pytest.raises(ValueError, match="must be greater than 0"):
        nn.MultiheadAttention(0, 2)


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def feed(layer, x):
    hidden = np.maximum(x @ array(layer.linear1.weight).T + array(layer.linear1.bias), 0)
    return hidden @ array(layer.linear2.weight).T + array(layer.linear2.bias)


CAUSAL = np.triu(np.full((4, 4), -np.inf), 1)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_encoder(norm_first, training):
    fb.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        6, 2, 8, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    encoder = nn.TransformerEncoder(layer, 2).double().train(training)
    x = fb.randn(3, 4, 6, dtype=fb.float64)
    expected = array(x)
    for one in encoder.layers:
        attention = one.self_attn
        if norm_first:
            expected = expected + attend(attention, *[norm(expected)] * 3, CAUSAL)[0]
            expected = expected + feed(one, norm(expected))
        else:
            expected = norm(expected + attend(attention, *[expected] * 3, CAUSAL)[0])
            expected = norm(expected + feed(one, expected))
    mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=fb.float64)
    for kwargs in ({"mask": mask}, {"mask": mask == -np.inf}, {"mask": mask, "is_causal": True}):
        np.testing.assert_allclose(array(encoder(x, **kwargs)), expected, atol=1e-10)


def test_padding_does_not_reach_the_rest():
    fb.manual_seed(0)
    layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1, nn.LayerNorm(6)).eval()
    x = fb.randn(1, 4, 6)
    hidden = fb.tensor([[False, False, False, True]])
    with fb.no_grad():
        whole = encoder(x, src_key_padding_mask=hidden)
        short = encoder(x[:, :3])
    np.testing.assert_allclose(array(whole[:, :3]), array(short), atol=1e-6)


def test_decoder_and_the_whole():
    fb.manual_seed(0)
    model = nn.Transformer(6, 2, 1, 1, 8, dropout=0.0, batch_first=True).double()
    source, target = (fb.randn(2, n, 6, dtype=fb.float64) for n in (3, 4))
    encoder, decoder = model.encoder.layers[0], model.decoder.layers[0]
    memory = norm(array(source) + attend(encoder.self_attn, *[array(source)] * 3)[0])
    memory = norm(norm(memory + feed(encoder, memory)))
    x = array(target)
    x = norm(x + attend(decoder.self_attn, x, x, x, CAUSAL)[0])
    x = norm(x + attend(decoder.multihead_attn, x, memory, memory)[0])
    x = norm(norm(x + feed(decoder, x)))
    mask = model.generate_square_subsequent_mask(4, dtype=fb.float64)
    np.testing.assert_allclose(array(model(source, target, tgt_mask=mask)), x, atol=1e-10)
    with pytest.raises(RuntimeError, match="the batch number of src and tgt must be equal"):
        model(source[:1], target)
    with pytest.raises(RuntimeError, match="feature number of src and tgt"):
        model(source[..., :5], target)
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not x"):
        nn.TransformerEncoderLayer(4, 1, activation="x")


def test_layers_of_a_stack_are_copies():
    layer = nn.TransformerDecoderLayer(4, 1, 8)
    stack = nn.TransformerDecoder(layer, 2)
    first, second = stack.layers
    assert fb.equal(first.linear1.weight, second.linear1.weight)
    assert first.linear1.weight is not second.linear1.weight
    assert list(first.state_dict())[:2] == ["self_attn.in_proj_weight", "self_attn.in_proj_bias"]


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (0, 4)], ids=["batch", "length", "alone"])
@pytest.mark.parametrize("training", [True, False])
def test_empty_batches_and_sequences(shape, training):
    x = fb.rand(shape, requires_grad=True)
    keys = shape[-2] if shape[-2] else 0
    m = nn.MultiheadAttention(4, 2, batch_first=True).train(training)
    for need in (True, False):
        y, w = m(x, x, x, need_weights=need)
        assert y.shape == shape
        assert w is None if not need else w.shape == (*shape[:-1], keys)
    encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).train(training)
    decoder = nn.TransformerDecoderLayer(4, 2, 8, batch_first=True).train(training)
    whole = nn.Transformer(4, 2, 1, 1, 8, batch_first=True).train(training)
    for y in (encoder(x), decoder(x, x), whole(x, x), m(x, x, x)[0]):
        assert y.shape == shape
        x.grad = None
        y.sum().backward()
        assert x.grad.shape == shape
    with fb.no_grad():
        assert encoder(x).shape == shape
    assert all(p.grad is None or not p.grad.any() for p in whole.encoder.parameters())


def masked_everywhere(kind, dtype):
    """Masks under which the second head, the second query, or every query sees no key."""
    hidden = fb.zeros(2, 3, 3, dtype=fb.bool)
    if kind == "head":
        hidden[1] = True
    else:
        hidden = hidden[0]
        hidden[1] = True
    return hidden if dtype == fb.bool else fb.zeros(hidden.shape).masked_fill(hidden, -fb.inf)


@pytest.mark.parametrize("dtype", [fb.bool, fb.float32])
@pytest.mark.parametrize("kind", ["head", "query"])
def test_what_sees_no_key_weighs_nothing(kind, dtype):
    fb.manual_seed(0)
    module = nn.MultiheadAttention(4, 2, batch_first=True)
    x = fb.randn(1, 3, 4)
    mask = masked_everywhere(kind, dtype)
    results = []
    for need in (True, False):
        for grad in (True, False):
            module.train(grad)
            module.zero_grad()
            with fb.set_grad_enabled(grad):
                y, w = module(
                    x, x, x, attn_mask=mask, need_weights=need, average_attn_weights=False
                )
            if w is not None:
                rows = w[0, 1] if kind == "head" else w[0, :, 1]
                assert (rows == 0).all() and not w.isnan().any()
            results.append(y.detach())
            if grad:
                y.sum().backward()
                results.append(module.in_proj_weight.grad.clone())
    outs, grads = results[0:1] + results[2:4] + results[5:], [results[1], results[4]]
    for y in outs[1:]:
        np.testing.assert_allclose(y.numpy(), outs[0].numpy(), atol=1e-6)
    assert not grads[0].isnan().any()
    np.testing.assert_allclose(grads[0].numpy(), grads[1].numpy(), atol=1e-5)


def test_padding_that_hides_every_key():
    module = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    x = fb.randn(2, 3, 4)
    padding = fb.tensor([[True] * 3, [False, False, True]])
    y, w = module(x, x, x, key_padding_mask=padding)
    z, _ = module(x, x, x, key_padding_mask=padding, need_weights=False)
    assert (w[0] == 0).all() and (w[1].sum(-1) - 1).abs().max() < 1e-6
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 3), (3, 4), (5, 5), (1, 3, 3), (4, 3, 3)])
@pytest.mark.parametrize("need", [True, False])
def test_the_hint_is_no_excuse_for_a_mask_of_a_wrong_shape(shape, need):
    module = nn.MultiheadAttention(4, 2, batch_first=True)
    x = fb.randn(1, 3, 4)
    mask = fb.zeros(shape, dtype=fb.bool)
    with pytest.raises(RuntimeError, match=f"The shape of the {len(shape)}D attn_mask is"):
        module(x, x, x, attn_mask=mask, is_causal=True, need_weights=need)
    if len(shape) == 2:
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        with pytest.raises(RuntimeError, match="The shape of the 2D attn_mask is"):
            layer(x, src_mask=mask, is_causal=True)
