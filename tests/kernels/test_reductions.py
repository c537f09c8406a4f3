"""Reductions against NumPy: dtypes, layouts, NaN, emptiness, accuracy, derivatives, errors."""

import itertools

import numpy as np
import pytest

import flambeau as fb

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTS = ["uint8", "int8", "int16", "int32", "int64"]
SHAPES = [
    (),
    (1,),
    (7,),
    (300,),
    (3, 4),
    (33, 70),
    (5, 1, 9),
    (17, 40, 23),
    (2, 3, 4, 5),
    (3000, 3),
    (2, 3000),
]
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-13}


def values(shape, dtype, seed=0):
    """A tensor and the same numbers in double precision (or int64, bool)."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        a = rng.random(shape) < 0.3
        return fb.tensor(a), np.asarray(a)
    if dtype in INTS:
        a = rng.integers(0 if dtype[0] == "u" else -5, 9, shape)
        return fb.tensor(a).to(getattr(fb, dtype)), np.asarray(a)
    x = fb.tensor(rng.standard_normal(shape) * 3).to(getattr(fb, dtype))
    return x, x.to(fb.float64).numpy()


def layouts(x, a):
    """The same data laid out in several ways."""
    yield x, a
    if x.ndim > 1:
        yield x.transpose(0, -1), np.swapaxes(a, 0, -1)
        yield x[:1].expand(4, *x.shape[1:]), np.broadcast_to(a[:1], (4, *a.shape[1:]))
    if x.ndim > 0:
        yield x[..., ::2], a[..., ::2]
    if x.ndim == 3:
        yield x.permute(1, 2, 0), np.transpose(a, (1, 2, 0))


def dims_of(ndim):
    yield None
    for k in (1, 2):
        yield from itertools.combinations(range(ndim), k)


def close(result, expected, tol, scale=None):
    """|result - expected| <= tol * scale, where scale is what the result was summed from."""
    got = result.detach().to(fb.float64).numpy() if result.dtype != fb.bool else result.numpy()
    expected = np.asarray(expected, dtype=np.float64)
    assert got.shape == expected.shape
    scale = np.abs(expected) if scale is None else scale
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    error = np.abs(got - expected)[finite]
    assert (error <= tol * (np.broadcast_to(scale, expected.shape)[finite] + tol)).all(), (
        error.max()
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(shape, dtype):
    tol = TOLERANCE[dtype]
    for x, a in layouts(*values(shape, dtype)):
        for dims in dims_of(x.ndim):
            size = np.abs(a).sum(dims)
            n = a.size // max(1, size.size)
            close(fb.sum(x, dims), a.sum(dims), tol, size)
            close(fb.mean(x, dims), a.mean(dims), tol, size / n)
            close(fb.var(x, dims, correction=0), a.var(dims), tol, (a * a).mean(dims))
            close(fb.std(x, dims, correction=0), a.std(dims), tol, np.sqrt((a * a).mean(dims)))
            close(fb.amax(x, dims or ()), a.max(dims), 0)
            close(fb.amin(x, dims or ()), a.min(dims), 0)
            top = a.max(dims, keepdims=True)
            lse = np.log(np.exp(a - top).sum(dims, keepdims=True)) + top
            close(fb.logsumexp(x, dims or tuple(range(x.ndim)), True), lse, tol, np.abs(lse) + 1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [*INTS, "bool"])
def test_integers(shape, dtype):
    for x, a in layouts(*values(shape, dtype)):
        for dims in dims_of(x.ndim):
            for keep in (False, True):
                result = fb.sum(x, dims, keep)
                assert result.dtype == fb.int64
                close(result, a.sum(dims, keepdims=keep), 0)
                close(fb.amax(x, dims or (), keep), a.max(dims, keepdims=keep), 0)
                close(fb.amin(x, dims or (), keep), a.min(dims, keepdims=keep), 0)
                close(fb.any(x, dims, keep), a.any(dims, keepdims=keep), 0)
                close(fb.all(x, dims, keep), a.all(dims, keepdims=keep), 0)
            close(fb.count_nonzero(x, dims), np.count_nonzero(a, dims), 0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("shape", [s for s in SHAPES if s], ids=str)
def test_places(shape, dtype):
    for x, a in layouts(*values(shape, dtype)):
        close(fb.argmax(x), a.argmax(), 0)
        close(fb.argmin(x), a.argmin(), 0)
        for d in range(x.ndim):
            for name in ("max", "min"):
                got = getattr(fb, name)(x, d)
                close(got.indices, getattr(a, "arg" + name)(d), 0)
                close(got.values, getattr(a, name)(d), 0)
                close(getattr(fb, "arg" + name)(x, d), getattr(a, "arg" + name)(d), 0)


@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 200, 5000, 70000])
def test_nan_is_beyond_everything(n):
    a = np.random.default_rng(n).standard_normal((n, 3)).astype("float32")
    a[n // 2, 1] = np.nan
    a[n - 1, 1] = np.nan
    for x, d in ((fb.tensor(a), 0), (fb.tensor(np.ascontiguousarray(a.T)), 1)):
        for name in ("max", "min"):
            got = getattr(fb, name)(x, d)
            assert np.isnan(got.values[1].item())
            assert got.indices[1].item() == n // 2
            assert np.isnan(getattr(fb, "a" + name)(x, d)[1].item())
            assert got.values[0].item() == getattr(a[:, 0], name)()
        np.testing.assert_allclose(
            fb.nansum(x, d).numpy(), np.nansum(a, 0, dtype="float64"), rtol=1e-4
        )
        if n > 2:
            np.testing.assert_allclose(
                fb.nanmean(x, d).numpy(), np.nanmean(a.astype("float64"), 0), rtol=1e-3, atol=1e-6
            )
        assert np.isnan(fb.sum(x).item())


def test_first_of_ties():
    x = fb.tensor([[1.0, 7, 7, 7] * 50] * 3)
    assert fb.argmax(x, 1).tolist() == [1, 1, 1]
    assert fb.argmax(x, 0).tolist() == [0] * 200
    assert fb.argmin(x, 1).tolist() == [0, 0, 0]


def test_sums_are_accurate():
    # float32 has no odd numbers above 16,777,216, so a running sum would stop there.
    assert fb.ones(20_000_000).sum().item() == 20_000_000
    x = fb.full((4_000_000,), 0.1)
    exact = 4_000_000 * float(np.float32(0.1))
    allowed = 2 * np.finfo("float32").eps * exact  # equal numbers err all the same way
    assert abs(x.sum().item() - exact) < allowed
    assert abs(x.view(2000, 2000).sum(0)[7].item() * 2000 - exact) < allowed
    assert abs(x.mean().item() - np.float32(0.1)) < allowed / x.numel()


def test_variance_of_a_large_offset():
    a = np.random.default_rng(0).standard_normal((400, 500)) + 1e6
    x = fb.tensor(a)
    np.testing.assert_allclose(x.var(1).numpy(), a.var(1, ddof=1), rtol=1e-9)
    y = fb.tensor((a - 1e6 + 1e3).astype("float32"))
    exact = y.numpy().astype("float64")
    np.testing.assert_allclose(y.var(0).numpy(), exact.var(0, ddof=1), rtol=1e-4)
    np.testing.assert_allclose(y.var(1).numpy(), exact.var(1, ddof=1), rtol=1e-4)
    np.testing.assert_allclose(y.var().item(), exact.var(ddof=1), rtol=1e-5)


@pytest.mark.parametrize("places", [[3], [3, 4], [3, 9000]])
def test_the_mean_beside_a_variance_may_be_infinite(places):
    x = fb.arange(10_000, dtype=fb.float64)
    x[fb.tensor(places)] = -fb.inf
    pairs = fb.stack([x, x], 1)
    for numbers, dim in ((x, 0), (pairs, 0), (pairs, 1), (pairs[:, 1], 0), (pairs[:, :1], None)):
        var, mean = fb.var_mean(numbers, dim)
        assert mean.tolist() == numbers.mean(dim).tolist()
        assert (var.isnan() == mean.isinf()).all()


def test_var_forms():
    a = np.random.default_rng(1).standard_normal((4, 6))
    x = fb.tensor(a)
    np.testing.assert_allclose(x.var().item(), a.var(ddof=1))
    np.testing.assert_allclose(x.var(False).item(), a.var())
    np.testing.assert_allclose(x.var(unbiased=False).item(), a.var())
    np.testing.assert_allclose(x.var(0).numpy(), a.var(0, ddof=1))
    np.testing.assert_allclose(x.var(0, False).numpy(), a.var(0))
    np.testing.assert_allclose(x.var(1, True, True).numpy(), a.var(1, ddof=1, keepdims=True))
    np.testing.assert_allclose(x.var(1, correction=2).numpy(), a.var(1, ddof=2))
    np.testing.assert_allclose(x.std([0, 1], correction=0.5).item(), np.sqrt(a.var() * 24 / 23.5))
    var, mean = fb.var_mean(x, 1)
    np.testing.assert_allclose(var.numpy(), a.var(1, ddof=1))
    np.testing.assert_allclose(mean.numpy(), a.mean(1))
    std, mean = fb.std_mean(x, correction=0)
    np.testing.assert_allclose([std.item(), mean.item()], [a.std(), a.mean()])
    z = a + 1j * a[::-1]
    np.testing.assert_allclose(fb.var(fb.tensor(z), 1).numpy(), z.var(1, ddof=1))
    for few in (fb.ones(1), fb.empty(0)):
        with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
            assert np.isnan(few.var().item())


def test_complex_sums():
    rng = np.random.default_rng(2)
    a = rng.standard_normal((40, 30, 5)) + 1j * rng.standard_normal((40, 30, 5))
    for x in (fb.tensor(a), fb.tensor(a.astype("complex64"))):
        tol = 1e-12 if x.dtype == fb.complex128 else 1e-4
        for dims in dims_of(3):
            np.testing.assert_allclose(x.sum(dims).numpy(), a.sum(dims), rtol=tol, atol=tol)
            np.testing.assert_allclose(x.mean(dims).numpy(), a.mean(dims), rtol=tol, atol=tol)
        np.testing.assert_allclose(x[0].prod(1).numpy(), a[0].prod(1), rtol=tol, atol=tol)


def test_prod():
    a = np.random.default_rng(3).uniform(0.5, 1.5, (30, 40))
    np.testing.assert_allclose(fb.tensor(a).prod().item(), a.prod(), rtol=1e-12)
    np.testing.assert_allclose(fb.tensor(a).prod(1).numpy(), a.prod(1), rtol=1e-12)
    np.testing.assert_allclose(
        fb.tensor(a).prod(0, keepdim=True).numpy(), a.prod(0, keepdims=True), rtol=1e-12
    )
    assert fb.prod(fb.tensor([2, 3, 4], dtype=fb.int8)).item() == 24
    assert fb.prod(fb.tensor([True, False])).dtype == fb.int64
    assert fb.empty(0).prod().item() == 1


def test_dtype_argument():
    x = fb.tensor([1.9, 2.9, -1.9])
    assert fb.sum(x, dtype=fb.int64).item() == 2
    assert fb.sum(x, dtype=fb.float64).dtype == fb.float64
    assert fb.mean(fb.tensor([1, 2]), dtype=fb.float32).item() == 1.5
    assert fb.sum(fb.tensor([200, 100]), dtype=fb.uint8).item() == 44
    assert fb.tensor([[1, 2]]).sum(0, dtype=fb.float32).dtype == fb.float32


def test_nothing():
    e = fb.empty(0, 3)
    assert e.sum(0).tolist() == [0, 0, 0]
    assert e.sum(1).shape == (0,)
    assert np.isnan(e.mean().item())
    assert e.all().item() and not e.any().item()
    assert e.amax(1).shape == (0,)
    assert fb.logsumexp(e, 0).tolist() == [-np.inf] * 3
    assert fb.logsumexp(fb.tensor([-np.inf, -np.inf]), 0).item() == -np.inf
    assert fb.logsumexp(fb.tensor([np.inf, 1.0]), 0).item() == np.inf


NO_DIM = "Expected reduction dim to be specified for input.numel() == 0"
EMPTY_DIM = "Expected reduction dim 0 to have non-zero size."
RANGE = "Dimension out of range (expected to be in range of [-2, 1], but got 2)"


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda e, x: e.amax(), RuntimeError, f"amax(): {NO_DIM}"),
        (lambda e, x: e.max(), RuntimeError, f"max(): {NO_DIM}"),
        (lambda e, x: e.amax(0), IndexError, f"amax(): {EMPTY_DIM}"),
        (lambda e, x: e.min(0), IndexError, f"min(): {EMPTY_DIM}"),
        (lambda e, x: e.argmax(), IndexError, f"argmax(): {NO_DIM}"),
        (lambda e, x: e.argmin(0), IndexError, f"argmin(): {EMPTY_DIM}"),
        (lambda e, x: x.sum(2), IndexError, RANGE),
        (lambda e, x: x.sum((0, 0)), RuntimeError, "dim 0 appears multiple times"),
        (lambda e, x: x.long().mean(), RuntimeError, "mean(): could not infer output dtype"),
        (lambda e, x: x.long().var(), RuntimeError, "std and var only support floating point"),
        (lambda e, x: x.bool().argmax(), RuntimeError, "argmax(): does not support bool input"),
        (lambda e, x: fb.quantile(x, 1.5), RuntimeError, "q must be in the range [0, 1] but got"),
        (lambda e, x: fb.quantile(e, 0.5), RuntimeError, "input tensor must be non-empty"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call(fb.empty(0, 3), fb.ones(2, 3))
    assert message in str(caught.value)


def test_out():
    x = fb.tensor([[1.0, 5], [3, 2]])
    out = fb.empty(0)
    assert fb.sum(x, 1, out=out) is out
    assert out.tolist() == [6, 5]
    into = fb.zeros(2, 2)
    fb.amax(x, 0, out=into[:, 1])
    assert into.tolist() == [[0, 3], [0, 5]]
    values, places = fb.empty(2), fb.empty(2, dtype=fb.int64)
    fb.max(x, 1, out=(values, places))
    assert values.tolist() == [5, 3] and places.tolist() == [1, 0]


def gradient(f, x):
    x = x.clone().requires_grad_()
    (g,) = fb.autograd.grad(f(x), x)
    return g


def test_shares_of_ties():
    x = fb.tensor([[1.0, 4, 4], [2, 2, 2]])
    np.testing.assert_allclose(
        gradient(lambda t: t.amax(1).sum(), x).numpy(), [[0, 0.5, 0.5], [1 / 3] * 3]
    )
    np.testing.assert_allclose(gradient(lambda t: t.max(), x).numpy(), [[0, 0.5, 0.5], [0, 0, 0]])
    assert gradient(lambda t: t.max(1).values.sum(), x).tolist() == [[0, 1, 0], [1, 0, 0]]


def numeric(f, a, h=1e-6):
    g = np.zeros_like(a)
    for i in np.ndindex(*a.shape):
        up, down = a.copy(), a.copy()
        up[i] += h
        down[i] -= h
        g[i] = (f(fb.tensor(up)).item() - f(fb.tensor(down)).item()) / (2 * h)
    return g


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x.sum(1) ** 2).sum(),
        lambda x: (x.mean((0, 1)) ** 3).sum(),
        lambda x: (x.prod(1) ** 2).sum(),
        lambda x: x.prod(),
        lambda x: (x.var(0) ** 2).sum(),
        lambda x: (x.std(1, correction=0) ** 3).sum(),
        lambda x: (x.logsumexp(1) ** 2).sum(),
        lambda x: (x.logsumexp((0, 1), True) ** 2).sum(),
        lambda x: (x.amax(0) * x.amin(1).sum()).sum(),
        lambda x: (x.nansum(0, True) ** 2).sum(),
        lambda x: fb.stack(fb.var_mean(x, 1)).pow(2).sum(),
        lambda x: fb.stack(fb.std_mean(x)).pow(2).sum(),
        lambda x: fb.quantile(x, 0.3, dim=1).pow(2).sum(),
        lambda x: fb.dist(x, x.flip([0]) * 2, 3.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_derivatives(f, zeros):
    a = np.random.default_rng(4).standard_normal((3, 4))
    a.flat[[1, 7][:zeros]] = 0  # of different rows: ties have no derivative
    x = fb.tensor(a)
    np.testing.assert_allclose(gradient(f, x).numpy(), numeric(f, a), rtol=1e-5, atol=1e-6)

    def slope(t):
        (g,) = fb.autograd.grad(f(t), t, create_graph=True)
        return (g * fb.linspace(-1, 1, 12, dtype=fb.float64).view(3, 4)).sum()

    second = gradient(slope, x).numpy()
    h = 1e-5
    for i in np.ndindex(3, 4):
        ends = []
        for step in (h, -h):
            moved = a.copy()
            moved[i] += step
            ends.append(slope(fb.tensor(moved).requires_grad_()).item())
        np.testing.assert_allclose(second[i], (ends[0] - ends[1]) / (2 * h), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rule", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(rule):
    a = np.random.default_rng(5).standard_normal((7, 10))
    q = np.array([0.0, 0.21, 0.5, 0.83, 1.0])
    x, fractions = fb.tensor(a), fb.tensor(q)
    close(fb.quantile(x, fractions, interpolation=rule), np.quantile(a, q, method=rule), 1e-12)
    for d in (0, 1):
        for keep in (False, True):
            expected = np.quantile(a, q, d, keepdims=keep, method=rule)
            close(fb.quantile(x, fractions, d, keep, interpolation=rule), expected, 1e-12)
            close(fb.nanquantile(x, fractions, d, keep, interpolation=rule), expected, 1e-12)
    a[3, 4] = np.nan
    x = fb.tensor(a)
    close(fb.quantile(x, 0.5, 1, interpolation=rule), np.quantile(a, 0.5, 1, method=rule), 1e-12)
    close(
        fb.nanquantile(x, 0.3, 1, interpolation=rule), np.nanquantile(a, 0.3, 1, method=rule), 1e-12
    )


def test_closeness():
    a = fb.tensor([1.0, np.inf, np.nan, -np.inf])
    b = fb.tensor([1.0 + 1e-6, np.inf, np.nan, np.inf])
    assert fb.isclose(a, b).tolist() == [True, True, False, False]
    assert fb.isclose(a, b, equal_nan=True).tolist() == [True, True, True, False]
    assert not fb.allclose(a, b)
    assert fb.allclose(a[:2], b[:2])
    assert fb.isclose(
        fb.tensor([100, 101]), fb.tensor([100, 100]), rtol=0.0, atol=1.0
    ).tolist() == [True, True]
    assert fb.equal(fb.tensor([1, 2]), fb.tensor([1.0, 2.0]))
    assert not fb.equal(fb.tensor([1, 2]), fb.tensor([[1, 2]]))


def test_sum_to_size():
    x = fb.arange(6.0).view(2, 3)
    assert x.sum_to_size(1, 3).tolist() == [[3, 5, 7]]
    assert x.sum_to_size((3,)).tolist() == [3, 5, 7]
    with pytest.raises(RuntimeError, match="is not expandable to size"):
        x.sum_to_size(2)


def test_any_over_no_dim_is_elementwise():
    x = fb.tensor([[0, 2], [1, 0]])
    assert x.any(()).tolist() == [[False, True], [True, False]]
    assert x.sum(()).item() == 3
    assert x.to(fb.uint8).any(0).dtype == fb.uint8


def columns_of(first, mean, deviation, dtype="float32", shape=(70, 300)):
    """Numbers whose first row and column are `first`, as a tensor and in double precision."""
    a = np.random.default_rng(3).standard_normal(shape) * deviation + mean
    a[0], a[:, 0] = first, first
    x = fb.tensor(a).to(getattr(fb, dtype))
    return x, x.double().numpy()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [2, 7, 33, 70, 300, 5000])
def test_equal_entries_do_not_deviate(dtype, n):
    for value in [0.0, 0.1, -7.3, 1e-3, 1e4 / 3]:
        x = fb.full((n, 5), value, dtype=getattr(fb, dtype))
        for y, dim in [(x, 0), (x.t(), 1), (x.t().contiguous(), 1), (x, (0, 1))]:
            assert fb.std(y, dim).eq(0).all(), (value, dim)
            var, mean = fb.var_mean(y, dim)
            assert var.eq(0).all()
            assert mean.eq(x[0, 0]).all()


@pytest.mark.parametrize("scale", [1e-37, 1e-25, 1e-15, 1.0, 1e15, 1e22, 1e37])
def test_std_at_the_ends_of_float(scale):
    x, ref = columns_of(0.5 * scale, 0, scale)
    for dim in (0, 1, (0, 1)):
        np.testing.assert_allclose(x.std(dim).double().numpy(), ref.std(dim, ddof=1), rtol=2e-6)


@pytest.mark.parametrize("first, mean, deviation", [(0, 1000, 1), (1000, 0, 0.01), (0, 300, 0.1)])
def test_a_first_entry_far_from_the_others(first, mean, deviation):
    x, ref = columns_of(first, mean, deviation)
    for dim in (0, 1, (0, 1)):
        np.testing.assert_allclose(x.var(dim).numpy(), ref.var(dim, ddof=1), rtol=2e-6)


def test_logsumexp_of_infinity():
    x = fb.tensor([[1.0, 2e30, fb.inf], [-1e30, fb.inf, 3.0], [-fb.inf, 1e30, -fb.inf]])
    rows, columns = [fb.inf, fb.inf, x[2, 1].item()], [1.0, fb.inf, fb.inf]
    for y in (x, x.t().contiguous().t(), x.double()):
        np.testing.assert_array_equal(y.logsumexp(1).numpy(), rows)
        np.testing.assert_array_equal(y.logsumexp(0).numpy(), columns)
        assert y.logsumexp((0, 1)).item() == fb.inf
        assert y[:, :1].expand(3, 5).logsumexp((0, 1)).item() == pytest.approx(1 + np.log(5))
    wide = x.repeat(40, 50)
    wide[0, 0] = fb.nan
    assert wide.logsumexp(0)[1::3].eq(fb.inf).all()
    assert wide.logsumexp(0)[0].isnan()
    assert wide.logsumexp((0, 1)).isnan()
    assert fb.tensor([-fb.inf, -fb.inf]).logsumexp(0).item() == -fb.inf
