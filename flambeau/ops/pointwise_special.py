"""Special functions of torch.special that are not also top-level names."""

from __future__ import annotations

from flambeau.ops._lang import *


@pointwise(
    promote="float",
    dtypes="bif",
    namespaces=("special",),
    method=False,
    inplace=False,
    label="erfcx_cpu",
)
def erfcx(input: Tensor) -> Tensor:
    """exp(x**2) * erfc(x).

    >>> torch.special.erfcx(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.erfcx(input)


@pointwise(
    promote="float",
    dtypes="bif",
    namespaces=("special",),
    method=False,
    inplace=False,
    label="erf_vml_cpu",
)
def ndtr(input: Tensor) -> Tensor:
    """Distribution function of the standard normal.

    >>> torch.special.ndtr(torch.tensor([0.0]))
    tensor([0.5000])
    """
    return s.ndtr(input)


@pointwise(
    promote="float",
    dtypes="bif",
    namespaces=("special",),
    method=False,
    inplace=False,
    label="ndtri_cpu",
)
def ndtri(input: Tensor) -> Tensor:
    """Inverse of ndtr.

    >>> torch.special.ndtri(torch.tensor([0.5]))
    tensor([0.])
    """
    return s.ndtri(input)


@pointwise(
    promote="float",
    dtypes="bif",
    namespaces=("special",),
    method=False,
    inplace=False,
    label="log_ndtr_cpu",
)
def log_ndtr(input: Tensor) -> Tensor:
    """Logarithm of ndtr.

    >>> torch.special.log_ndtr(torch.tensor([0.0]))
    tensor([-0.6931])
    """
    return s.log_ndtr(input)


@pointwise(
    promote="float",
    dtypes="bif",
    namespaces=("special",),
    method=False,
    inplace=False,
    label="i0e_cpu",
)
def i0e(input: Tensor) -> Tensor:
    """exp(-|x|) * i0(x).

    >>> torch.special.i0e(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.i0e(input)


@pointwise(
    promote="float",
    dtypes="bif",
    namespaces=("special",),
    method=False,
    inplace=False,
    label="i1_cpu",
)
def i1(input: Tensor) -> Tensor:
    """Modified Bessel function of the first kind, order 1.

    >>> torch.special.i1(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.i1(input)


@pointwise(
    promote="float",
    dtypes="bif",
    namespaces=("special",),
    method=False,
    inplace=False,
    label="i1e_cpu",
)
def i1e(input: Tensor) -> Tensor:
    """exp(-|x|) * i1(x).

    >>> torch.special.i1e(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.i1e(input)


@pointwise(
    promote="float",
    dtypes="bif",
    namespaces=("special",),
    method=False,
    inplace=False,
    label="entr_cpu",
)
def entr(input: Tensor) -> Tensor:
    """-x * log(x), 0 at 0, -inf below.

    >>> torch.special.entr(torch.tensor([0.5]))
    tensor([0.3466])
    """
    return s.entr(input)


@pointwise(
    promote="float",
    dtypes="bif",
    namespaces=("special",),
    method=False,
    inplace=False,
    label="zeta_cpu",
)
def zeta(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Hurwitz zeta function, the sum of (other + k) ** -input.

    >>> torch.special.zeta(torch.tensor([2.0]), 1.0)
    tensor([1.6449])
    """
    return s.zeta(input, other)


@pointwise(
    promote="float",
    dtypes="bif",
    namespaces=("special",),
    method=False,
    inplace=False,
    label="xlog1py_cpu",
)
def xlog1py(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """input * log1p(other), 0 where input is 0.

    >>> torch.special.xlog1py(torch.tensor([0.0]), 1.0)
    tensor([0.])
    """
    return s.xlog1py(input, other)


@pointwise(dtypes="f", aliases=("special.gammainc",), label="igamma_cpu")
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """Regularised lower incomplete gamma function.

    >>> torch.igamma(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.6321])
    """
    return s.igamma(input, other)


@pointwise(dtypes="f", aliases=("special.gammaincc",), label="igammac_cpu")
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """Regularised upper incomplete gamma function.

    >>> torch.igammac(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.3679])
    """
    return s.igammac(input, other)


@pointwise(
    promote="float", dtypes="bif", method=True, inplace=False, aliases=("special.polygamma",)
)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma.

    >>> torch.polygamma(1, torch.tensor([1.0]))
    tensor([1.6449])
    """
    check(n >= 0, f"polygamma(n, x) does not support negative n. Got n={n}")
    return s.polygamma(n, input)


@composite(namespaces=(), method=True)
def polygamma_(self: Tensor, n: int) -> Tensor:
    """In-place form of polygamma().

    >>> torch.ones(1).polygamma_(1)
    tensor([1.6449])
    """
    check(
        self.dtype.is_inexact,
        f"result type Float can't be cast to the desired output type "
        f"{scalar_type_name(self.dtype)}",
    )
    return self.copy_(polygamma(n, self))


@pointwise(promote="float", dtypes="bif", aliases=("special.xlogy",))
def xlogy(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """input * log(other), 0 where input is 0.

    >>> torch.xlogy(torch.tensor([0.0]), 0.0)
    tensor([0.])
    """
    return s.xlogy(input, other)


@pointwise(
    each=(
        "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0",
        "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
        "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0",
    ),
    promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False,
    differentiable=False,
)  # fmt: skip
def NAME(input: Tensor) -> Tensor:
    """The function NAME of real numbers. Without a derivative.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, chapters 9 and 10.

    >>> torch.special.NAME(torch.tensor([1.0])).shape
    torch.Size([1])
    """
    return s.NAME(input)


@pointwise(
    each=(
        "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
        "chebyshev_polynomial_w", "shifted_chebyshev_polynomial_t",
        "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
        "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
        "laguerre_polynomial_l", "legendre_polynomial_p",
    ),
    promote="float", dtypes="bif", namespaces=("special",), method=False, inplace=False,
    differentiable=False,
)  # fmt: skip
def NAME(x: Tensor | Number, n: Tensor | Number) -> Tensor:  # noqa: F811
    """The polynomial NAME of degree `n`, truncated to a whole number. Without a derivative.
    NaN for degrees beyond 2**22, but where a closed form gives Chebyshev's on [-1, 1].

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, chapter 22.

    >>> torch.special.NAME(torch.tensor([0.5]), 0)
    tensor([1.])
    """
    return s.NAME(x, n)
