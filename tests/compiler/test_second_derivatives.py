"""Gradients of any order through compiled code: values of eager, and finite differences."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
from models import CASES

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn
from tools._derivative_draw import MODULES
from tools._program_check import optimised

BACKENDS = ["eager", "aot_eager", "inductor"]


@pytest.fixture(autouse=True, scope="module")
def less_optimised():
    with optimised("-O1"):
        yield


def orders(f, inputs, count):
    """Gradients of each order, of a number made of those of the order before."""
    out = []
    value = sum(r.sin().sum() for r in f(*inputs))
    grads = [value]
    for _ in range(count):
        wanted = [x for x in inputs if x.requires_grad]
        value = sum((g * g.detach().cos()).sum() for g in grads if g is not None)
        if not value.requires_grad:
            break
        grads = torch.autograd.grad(value, wanted, create_graph=True, allow_unused=True)
        out += [None if g is None else g.detach() for g in grads]
    return out


def agree(f, compiled, inputs, count=2, tolerance=1e-9):
    want = orders(f, inputs, count)
    torch.manual_seed(3)
    for _ in range(2):
        got = orders(compiled, inputs, count)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            if a is None or b is None:  # no gradient, or one that is zero
                assert all(t is None or not t.any() for t in (a, b))
            else:
                assert a.dtype == b.dtype
                torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def doubles(*shapes, seed=0):
    made = torch.Generator().manual_seed(seed)
    return [
        torch.rand(s, generator=made, dtype=torch.float64).mul_(1.5).add_(0.2).requires_grad_()
        for s in shapes
    ]


PROGRAMS = {
    "sin": (lambda x: [x.sin() * x], [(3,)]),
    "exp of exp": (lambda x: [x.neg().exp().exp()], [(3,)]),
    "matmul": (lambda x, w: [torch.tanh(x @ w)], [(3, 4), (4, 2)]),
    "two results": (lambda x, y: [x * y.sin(), (x.exp() * y).sum(0)], [(3,), (3,)]),
    "a result of no use": (lambda x: [x.cos(), x * 3, x.detach() * x], [(4,)]),
    "powers": (lambda x: [x**3 / (1 + x**2).sqrt()], [(5,)]),
    "softmax": (lambda x: [x.softmax(-1) * x.log_softmax(0)], [(3, 4)]),
    "indices": (lambda x: [x[:, [0, 2, 2]] ** 3, x.cumsum(1).square()], [(3, 4)]),
    "views": (lambda x: [x.t().reshape(-1)[1:].square(), x.expand(2, 3, 4).exp()], [(3, 4)]),
    "in place": (lambda x: [x.clone().mul_(x).sin_().add_(x)], [(4,)]),
    "parts in place": (lambda x: [_parts(x)], [(4,)]),
    "without gradients": (lambda x: [_quiet(x)], [(4,)]),
    "maximum": (lambda x, y: [torch.maximum(x * x, y).prod(0), x.amax(0) ** 3], [(4,), (4,)]),
    "norms": (lambda x: [x.norm(dim=1), torch.linalg.vector_norm(x, 3), x.var(0)], [(3, 4)]),
    "convolution": (lambda x, w: [F.conv1d(x, w, padding=1).tanh()], [(2, 3, 6), (4, 3, 3)]),
    "products": (lambda x, y: [torch.einsum("ij,jk->ik", x, y).sin(), x.prod()], [(2, 3), (3, 2)]),
    "attention": (lambda q, k: [F.scaled_dot_product_attention(q, k, k)], [(2, 3, 4), (2, 3, 4)]),
    "solve": (lambda a, b: [torch.linalg.solve(a @ a.mT + torch.eye(3), b)], [(3, 3), (3, 2)]),
    "complex": (lambda x: [torch.fft.rfft(x * x).abs()], [(6,)]),
}


def _parts(x):
    y = x * 1
    y[:2] *= y[2:].clone()
    y[1:].exp_()
    return y * y


def _quiet(x):
    with torch.no_grad():
        scale = x.exp().mean()
    return (x * scale).sin() * x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, backend):
    f, shapes = PROGRAMS[name]
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    agree(f, compiled, doubles(*shapes), count=3)


LAYERS = [(len(shape), *layer) for shape in ((4, 3), (2, 4, 6)) for layer in MODULES[len(shape)]]
SHAPES = {2: (4, 3), 3: (2, 4, 6)}


@pytest.mark.parametrize("dims, made, call", LAYERS, ids=[f"{d}-{m}" for d, m, _ in LAYERS])
def test_layers(dims, made, call):
    """Of the input and of the parameters."""
    shape = SHAPES[dims]
    sizes = {"n": shape[0], "c": shape[1], "l": shape[-1]}
    torch.manual_seed(0)
    module = eval(made.format(**sizes), {"nn": nn, "torch": torch}).double()
    text = call.format("x", m="module", **sizes)

    def f(x, *parameters):
        return [eval(text, {"torch": torch, "module": module, "x": x})]

    exec(f"def written(module, x):\n    return {text}", {"torch": torch}, scope := {})
    compiled = torch.compile(scope["written"], backend="aot_eager", fullgraph=True)
    inputs = [*doubles(shape), *(p for p in module.parameters() if p.requires_grad)]
    agree(f, lambda x, *_: [compiled(module, x)], inputs)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", CASES)
def test_models(name, backend):
    """A penalty on the gradients of the parameters."""
    torch.manual_seed(0)
    build, inputs, loss = CASES[name]
    model, given = build().double(), inputs(3)
    given = [x.double() if x.is_floating_point() else x for x in given]
    other = copy.deepcopy(model)
    compiled = torch.compile(other, backend=backend, fullgraph=True)

    def penalised(model, call):
        torch.manual_seed(1)
        parameters = [p for p in model.parameters() if p.requires_grad]
        value = loss(call(*given))
        grads = torch.autograd.grad(value, parameters, create_graph=True)
        return torch.autograd.grad(sum((g * g).sum() for g in grads), parameters, allow_unused=True)

    want = penalised(model, model)
    for _ in range(2):
        for a, b in zip(penalised(other, compiled), want, strict=True):
            assert (a is None) == (b is None) or not (a if b is None else b).any()
            if a is not None and b is not None:
                torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9)


class Rounded(torch.autograd.Function):
    """Straight through, with a factor that depends on the input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_derivative_of_the_users_own(backend):
    def f(x, w):
        return [(Rounded.apply(x * w) * w).sin()]

    agree(f, torch.compile(f, backend=backend, fullgraph=True), doubles((4,), (4,)), count=3)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_random_numbers_are_those_of_forward(backend):
    def f(x, w):
        h = F.dropout(torch.tanh(x @ w), 0.4)
        return [(h + 0.1 * torch.randn_like(h)) @ w.t()]

    def once(call):
        x, w = doubles((4, 3), (3, 5))
        torch.manual_seed(5)
        y = call(x, w)[0]
        (g,) = torch.autograd.grad(y.exp().sum(), x, create_graph=True)
        torch.manual_seed(9)  # what runs later draws nothing
        again = torch.autograd.grad(g.square().sum(), [x, w])
        return [g, *again, torch.rand(1)]

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for _ in range(2):
        for a, b in zip(once(compiled), once(f), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_sizes_that_vary(backend):
    def f(x, w):
        return [torch.tanh(x @ w).softmax(0).cumsum(0)]

    compiled = torch.compile(f, backend=backend, fullgraph=True, dynamic=True)
    for n in (3, 5, 2, 7):
        agree(f, compiled, doubles((n, 3), (3, 4), seed=n))


def test_results_that_are_not_used():
    def f(x, y):
        return x.sin() * y, (x * y).exp(), y.cos()

    compiled = torch.compile(f, fullgraph=True)
    for used in ([0], [1], [2], [0, 2], [1, 2], [0, 1, 2]):
        agree(
            lambda x, y, used=used: [f(x, y)[k] for k in used],
            lambda x, y, used=used: [compiled(x, y)[k] for k in used],
            doubles((3,), (3,)),
        )


def test_an_input_that_is_changed():
    """The program that changes a tensor through which gradients flow keeps no copy of it."""

    def f(x, y):
        y.mul_(x)
        return (y * x).sin()

    compiled = torch.compile(f, fullgraph=True)
    x, y = doubles((3,), (3,))
    (g,) = torch.autograd.grad(compiled(x, y * 1).sum(), x, create_graph=True)
    torch.testing.assert_close(g, torch.autograd.grad(f(x, y * 1).sum(), x)[0])
    with pytest.raises(RuntimeError, match="twice: its derivatives need an input that it changes"):
        torch.autograd.grad(g.sum(), x)


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] ** 2 * g


def test_a_derivative_that_is_differentiable_once():
    compiled = torch.compile(lambda x: Once.apply(x), backend="aot_eager", fullgraph=True)
    (x,) = doubles((3,))
    (g,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
    torch.testing.assert_close(g, 3 * x**2)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.grad(g.sum(), x)


def test_buffers_that_are_changed():
    def made():
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.SiLU()).double()

    def penalty(model, call):
        x = doubles((4, 2, 3, 3))[0]
        (g,) = torch.autograd.grad(call(x).exp().sum(), x, create_graph=True)
        out = torch.autograd.grad(g.square().sum(), [x, *model.parameters()])
        return [*out, *model.buffers()]

    a, b = made(), made()
    compiled = torch.compile(b, fullgraph=True)
    for _ in range(3):
        for s, t in zip(penalty(a, a), penalty(b, compiled), strict=True):
            torch.testing.assert_close(s, t, rtol=1e-9, atol=1e-9)


def test_an_input_that_changed_since_is_noticed():
    compiled = torch.compile(lambda x: (x * 2).sin(), fullgraph=True)
    x = torch.rand(3, requires_grad=True)
    y = x * 1
    z = compiled(y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="changed in place|modified by an inplace"):
        torch.autograd.grad(z.sum(), x, create_graph=True)


def test_transforms_of_functions():
    def f(x):
        return (x.sin() * x.flip(0)).tanh().sum()

    compiled = torch.compile(f, fullgraph=True)
    x = torch.rand(4, dtype=torch.float64)
    want = torch.func.hessian(f)(x)
    torch.testing.assert_close(torch.func.hessian(compiled)(x), want)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(compiled))(x), want)
    torch.testing.assert_close(torch.autograd.functional.hessian(compiled, x), want)
    v = torch.rand(4, dtype=torch.float64)
    torch.testing.assert_close(torch.autograd.functional.hvp(compiled, x, v)[1], want @ v)
    third = torch.func.jacrev(torch.func.hessian(f))(x)
    torch.testing.assert_close(torch.func.jacrev(torch.func.hessian(compiled))(x), third)


def test_a_gradient_inside_a_compiled_function():
    def penalty(x, w):
        y = torch.tanh(x @ w).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return (g.norm(dim=1) - 1).square().mean()

    compiled = torch.compile(penalty)
    x, w = doubles((3, 4), (4, 2))
    want = torch.autograd.grad(penalty(x, w), [x, w])
    for a, b in zip(torch.autograd.grad(compiled(x, w), [x, w]), want, strict=True):
        torch.testing.assert_close(a, b)


def test_checkpoints():
    from flambeau.utils.checkpoint import checkpoint

    f = torch.compile(lambda x, w: torch.tanh(x @ w).exp(), fullgraph=True)

    def g(call):
        x, w = doubles((3, 4), (4, 4))
        y = checkpoint(call, checkpoint(call, x, w, use_reentrant=False), w, use_reentrant=False)
        (d,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.autograd.grad(d.square().sum(), [x, w])

    for a, b in zip(g(f), g(lambda x, w: torch.tanh(x @ w).exp()), strict=True):
        torch.testing.assert_close(a, b)


def test_leaves_are_not_packed_for_it():
    packed = []
    f = torch.compile(lambda x, b: (x * x + b).relu(), fullgraph=True)
    x, b = torch.rand(5, requires_grad=True), torch.rand(5, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t.shape) or t, lambda t: t
    ):
        y = f(x, b)
    assert len(packed) <= 2
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(g.sum(), x)[0], torch.full((5,), 2.0))


@pytest.mark.filterwarnings("ignore:Using backward")  # said once in a process, to whom is first
def test_backward_with_create_graph():
    f = torch.compile(lambda x: (x**3).sum(), fullgraph=True)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    f(x).backward(create_graph=True)
    assert x.grad.requires_grad
    (second,) = torch.autograd.grad(x.grad.sum(), x)
    torch.testing.assert_close(second, 6 * x.detach())


def test_backward_with_create_graph_warns_of_the_cycle_once():
    code = """
import warnings, flambeau as torch
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for f in (torch.compile(lambda x: x.sum(), backend="aot_eager"), lambda x: x.sum()):
        f(torch.ones(2, requires_grad=True)).backward(create_graph=True)
assert ["create_graph" in str(w.message) for w in seen] == [True], seen
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_has_no_second_derivative_says_so():
    def f(x):
        return F.ctc_loss(
            x.log_softmax(-1), torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2])
        )

    x = torch.rand(4, 1, 3, dtype=torch.float64, requires_grad=True)
    compiled = torch.compile(f)
    for call in (f, compiled):
        with pytest.raises((RuntimeError, NotImplementedError), match="twice|not implemented"):
            (g,) = torch.autograd.grad(call(x), x, create_graph=True)
            g.sum().backward()


class Outer(torch.autograd.Function):
    """Its backward calls a function that has a derivative of its own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * Rounded.apply(x * 3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_derivative_that_calls_another_one(backend):
    def f(x):
        return [Outer.apply(x * x)]

    agree(f, torch.compile(f, backend=backend, fullgraph=True), doubles((4,)), count=3)
