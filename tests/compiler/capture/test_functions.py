"""`autograd.Function` with a backward of its own: one graph, eager's values and gradients."""

from __future__ import annotations

import itertools

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._ir.graph_parse import parse
from flambeau._ir.graph_verify import verify

from .programs_library import Cube, Reversal, Scaled, Straight
from .test_interpreter import captured


class Clipped(torch.autograd.Function):
    """Its backward is not linear, works in place on what it made and returns None."""

    @staticmethod
    def forward(ctx, x, w, bound):
        ctx.bound = bound
        ctx.save_for_backward(x, w)
        out = x @ w
        ctx.mark_non_differentiable(at := out.argmax(-1))
        return out, at

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g, _):
        x, w = ctx.saved_tensors
        g = g * 2
        g.clamp_(-ctx.bound, ctx.bound)
        return (g @ w.T if ctx.needs_input_grad[0] else None), x.T @ g, None


def twice(x, w):
    y = Cube.apply(x)
    return Cube.apply(y + w).sum()


def same_forward_other_backward(x, w):
    return (Reversal.apply(x, 0.5) * w + Reversal.apply(x, 2.0)).sum()


def changed_in_place_afterwards(x, w):
    y = Cube.apply(x * w)
    y.add_(1)
    return (y * y).sum()


def one_tensor_twice(x, w):
    a, b = Scaled.apply(x, 2.0, x)
    return (a * b * w).sum()


def clipped(x, w):
    out, at = Clipped.apply(x, w, 0.7)
    return (out * out).sum() + at.sum()


def input_without_gradient(x, w):
    out, _ = Clipped.apply(x.detach(), w, 0.3)
    return (out * x).sum()


def straight(x, w):
    return (Straight.apply(x) * w).sin().sum()


PROGRAMS = [
    twice, same_forward_other_backward, changed_in_place_afterwards, one_tensor_twice, clipped,
    input_without_gradient, straight,
]  # fmt: skip


def gradients(f, x, w):
    x, w = (t.clone().requires_grad_() for t in (x, w))
    out = f(x, w)
    return out, torch.autograd.grad(out, (x, w), allow_unused=True)


@pytest.mark.parametrize(
    ("backend", "dynamic"),
    [*itertools.product(("eager", "aot_eager"), (False, None, True)), ("inductor", None)],
)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients(f, dynamic, backend):
    compiled = torch.compile(f, backend=backend, dynamic=dynamic, fullgraph=True)
    for n in (3, 4, 5):
        torch.manual_seed(n)
        x, w = torch.randn(n, n), torch.randn(n, n)
        (a, ga), (b, gb) = gradients(f, x, w), gradients(compiled, x, w)
        assert torch.allclose(a, b)
        for p, q in zip(ga, gb, strict=True):
            assert (p is None) == (q is None)
            assert p is None or torch.allclose(p, q, rtol=1e-5, atol=1e-5)
    expected = 3 if dynamic is False else 2 if dynamic is None else 1
    assert len(compiled._flambeau_config.parts) == expected


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return Straight.apply(self.linear(x)) * self.linear.weight.sum()


def test_in_a_module_trained():
    torch.manual_seed(0)
    layer = Layer()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    x = torch.randn(3, 4)
    grads = []
    for model in (layer, compiled):
        layer.zero_grad()
        model(x).sum().backward()
        grads.append([p.grad.clone() for p in layer.parameters()])
    assert all(torch.allclose(a, b) for a, b in zip(*grads, strict=True))


LOG = []


class Logging(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        LOG.append("backward")
        return g * 3


class Random(Logging):
    @staticmethod
    def backward(ctx, g):
        return g * torch.rand_like(g)


class Dirty(Logging):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)


@pytest.mark.parametrize(
    ("cls", "reason"),
    [(Logging, "changes more than"), (Random, "draws random"), (Dirty, "in place")],
)
def test_what_graphs_cannot_say_is_left_to_eager(cls, reason):
    def f(x):
        return cls.apply(x * 1) + 1

    compiled = captured(f)
    x = torch.ones(3, requires_grad=True)
    for _ in range(2):
        LOG.clear()
        out = compiled(x)
        assert out.tolist() == [3.0] * 3 and LOG == []
        out.sum().backward()
        assert LOG == (["backward"] if cls is not Random else [])
    assert any(reason in (p.reason or "") for p in compiled._flambeau_config.parts)


def test_the_graph_is_printed_and_read_back():
    compiled = captured(lambda x: Cube.apply(x))
    compiled(torch.ones(2, requires_grad=True))
    graph = compiled._flambeau_config.parts[0].graph
    text = str(verify(graph))
    assert "custom_gradient((%1,), (%0,), (%0,))" in text
    assert "\n  backward(%7: f32[2], %8: f32[2]):\n" in text
    assert str(verify(parse(text))) == text


def test_backward_is_differentiated_again():
    compiled = captured(lambda x: Cube.apply(x).sum())
    x = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad(compiled(x), x, create_graph=True)
    (again,) = torch.autograd.grad(g.sum(), x)
    assert again.tolist() == [6.0, 6.0]
