"""Values of pointwise operations against NumPy and SciPy: dtypes, layouts, special numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special as sp

import flambeau as torch

FLOATS = {"float32": 4e-7, "float64": 3e-15}
#: name -> (reference, range)
UNARY = {
    "exp": (np.exp, -80, 80), "exp2": (np.exp2, -100, 100), "expm1": (np.expm1, -20, 20),
    "log": (np.log, 1e-20, 1e6), "log2": (np.log2, 1e-20, 1e6), "log10": (np.log10, 1e-20, 1e6),
    "log1p": (np.log1p, -0.99, 50), "sqrt": (np.sqrt, 0, 1e6), "sin": (np.sin, -1e3, 1e3),
    "cos": (np.cos, -1e3, 1e3), "tan": (np.tan, -1, 1), "tanh": (np.tanh, -12, 12),
    "sigmoid": (sp.expit, -40, 40), "erf": (sp.erf, -5, 5), "erfc": (sp.erfc, -3, 5),
    "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 0.9), "atan": (np.arctan, -30, 30),
    "sinh": (np.sinh, -10, 10), "cosh": (np.cosh, -10, 10), "asinh": (np.arcsinh, -50, 50),
    "acosh": (np.arccosh, 1.1, 50), "atanh": (np.arctanh, -0.9, 0.9), "floor": (np.floor, -9, 9),
    "ceil": (np.ceil, -9, 9), "trunc": (np.trunc, -9, 9), "round": (np.round, -9, 9),
    "abs": (np.abs, -9, 9), "neg": (np.negative, -9, 9), "square": (np.square, -9, 9),
    "reciprocal": (np.reciprocal, 0.1, 9), "lgamma": (sp.gammaln, 0.1, 40),
    "digamma": (sp.digamma, 2, 40), "erfinv": (sp.erfinv, -0.99, 0.99), "i0": (sp.i0, -20, 20),
}  # fmt: skip
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]


def close(got, want, tolerance):
    np.testing.assert_allclose(got.numpy(), want, rtol=8 * tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    reference, low, high = UNARY[name]
    x = np.random.default_rng(0).uniform(low, high, 4099).astype(dtype)
    want = reference(x.astype("float64"))
    close(getattr(torch, name)(torch.from_numpy(x)), want, FLOATS[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name", ["exp", "expm1", "log", "log1p", "sqrt", "sin", "tanh", "erf", "floor"]
)
def test_special_numbers(name, dtype):
    x = np.array(SPECIAL * 5, dtype)
    with np.errstate(all="ignore"):
        want = UNARY[name][0](x)
    got = getattr(torch, name)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-6)
    zero = want == 0
    assert (np.signbit(got[zero]) == np.signbit(want[zero])).all()


# Units in the last place of a float32 result, over ranges with every branch of the reduction.
ULPS = {"exp": (1, -104, 88.7), "tanh": (2.5, -10, 10), "erf": (1.5, -4.5, 4.5),
        "sin": (2, -1e6, 1e6), "cos": (2, -1e6, 1e6), "tan": (4, -1e6, 1e6)}  # fmt: skip


@pytest.mark.parametrize("name", ULPS)
def test_units_in_the_last_place(name):
    limit, low, high = ULPS[name]
    r = np.random.default_rng(0)
    x = np.concatenate([r.uniform(low, high, 200_003), r.uniform(-1, 1, 50_000)])
    if name in ("sin", "cos", "tan"):  # angles whose remainder is tiny
        x = np.concatenate([x, np.arange(1, 636_000, 7) * (np.pi / 2)])
    x = x.astype("float32")
    want = UNARY[name][0](x.astype("float64"))
    got = getattr(torch, name)(torch.from_numpy(x)).numpy()
    unit = np.spacing(np.maximum(np.abs(want), 1.2e-38).astype("float32")).astype("float64")
    assert (np.abs(got - want) / unit).max() <= limit


@pytest.mark.parametrize("name", ULPS)
def test_a_result_does_not_depend_on_its_neighbours(name):
    x = np.random.default_rng(0).uniform(-9, 9, 1003).astype("float32")
    whole = getattr(torch, name)(torch.from_numpy(x)).numpy()
    for n in (1, 3, 5, 8, 15, 17, 30):
        part = getattr(torch, name)(torch.from_numpy(x[-n:])).numpy()
        np.testing.assert_array_equal(part, whole[-n:])


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_angles(name):
    x = np.array([1e7, 3e9, 1e15, 1e20, 5.0] * 130)
    close(getattr(torch, name)(torch.from_numpy(x)), getattr(np, name)(x), 1e-14)


def test_power_of_special_numbers():
    base = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, np.inf, -np.inf, np.nan], "float32")
    a, b = (m.ravel() for m in np.meshgrid(base, [*base, 3.0, 0.5, -3.0]))
    a, b = a.astype("float32"), b.astype("float32")
    with np.errstate(all="ignore"):
        want = np.power(a, b)
    np.testing.assert_allclose(torch.pow(torch.from_numpy(a), torch.from_numpy(b)).numpy(), want)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_division_of_integers(name):
    a, b = (m.ravel() for m in np.meshgrid(np.arange(-9, 10), [-4, -3, -1, 1, 2, 7]))
    want = getattr(np, name)(a, b)
    got = getattr(torch, name)(torch.from_numpy(a), torch.from_numpy(b))
    assert (got.numpy() == want).all()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(torch, name)(torch.from_numpy(a), torch.zeros(len(a), dtype=torch.int64))


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
@pytest.mark.parametrize("divisor", [0, -(2**31)])  # both are 0 in sixteen bits
def test_refused_division_writes_nothing(name, divisor):
    x, out = torch.tensor([7, 9], dtype=torch.uint16), torch.tensor([5], dtype=torch.uint16)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(torch, name)(x, divisor, out=out)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(x, name + "_")(divisor)
    assert x.tolist() == [7, 9] and out.tolist() == [5]


def test_division_at_the_edge_of_int64():
    low = torch.tensor([-(2**63)])
    assert torch.floor_divide(low, -1).item() == -(2**63)
    assert torch.remainder(low, -1).item() == 0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_small_integers_wrap(dtype):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2 if dtype == "bool" else 127, 1000).astype(dtype)
    b = rng.integers(0, 2 if dtype == "bool" else 127, 1000).astype(dtype)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    assert ((x + y).numpy() == a + b).all()
    assert ((x * y).numpy() == a * b).all()
    assert (torch.bitwise_xor(x, y).numpy() == a ^ b).all()
    assert ((x > y).numpy() == (a > b)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_formats_compute_in_float(dtype):
    x = torch.randn(1000).to(getattr(torch, dtype))
    want = np.tanh(x.to(torch.float32).numpy())
    got = torch.tanh(x)
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got.to(torch.float32).numpy(), want, rtol=1e-2, atol=1e-3)


SHAPES = [
    ((4, 5), (4, 5)), ((4, 5), (5,)), ((4, 1), (1, 5)), ((), (3,)), ((2, 1, 3, 1), (4, 1, 6)),
    ((0, 3), (3,)), ((70, 90), (90, 70, 1, 1)), ((3000,), (1,)), ((17, 2100), (17, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_broadcasting(a, b):
    x, y = np.random.default_rng(2).normal(size=(2, 100000))
    x, y = x[: np.prod(a, dtype=int)].reshape(a), y[: np.prod(b, dtype=int)].reshape(b)
    got = torch.from_numpy(x) + torch.from_numpy(y)
    assert (got.numpy() == x + y).all()


@pytest.mark.parametrize("shape", [(40, 31), (40, 33), (7, 2100), (3, 50, 64), (600, 1)])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_one_number_per_row(name, shape):
    """Loops whose last operand is a number: rows that are short, long, split, out of order."""
    x = np.random.default_rng(2).normal(size=shape).astype("float32")
    op = getattr(torch, name)
    reference = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
    columns = [x[..., :1] + 2, np.full((), 1.5, "float32"), x[:1, ..., :1] - 3]
    for column in columns:
        c, t = torch.from_numpy(np.array(column)), torch.from_numpy(x)
        assert (op(t, c).numpy() == reference(x, column)).all()
        assert (op(t.clone(), c, out=torch.empty(shape)).numpy() == reference(x, column)).all()
        assert (getattr(t.clone(), name + "_")(c).numpy() == reference(x, column)).all()
        turned = torch.from_numpy(np.ascontiguousarray(x.T)).permute(*range(x.ndim)[::-1])
        assert (op(turned, c).numpy() == reference(x, column)).all()
        every_other = torch.from_numpy(np.repeat(x, 2, axis=-1))[..., ::2]
        assert (op(every_other, c).numpy() == reference(x, column)).all()


def test_shapes_that_do_not_match():
    with pytest.raises(
        RuntimeError,
        match=r"The size of tensor a \(2\) must match the size of tensor b \(3\) at "
        "non-singleton dimension 0",
    ):
        torch.ones(2) + torch.ones(3)


def test_transposed_operands_and_streams():
    x = np.random.default_rng(3).normal(size=(700, 900))
    y = np.random.default_rng(4).normal(size=(900, 700))
    got = torch.from_numpy(x) * torch.from_numpy(y).t()
    assert (got.numpy() == x * y.T).all()
    big = torch.ones(3000, 3000)
    assert ((big + big).numpy() == 2).all()
    assert ((big + torch.arange(3000)).numpy() == 1 + np.arange(3000, dtype="float32")).all()


def test_layout_of_results():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert (x + 1).stride() == x.stride()
    assert (x + torch.randn(5)).stride() == x.stride()
    t = torch.randn(4, 6).t()
    assert (t + t).stride() == (1, 6)
    assert (t + torch.randn(6, 4)).stride() == (1, 6)
    assert (torch.randn(6, 4) + t).stride() == (4, 1)


def test_overlapping_writes_are_refused():
    x = torch.ones(1).expand(4)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.add_(1)
    y = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        torch.add(y[:-1], y[:-1], out=y[1:])


def test_promotion():
    half, whole = torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.int64)
    assert (half + whole).dtype == torch.float16
    assert (whole + 1.5).dtype == torch.get_default_dtype()
    assert (whole + torch.tensor(1.5, dtype=torch.float64)).dtype == torch.float64
    assert (half + torch.tensor(1.5, dtype=torch.float64)).dtype == torch.float16
    assert (torch.ones(2, dtype=torch.uint8) + torch.ones(2, dtype=torch.int8)).dtype == torch.int16
    assert (whole + 1j).dtype == torch.complex64
    assert (whole / 2).dtype == torch.get_default_dtype()
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        whole.add_(1.5)
    with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
        torch.add(whole, whole, alpha=1.5)


@pytest.mark.parametrize(
    "name", ["exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "abs", "reciprocal"]
)
def test_complex_numbers(name):
    rng = np.random.default_rng(5)
    z = rng.normal(size=500) + 1j * rng.normal(size=500)
    close(getattr(torch, name)(torch.from_numpy(z)), getattr(np, name)(z), 1e-14)


def test_uint64_beyond_the_signed_range():
    big = torch.tensor([2**63 + 2], dtype=torch.uint64)
    one, six = torch.ones(1, dtype=torch.uint64), torch.tensor([6], dtype=torch.uint64)
    assert torch.heaviside(big, one).tolist() == [1]
    assert torch.gcd(big, six).tolist() == [2]
    assert torch.lcm(big, torch.tensor([2], dtype=torch.uint64)).tolist() == [2**63 + 2]


def test_derivatives_of_bessel_functions_beside_zero():
    small = [0.0, 1e-44, -1e-40, 1e-30, -1e-12]
    for function in (torch.special.i1, torch.special.i1e):
        x = torch.tensor(small, requires_grad=True)
        function(x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 0.5, rtol=1e-6)


def test_the_slope_of_a_small_norm_in_half_precision():
    x = torch.tensor([3e-6, 4e-6], dtype=torch.float16, requires_grad=True)
    x.norm().backward()
    exact = x.detach().double().numpy()
    np.testing.assert_allclose(x.grad.numpy(), exact / np.hypot(*exact), rtol=5e-3)
