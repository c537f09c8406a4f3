"""Special functions of torch.special that are not also top-level names."""

from __future__ import annotations

from flambeau.ops._lang import *


@pointwise(promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False)
def erfcx(input: Tensor) -> Tensor:
    """exp(x**2) * erfc(x).

    >>> torch.special.erfcx(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.erfcx(input)


@pointwise(promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False)
def ndtr(input: Tensor) -> Tensor:
    """Distribution function of the standard normal.

    >>> torch.special.ndtr(torch.tensor([0.0]))
    tensor([0.5000])
    """
    return s.ndtr(input)


@pointwise(promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False)
def ndtri(input: Tensor) -> Tensor:
    """Inverse of ndtr.

    >>> torch.special.ndtri(torch.tensor([0.5]))
    tensor([0.])
    """
    return s.ndtri(input)


@pointwise(promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False)
def log_ndtr(input: Tensor) -> Tensor:
    """Logarithm of ndtr.

    >>> torch.special.log_ndtr(torch.tensor([0.0]))
    tensor([-0.6931])
    """
    return s.log_ndtr(input)


@pointwise(promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False)
def i0e(input: Tensor) -> Tensor:
    """exp(-|x|) * i0(x).

    >>> torch.special.i0e(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.i0e(input)


@pointwise(promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False)
def i1(input: Tensor) -> Tensor:
    """Modified Bessel function of the first kind, order 1.

    >>> torch.special.i1(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.i1(input)


@pointwise(promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False)
def i1e(input: Tensor) -> Tensor:
    """exp(-|x|) * i1(x).

    >>> torch.special.i1e(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.i1e(input)


@pointwise(promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False)
def entr(input: Tensor) -> Tensor:
    """-x * log(x), 0 at 0, -inf below.

    >>> torch.special.entr(torch.tensor([0.5]))
    tensor([0.3466])
    """
    return s.entr(input)


@pointwise(promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False)
def zeta(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Hurwitz zeta function, the sum of (other + k) ** -input.

    >>> torch.special.zeta(torch.tensor([2.0]), 1.0)
    tensor([1.6449])
    """
    return s.zeta(input, other)


@pointwise(promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False)
def xlog1py(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """input * log1p(other), 0 where input is 0.

    >>> torch.special.xlog1py(torch.tensor([0.0]), 1.0)
    tensor([0.])
    """
    return s.xlog1py(input, other)


@pointwise(dtypes="f", aliases=("special.gammainc",))
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """Regularised lower incomplete gamma function.

    >>> torch.igamma(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.6321])
    """
    return s.igamma(input, other)


@pointwise(dtypes="f", aliases=("special.gammaincc",))
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """Regularised upper incomplete gamma function.

    >>> torch.igammac(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.3679])
    """
    return s.igammac(input, other)


@pointwise(
    promote="float", dtypes="bif", method=False, inplace=False, aliases=("special.polygamma",)
)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma.

    >>> torch.polygamma(1, torch.tensor([1.0]))
    tensor([1.6449])
    """
    return s.polygamma(n, input)
