"""Transforms of compiled functions, and compiled transforms, by way of batched cotangents;
derivatives whose size depended on data.
"""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import func

D = torch.float64


def number(x):
    return (x.sin() * x).sum() + (x[..., :1] * x).pow(2).sum()


def vector(x):
    return x.sin() * x.flip(-1) + x.sum(-1, keepdim=True)


WAYS = {
    "compile jacrev": lambda c, f, x: (c(func.jacrev(f))(x), func.jacrev(f)(x)),
    "jacrev compile": lambda c, f, x: (func.jacrev(c(f))(x), func.jacrev(f)(x)),
    "functional": lambda c, f, x: (
        torch.autograd.functional.jacobian(c(f), x, vectorize=True), func.jacrev(f)(x)
    ),
    "is_grads_batched": lambda c, f, x: (batched(c(f), x), batched(f, x)),
    "vmap of vjp": lambda c, f, x: (pulled(c(f), x), pulled(f, x)),
    "nested": lambda c, f, x: (
        func.vmap(lambda s: pulled(c(f), x, s))(torch.tensor([1.0, 2.0], dtype=D)),
        func.vmap(lambda s: pulled(f, x, s))(torch.tensor([1.0, 2.0], dtype=D)),
    ),
}  # fmt: skip


def batched(f, x):
    x = x.clone().requires_grad_()
    y = f(x)
    seeds = torch.eye(y.numel(), dtype=D).reshape(-1, *y.shape)
    return torch.autograd.grad(y, x, seeds, is_grads_batched=True)[0]


def pulled(f, x, scale=1.0):
    y, pull = func.vjp(f, x)
    seeds = torch.eye(max(y.numel(), 2), dtype=D)[:, : y.numel()].reshape(-1, *y.shape)
    return func.vmap(lambda c: pull(c * scale)[0])(seeds)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("f", [number, vector])
@pytest.mark.parametrize("way", WAYS)
def test_batched_cotangents(way, f, backend):
    torch.manual_seed(0)
    got, want = WAYS[way](lambda g: torch.compile(g, backend=backend), f, torch.randn(4, dtype=D))
    torch.testing.assert_close(got, want)


def test_what_was_saved_goes_after_the_last_sample():
    f = torch.compile(vector)
    x = torch.randn(3, dtype=D, requires_grad=True)
    y = f(x)
    eye = torch.eye(3, dtype=D)
    torch.autograd.grad(y, x, eye, is_grads_batched=True, retain_graph=True)
    torch.autograd.grad(y, x, eye, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(y, x, eye, is_grads_batched=True)


def test_no_samples_at_all():
    f = torch.compile(vector)
    x = torch.randn(3, dtype=D, requires_grad=True)
    (g,) = torch.autograd.grad(
        f(x), x, torch.ones(0, 3, dtype=D), is_grads_batched=True, allow_unused=True
    )
    assert g is None or g.shape == (0, 3)


@pytest.mark.parametrize("dynamic", [False, True])
def test_masked_scatter_trains_compiled(dynamic):
    """As images are placed among words."""

    def f(x, mask, source):
        return (x * 2).masked_scatter(mask.unsqueeze(-1), source * 3).sin()

    torch.manual_seed(0)
    compiled = torch.compile(f, fullgraph=True, dynamic=dynamic)
    for n in (5, 6):
        mask = torch.rand(2, n) > 0.4
        for rows in (int(mask.sum()), 2 * n):
            x = torch.randn(2, n, 3, dtype=D, requires_grad=True)
            source = torch.randn(rows, 3, dtype=D, requires_grad=True)
            weights = torch.randn(2, n, 3, dtype=D)
            got = torch.autograd.grad((compiled(x, mask, source) * weights).sum(), [x, source])
            want = torch.autograd.grad((f(x, mask, source) * weights).sum(), [x, source])
            torch.testing.assert_close(got, want)
