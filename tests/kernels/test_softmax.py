"""softmax and log_softmax against NumPy in double precision, over layouts, dtypes and odd rows."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
import flambeau.nn.functional as F

SHAPES = [
    ((5,), 0), ((1,), 0), ((4, 17), 1), ((4, 17), 0), ((3, 9, 5), 1), ((2, 40, 33), 1),
    ((2, 7, 100), -2), ((3, 5000), 1), ((1, 70001), 1), ((9, 300), 0), ((2, 3, 4, 5), 2),
]  # fmt: skip


def reference(x: np.ndarray, dim: int, log: bool) -> np.ndarray:
    x = x.astype(np.float64)
    shifted = x - x.max(axis=dim, keepdims=True)
    total = np.exp(shifted).sum(axis=dim, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total


def backward(g: np.ndarray, y: np.ndarray, dim: int, log: bool) -> np.ndarray:
    if log:
        return g - np.exp(y) * g.sum(axis=dim, keepdims=True)
    return y * (g - (g * y).sum(axis=dim, keepdims=True))


def values(shape, seed=0, scale=3.0):
    return np.random.default_rng(seed).standard_normal(shape) * scale


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize(("dtype", "tol"), [("float32", 3e-6), ("float64", 1e-13)])
def test_forward_and_backward(shape, dim, log, dtype, tol):
    x = values(shape).astype(dtype)
    g = values(shape, 1, 1.0).astype(dtype)
    t = fb.from_numpy(x).requires_grad_()
    y = (fb.log_softmax if log else fb.softmax)(t, dim)
    y.backward(fb.from_numpy(g))
    want = reference(x, dim, log)
    np.testing.assert_allclose(y.detach().numpy(), want, rtol=tol, atol=tol)
    d = backward(g.astype(np.float64), want, dim, log)
    np.testing.assert_allclose(t.grad.numpy(), d, rtol=20 * tol, atol=20 * tol)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("dim", [0, 1])
def test_half_formats_compute_in_float(name, dim):
    x = fb.from_numpy(values((20, 30)).astype("float32")).to(getattr(fb, name))
    y = fb.softmax(x, dim)
    want = fb.from_numpy(reference(x.float().numpy(), dim, False)).to(y.dtype)
    assert y.dtype == x.dtype
    step = 2.0**-10 if name == "float16" else 2.0**-7
    np.testing.assert_allclose(y.float().numpy(), want.float().numpy(), rtol=step)


@pytest.mark.parametrize("columns", [1, 20])
@pytest.mark.parametrize(
    "row",
    [
        [np.nan, 1, 2], [-np.inf] * 3, [-np.inf, 1, 2], [np.inf, 1, 2], [-np.inf, np.nan, -np.inf],
        [0, -90, -110],
    ],
)  # fmt: skip
def test_special_values(row, columns):
    x = np.tile(np.array(row, "float32")[:, None], (1, columns))
    with np.errstate(invalid="ignore"):
        want = [reference(x, 0, log).astype("float32") for log in (False, True)]
    t = fb.from_numpy(x)
    np.testing.assert_allclose(fb.softmax(t, 0).numpy(), want[0], rtol=1e-5)
    np.testing.assert_allclose(fb.log_softmax(t, 0).numpy(), want[1], rtol=1e-5)


def test_rows_sum_to_one_and_shift_does_not_matter():
    x = fb.from_numpy(values((50, 333)).astype("float32"))
    y = fb.softmax(x, 1)
    np.testing.assert_allclose(y.sum(1).numpy(), 1, rtol=1e-5)
    np.testing.assert_allclose(fb.softmax(x + 50, 1).numpy(), y.numpy(), rtol=1e-4, atol=1e-7)


def test_strided_input_and_out():
    x = values((6, 8)).astype("float32")
    t = fb.from_numpy(x).t()
    out = fb.empty(8, 6)
    assert fb.softmax(t, 1, out=out) is out
    np.testing.assert_allclose(out.numpy(), reference(x.T, 1, False), rtol=1e-5)
    assert fb.softmax(t, 1).is_contiguous()


def test_dtype_is_taken_first():
    y = fb.softmax(fb.tensor([0, 0]), 0, dtype=fb.float64)
    assert y.dtype == fb.float64 and y.tolist() == [0.5, 0.5]
    x = fb.zeros(2, dtype=fb.float16, requires_grad=True)
    fb.softmax(x, 0, dtype=fb.float32)[0].backward()
    assert x.grad.dtype == fb.float16 and x.grad.tolist() == [0.25, -0.25]


def test_empty_and_zero_dim():
    assert fb.softmax(fb.empty(0, 3), 0).shape == (0, 3)
    assert fb.softmax(fb.tensor(3.0), -1).item() == 1


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_second_derivative(log, dim):
    x = fb.from_numpy(values((3, 4), 2, 1.0)).requires_grad_()
    f = fb.log_softmax if log else fb.softmax
    assert fb.autograd.gradgradcheck(lambda t: f(t, dim), (x,))


def test_errors():
    with pytest.raises(NotImplementedError, match="softmax_lastdim_kernel_impl.*Long"):
        fb.softmax(fb.tensor([1]), 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        fb.softmax(fb.zeros(2), 1)


def test_implied_dim_warns():
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        y = F.softmax(fb.zeros(3, 2))
    assert y.tolist() == [[0.5, 0.5]] * 3


def test_softmin_and_gumbel():
    x = values((2, 3)).astype("float32")
    np.testing.assert_allclose(
        F.softmin(fb.from_numpy(x), 1).numpy(), reference(-x, 1, False), rtol=1e-5
    )
    hard = F.gumbel_softmax(fb.from_numpy(x), hard=True)
    np.testing.assert_allclose(hard.sum(1).numpy(), 1, rtol=1e-6)
    np.testing.assert_allclose(np.sort(hard.numpy(), 1)[:, :2], 0, atol=1e-6)
