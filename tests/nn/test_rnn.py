"""Recurrent modules against NumPy, packed sequences, argument errors."""

import copy
import pickle

import numpy as np
import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn.utils import rnn


def same(got, wanted):
    """Equal tensors, or tuples of them, up to rounding."""
    if isinstance(got, tuple):
        for g, w in zip(got, wanted, strict=True):
            same(g, w)
    else:
        np.testing.assert_allclose(
            got.detach().numpy(), wanted.detach().numpy(), rtol=1e-6, atol=1e-6
        )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(x, state, w_ih, w_hh, b_ih, b_hh):
    h, c = state
    i, f, g, o = np.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, h, w_ih, w_hh, b_ih, b_hh):
    ri, zi, ni = np.split(x @ w_ih.T + b_ih, 3, axis=-1)
    rh, zh, nh = np.split(h @ w_hh.T + b_hh, 3, axis=-1)
    r, z = sigmoid(ri + rh), sigmoid(zi + zh)
    n = np.tanh(ni + r * nh)
    return (1 - z) * n + z * h


def rnn_step(x, h, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)


STEPS = {"LSTM": lstm_step, "GRU": gru_step, "RNN": rnn_step}


def run(kind, module, x):
    """All layers and directions over x (L, N, E), in NumPy: (outputs, last states)."""
    batch, hidden = x.shape[1], module.hidden_size
    last = []
    for layer in range(module.num_layers):
        outputs = []
        for suffix in ("", "_reverse")[: 1 + module.bidirectional]:
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            weights = [
                getattr(module, f"{name}_l{layer}{suffix}").detach().numpy() for name in names
            ]
            zeros = np.zeros((batch, hidden))
            state = (zeros, zeros) if kind == "LSTM" else zeros
            steps = []
            for step in x[::-1] if suffix else x:
                state = STEPS[kind](step, state, *weights)
                steps.append(state[0] if kind == "LSTM" else state)
            outputs.append(np.stack(steps[::-1] if suffix else steps))
            last.append(state)
        x = np.concatenate(outputs, axis=-1)
    return x, last


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_against_numpy(kind, batch_first):
    fb.manual_seed(0)
    module = getattr(nn, kind)(
        3, 4, num_layers=2, bidirectional=True, batch_first=batch_first
    ).double()
    x = fb.randn(5, 2, 3, dtype=fb.float64)
    expected, last = run(kind, module, x.numpy())
    output, state = module(x.transpose(0, 1) if batch_first else x)
    if batch_first:
        output = output.transpose(0, 1)
    np.testing.assert_allclose(output.detach().numpy(), expected, atol=1e-12)
    for k, part in enumerate(state if kind == "LSTM" else (state,)):
        wanted = np.stack([s[k] if kind == "LSTM" else s for s in last])
        np.testing.assert_allclose(part.detach().numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_cells(kind):
    cell = getattr(nn, kind + "Cell")(3, 4).double()
    x = fb.randn(2, 3, dtype=fb.float64)
    weights = [p.detach().numpy() for p in cell.parameters()]
    zeros = np.zeros((2, 4))
    expected = STEPS[kind](x.numpy(), (zeros, zeros) if kind == "LSTM" else zeros, *weights)
    state = cell(x)
    pairs = zip(state, expected, strict=True) if kind == "LSTM" else [(state, expected)]
    for got, want in pairs:
        np.testing.assert_allclose(got.detach().numpy(), want, atol=1e-12)
    one = cell(x[0])
    first = (one[0], state[0]) if kind == "LSTM" else (one, state)
    np.testing.assert_allclose(first[0].detach().numpy(), first[1][0].detach().numpy())
    with pytest.raises(ValueError, match="Expected input to be 1D or 2D, got 3D instead"):
        cell(x[None])


def test_unbatched_and_continued():
    module = nn.LSTM(2, 3).double()
    x = fb.randn(6, 1, 2, dtype=fb.float64)
    whole, end = module(x)
    first, state = module(x[:4])
    second, state = module(x[4:], state)
    same(fb.cat([first, second]), whole)
    same(state, end)
    flat, (h, c) = module(x[:, 0])
    same(flat, whole[:, 0])
    assert h.shape == c.shape == (1, 3)


def test_projection():
    module = nn.LSTM(3, 5, proj_size=2, bidirectional=True)
    output, (h, c) = module(fb.ones(4, 1, 3))
    assert output.shape == (4, 1, 4) and h.shape == (2, 1, 2) and c.shape == (2, 1, 5)
    assert module.weight_hr_l0_reverse.shape == (2, 5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_packed_sequences_are_the_single_ones(kind):
    module = getattr(nn, kind)(2, 3, bidirectional=True).double()
    sequences = [fb.randn(n, 2, dtype=fb.float64) for n in (3, 5, 1)]
    packed, state = module(rnn.pack_sequence(sequences, enforce_sorted=False))
    h = state[0] if kind == "LSTM" else state
    for i, (got, seq) in enumerate(zip(rnn.unpack_sequence(packed), sequences, strict=True)):
        wanted, last = module(seq)
        same(got, wanted)
        same(h[:, i], last[0] if kind == "LSTM" else last)


def test_packing():
    padded = fb.tensor([[1.0, 2, 3], [4, 5, 0], [6, 0, 0]])
    packed = rnn.pack_padded_sequence(padded, [3, 2, 1], batch_first=True)
    assert packed.data.tolist() == [1, 4, 6, 2, 5, 3]
    assert packed.batch_sizes.tolist() == [3, 2, 1] and packed.sorted_indices is None
    again, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
    assert fb.equal(again, padded) and lengths.tolist() == [3, 2, 1]
    longer, _ = rnn.pad_packed_sequence(packed, padding_value=9.0, total_length=4)
    assert longer.t().tolist()[2] == [6, 9, 9, 9]
    mixed = rnn.pack_padded_sequence(padded.t()[:, [2, 0, 1]], [1, 3, 2], enforce_sorted=False)
    assert mixed.data.tolist() == packed.data.tolist()
    assert mixed.sorted_indices.tolist() == [1, 2, 0]
    assert mixed.unsorted_indices.tolist() == [2, 0, 1]
    back, lengths = rnn.pad_packed_sequence(mixed)
    assert lengths.tolist() == [1, 3, 2] and back[:, 0].tolist() == [6, 0, 0]
    assert mixed.double().data.dtype == fb.float64 and mixed.to(fb.float32) is mixed
    assert pickle.loads(pickle.dumps(packed)).batch_sizes.tolist() == [3, 2, 1]
    for lengths, message in (
        ([1, 2, 3], "must be sorted in decreasing order"),
        ([3, 2, 0], "has to be greater than 0"),
        ([3, 2], r"Expected `len\(lengths\)` to be equal to batch_size"),
        ([4, 2, 1], "the longest of lengths is 4"),
    ):
        with pytest.raises(RuntimeError, match=message):
            rnn.pack_padded_sequence(padded, lengths, batch_first=True)
    with pytest.raises(ValueError, match="Expected total_length to be at least"):
        rnn.pad_packed_sequence(packed, total_length=2)


def test_padding():
    sequences = [fb.tensor([1.0, 2.0]), fb.tensor([3.0])]
    assert rnn.pad_sequence(sequences).tolist() == [[1, 3], [2, 0]]
    left = rnn.pad_sequence(sequences, batch_first=True, padding_value=7, padding_side="left")
    assert left.tolist() == [[1, 2], [7, 3]]
    single = rnn.unpad_sequence(rnn.pad_sequence(sequences), fb.tensor([2, 1]))
    assert [s.tolist() for s in single] == [[1, 2], [3]]
    leaf = fb.ones(2, requires_grad=True)
    rnn.pad_sequence([leaf, fb.ones(3)]).sum().backward()
    assert leaf.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Expected padding_side"):
        rnn.pad_sequence(sequences, padding_side="up")
    with pytest.raises(RuntimeError, match="Expected iterable for input sequences"):
        rnn.pad_sequence(3)


def test_copies_and_replaced_weights():
    module = nn.GRU(2, 3)
    x = fb.ones(4, 1, 2)
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        same(twin(x), module(x))
    with fb.no_grad():
        for p in module.parameters():
            p.zero_()
    assert module(x)[0].abs().sum().item() == 0
    module.weight_ih_l0 = nn.Parameter(fb.ones(9, 2))
    assert module(x)[0].abs().sum().item() > 0
    assert [len(layer) for layer in module.all_weights] == [4]
    module.flatten_parameters()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.LSTM(2, 0), ValueError, "hidden_size must be greater than zero"),
        (lambda: nn.LSTM(2.0, 1), TypeError, "input_size should be of type int, got: float"),
        (lambda: nn.LSTM(2, 3, bias=1), TypeError, "bias should be of type bool"),
        (lambda: nn.LSTM(2, 3, dropout=2), ValueError, r"a number in range \[0, 1\]"),
        (lambda: nn.LSTM(2, 3, proj_size=3), ValueError, "smaller than hidden_size"),
        (lambda: nn.GRU(2, 3, proj_size=1), ValueError, "only supported for LSTM"),
        (lambda: nn.RNN(2, 3, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'"),
        (lambda: nn.LSTM(2, 3)(fb.ones(2)), ValueError, "LSTM: Expected input to be 2D or 3D"),
        (lambda: nn.GRU(2, 3)(fb.ones(1, 1, 4)), RuntimeError, "Expected 2, got 4"),
        (
            lambda: nn.GRU(2, 3)(fb.ones(1, 1, 2, dtype=fb.float64)),
            ValueError,
            "does not match weight dtype",
        ),
        (
            lambda: nn.GRU(2, 3)(fb.ones(1, 1, 2), fb.ones(1, 3)),
            RuntimeError,
            "For batched 3-D input, hx should also be 3-D but got 2-D tensor",
        ),
        (
            lambda: nn.LSTM(2, 3)(fb.ones(1, 1, 2), (fb.ones(1, 1, 4), fb.ones(1, 1, 3))),
            RuntimeError,
            r"Expected hidden\[0\] size \(1, 1, 3\), got \[1, 1, 4\]",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_dropout_of_a_single_layer_warns():
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers greater than 1"):
        nn.LSTM(2, 3, dropout=0.5)


# ---- higher derivatives --------------------------------------------------------------------


def _double(module, *shape):
    fb.manual_seed(0)
    return module.double(), fb.rand(*shape, dtype=fb.float64, requires_grad=True)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"num_layers": 2}])
def test_second_derivatives_of_layers(kind, options):
    m, x = _double(getattr(nn, kind)(2, 2, **options), 3, 2, 2)

    def run(x, *params):
        out, state = m(x)
        states = state if isinstance(state, tuple) else (state,)
        return out, *states

    assert fb.autograd.gradgradcheck(run, (x, *m.parameters()))


def test_second_derivatives_of_relu_and_without_biases():
    m, x = _double(nn.RNN(2, 2, nonlinearity="relu", bias=False), 2, 2, 2)
    assert fb.autograd.gradgradcheck(lambda x, *p: m(x)[0], (x, *m.parameters()))


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_second_derivatives_of_cells(kind):
    m, x = _double(getattr(nn, kind)(2, 3), 2, 2)
    assert fb.autograd.gradgradcheck(lambda x, *p: m(x), (x, *m.parameters()))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("both", [False, True])
def test_second_derivatives_of_packed_sequences(kind, both):
    m, x = _double(getattr(nn, kind)(2, 2, bidirectional=both), 3, 2, 2)

    def run(x, *params):
        return m(rnn.pack_padded_sequence(x, [3, 1]))[0].data

    assert fb.autograd.gradgradcheck(run, (x, *m.parameters()))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_the_recorded_backward_is_the_fused_one(kind):
    m, x = _double(getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True), 5, 2, 3)
    y, state = m(x)
    total = y.pow(2).sum() + (state[1] if kind == "LSTM" else state).sin().sum()
    inputs = (x, *m.parameters())
    fused = fb.autograd.grad(total, inputs, retain_graph=True)
    recorded = fb.autograd.grad(total, inputs, create_graph=True)
    for a, b in zip(fused, recorded, strict=True):
        assert a.allclose(b, rtol=1e-10, atol=1e-12) and b.requires_grad
