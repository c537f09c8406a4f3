"""Backward of compiled functions computes the gradients that are asked for, of any order."""

import itertools
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.utils.flop_counter import FlopCounterMode


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path / "cache"))
    torch.compiler.reset()


def doubles(*shapes):
    torch.manual_seed(0)
    return [torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in shapes]


def same(got, want):
    assert [g is None for g in got] == [w is None for w in want]
    for g, w in zip(got, want, strict=True):
        if w is not None:
            np.testing.assert_allclose(g.detach(), w.detach(), rtol=1e-11, atol=1e-11)


def layers(x, v, w, b):
    h = torch.tanh(x @ v)
    return (h @ w + b).sin(), (h * h).sum(1)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("again", [False, True])
def test_any_of_the_gradients(backend, again):
    inputs = doubles((4, 3), (3, 5), (5, 2), (2,))
    compiled = torch.compile(layers, backend=backend)

    def gradients(f, wanted, used):
        results = f(*inputs)
        loss = sum((results[k] * results[k]).sum() for k in used)
        asked = [inputs[k] for k in wanted]
        first = torch.autograd.grad(loss, asked, create_graph=again, allow_unused=True)
        if not again:
            return first
        value = sum((g * g).sum() for g in first if g is not None)
        if not value.requires_grad:
            return first
        return (*first, *torch.autograd.grad(value, asked, allow_unused=True))

    for n in (1, 2, 4):
        for wanted in itertools.combinations(range(4), n):
            for used in ((0,), (0, 1)):
                want = gradients(layers, wanted, used)
                got = gradients(compiled, wanted, used)
                filled = [torch.zeros_like(w) if g is not None and w is None else w
                          for g, w in zip(got, want, strict=True)]  # fmt: skip
                same(got, filled)


def products(f, x):
    """Operations of matrix products in a gradient of the input."""
    f(x)
    y = f(x).square().sum()
    torch.autograd.grad(y, x, retain_graph=True)  # compiles
    with FlopCounterMode(display=False) as counter:
        torch.autograd.grad(y, x)
    return counter.get_total_flops()


def test_weights_cost_nothing_where_nobody_asks_for_their_gradients():
    net = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
    x = torch.randn(128, 64, requires_grad=True)
    compiled = torch.compile(net, backend="aot_eager")
    wanted = products(net, x)
    assert wanted == 2 * 2 * 128 * 64 * 64
    assert products(compiled, x) == wanted
    loss = compiled(x).square().sum()
    with FlopCounterMode(display=False) as counter:
        loss.backward()
    assert counter.get_total_flops() == 2 * wanted


def penalty(f, x, weights):
    """A step of a critic with a gradient penalty, and its gradients."""
    y = f(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    loss = y.mean() + 10 * (g.flatten(1).norm(dim=1) - 1).square().mean()
    return torch.autograd.grad(loss, weights)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_convolutions_are_not_made_again(backend):
    """Their results lie with their channels last in forward, and dense in backward's graph."""
    torch.manual_seed(0)
    critic = nn.Sequential(
        nn.Conv2d(16, 32, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 3, 2, 1), nn.GELU(),
        nn.Flatten(), nn.Linear(64 * 8 * 8, 1),
    )  # fmt: skip
    x = torch.rand(8, 16, 32, 32).requires_grad_()
    weights = list(critic.parameters())
    compiled = torch.compile(critic, backend=backend)
    for a, b in zip(penalty(compiled, x, weights), penalty(critic, x, weights), strict=True):
        torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-6)
    if backend == "aot_eager":  # whose calls are counted
        counts = []
        for f in (critic, compiled):
            with FlopCounterMode(display=False) as counter:
                penalty(f, x, weights)
            counts.append(counter.get_total_flops())
        assert counts[1] <= counts[0]


def test_backward_into_some_leaves():
    net = nn.Linear(3, 2).double()
    compiled = torch.compile(net)
    x = doubles((4, 3))[0]
    compiled(x).square().sum().backward(inputs=[net.weight])
    assert x.grad is None and net.bias.grad is None
    want = torch.autograd.grad(net(x).square().sum(), net.weight)
    same([net.weight.grad], want)


def test_hooks_get_gradients_that_flow_through_them():
    seen = []
    net = nn.Linear(3, 2).double()
    compiled = torch.compile(net)
    x = doubles((4, 3))[0]
    h = x * 2
    h.register_hook(lambda g: seen.append(g.clone()))
    (g,) = torch.autograd.grad(compiled(h).square().sum(), x)
    same([seen[0] * 2], [g])


@pytest.mark.parametrize("again", [False, True])
def test_many_choices_compile_a_few_times(monkeypatch, again):
    from flambeau._aot import runtime

    made = []
    module = sys.modules["flambeau._aot.recorded"] if again else runtime
    real = module.partial_backward
    monkeypatch.setattr(
        module, "partial_backward", lambda g, there, n: made.append(there) or real(g, there, n)
    )
    inputs = doubles(*[(3,)] * 6)
    compiled = torch.compile(lambda *xs: torch.stack([x.sin() for x in xs]).prod(0))
    for wanted in itertools.combinations(range(6), 3):
        asked = [inputs[k] for k in wanted]
        got = torch.autograd.grad(compiled(*inputs).sum(), asked, create_graph=again)
        same(got, torch.autograd.grad(torch.stack([x.sin() for x in inputs]).prod(0).sum(), asked))
    assert 1 < len(made) <= 8


def test_a_derivative_of_the_users_own_is_given_its_cotangents():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return 2 * g * y, 3 * g * x

    x, y = doubles((3,), (3,))
    compiled = torch.compile(lambda x, y: Doubled.apply(x, y).sin())
    (gx,) = torch.autograd.grad(compiled(x, y).sum(), x)
    same([gx], [2 * (x * y).cos() * y])
    (gx,) = torch.autograd.grad(compiled(x, y).sum(), x, create_graph=True)
    (gxx,) = torch.autograd.grad(gx.sum(), y)
    z = x * y  # d/dy of 2 y cos(Doubled(x, y)), whose derivative by y is 3 x
    same([gxx], [2 * z.cos() - 2 * y * z.sin() * 3 * x])


def test_inputs_without_a_gradient_are_not_behind_a_result():
    w, x = nn.Parameter(torch.ones(3)), torch.ones(3)

    def f(x):
        with torch.no_grad():
            y = x.sin() * w
        return y * x.sin()

    for g in (f, torch.compile(f, backend="aot_eager")):
        assert not torch.func.jacrev(g)(x).requires_grad
        result = g(x.requires_grad_())
        assert [n is not None for n, _ in result.grad_fn.next_functions].count(True) == 1
        x = x.detach()
