"""Ways of writing programs in which compiled code once gave another result than plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()


def shapes(x):
    s = x.shape
    return (
        repr(s), f"{s}", "{}".format(s), str([s]), str({"shape": s}), str(x.stride()),  # noqa: UP032
        type(s).__name__, isinstance(s, torch.Size), s[1:], str(s[:1]), s + (1,), s * 2, (1,) + s,
        torch.Size([1]) + s,
        s == (2, 2), {s: 1}, s.numel(), s.index(2), [*s], type(s[0]).__name__,
    )  # fmt: skip


@pytest.mark.parametrize("dynamic", [None, True])
def test_shapes_that_vary_are_shapes(dynamic):
    compiled = torch.compile(shapes, backend="eager", dynamic=dynamic)
    for n in (2, 3, 4):
        x = torch.ones(n, 2)
        for got, expected in zip(compiled(x), shapes(x), strict=True):
            assert type(got) is type(expected) and repr(got) == repr(expected)


class Marked(torch.Tensor):
    pass


def test_results_of_a_subclass_are_of_it():
    compiled = torch.compile(lambda x: (x + 1, type(x * 2).__name__), backend="eager")
    y, name = compiled(torch.ones(2).as_subclass(Marked))
    assert type(y) is Marked and name == "Marked"
    assert compiled(torch.ones(2))[1] == "Tensor"


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_inside(reentrant):
    m = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Dropout(0.3), nn.Linear(3, 3))

    def f(x):
        return checkpoint(m, x * 2, use_reentrant=reentrant) + x

    seen = []
    for call in (f, torch.compile(f)):
        torch.manual_seed(3)
        m.zero_grad()
        x = torch.ones(4, 3, requires_grad=True)
        y = call(x)
        y.sum().backward()
        seen.append((y.detach(), x.grad, m[0].weight.grad.clone()))
    assert all(torch.allclose(a, b) for a, b in zip(*seen, strict=True))


@pytest.mark.parametrize("dynamic", [None, True])
def test_reductions_over_no_dims(dynamic):
    """`any` and `all` take an empty list at its word; for the others it means all dims."""

    def f(x):
        return x.any(()), torch.all(x > 1, []), x.sum(()), x.amax(()), x.logsumexp(())

    compiled = torch.compile(f, dynamic=dynamic)
    for values in ([[0.0, 2.0], [0.0, 0.0]], [[1.0, 3.0], [2.0, 2.0], [0.0, -1.0]]):
        x = torch.tensor(values)
        some, every, total, most, log = compiled(x)
        a = np.array(values)
        assert some.tolist() == (a != 0).tolist() and every.tolist() == (a > 1).tolist()
        assert total.item() == a.sum() and most.item() == a.max()
        assert abs(log.item() - np.log(np.exp(a).sum())) < 1e-6


def test_reductions_over_no_dims_inside_vmap():
    f = torch.compile(lambda x: torch.func.vmap(lambda a: torch.logsumexp(a, ()))(x))
    a = np.array([[1.0, 2.0], [0.0, -1.0]])
    expected = np.log(np.exp(a).sum(1))
    assert np.allclose(f(torch.tensor(a)).tolist(), expected)
