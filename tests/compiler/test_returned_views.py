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


def views_of_what_gets_a_history(x, base):
    y = x + 1
    view = base.transpose(0, 1)
    apart = base.detach()[0]
    base.add_(y, alpha=0.5)
    return view, apart


def views_made_without_gradients(x, base):
    y = x + 1
    view = base.transpose(0, 1)
    with torch.no_grad():
        quiet = base[1]
    base.add_(y, alpha=0.5)
    return view, quiet


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_view_made_without_gradients_is_refused_as_by_eager(backend):
    x = torch.linspace(0, 1, 6).view(2, 3).requires_grad_()
    for f in (
        views_made_without_gradients,
        torch.compile(views_made_without_gradients, backend=backend),
    ):
        with pytest.raises(RuntimeError, match="created in no_grad mode"):
            (f(x, torch.ones(2, 3))[1] * 2).sum().backward()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_view_that_was_there_before_its_memory_got_a_history(backend):
    f = views_of_what_gets_a_history

    def run(f):
        x = torch.linspace(0, 1, 6).view(2, 3).requires_grad_()
        out = f(x, torch.ones(2, 3))
        out[0].square().sum().backward()
        return out, x.grad

    (want, grad), (got, found) = run(f), run(torch.compile(f, backend=backend))
    assert [y.requires_grad for y in got] == [y.requires_grad for y in want]
    assert want[0].requires_grad
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
    assert torch.equal(found, grad)
