"""Backward of compiled functions of which some results are not used: gradients are eager's."""

import itertools

import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau._aot import runtime
from flambeau._compiler import cache as disk
from flambeau._compiler import execute
from flambeau._ir import native, plain

BACKENDS = ["aot_eager", "inductor"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path / "cache"))
    torch.compiler.reset()


def leaves(*shapes, dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(*s, dtype=dtype, requires_grad=True) for s in shapes]


def gradients(f, inputs, used):
    """Of the sum of squares of some results; None where there is none."""
    results = f(*inputs)
    loss = sum((results[k] * results[k]).sum() for k in used)
    return torch.autograd.grad(loss, inputs, allow_unused=True)


def same(got, want):
    assert [g is None for g in got] == [w is None for w in want]
    for g, w in zip(got, want, strict=True):
        if w is not None:
            np.testing.assert_allclose(g.detach(), w.detach(), rtol=1e-12, atol=1e-12)


def three(x, y, w):
    h = torch.tanh(x @ w)
    a = h.cumsum(0) * y
    return torch.softmax(a, 1), (h - y).exp(), torch.cat([h, y.sin()])


def branches(x, y, w):
    a, b = (x @ w).chunk(2)
    return a * y[:1], torch.where(b > 0, a, b).sum(0), F.layer_norm(b, (b.shape[1],)) - a


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [three, branches])
@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_of_any_of_the_results(f, backend, dynamic):
    inputs = leaves((4, 3), (4, 5), (3, 5))
    compiled = torch.compile(f, backend=backend, dynamic=dynamic)
    for n in (1, 2, 3):
        for used in itertools.combinations(range(3), n):
            same(gradients(compiled, inputs, used), gradients(f, inputs, used))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_infinite_derivative_of_an_unused_result_does_no_harm(backend):
    def f(x):
        return (x * 3).sum(), x.log().sum()

    x = torch.zeros(3, requires_grad=True)
    (got,) = torch.autograd.grad(torch.compile(f, backend=backend)(x)[0], x)
    assert got.tolist() == [3.0, 3.0, 3.0]


def test_an_input_of_unused_results_has_no_gradient():
    x, y = leaves((3,), (3,))
    a, _ = torch.compile(lambda x, y: (x.sin(), y.cos()))(x, y)
    a.sum().backward()
    np.testing.assert_allclose(x.grad, np.cos(x.detach()), rtol=1e-12)
    assert y.grad is None


def test_values_in_channels_last():
    conv = torch.nn.Conv2d(16, 16, 3, padding=1)

    def f(x):
        y = conv(x)
        return F.relu(y), conv(y).sigmoid(), y.mean((2, 3))

    (x,) = leaves((8, 16, 16, 16), dtype=torch.float32)
    compiled = torch.compile(f)
    for used in ((0,), (1,), (2,), (0, 2)):
        got, want = (gradients(g, [x, *conv.parameters()], used) for g in (_of(compiled), _of(f)))
        for g, w in zip(got, want, strict=True):
            assert (g - w).abs().max() <= 1e-5 * w.abs().max()


def _of(f):
    return lambda x, *parameters: f(x)


def test_from_the_cache(monkeypatch):
    monkeypatch.delenv("FLAMBEAU_VERIFY")  # which compiles in any case
    inputs = leaves((4, 3), (4, 5), (3, 5))
    want = gradients(three, inputs, (1,))
    same(gradients(torch.compile(three), inputs, (1,)), want)
    torch.compiler.reset()
    monkeypatch.setattr(execute, "programs", None)
    same(gradients(torch.compile(three), inputs, (1,)), want)


def test_a_set_of_results_is_compiled_once_and_past_a_bound_not_at_all(monkeypatch):
    made = []
    partial_backward, programs = runtime.partial_backward, execute.programs

    def counted(*args):
        made.append("narrowed")
        return partial_backward(*args)

    def compiled_too(graphs):
        made.append("compiled")
        return programs(graphs)

    monkeypatch.setattr(runtime, "partial_backward", counted)
    monkeypatch.setattr(execute, "programs", compiled_too)
    monkeypatch.setattr(native, "PARTS", 2)

    def f(x, y):
        return x * y, x.sin() + y, y.exp()

    inputs = leaves((3,), (3,))
    compiled = torch.compile(f)
    for used in ((0,), (0,), (1,), (0, 1, 2), (2,), (1,), (2, 1)):
        same(gradients(compiled, inputs, used), gradients(f, inputs, used))
    assert made.count("narrowed") == 5 and made.count("compiled") == 1 + 2


@pytest.mark.parametrize("damage", [None, (), "text", (1, 2, 3, 4), (((), None), (), (), ())])
def test_a_part_that_nobody_wrote_so_is_compiled_again(monkeypatch, tmp_path, damage):
    monkeypatch.delenv("FLAMBEAU_VERIFY")
    inputs = leaves((4, 3), (4, 5), (3, 5))
    want = gradients(three, inputs, (1,))
    gradients(torch.compile(three), inputs, (1,))
    plans = {p.name: plain.loads(disk.read(p.name)) for p in (tmp_path / "cache").glob("*.plan")}
    (name,) = (n for n, data in plans.items() if len(data) == 4)
    (tmp_path / "cache" / name).unlink()
    disk.write(name, plain.dumps(damage).encode())
    torch.compiler.reset()
    same(gradients(torch.compile(three), inputs, (1,)), want)


def two(x, y):
    h = x.sin() * y
    return h.softmax(-1), h.exp().T.contiguous().T


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_cotangents_that_are_one_number(backend, dynamic):
    """Of a sum, a mean, a part of it (which are more numbers), and in channels of memory."""
    compiled = torch.compile(two, backend=backend, dynamic=dynamic)
    weights = torch.linspace(0, 1, 256, dtype=torch.float64)
    for rows in (300, 310):
        inputs = leaves((rows, 256), (256,))
        for use in (
            lambda a, b: (a * a).sum() + b.mean(),
            lambda a, b: b.sum(),
            lambda a, b: 0.3 * a.sum() - (b.sum(0) * weights).sum(),
            lambda a, b: a.mean() * b.sum(),
            lambda a, b: a.sum() + b.T.flatten().sum(),
        ):
            got, want = (torch.autograd.grad(use(*f(*inputs)), inputs) for f in (compiled, two))
            same(got, want)


def test_one_number_is_a_part_of_its_own_until_there_are_four(monkeypatch):
    met = []
    part_of = runtime.part_of
    monkeypatch.setattr(
        runtime, "part_of", lambda f, there, end: (met.append(there), part_of(f, there, end))[1]
    )

    def three_sines(x, y):
        return x.sin() + y, (x * y).sin(), y.sin() * x

    def sums(f, inputs, used):
        results = f(*inputs)
        loss = sum(results[k].sum() for k in used)
        return torch.autograd.grad(loss, inputs, allow_unused=True)

    compiled = torch.compile(three_sines, backend="aot_eager")
    inputs = leaves((300, 256), (300, 256))
    for used in ((0,), (1,), (0, 2), (1,), (0, 1), (1, 2), (0, 1, 2), (0,)):
        same(sums(compiled, inputs, used), sums(three_sines, inputs, used))
    assert met == ["e00", "0e0", "e0e", "ee0", "011"]
    sums(compiled, [x[:3] for x in inputs], (0,))
    assert met[5:] == ["100"]


def test_verifying_compares_parts(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_VERIFY", "1")
    inputs = leaves((4, 3), (4, 5), (3, 5))
    gradients(torch.compile(three), inputs, (1,))
    plans = {p.name: plain.loads(disk.read(p.name)) for p in (tmp_path / "cache").glob("*.plan")}
    ((name, data),) = (x for x in plans.items() if len(x[1]) == 4)
    (tmp_path / "cache" / name).unlink()
    disk.write(name, plain.dumps((*data[:3], (7,))).encode())
    torch.compiler.reset()
    with pytest.raises(RuntimeError, match="is not what compiling gives now"):
        gradients(torch.compile(three), inputs, (1,))


@pytest.mark.parametrize("backend", BACKENDS)
def test_constants_that_are_no_numbers(backend):
    def f(x, y):
        return x * complex("nan"), y * complex(-0.0, 2)

    inputs = [torch.ones(3, dtype=torch.complex64, requires_grad=True) for _ in range(2)]
    for used in ((0,), (1,)):
        got, want = (
            torch.autograd.grad([g(*inputs)[k].abs().sum() for k in used], inputs[used[0]])[0]
            for g in (torch.compile(f, backend=backend), f)
        )
        assert torch.allclose(got, want, equal_nan=True)


def test_a_plan_serves_the_same_function_of_another_place(monkeypatch):
    source = "def f(x, y):\n    return x * y, x.sin() + y\n"
    inputs = leaves((3,), (3,))
    for lines_before in (0, 5):  # FLAMBEAU_VERIFY compares what is compiled with what is kept
        scope = {"torch": torch}
        exec("\n" * lines_before + source, scope)
        torch.compiler.reset()
        same(
            gradients(torch.compile(scope["f"]), inputs, (1,)),
            gradients(scope["f"], inputs, (1,)),
        )


def test_a_retained_graph_serves_each_result():
    inputs = leaves((4, 3), (4, 5), (3, 5))
    results = torch.compile(three)(*inputs)
    for k, want in enumerate(three(*inputs)):
        got = torch.autograd.grad(results[k].sum(), inputs, retain_graph=True, allow_unused=True)
        same(got, torch.autograd.grad(want.sum(), inputs, retain_graph=True, allow_unused=True))


def test_a_derivative_of_the_users_own_sees_zeros():
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            return a.exp() + b  # not linear: what is absent counts

    inputs = leaves((3,))

    def f(x):
        return Odd.apply(x)

    for used in ((0,), (1,), (0, 1)):
        same(gradients(torch.compile(f), inputs, used), gradients(f, inputs, used))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_overwritten_after_a_break_asks_for_nothing(backend):
    def f(x, y):
        saved = x.tanh()  # its backward needs it as it was
        torch._dynamo.graph_break()
        saved.zero_()
        return y * 0.5

    inputs = leaves((2,), (2,))
    result = torch.compile(f, backend=backend)(*inputs)
    same(
        torch.autograd.grad(result.sum(), inputs, allow_unused=True), [None, torch.full((2,), 0.5)]
    )
