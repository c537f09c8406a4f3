"""Results that are views of arguments: their gradients are those of the chain of views."""

from __future__ import annotations

import pytest

import flambeau as torch

pytestmark = pytest.mark.usefixtures("cache")


def matrix():
    return torch.rand(4, 7, dtype=torch.float64).requires_grad_()


def expanded():
    return torch.rand(1, 4).expand(3, 4).detach().requires_grad_()


CASES = [
    (matrix, lambda x: x.diagonal().as_strided((4,), (1,))),
    (matrix, lambda x: x[:, :2].as_strided((2, 3), (7, 1), 1)[1:]),
    (matrix, lambda x: x.as_strided((2, 3), (3, 2), 1).T),
    (expanded, lambda x: x[0]),
    (expanded, lambda x: x[:, 1]),
    (expanded, lambda x: x.T[1:3]),
]


@pytest.mark.parametrize(("make", "f"), CASES)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("computed", [False, True])
def test_gradients_of_returned_views(make, f, dynamic, computed):
    def g(x):
        return (f(x), (f(x) * 2).sin()) if computed else f(x)

    def gradient(function):
        made = function(x)
        made = made if computed else (made,)
        loss = sum((y * torch.linspace(0.5, 1.5, y.numel()).view(y.shape)).sum() for y in made)
        return made, torch.autograd.grad(loss, x)[0]

    x = make()
    got, mine = gradient(torch.compile(g, dynamic=dynamic))
    want, theirs = gradient(g)
    assert torch.allclose(mine, theirs)
    assert got[0].data_ptr() == want[0].data_ptr()
    assert all(torch.allclose(a, b) for a, b in zip(got, want, strict=True))
