"""Traces: the same values for other sizes, weights shared, what they warn of and refuse."""

import copy
import io
import threading
import warnings

import pytest

import flambeau as torch
from flambeau import nn


def _saved(script):
    file = io.BytesIO()
    torch.jit.save(script, file)
    file.seek(0)
    return torch.jit.load(file)


def _steps(x, y):
    z = x[:, 1:] @ y.t()[1:]
    z = z.reshape(z.size(0), -1) * 2 + x.shape[1] / 3
    a, b = z.chunk(2, 1)
    z[:, 0] = 1
    z += 1
    return a.relu(), torch.cat([a, b], 1).double(), z.detach(), x.new_zeros(y.shape[0] // 2)


def test_sizes_vary():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = torch.jit.trace(_steps, (torch.randn(1, 4), torch.randn(6, 4)))
    for shape in ((1, 4), (5, 7), (2, 9)):
        x, y = torch.randn(*shape), torch.randn(4, shape[1])
        for got in (traced(x.clone(), y), _saved(traced)(x.clone(), y)):
            for a, b in zip(_steps(x.clone(), y), got, strict=True):
                assert a.dtype == b.dtype and torch.equal(a, b)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.rnn, self.head = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 2)
        self.kept = torch.linspace(0, 1, 5)

    def forward(self, x):
        x = self.norm(self.conv(x)).relu().mean(3).transpose(1, 2)
        y, (h, _) = self.rnn(x)
        return self.head(y + self.kept).softmax(-1), h


def test_modules_share_weights_and_train():
    net = Net()
    traced = torch.jit.trace(net, torch.randn(1, 1, 8, 8), check_trace=False)
    assert traced.head.weight is net.head.weight
    eager, loaded = copy.deepcopy(net), _saved(traced)
    x = torch.randn(3, 1, 9, 7)
    losses = []
    for model in (eager, loaded):
        step = torch.optim.SGD(model.parameters(), lr=0.1)
        found = []
        for _ in range(3):
            step.zero_grad()
            loss = sum(y.square().sum() for y in model(x))
            loss.backward()
            step.step()
            found.append(loss.item())
        losses.append(found)
    assert losses[0] == losses[1] and len(set(losses[0])) == 3
    assert torch.equal(eager.norm.running_mean, loaded.norm.running_mean)


def test_decisions_by_values_warn_with_their_line():
    def choose(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    with pytest.warns(torch.jit.TracerWarning, match="value of a tensor") as caught:
        traced = torch.jit.trace(choose, torch.ones(2))
    assert caught[0].filename == __file__ and caught[0].lineno == choose.__code__.co_firstlineno + 1
    assert torch.equal(traced(-torch.ones(2)), torch.zeros(2))

    with pytest.warns(torch.jit.TracerWarning, match="Python integer"):
        traced = torch.jit.trace(lambda x: [x * i for i in range(x.size(0))][-1], torch.ones(3))
    assert traced(torch.ones(5))[0] == 2


class Gate(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        else:
            return -x


class Cell(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.gate, self.linear = gate, nn.Linear(4, 4)

    def forward(self, x, h):
        new_h = torch.tanh(self.gate(self.linear(x)) + h)
        return new_h, new_h


class Loop(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, xs):
        h, y = torch.zeros(3, 4), torch.zeros(3, 4)
        for i in range(xs.size(0)):
            y, h = self.cell(xs[i], h)
        return y, h


class Wrap(nn.Module):
    def __init__(self, loop):
        super().__init__()
        self.loop = loop

    def forward(self, xs):
        y, _ = self.loop(xs)
        return torch.relu(y)


def test_traces_and_scripts_hold_each_other():
    torch.manual_seed(0)
    cell = Cell(Gate())
    example = torch.rand(3, 4), torch.rand(3, 4)
    scripted = torch.jit.script(Cell(torch.jit.script(cell.gate)))
    traced_cell = torch.jit.trace(Cell(torch.jit.script(cell.gate)), example)
    loop = torch.jit.script(Loop(traced_cell))
    traced = torch.jit.trace(Wrap(loop), torch.rand(10, 3, 4))
    plain = Wrap(Loop(Cell(Gate())))
    plain.loop.cell.linear = traced_cell.linear
    for xs in (torch.rand(10, 3, 4), -torch.rand(4, 3, 4)):
        want = torch.relu(torch.zeros(3, 4))
        h = torch.zeros(3, 4)
        for x in xs:
            z = nn.functional.linear(x, traced_cell.linear.weight, traced_cell.linear.bias)
            h = torch.tanh((z if z.sum() > 0 else -z) + h)
            want = torch.relu(h)
        assert torch.equal(traced(xs), want) and torch.equal(_saved(traced)(xs), want)
    assert scripted.gate.code == torch.jit.script(Gate()).code
    assert "Loop" in traced.code and traced.loop.cell.gate.code.count("return") == 2


def test_functions_scripted_when_traced_keep_their_decisions():
    @torch.jit.script_if_tracing
    def gate(x):
        if x.sum() > 0:
            return x
        return -x

    assert torch.equal(gate(-torch.ones(1)), torch.ones(1)) and not torch.jit.is_tracing()
    traced = torch.jit.trace(lambda x: gate(x) + 1, torch.ones(1))
    assert torch.equal(traced(-torch.ones(1)), torch.full((1,), 2.0))


def test_several_methods_and_containers():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * self.weight

        def twice(self, pair):
            a, b = pair
            return a + self.weight, b * 2

    pair = Pair()
    x = torch.rand(2)
    made = torch.jit.trace_module(pair, {"forward": x, "twice": ((x, x),)})
    assert torch.equal(made(x), pair(x)) and torch.equal(made.twice((x, x))[1], 2 * x)
    named = torch.jit.trace(lambda d: d["a"] + d["b"], ({"a": x, "b": x},))
    assert torch.equal(named({"a": x, "b": 3 * x}), 4 * x)
    with torch.no_grad():
        quiet = torch.jit.trace(pair, x)
    assert quiet(x).requires_grad

    def partly(x):
        with torch.no_grad():
            y = x * 2
        return y + x

    assert torch.equal(torch.jit.trace(partly, x)(x.requires_grad_()), 3 * x)


def test_refusals():
    with pytest.raises(RuntimeError, match="a list at the output"):
        torch.jit.trace(lambda x: [x, x], torch.ones(1))
    assert len(torch.jit.trace(lambda x: [x, x], torch.ones(1), strict=False)(torch.ones(1))) == 2
    with pytest.raises(RuntimeError, match="expected tensors, numbers"):
        torch.jit.trace(lambda x: x, (object(),))
    state = []

    def drifting(x):
        state.append(1)
        return x + len(state)

    with pytest.raises(torch.jit.TracingCheckError, match="another result"):
        torch.jit.trace(drifting, torch.ones(1))


MODULES = [
    (nn.Linear(3, 4), (2, 3)), (nn.Conv1d(2, 3, 2), (2, 2, 5)), (nn.Conv2d(2, 3, 2), (2, 2, 5, 5)),
    (nn.GRU(3, 4), (5, 2, 3)), (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), (3, 2, 4)),
    (nn.LayerNorm(3), (2, 3)), (nn.GroupNorm(2, 4), (2, 4, 3)), (nn.MaxPool2d(2), (1, 2, 6, 6)),
    (nn.AdaptiveAvgPool2d(2), (1, 2, 6, 6)), (nn.Upsample(scale_factor=2), (1, 2, 3, 3)),
    (nn.PixelShuffle(2), (1, 4, 3, 3)), (nn.Flatten(), (1, 2, 3)), (nn.GELU(), (2, 3)),
    (nn.Bilinear(3, 3, 2), (2, 3)), (nn.Softmax(-1), (2, 3)), (nn.PReLU(), (2, 3)),
    (nn.InstanceNorm2d(3), (2, 3, 4, 4)), (nn.ConvTranspose2d(2, 3, 2), (1, 2, 4, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("module", "shape"), MODULES, ids=lambda x: type(x).__name__)
def test_modules_at_other_batch_sizes(module, shape):
    batch = 1 if isinstance(module, (nn.GRU, nn.TransformerEncoderLayer)) else 0
    n = 2 if isinstance(module, nn.Bilinear) else 1

    def given(size):
        sizes = list(shape)
        sizes[batch] = size
        return tuple(torch.randn(sizes) for _ in range(n))

    traced = torch.jit.trace(module, given(2))
    loaded = _saved(traced)
    for size in (1, 5):
        args = given(size)
        want = module(*args)
        for got in (traced(*args), loaded(*args)):
            pairs = [(want, got)] if isinstance(want, torch.Tensor) else zip(want, got, strict=True)
            for a, b in pairs:
                assert torch.allclose(a, b, 1e-6, 1e-6)


def test_other_threads_run_scripts_meanwhile():
    @torch.jit.script
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x

    seen = []

    def g(x):
        other = threading.Thread(
            target=lambda: seen.append((torch.jit.is_tracing(), f(torch.ones(1))))
        )
        other.start()
        other.join()
        return f(x) * 2

    traced = torch.jit.trace(g, torch.ones(1), check_trace=False)
    assert seen == [(False, torch.full((1,), 2.0))]
    assert traced.code.count("f(x)") == 1 and torch.equal(
        traced(-torch.ones(1)), torch.full((1,), -2.0)
    )
