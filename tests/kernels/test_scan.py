"""Scans against NumPy, in every layout and dtype; derivatives against finite differences."""

import numpy as np
import pytest

import flambeau as fb

FLOATS = [fb.float16, fb.bfloat16, fb.float32, fb.float64, fb.complex64, fb.complex128]
INTS = [fb.bool, fb.uint8, fb.int8, fb.int16, fb.int32, fb.int64]
SHAPES = [((7,), 0), ((5, 9), 0), ((5, 9), 1), ((3, 4, 6), 1), ((2, 70, 3), -2), ((1, 1), 0)]
rng = np.random.default_rng(0)


def wide(x):
    """A tensor as an array that NumPy adds up precisely."""
    if x.is_complex():
        return x.to(fb.complex128).numpy()
    return x.to(fb.float64 if x.is_floating_point() else fb.int64).numpy()


def tolerance(dtype):
    return {fb.float16: 2e-3, fb.bfloat16: 2e-2, fb.float32: 1e-6, fb.complex64: 1e-6}.get(
        dtype, 1e-12
    )


def some(shape, dtype):
    x = rng.uniform(0.5, 1.5, shape)
    if dtype.is_complex:
        x = x + 1j * rng.uniform(-0.3, 0.3, shape)
    return fb.tensor(x * (3 if dtype in INTS else 1)).to(dtype)


def close(got, want, dtype):
    np.testing.assert_allclose(wide(got), want, rtol=tolerance(dtype))


@pytest.mark.parametrize("dtype", FLOATS + INTS, ids=str)
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_sums_and_products(shape, dim, dtype):
    x = some(shape, dtype)
    for op, reference in ((fb.cumsum, np.cumsum), (fb.cumprod, np.cumprod)):
        got = op(x, dim)
        assert got.dtype == (fb.int64 if dtype in INTS else dtype)
        assert got.is_contiguous()
        close(got, reference(wide(x), axis=dim), dtype)


@pytest.mark.parametrize("dtype", [fb.float32, fb.float64, fb.int64], ids=str)
@pytest.mark.parametrize("n", [2**17 + 5, 3, 1])
def test_long_lines(n, dtype):
    x = fb.tensor(rng.integers(-3, 4, n)).to(dtype)
    np.testing.assert_array_equal(wide(fb.cumsum(x, 0)), np.cumsum(wide(x)))


def test_columns_wider_than_a_block():
    x = fb.tensor(rng.normal(size=(11, 2500)))
    np.testing.assert_allclose(x.cumsum(0).numpy(), np.cumsum(x.numpy(), 0), rtol=1e-12, atol=1e-12)
    y = x.expand(3, 11, 2500)
    np.testing.assert_allclose(y.cumsum(1).numpy()[2], x.cumsum(0).numpy())


def test_strided_empty_and_single():
    x = fb.tensor(rng.normal(size=(6, 8)))[::2, 1::3].t()
    np.testing.assert_allclose(x.cumsum(0).numpy(), np.cumsum(x.numpy(), 0))
    assert fb.cumsum(fb.empty(0, 3), 0).shape == (0, 3)
    assert fb.cumprod(fb.empty(3, 0), 0).shape == (3, 0)
    assert fb.cumsum(fb.tensor(2.5), 0).item() == 2.5
    assert fb.cummax(fb.tensor(2), -1).indices.item() == 0


def test_dtype_out_and_in_place():
    x = fb.tensor([1, 2, 3], dtype=fb.int32)
    assert fb.cumsum(x, 0, dtype=fb.float32).tolist() == [1.0, 3.0, 6.0]
    assert fb.cumsum(fb.tensor([200, 100], dtype=fb.uint8), 0, dtype=fb.uint8).tolist() == [200, 44]
    out = fb.empty(3, dtype=fb.int64)
    assert fb.cumsum(x, 0, out=out) is out
    assert out.tolist() == [1, 3, 6]
    assert x.cumsum_(0) is x
    assert x.dtype == fb.int32
    assert x.cumprod_(0).tolist() == [1, 3, 18]
    columns = fb.zeros(3, 2, dtype=fb.int64)[:, 0]
    fb.cumsum(fb.tensor([1, 1, 1]), 0, out=columns)
    assert columns.tolist() == [1, 2, 3]


def test_half_sums_do_not_stall():
    assert fb.cumsum(fb.ones(4096, dtype=fb.float16), 0)[-1].item() == 4096
    assert fb.cumsum(fb.full([3], 0.1), 0)[-1].item() == np.float32(0.3)


def running_extreme(x, better):
    values, places = np.empty_like(x), np.empty(x.shape, np.int64)
    best = 0
    for i, item in enumerate(x):
        if np.isnan(item) or (not np.isnan(x[best]) and better(item, x[best])):
            best = i
        values[i], places[i] = x[best], best
    return values, places


@pytest.mark.parametrize("op", ["cummax", "cummin"])
def test_extremes(op):
    better = np.greater_equal if op == "cummax" else np.less_equal
    x = rng.integers(-4, 5, (9, 4)).astype(float)
    x[3, 1] = x[6, 1] = np.nan
    values, places = getattr(fb, op)(fb.tensor(x), 0)
    for j in range(4):
        v, p = running_extreme(x[:, j], better)
        np.testing.assert_array_equal(values[:, j].numpy(), v)
        np.testing.assert_array_equal(places[:, j].numpy(), p)
    flags = getattr(fb, op)(fb.tensor([[False, True, False]]), 1)
    assert flags.values.tolist() == ([[False, True, True]] if op == "cummax" else [[False] * 3])
    assert flags.indices.tolist() == ([[0, 1, 1]] if op == "cummax" else [[0, 0, 2]])


def test_logcumsumexp():
    x = rng.normal(size=(5, 7)) * 3
    got = fb.logcumsumexp(fb.tensor(x), 1).numpy()
    np.testing.assert_allclose(got, np.log(np.cumsum(np.exp(x), 1)), rtol=1e-12)
    z = x + 1j * rng.uniform(-0.2, 0.2, x.shape)
    got = fb.logcumsumexp(fb.tensor(z), 1).numpy()
    np.testing.assert_allclose(np.exp(got), np.cumsum(np.exp(z), 1), rtol=1e-10)
    inf = float("inf")
    assert fb.logcumsumexp(fb.tensor([-inf, -inf, 1.0, 1000.0, inf]), 0).tolist() == [
        -inf, -inf, 1.0, 1000.0, inf,
    ]  # fmt: skip
    assert fb.logcumsumexp(fb.tensor([1.0, float("nan"), 2.0]), 0).isnan().tolist() == [
        False, True, True,
    ]  # fmt: skip


def numerical(f, x, g, h=1e-6):
    """Gradient of sum(g * f(x)) by central differences."""
    out = np.empty_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        out[i] = (g * (f(up) - f(down))).sum() / (2 * h)
    return out


CUMULATIVE = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "logcumsumexp": lambda x, axis: np.log(np.cumsum(np.exp(x), axis)),
    "cummax": lambda x, axis: np.maximum.accumulate(x, axis),
    "cummin": lambda x, axis: np.minimum.accumulate(x, axis),
}


@pytest.mark.parametrize("op", CUMULATIVE)
@pytest.mark.parametrize("dim", [0, 1])
def test_derivatives(op, dim):
    x, g = rng.normal(size=(4, 5)), rng.normal(size=(4, 5))
    if op == "cumprod":
        x[1, 2] = x[3, 2] = x[0, 0] = 0.0
    t = fb.tensor(x, requires_grad=True)
    result = getattr(fb, op)(t, dim)
    result = result[0] if isinstance(result, tuple) else result
    result.backward(fb.tensor(g))
    want = numerical(lambda a: CUMULATIVE[op](a, axis=dim), x, g)
    np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("op", ["cumprod", "logcumsumexp"])
@pytest.mark.parametrize("kind", [fb.float64, fb.complex128], ids=str)
def test_second_derivatives(op, kind):
    x = fb.tensor(rng.normal(size=(3, 4))).to(kind)
    x[0, 1] = 0
    x.requires_grad_()
    f = getattr(fb, op)
    assert fb.autograd.gradcheck(lambda t: f(t, 1), (x,))
    assert fb.autograd.gradgradcheck(lambda t: f(t, 1), (x,))


def test_integrals():
    y, x = rng.normal(size=(3, 6)), np.sort(rng.normal(size=6))
    ty, tx = fb.tensor(y), fb.tensor(x)
    np.testing.assert_allclose(fb.trapezoid(ty, tx).numpy(), np.trapezoid(y, x), rtol=1e-12)
    np.testing.assert_allclose(fb.trapz(ty, dx=0.5, dim=0).numpy(), np.trapezoid(y, dx=0.5, axis=0))
    steps = np.diff(x) * (y[:, 1:] + y[:, :-1]) / 2
    running = fb.cumulative_trapezoid(ty, tx).numpy()
    np.testing.assert_allclose(running, np.cumsum(steps, 1), rtol=1e-12)
    with pytest.raises(RuntimeError, match="one `x` value for each sample point"):
        fb.trapezoid(ty, tx[:3])


def test_differences():
    x = rng.integers(0, 9, (4, 5))
    t = fb.tensor(x)
    for n in range(7):
        np.testing.assert_array_equal(fb.diff(t, n).numpy(), np.diff(x, n) if n < 5 else x[:, :0])
    np.testing.assert_array_equal(
        fb.diff(t, dim=0, prepend=t[:1], append=t[:2]).numpy(),
        np.diff(x, axis=0, prepend=x[:1], append=x[:2]),
    )
    assert fb.diff(t, 0, prepend=t).shape == t.shape
    assert fb.diff(fb.tensor([True, False, False])).tolist() == [True, False]
    with pytest.raises(RuntimeError, match="at least one-dimensional"):
        fb.diff(fb.tensor(1))


def test_refusals():
    with pytest.raises(IndexError, match="Dimension out of range"):
        fb.cumsum(fb.ones(2), 1)
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        fb.cummax(fb.ones(2, dtype=fb.complex64), 0)
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        fb.logcumsumexp(fb.ones(2, dtype=fb.int32), 0)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        fb.cumsum(fb.ones(2), 0, dtype=fb.bool)
