"""segment_reduce against loops of NumPy, and its derivatives; norms of all but one dimension."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import gradcheck

REDUCTIONS = {
    "sum": (np.sum, 0.0),
    "mean": (np.mean, np.nan),
    "max": (np.max, -np.inf),
    "min": (np.min, np.inf),
    "prod": (np.prod, 1.0),
}
START = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def expected(x, reduce, lengths, axis, initial=None):
    """Run by run; `lengths` of a single row, or one row for each of the dims before axis."""
    f, empty = REDUCTIONS[reduce]
    out = np.empty((*x.shape[:axis], lengths.shape[-1], *x.shape[axis + 1 :]))
    for row in np.ndindex(x.shape[:axis]):
        at = 0
        for k, n in enumerate(lengths[row]):
            part = x[row][at : at + n]
            at += n
            if n == 0:
                out[(*row, k)] = empty if initial is None else initial
            elif initial is None:
                out[(*row, k)] = f(part, 0)
            elif reduce == "mean":
                out[(*row, k)] = (part.sum(0) + initial) / n
            else:
                out[(*row, k)] = START[reduce](f(part, 0), initial)
    return out


@pytest.mark.parametrize("initial", [None, 2.5])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_against_loops(reduce, initial):
    r = np.random.default_rng(0)
    cases = [
        (r.standard_normal(7), np.array([3, 0, 4]), 0),
        (r.standard_normal((5, 2)), np.array([1, 4, 0]), 0),
        (r.standard_normal((2, 6, 3)), np.array([[2, 2, 2], [0, 5, 1]]), 1),
        (r.standard_normal((2, 0)), np.array([[0, 0], [0, 0]]), 1),
    ]
    for x, lengths, axis in cases:
        want = expected(x, reduce, lengths, axis, initial)
        data, n = torch.from_numpy(x), torch.from_numpy(lengths)
        kw = {"axis": axis, "initial": initial}
        np.testing.assert_allclose(torch.segment_reduce(data, reduce, lengths=n, **kw), want)
        starts = torch.nn.functional.pad(n.cumsum(-1), (1, 0))
        for offsets in (starts, starts.int()):
            got = torch.segment_reduce(data, reduce, offsets=offsets, **kw)
            np.testing.assert_allclose(got.numpy(), want)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_derivatives(reduce):
    x = torch.tensor([2.0, -1.0, 0.5, 3.0, -2.5, 1.5], dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([2, 0, 4])

    def f(x):
        return torch.segment_reduce(x, reduce, lengths=lengths, initial=0.75)

    assert gradcheck(f, (x,)) and torch.autograd.gradgradcheck(f, (x,))


def test_entries_of_no_run():
    x = torch.arange(6.0)
    got = torch.segment_reduce(x, "sum", lengths=torch.tensor([2, 1]), unsafe=True)
    assert got.tolist() == [1, 2]
    got = torch.segment_reduce(x, "sum", offsets=torch.tensor([1, 2, 5]))
    assert got.tolist() == [1, 9]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"lengths": [2, 0, 3]}, "Expected all rows of lengths along axis to sum"),
        ({"lengths": [-1, 7]}, "lengths contains negative value"),
        ({}, "Either lengths or offsets must be defined"),
        ({"lengths": [6], "indices": [0]}, "indices based reduction is not supported"),
        ({"lengths": [[6]]}, "Expected axis to be the last dimension of lengths"),
        ({"offsets": [0, 4, 2]}, "offsets must not decrease"),
        ({"offsets": [0, 9]}, r"offsets must not decrease, and lie in \[0, 6\]"),
    ],
)
def test_refused(arguments, message):
    kw = {name: torch.tensor(value) for name, value in arguments.items()}
    with pytest.raises(RuntimeError, match=message):
        torch.segment_reduce(torch.arange(6.0), "sum", **kw)
    with pytest.raises(RuntimeError, match="reduce argument must be either"):
        torch.segment_reduce(torch.arange(6.0), "middle", lengths=torch.tensor([6]))
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.segment_reduce(torch.arange(6), "sum", lengths=torch.tensor([6]))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("order", [1, 2])
def test_norms_of_all_but_one_dim(order, dim):
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    axes = tuple(k for k in range(3) if k != dim)
    want = (np.abs(x) ** order).sum(axes if dim >= 0 else None, keepdims=dim >= 0) ** (1 / order)
    v = torch.from_numpy(x)
    norms = torch.norm_except_dim(v, order, dim)
    np.testing.assert_allclose(norms.numpy(), want)
    assert norms.shape == want.shape
    if order == 2:
        np.testing.assert_allclose(torch._weight_norm(v, norms * 3, dim).numpy(), 3 * x)
        weight, same = torch._weight_norm_interface(v, norms * 3, dim)
        assert torch.equal(same, norms) and torch.allclose(weight, 3 * v)


def test_weight_norm_has_derivatives():
    v = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    g = torch.rand(3, 1, dtype=torch.float64, requires_grad=True)
    assert gradcheck(torch._weight_norm, (v, g)) and torch.autograd.gradgradcheck(
        torch._weight_norm, (v, g)
    )
