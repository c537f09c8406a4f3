"""Fused attention and recurrent layers against their definitions in NumPy, and gradients."""

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional


def attend(q, k, v, mask, scale):
    scores = q @ np.swapaxes(k, -1, -2) * scale + mask
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("queries,keys,dim", [(1, 1, 1), (5, 9, 8), (200, 600, 16)])
@pytest.mark.parametrize("kind", ["none", "causal", "bool", "float"])
def test_attention(queries, keys, dim, kind):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 3, n, dim)) for n in (queries, keys, keys))
    mask, given = np.zeros((queries, keys)), None
    if kind == "causal":
        mask = np.where(np.tril(np.ones((queries, keys))) > 0, 0.0, -np.inf)
    if kind == "bool":
        allowed = rng.random((queries, keys)) < 0.7
        allowed[:, 0] = True
        mask, given = np.where(allowed, 0.0, -np.inf), torch.from_numpy(allowed)
    if kind == "float":
        mask = rng.standard_normal((queries, keys))
        given = torch.from_numpy(mask)
    got = F.scaled_dot_product_attention(
        *map(torch.from_numpy, (q, k, v)), given, is_causal=kind == "causal"
    )
    np.testing.assert_allclose(got.numpy(), attend(q, k, v, mask, dim**-0.5), atol=1e-12)


def test_attention_gradients():
    q, k, v = (torch.randn(1, 2, n, 3, dtype=torch.float64, requires_grad=True) for n in (4, 5, 5))
    run = F.scaled_dot_product_attention
    assert torch.autograd.gradcheck(run, (q, k, v))
    assert torch.autograd.gradgradcheck(run, (q, k, v))


@pytest.mark.parametrize("queries", [1, 3, 7])
@pytest.mark.parametrize("heads,kv_heads", [(4, 1), (6, 3), (2, 2)])
def test_heads_that_share_keys(queries, heads, kv_heads):
    shapes = [(2, heads, queries, 5), (2, kv_heads, 9, 5), (2, kv_heads, 9, 3)]
    q, k, v = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes)
    allowed = torch.rand(queries, 9) < 0.7
    allowed[:, 0] = True

    def run(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, allowed, enable_gqa=heads != kv_heads)

    wide = [np.repeat(x.detach().numpy(), heads // kv_heads, 1) for x in (k, v)]
    mask = np.where(allowed.numpy(), 0.0, -np.inf)
    expected = attend(q.detach().numpy(), *wide, mask, 5**-0.5)
    np.testing.assert_allclose(run(q, k, v).detach().numpy(), expected, atol=1e-12)
    assert torch.autograd.gradcheck(run, (q, k, v))
    assert torch.autograd.gradgradcheck(run, (q, k, v))


def test_no_heads_of_keys_are_refused():
    q, k = torch.randn(1, 4, 2, 3), torch.randn(1, 0, 2, 3)
    with pytest.raises(RuntimeError, match="must divide the number of heads"):
        F.scaled_dot_product_attention(q, k, k, enable_gqa=True)


def test_a_row_that_sees_nothing_is_zero():
    q = torch.randn(1, 1, 2, 4)
    allowed = torch.tensor([[True, True], [False, False]])
    out = F.scaled_dot_product_attention(q, q, q, allowed)
    assert (out[0, 0, 1] == 0).all()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def steps(kind, x, h, c, w_ih, w_hh, b_ih, b_hh):
    """One layer, forward direction, by the textbook."""
    out = []
    for row in x:
        a, b = row @ w_ih.T + b_ih, h @ w_hh.T + b_hh
        if kind == "lstm":
            i, f, g, o = np.split(a + b, 4, -1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        elif kind == "gru":
            (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
            r, z = sigmoid(ar + br), sigmoid(az + bz)
            h = (1 - z) * np.tanh(an + r * bn) + z * h
        else:
            h = np.tanh(a + b)
        out.append(h)
    return np.stack(out), h, c


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_formats_attend_in_float(dtype):
    """Blocks of queries and keys, heads that share keys: the result is rounded, and before that at
    most the weights (where bfloat16 is multiplied by tiles)."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, h, n, 24).to(dtype) for h, n in ((4, 200), (2, 513), (2, 513)))
    got = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert got.dtype == dtype
    q, k, v = (x.double() for x in (q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)))
    weights = (q @ k.mT / 24**0.5).softmax(-1)
    want, sizes = weights @ v, weights @ v.abs()
    eps = torch.finfo(dtype).eps
    bound = eps / 2 * want.abs() + 1e-6 * sizes
    if dtype is torch.bfloat16:
        bound += eps / 2 * sizes
    assert ((got.double() - want).abs() <= bound).all()


@pytest.mark.parametrize("rule", ["all", "causal", "mask"])
@pytest.mark.parametrize("shape", [(200, 513, 24, 40), (64, 300, 64, 64), (257, 31, 17, 33)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_half_formats(dtype, shape, rule):
    """Against double precision, with errors of the size of what is rounded."""
    torch.manual_seed(1)
    queries, keys, width, value_width = shape
    q, k, v = (
        torch.randn(2, n, 3, d).to(dtype).transpose(1, 2).requires_grad_()
        for n, d in ((queries, width), (keys, width), (keys, value_width))
    )
    mask = {"all": None, "causal": torch.ones(queries, keys, dtype=torch.bool).tril(),
            "mask": torch.rand(queries, keys) > 0.3}[rule]  # fmt: skip
    given = {"attn_mask": mask} if rule == "mask" else {"is_causal": rule == "causal"}
    out = F.scaled_dot_product_attention(q, k, v, **given)
    g = torch.randn(out.shape).to(dtype)
    got = torch.autograd.grad(out, (q, k, v), g)
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    scores = exact[0] @ exact[1].mT / width**0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -np.inf)
    want = torch.autograd.grad(scores.softmax(-1) @ exact[2], exact, g.double())
    for a, b in zip(got, want, strict=True):
        assert a.dtype == dtype
        assert (a.double() - b).abs().max() <= 4 * torch.finfo(dtype).eps * b.abs().max()


@pytest.mark.parametrize("kind,gates", [("lstm", 4), ("gru", 3), ("rnn_tanh", 1)])
@pytest.mark.parametrize("hidden", [1, 7, 40])
def test_layer(kind, gates, hidden):
    rng = np.random.default_rng(0)
    x, h, c = rng.standard_normal((6, 3, 5)), *rng.standard_normal((2, 3, hidden))
    size = gates * hidden
    shapes = [(size, 5), (size, hidden), (size,), (size,)]
    params = [rng.standard_normal(s) * 0.3 for s in shapes]
    states = [torch.from_numpy(h)[None], torch.from_numpy(c)[None]]
    hx = states if kind == "lstm" else states[0]
    weights = [torch.from_numpy(p) for p in params]
    got = getattr(torch, kind)(torch.from_numpy(x), hx, weights, True, 1, 0.0, False, False, False)
    want = steps(kind, x, h, c, *params)
    np.testing.assert_allclose(got[0].numpy(), want[0], atol=1e-12)
    np.testing.assert_allclose(got[1][0].numpy(), want[1], atol=1e-12)
    if kind == "lstm":
        np.testing.assert_allclose(got[2][0].numpy(), want[2], atol=1e-12)


@pytest.mark.parametrize("make", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_layer_gradients(make):
    net = make(3, 4, num_layers=2, bidirectional=True).double()
    x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *_: net(x)[0], (x, *net.parameters()), fast_mode=True)


def test_packed_sequence_equals_each_sequence_alone():
    from flambeau.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    net = torch.nn.LSTM(3, 4, bidirectional=True).double()
    x, lengths = torch.randn(5, 3, 3, dtype=torch.float64), [5, 3, 2]
    out, (h, _) = net(pack_padded_sequence(x, lengths))
    padded, _ = pad_packed_sequence(out)
    for i, n in enumerate(lengths):
        alone, (one, _) = net(x[:n, i : i + 1])
        assert torch.allclose(padded[:n, i], alone[:, 0]) and torch.allclose(h[:, i], one[:, 0])
