"""`torch.autograd.grad` and `requires_grad_` in whole graphs: what eager gives."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn

BACKENDS = ["eager", "aot_eager", "inductor"]


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).double()


NET = network()


def forces(x):
    x = x.detach().requires_grad_()
    energy = NET(x).sum()
    return energy.detach(), -torch.autograd.grad(energy, x)[0]


def residual(x):
    u = NET(x)[:, 0]
    one = torch.ones_like(u)
    (du,) = torch.autograd.grad(u, x, one, create_graph=True)
    (ddu,) = torch.autograd.grad(du[:, 0], x, grad_outputs=[one], create_graph=True)
    return (du[:, 1] + u * du[:, 0] - 0.01 * ddu[:, 0]).square().mean()


def penalty(x):
    y = x.sin()
    slope = torch.autograd.grad(outputs=NET(y).sum(), inputs=y, create_graph=True)[0]
    return (slope.norm(dim=1) - 1).square().mean() + y.mean()


def of_parameters(x):
    loss = NET(x).square().mean()
    grads = torch.autograd.grad(loss, list(NET.parameters()), create_graph=True)
    return loss + sum((g * g).sum() for g in grads)


def several(x):
    a, b = x.sin() * 2, x.cos().sum()
    (g,) = torch.autograd.grad((a, b), (x,), (torch.full_like(a, 3.0), None), retain_graph=True)
    return a + b, g


def unused(x):
    p = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    found = torch.autograd.grad((x * 2).sum(), [x, p], allow_unused=True, retain_graph=True)
    assert found[1] is None
    zeros = torch.autograd.grad((x * x).sum(), [p, x], materialize_grads=True)
    return found[0], *zeros


def through_whole_numbers(x):
    y = (x * 4).long() * 2.0 + x.detach()
    (g,) = torch.autograd.grad(y.sum() + (x[0] * 3).sum(), [x], allow_unused=True)
    p = torch.ones(2, dtype=torch.float64, requires_grad=True)
    z = (p * 4).long() * x.sum()
    assert torch.autograd.grad(z.sum(), [p], allow_unused=True) == (None,)
    return g


def changed_in_place(x):
    y = x * 1
    y.mul_(x)
    y[0] = 0
    return torch.autograd.grad(y.sum(), x)[0]


def descent(x):
    v = x.detach().clone().requires_grad_()
    for _ in range(3):
        (g,) = torch.autograd.grad((v * v * v).sum(), v)
        v = (v - 0.1 * g).detach().requires_grad_()
    return v.detach()


PROGRAMS = [
    forces,
    residual,
    penalty,
    of_parameters,
    several,
    unused,
    through_whole_numbers,
    changed_in_place,
    descent,
]


def outcome(f):
    torch.manual_seed(1)
    x = torch.rand(5, 2, dtype=torch.float64, requires_grad=True)
    NET.zero_grad()
    results = f(x)
    results = results if isinstance(results, tuple) else (results,)
    loss = sum(r.sum() for r in results)
    if loss.requires_grad:
        loss.backward()
    return [*results, x.grad, *(p.grad for p in NET.parameters())]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_eager(f, backend):
    want = outcome(f)
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for _ in range(2):
        got = outcome(compiled)
        for a, b in zip(got, want, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert a.requires_grad == b.requires_grad
                np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-10, atol=1e-12)


def test_gradients_of_known_functions():
    @torch.compile(fullgraph=True)
    def f(x):
        x.requires_grad_()
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        return g, h

    x = torch.tensor([1.0, 2.0])
    g, h = f(x)
    assert x.requires_grad
    np.testing.assert_allclose(g.detach(), [3, 12])
    np.testing.assert_allclose(h, [6, 12])


def test_errors_are_eagers():
    @torch.compile(fullgraph=True)
    def f(x, y):
        return torch.autograd.grad((x * 2).sum(), y)

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="not have been used"):
        f(x, y)
    with pytest.raises(RuntimeError, match="does not require grad"):
        f(x.detach(), y)
    with pytest.raises(RuntimeError, match="is_grads_batched"):
        torch.compile(
            lambda x: torch.autograd.grad(x * 2, x, torch.eye(2), is_grads_batched=True),
            fullgraph=True,
        )(x)
    with pytest.raises(RuntimeError, match="requires_grad_"):
        torch.compile(lambda x: x.requires_grad_(False) * 2, fullgraph=True)(x)


def test_without_fullgraph_the_graph_ends_before_it():
    parts = []

    def backend(graph, inputs):
        parts.append(graph)
        return graph

    x = torch.rand(5, 2, dtype=torch.float64, requires_grad=True)
    compiled = torch.compile(residual, backend=backend)
    np.testing.assert_allclose(compiled(x).item(), residual(x).item())
    assert len(parts) > 1
