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


@pointwise(promote="float", aliases=("arcsin",), alias_methods=("arcsin", "arcsin_"))
def asin(input: Tensor) -> Tensor:
    """Inverse sine.

    >>> torch.asin(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.asin(input)


@pointwise(promote="float", aliases=("arccos",), alias_methods=("arccos", "arccos_"))
def acos(input: Tensor) -> Tensor:
    """Inverse cosine.

    >>> torch.acos(torch.tensor([1.0]))
    tensor([0.])
    """
    return s.acos(input)


@pointwise(promote="float", aliases=("arctan",), alias_methods=("arctan", "arctan_"))
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


@pointwise(promote="float", aliases=("arcsinh",), alias_methods=("arcsinh", "arcsinh_"))
def asinh(input: Tensor) -> Tensor:
    """Inverse hyperbolic sine.

    >>> torch.asinh(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.asinh(input)


@pointwise(promote="float", aliases=("arccosh",), alias_methods=("arccosh", "arccosh_"))
def acosh(input: Tensor) -> Tensor:
    """Inverse hyperbolic cosine.

    >>> torch.acosh(torch.tensor([1.0]))
    tensor([0.])
    """
    return s.acosh(input)


@pointwise(promote="float", aliases=("arctanh",), alias_methods=("arctanh", "arctanh_"))
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


@pointwise(promote="float", dtypes="bif", aliases=("special.erf",))
def erf(input: Tensor) -> Tensor:
    """Error function.

    >>> torch.erf(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.erf(input)


@pointwise(promote="float", dtypes="bif", aliases=("special.erfc",))
def erfc(input: Tensor) -> Tensor:
    """1 - erf(x), exact for large inputs.

    >>> torch.erfc(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.erfc(input)


@pointwise(promote="float", dtypes="bif", aliases=("special.erfinv",))
def erfinv(input: Tensor) -> Tensor:
    """Inverse of the error function.

    >>> torch.erfinv(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.erfinv(input)


@pointwise(promote="float", dtypes="bif", aliases=("special.gammaln",))
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


@pointwise(promote="float", dtypes="bif", aliases=("special.i0",))
def i0(input: Tensor) -> Tensor:
    """Modified Bessel function of the first kind, order 0.

    >>> torch.i0(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.i0(input)


@pointwise(dtypes="bifc")
def square(input: Tensor) -> Tensor:
    """Product with itself.

    >>> torch.square(torch.tensor([3.0]))
    tensor([9.])
    """
    return s.square(input)


@pointwise(promote="float")
def reciprocal(input: Tensor) -> Tensor:
    """1 / x.

    >>> torch.reciprocal(torch.tensor([4.0]))
    tensor([0.2500])
    """
    return s.reciprocal(input)


@pointwise(dtypes="if", aliases=())
def floor(input: Tensor) -> Tensor:
    """Largest whole number not above.

    >>> torch.floor(torch.tensor([1.5]))
    tensor([1.])
    """
    return s.floor(input)


@pointwise(dtypes="if")
def ceil(input: Tensor) -> Tensor:
    """Smallest whole number not below.

    >>> torch.ceil(torch.tensor([1.5]))
    tensor([2.])
    """
    return s.ceil(input)


@pointwise(dtypes="if", aliases=("fix",), alias_methods=("fix", "fix_"))
def trunc(input: Tensor) -> Tensor:
    """Whole part, towards 0.

    >>> torch.trunc(torch.tensor([-1.5]))
    tensor([-1.])
    """
    return s.trunc(input)


@pointwise(dtypes="f")
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


@pointwise(dtypes="bi")
def bitwise_not(input: Tensor) -> Tensor:
    """Bits inverted; logical not of bool.

    >>> torch.bitwise_not(torch.tensor([0, 1]))
    tensor([-1, -2])
    """
    return s.bitwise_not(input)
