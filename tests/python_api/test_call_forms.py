"""Forms of calls that PyTorch's users know beside the plainest one."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
X = np.array([1.0, 2.0, 5.0])
N = np.array([1, 2, 5])
FRONT = {
    "add": (2, X, np.add), "sub": (2, X, np.subtract), "mul": (2, X, np.multiply),
    "div": (7, X, np.divide), "true_divide": (7, N, np.divide),
    "floor_divide": (7, N, np.floor_divide), "remainder": (7, X, np.remainder),
    "pow": (2, X, np.power), "bitwise_and": (6, N, np.bitwise_and),
    "bitwise_or": (6, N, np.bitwise_or), "bitwise_xor": (6, N, np.bitwise_xor),
    "bitwise_left_shift": (6, N, np.left_shift), "bitwise_right_shift": (96, N, np.right_shift),
}  # fmt: skip


@pytest.mark.parametrize("name", FRONT)
def test_a_number_may_come_first(name):
    number, x, reference = FRONT[name]
    got = getattr(torch, name)(number, torch.from_numpy(x))
    want = reference(number, x)
    assert got.numpy().dtype.kind == want.dtype.kind
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-7)


@pytest.mark.parametrize("x", [[[0, 2], [3, 0]], [True, False, True], [0.0, -1.0, np.nan]])
def test_where_of_a_condition_alone(x):
    x = np.array(x)
    got, want = torch.where(torch.from_numpy(x)), np.nonzero(x)
    assert isinstance(got, tuple) and [p.tolist() for p in got] == [p.tolist() for p in want]
    assert torch.from_numpy(x)[torch.where(torch.from_numpy(x))].tolist() == pytest.approx(
        x[want].tolist(), nan_ok=True
    )


def test_where_of_one_number():
    assert [p.tolist() for p in torch.where(torch.tensor(3))] == [[0]]


def test_where_asks_for_truths():
    x = torch.ones(2)
    for condition in (x, torch.ones(2, dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="where expected condition to be a boolean tensor"):
            torch.where(condition, x, x)
    with pytest.warns(UserWarning, match="a condition of uint8 is deprecated"):
        assert torch.where(torch.tensor([0, 7], dtype=torch.uint8), x, -x).tolist() == [-1, 1]


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("exponent", [0.5, -0.5, -1, -2, 2, 3, 1.5])
def test_powers_that_have_names(exponent, kind):
    x = np.linspace(0.25, 9, 301)
    x[0] = np.inf
    for way in (lambda f: f, torch.compile):
        leaf = torch.tensor(x, dtype=kind, requires_grad=True)
        got = way(lambda t: t**exponent)(leaf)
        got.backward(torch.ones_like(got))
        eps = torch.finfo(kind).eps
        base = leaf.detach().double().numpy()
        np.testing.assert_allclose(got.detach().double().numpy(), base**exponent, rtol=2 * eps)
        slope = exponent * base ** (exponent - 1.0)
        known = np.isfinite(base)
        np.testing.assert_allclose(leaf.grad.double().numpy()[known], slope[known], rtol=6 * eps)


def test_powers_at_zero_are_those_of_roots():
    zero = torch.tensor([-0.0, 0.0], dtype=torch.float64)
    assert (zero**0.5).signbit().tolist() == [True, False]  # IEEE 754, squareRoot(-0) is -0
    assert (zero**-1).tolist() == [-np.inf, np.inf]
    assert (torch.arange(3) ** 0.5).dtype is torch.float32
    with pytest.raises(RuntimeError, match="negative integer powers"):
        torch.arange(3) ** -1


def test_outer_products_are_added_in_the_type_that_all_promote_to():
    a, b = torch.arange(2), torch.arange(3.0)
    for start in (torch.ones(2, 3, dtype=torch.float64), torch.ones(3, dtype=torch.int32)):
        got = torch.addr(start, a, b, alpha=0.5)
        assert got.dtype is torch.promote_types(start.dtype, torch.float32)
        want = start.numpy() + 0.5 * np.outer(a.numpy(), b.numpy())
        np.testing.assert_allclose(got.numpy(), want)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, 3, dtype=torch.int64).addr_(a, b)


def test_sequences_and_values_of_two_types():
    s, v = torch.tensor([1.0, 2.5, 3.0]), torch.tensor([2, 3])
    assert torch.searchsorted(s, v).tolist() == np.searchsorted(s.numpy(), v.numpy()).tolist()
    assert torch.searchsorted(v, s).tolist() == np.searchsorted(v.numpy(), s.numpy()).tolist()


def test_numbers_without_dims():
    x = torch.tensor(3)
    assert [t.tolist() for t in x.topk(0)] == [3, 0] == [t.tolist() for t in x.topk(1)]
    assert x.movedim(0, -1).shape == ()
    assert torch.ones(2).to(x).dtype is torch.int64  # a tensor, not the number of a device


def test_names_of_arguments():
    x = torch.arange(6.0).view(2, 3)
    assert x.swapaxes(axis0=0, axis1=1).shape == (3, 2) == x.swapdims(dim0=0, dim1=1).shape
    assert torch.heaviside(torch.zeros(1), values=torch.ones(1)).tolist() == [1]


def test_one_window_size_for_all_axes():
    x = torch.arange(16.0).view(1, 1, 4, 4)
    assert torch.equal(F.max_pool2d(x, [2], padding=[1]), F.max_pool2d(x, 2, padding=1))


def test_a_fraction_written_into_truths_is_true():
    m = torch.tensor([True, False])
    for way in (lambda f: f, torch.compile):
        assert way(lambda m: m.masked_fill(torch.tensor([False, True]), 0.5))(m).all()
        assert way(lambda m: m.clone().fill_(0.5))(m).all()


def test_results_must_fit():
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.tensor([1, 2]).polygamma_(1)
    with pytest.raises(RuntimeError, match="Invalid output_size, expected 4 but got 1"):
        torch.ones(2).repeat_interleave(2, output_size=1)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(
    "shape", [(3, 3), (2, 5), (7, 3), (8, 3), (1, 4), (4, 1), (0, 3), (3, 3, 3)]
)
def test_diagonals_are_filled(shape, wrap):
    want = np.zeros(shape)
    if min(shape):
        np.fill_diagonal(want, 5, wrap=wrap)
    for x in (torch.zeros(shape), torch.zeros(shape[::-1]).permute(*reversed(range(len(shape))))):
        assert x.fill_diagonal_(5, wrap) is x
        assert x.tolist() == want.tolist()


def test_diagonals_are_filled_with_gradients():
    x = torch.ones(7, 3, dtype=torch.float64, requires_grad=True)
    (x.clone().fill_diagonal_(2, wrap=True) * torch.arange(3)).sum().backward()
    want = np.tile(np.arange(3.0), (7, 1))
    np.fill_diagonal(want, 0, wrap=True)
    assert x.grad.tolist() == want.tolist()
    with pytest.raises(RuntimeError, match="dimensions must larger than 1, got 1"):
        torch.zeros(3).fill_diagonal_(1)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.zeros(1, 2).expand(3, 2).fill_diagonal_(1)
    with pytest.raises(RuntimeError, match="must be of equal length"):
        torch.zeros(2, 2, 3).fill_diagonal_(1)


def test_integers_that_get_too_large_wrap():
    most = np.array([2**63 - 1, -(2**63)])
    x, at = torch.from_numpy(most), torch.tensor([0, 1])
    with np.errstate(all="ignore"):
        assert x.index_add(0, at, x).tolist() == (most + most).tolist()
        assert x.index_add(0, at, x, alpha=3).tolist() == (most + most * 3).tolist()
        assert x.scatter_reduce(0, at, x, "prod").tolist() == (most * most).tolist()
        assert torch.outer(x, x).tolist() == np.outer(most, most).tolist()
        a, b = np.array([most[0], 2, most[1]]), np.array([3, most[1], most[0]])
        got = torch.linalg.cross(torch.from_numpy(a), torch.from_numpy(b))
        assert got.tolist() == np.cross(a, b).tolist()
