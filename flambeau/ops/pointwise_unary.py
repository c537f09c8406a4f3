"""Unary functions of real and complex analysis beside those of pointwise_elementary.py."""

from __future__ import annotations

from flambeau.ops._lang import *


@pointwise(promote="float", aliases=("special.exp2",))
def exp2(input: Tensor) -> Tensor:
    """Two to the power of the input.

    >>> torch.exp2(torch.tensor([3.0]))
    tensor([8.])
    """
    return s.exp2(input)


@pointwise(promote="float", aliases=("special.expm1",))
def expm1(input: Tensor) -> Tensor:
    """Exponential minus 1, exact near 0.

    >>> torch.expm1(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.expm1(input)


@pointwise(promote="float")
def log(input: Tensor) -> Tensor:
    """Natural logarithm.

    >>> torch.log(torch.tensor([1.0]))
    tensor([0.])
    """
    return s.log(input)


@pointwise(promote="float")
def log2(input: Tensor) -> Tensor:
    """Logarithm to base 2.

    >>> torch.log2(torch.tensor([8.0]))
    tensor([3.])
    """
    return s.log2(input)


@pointwise(promote="float")
def log10(input: Tensor) -> Tensor:
    """Logarithm to base 10.

    >>> torch.log10(torch.tensor([10.0]))
    tensor([1.])
    """
    return s.log10(input)


@pointwise(promote="float", aliases=("special.log1p",))
def log1p(input: Tensor) -> Tensor:
    """Logarithm of 1 + input, exact near 0.

    >>> torch.log1p(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.log1p(input)


@pointwise(promote="float")
def sqrt(input: Tensor) -> Tensor:
    """Square root.

    >>> torch.sqrt(torch.tensor([4.0]))
    tensor([2.])
    """
    return s.sqrt(input)


@pointwise(promote="float")
def rsqrt(input: Tensor) -> Tensor:
    """Reciprocal of the square root.

    >>> torch.rsqrt(torch.tensor([4.0]))
    tensor([0.5000])
    """
    return s.rsqrt(input)


@pointwise(promote="float", aliases=("special.expit", "nn.functional.sigmoid"))
def sigmoid(input: Tensor) -> Tensor:
    """Logistic function 1 / (1 + exp(-x)).

    >>> torch.sigmoid(torch.tensor([0.0]))
    tensor([0.5000])
    """
    return s.sigmoid(input)


@pointwise(promote="float")
def cos(input: Tensor) -> Tensor:
    """Cosine.

    >>> torch.cos(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.cos(input)


@pointwise(promote="float")
def tan(input: Tensor) -> Tensor:
    """Tangent.

    >>> torch.tan(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.tan(input)


@pointwise(promote="float", aliases=("arcsin",))
def asin(input: Tensor) -> Tensor:
    """Inverse sine.

    >>> torch.asin(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.asin(input)


@pointwise(promote="float", aliases=("arccos",))
def acos(input: Tensor) -> Tensor:
    """Inverse cosine.

    >>> torch.acos(torch.tensor([1.0]))
    tensor([0.])
    """
    return s.acos(input)


@pointwise(promote="float", aliases=("arctan",))
def atan(input: Tensor) -> Tensor:
    """Inverse tangent.

    >>> torch.atan(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.atan(input)


@pointwise(promote="float")
def sinh(input: Tensor) -> Tensor:
    """Hyperbolic sine.

    >>> torch.sinh(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.sinh(input)


@pointwise(promote="float")
def cosh(input: Tensor) -> Tensor:
    """Hyperbolic cosine.

    >>> torch.cosh(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.cosh(input)


@pointwise(promote="float", aliases=("arcsinh",))
def asinh(input: Tensor) -> Tensor:
    """Inverse hyperbolic sine.

    >>> torch.asinh(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.asinh(input)


@pointwise(promote="float", aliases=("arccosh",))
def acosh(input: Tensor) -> Tensor:
    """Inverse hyperbolic cosine.

    >>> torch.acosh(torch.tensor([1.0]))
    tensor([0.])
    """
    return s.acosh(input)


@pointwise(promote="float", aliases=("arctanh",))
def atanh(input: Tensor) -> Tensor:
    """Inverse hyperbolic tangent.

    >>> torch.atanh(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.atanh(input)


@pointwise(promote="float", aliases=("special.sinc",))
def sinc(input: Tensor) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0.

    >>> torch.sinc(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.sinc(input)


@pointwise(promote="float", dtypes="bif", aliases=("special.erf",), label="erf_vml_cpu")
def erf(input: Tensor) -> Tensor:
    """Error function.

    >>> torch.erf(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.erf(input)


@pointwise(promote="float", dtypes="bif", aliases=("special.erfc",), label="erfc_vml_cpu")
def erfc(input: Tensor) -> Tensor:
    """1 - erf(x), exact for large inputs.

    >>> torch.erfc(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.erfc(input)


@pointwise(promote="float", dtypes="bif", aliases=("special.erfinv",), label="erfinv_vml_cpu")
def erfinv(input: Tensor) -> Tensor:
    """Inverse of the error function.

    >>> torch.erfinv(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.erfinv(input)


@pointwise(promote="float", dtypes="bif", aliases=("special.gammaln",), label="lgamma_vml_cpu")
def lgamma(input: Tensor) -> Tensor:
    """Logarithm of the absolute value of the gamma function.

    >>> torch.lgamma(torch.tensor([1.0]))
    tensor([0.])
    """
    return s.lgamma(input)


@pointwise(promote="float", dtypes="bif", aliases=("special.digamma", "special.psi"))
def digamma(input: Tensor) -> Tensor:
    """Logarithmic derivative of the gamma function.

    >>> torch.digamma(torch.tensor([1.0]))
    tensor([-0.5772])
    """
    return s.digamma(input)


@pointwise(promote="float", dtypes="bif", aliases=("special.i0",), label="i0_vml_cpu")
def i0(input: Tensor) -> Tensor:
    """Modified Bessel function of the first kind, order 0.

    >>> torch.i0(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.i0(input)


@pointwise(dtypes="ifc", namespaces=(), method=False, out=False, inplace=False, label="square")
def _square(input: Tensor) -> Tensor:
    """Product with itself.

    >>> torch.square(torch.tensor([3.0]))
    tensor([9.])
    """
    return s.square(input)


@composite(inplace=True, out=True, out_casts=True)
def square(input: Tensor) -> Tensor:
    """Product with itself; of bools in int64.

    >>> torch.square(torch.tensor([3.0]))
    tensor([9.])
    """
    return _square(input.to(int64) if input.dtype == bool_ else input)


@pointwise(promote="float")
def reciprocal(input: Tensor) -> Tensor:
    """1 / x.

    >>> torch.reciprocal(torch.tensor([4.0]))
    tensor([0.2500])
    """
    return s.reciprocal(input)


@pointwise(dtypes="if", aliases=(), label="floor_vml_cpu")
def floor(input: Tensor) -> Tensor:
    """Largest whole number not above.

    >>> torch.floor(torch.tensor([1.5]))
    tensor([1.])
    """
    return s.floor(input)


@floor.vjp
def _(g):
    return s.fmin(s.abs(g), 0)


@pointwise(dtypes="if", label="ceil_vml_cpu")
def ceil(input: Tensor) -> Tensor:
    """Smallest whole number not below.

    >>> torch.ceil(torch.tensor([1.5]))
    tensor([2.])
    """
    return s.ceil(input)


@ceil.vjp
def _(g):
    return s.fmin(s.abs(g), 0)


@pointwise(dtypes="if", aliases=("fix",), label="trunc_vml_cpu")
def trunc(input: Tensor) -> Tensor:
    """Whole part, towards 0.

    >>> torch.trunc(torch.tensor([-1.5]))
    tensor([-1.])
    """
    return s.trunc(input)


@trunc.vjp
def _(g):
    return s.fmin(s.abs(g), 0)


@pointwise(dtypes="f", label="frac_cpu")
def frac(input: Tensor) -> Tensor:
    """Part behind the point, with the sign of the input.

    >>> torch.frac(torch.tensor([1.5]))
    tensor([0.5000])
    """
    return input - s.trunc(input)


@frac.vjp
def _(g):
    return g


@pointwise(promote="float")
def angle(input: Tensor) -> Tensor:
    """Argument of a complex number; 0 or pi of a real one.

    >>> torch.angle(torch.tensor([-1.0]))
    tensor([3.1416])
    """
    return s.angle(input)


@pointwise(dtypes="bif")
def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1 by sign.

    >>> torch.sign(torch.tensor([-2.0, 0.0]))
    tensor([-1.,  0.])
    """
    return s.sign(input)


@sign.vjp
def _(g):
    return s.fmin(s.abs(g), 0)


@pointwise()
def sgn(input: Tensor) -> Tensor:
    """x / |x|, and 0 at 0.

    >>> torch.sgn(torch.tensor([-2.0, 0.0]))
    tensor([-1.,  0.])
    """
    return s.sgn(input)


@pointwise(inplace=False, out=False)
def isinf(input: Tensor) -> Tensor:
    """Is it an infinity?

    >>> torch.isinf(torch.tensor([1.0, float('inf')]))
    tensor([False,  True])
    """
    return s.isinf(input)


@pointwise(inplace=False, out=False)
def isfinite(input: Tensor) -> Tensor:
    """Is it neither infinite nor NaN?

    >>> torch.isfinite(torch.tensor([1.0, float('inf')]))
    tensor([ True, False])
    """
    return s.isfinite(input)


@pointwise(inplace=False, out=False)
def isnan(input: Tensor) -> Tensor:
    """Is it NaN?

    >>> torch.isnan(torch.tensor([1.0, float('nan')]))
    tensor([False,  True])
    """
    return s.isnan(input)


@pointwise(dtypes="bif", inplace=False)
def isposinf(input: Tensor) -> Tensor:
    """Is it the positive infinity?

    >>> torch.isposinf(torch.tensor([1.0, float('inf')]))
    tensor([False,  True])
    """
    return s.logical_and(s.isinf(input), input > 0)


@pointwise(dtypes="bif", inplace=False)
def isneginf(input: Tensor) -> Tensor:
    """Is it the negative infinity?

    >>> torch.isneginf(torch.tensor([1.0, float('-inf')]))
    tensor([False,  True])
    """
    return s.logical_and(s.isinf(input), input < 0)


@composite()
def isreal(input: Tensor) -> Tensor:
    """Is the imaginary part zero?

    >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    return imag(input) == 0 if input.is_complex() else ones_like(input, dtype=bool_)


@pointwise(promote="float", dtypes="bif")
def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians.

    >>> torch.deg2rad(torch.tensor([180.0]))
    tensor([3.1416])
    """
    return input * 0.017453292519943295


@pointwise(promote="float", dtypes="bif")
def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees.

    >>> torch.rad2deg(torch.tensor([3.14159265]))
    tensor([180.])
    """
    return input * 57.29577951308232


@composite(fields=("mantissa", "exponent"), out=True)
def frexp(input: Tensor) -> Tuple[Tensor, Tensor]:
    """Fraction of magnitude in [0.5, 1) and power of two (int32) whose product is the input.

    >>> torch.frexp(torch.tensor([6.0]))[1]
    tensor([3], dtype=torch.int32)
    """
    check(
        input.is_floating_point(),
        "torch.frexp() only supports floating-point dtypes",
    )
    x = input if input.dtype == float64 else input.to(float32)
    wide = x.dtype == float64
    usual = x.isfinite().logical_and(x != 0)
    # Subnormal numbers are brought among the normal ones, whose exponent can be read.
    small = x.abs() < (2.2250738585072014e-308 if wide else 1.1754943508222875e-38)
    lifted = where(small, x * 18014398509481984.0, x)
    bits = view_dtype(lifted.contiguous(), int64 if wide else int32)
    shifted = bits.bitwise_right_shift(52 if wide else 23)
    raw = shifted.bitwise_and(2047 if wide else 255) - (1022 if wide else 126)
    exponent = where(usual, where(small, raw - 54, raw), 0).to(int32)
    # In two steps, as the power of two itself may not be a number of the dtype.
    half = exponent.floor_divide(2)
    mantissa = ldexp(ldexp(x, -half), half - exponent)
    return mantissa.to(input.dtype), exponent


@pointwise(dtypes="bif", inplace=False)
def signbit(input: Tensor) -> Tensor:
    """Is the sign bit set?

    >>> torch.signbit(torch.tensor([-0.0, 1.0]))
    tensor([ True, False])
    """
    return s.signbit(input)


@pointwise()
def logical_not(input: Tensor) -> Tensor:
    """Is it zero?

    >>> torch.logical_not(torch.tensor([0, 2]))
    tensor([ True, False])
    """
    return s.logical_not(input)


@pointwise(dtypes="bi", label="bitwise_not_cpu")
def bitwise_not(input: Tensor) -> Tensor:
    """Bits inverted; logical not of bool.

    >>> torch.bitwise_not(torch.tensor([0, 1]))
    tensor([-1, -2])
    """
    return s.bitwise_not(input)
