"""Variances, deviations, log-sum-exp, norms.

Kernels: csrc/kernels/reductions.cpp. Moments are taken in two passes over blocks, see
csrc/kernels/reduce.isa.cpp. The variance of complex numbers is that of their real parts plus
that of their imaginary parts.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.reduction import _count_reduced, _reduced_dims, _shape_without, _unreduced


@composite(namespaces=(), method=False, out=False)
def _var_cotangent(
    g: Tensor, input: Tensor, dim: Ints | None, correction: float, keepdim: bool
) -> Tensor:
    """Cotangent of a variance with divisor n - correction."""
    centred = input - input.mean(_reduced_dims(dim, input.ndim), True)
    freedom = float(_count_reduced(input.shape, dim)) - correction
    scale = inf if freedom <= 0.0 else 2.0 / freedom
    return _unreduced(g, input.shape, dim, keepdim) * scale * centred


@structured(kernel="var_mean", namespaces=(), method=False, out=False, batch=True, all_dims=True)
def _var_mean(
    input: Tensor, dim: Ints | None, correction: float, keepdim: bool
) -> Tuple[Tensor, Tensor]:
    """Variance and mean of real numbers.

    >>> torch.var_mean(torch.tensor([1.0, 3.0]))
    (tensor(2.), tensor(2.))
    """
    shape = _shape_without(input.shape, _reduced_dims(dim, input.ndim), keepdim)
    return empty(shape, like=input), empty(shape, like=input)


@_var_mean.decompose
def _(input, dim, correction, keepdim):
    dims = _reduced_dims(dim, input.ndim)
    x = input.to(opmath(input.dtype))
    centred = x - x.mean(dims, True)
    freedom = max(float(_count_reduced(input.shape, dim)) - correction, 0.0)
    variance = (centred * centred).sum(dims, keepdim) / freedom
    return variance.to(input.dtype), x.mean(dims, keepdim).to(input.dtype)


@_var_mean.vjp(undefined=True)
def _(g0: Tensor | None, g1: Tensor | None, input, dim, correction: float, keepdim: bool):
    out = zeros([], dtype=input.dtype)
    if g0 is not None:
        out = _var_cotangent(g0, input, dim, correction, keepdim)
    if g1 is not None:
        part = _unreduced(g1 / _count_reduced(input.shape, dim), input.shape, dim, keepdim)
        out = out + part
    return out.expand(input.shape)


@structured(kernel="std_mean", namespaces=(), method=False, out=False, batch=True, all_dims=True)
def _std_mean(
    input: Tensor, dim: Ints | None, correction: float, keepdim: bool
) -> Tuple[Tensor, Tensor]:
    """Standard deviation and mean of real numbers. Where it is 0, the derivative is taken as 0.

    >>> torch.std_mean(torch.tensor([1.0, 3.0]), correction=0)
    (tensor(1.), tensor(2.))
    """
    shape = _shape_without(input.shape, _reduced_dims(dim, input.ndim), keepdim)
    return empty(shape, like=input), empty(shape, like=input)


@_std_mean.decompose
def _(input, dim, correction, keepdim):
    variance, mean = _var_mean(input.to(opmath(input.dtype)), dim, correction, keepdim)
    return variance.sqrt().to(input.dtype), mean.to(input.dtype)


@_std_mean.vjp(undefined=True)
def _(g0: Tensor | None, g1: Tensor | None, input, dim, correction: float, keepdim: bool, result0):
    out = zeros([], dtype=input.dtype)
    if g0 is not None:
        g_var = (g0 / (result0 * 2)).masked_fill(result0 == 0, 0)
        out = _var_cotangent(g_var, input, dim, correction, keepdim)
    if g1 is not None:
        part = _unreduced(g1 / _count_reduced(input.shape, dim), input.shape, dim, keepdim)
        out = out + part
    return out.expand(input.shape)


@composite(namespaces=(), method=False)
def _warn_of_freedom(name: str, input: Tensor, dim: Ints | None, correction: float) -> None:
    """Says that a divisor is not positive."""
    if float(_count_reduced(input.shape, dim)) <= correction:
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor (input numel divided by output numel)."
        )


@composite(namespaces=(), method=False, out=False)
def _complex_var(input: Tensor, dim: Ints | None, correction: float, keepdim: bool) -> Tensor:
    """Variance of complex numbers.

    >>> torch.var(torch.tensor([1j, 3j]))
    tensor(2.)
    """
    real, _ = _var_mean(input.real, dim, correction, keepdim)
    imag, _ = _var_mean(input.imag, dim, correction, keepdim)
    return real + imag


@composite(namespaces=(), method=False, out=False)
def _var(input: Tensor, dim: Ints | None, correction: float, keepdim: bool) -> Tensor:
    """The variance, of any inexact dtype.

    >>> torch.var(torch.tensor([1.0, 3.0]), correction=0)
    tensor(1.)
    """
    check(input.dtype.is_inexact, "std and var only support floating point and complex dtypes")
    _warn_of_freedom("var", input, dim, correction)
    if input.is_complex():
        return _complex_var(input, dim, correction, keepdim)
    value, _ = _var_mean(input, dim, correction, keepdim)
    return value


@composite(namespaces=(), method=False, out=False)
def _var_and_mean(
    input: Tensor, dim: Ints | None, correction: float, keepdim: bool
) -> Tuple[Tensor, Tensor]:
    """The variance and the mean, of any inexact dtype.

    >>> torch.var_mean(torch.tensor([1.0, 3.0]), correction=0)
    (tensor(1.), tensor(2.))
    """
    check(input.dtype.is_inexact, "var_mean only support floating point and complex dtypes")
    _warn_of_freedom("var_mean", input, dim, correction)
    if input.is_complex():
        value = _complex_var(input, dim, correction, keepdim)
        return value, input.mean(dim, keepdim)
    return _var_mean(input, dim, correction, keepdim)


@composite(namespaces=(), method=False, out=False)
def _std(input: Tensor, dim: Ints | None, correction: float, keepdim: bool) -> Tensor:
    """The standard deviation, of any inexact dtype.

    >>> torch.std(torch.tensor([1.0, 3.0]), correction=0)
    tensor(1.)
    """
    check(input.dtype.is_inexact, "std and var only support floating point and complex dtypes")
    _warn_of_freedom("std", input, dim, correction)
    if input.is_complex():
        return _complex_var(input, dim, correction, keepdim).sqrt()
    value, _ = _std_mean(input, dim, correction, keepdim)
    return value


@composite(namespaces=(), method=False, out=False)
def _std_and_mean(
    input: Tensor, dim: Ints | None, correction: float, keepdim: bool
) -> Tuple[Tensor, Tensor]:
    """The standard deviation and the mean, of any inexact dtype.

    >>> torch.std_mean(torch.tensor([1.0, 3.0]), correction=0)
    (tensor(1.), tensor(2.))
    """
    check(input.dtype.is_inexact, "std_mean only support floating point and complex dtypes")
    _warn_of_freedom("std_mean", input, dim, correction)
    if input.is_complex():
        value = _complex_var(input, dim, correction, keepdim).sqrt()
        return value, input.mean(dim, keepdim)
    return _std_mean(input, dim, correction, keepdim)


@composite(each=("var", "std"), out=False)
def NAME(input: Tensor, unbiased: bool) -> Tensor:
    """The variance (var) or its root (std) of all entries, with divisor n - 1 or n.

    >>> torch.NAME(torch.tensor([1.0, 3.0]), False)
    tensor(1.)
    """
    return _NAME(input, None, 1.0 if unbiased else 0.0, False)


@NAME.overload(each=("var", "std"), out=True, out_casts=True)
def NAME(input: Tensor, dim: Ints1 | None, unbiased: bool, keepdim: bool = False) -> Tensor:
    """Along `dim`.

    >>> torch.NAME(torch.tensor([1.0, 3.0]), 0, False)
    tensor(1.)
    """
    return _NAME(input, dim, 1.0 if unbiased else 0.0, keepdim)


@NAME.overload(each=("var", "std"), out=True, out_casts=True)
def NAME(
    input: Tensor,
    dim: Ints1 | None = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> Tensor:
    """With divisor n - correction (default 1), or 0 where that is negative.

    Source: Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance, 1983.

    >>> torch.NAME(torch.tensor([1.0, 3.0]), correction=0)
    tensor(1.)
    """
    c = 1.0
    if correction is not None:
        c = float(correction)
    return _NAME(input, dim, c, keepdim)


@composite(each=("var", "std"), out=False)
def NAME_mean(input: Tensor, unbiased: bool) -> Tuple[Tensor, Tensor]:
    """The variance or its root, and the mean, of all entries, with divisor n - 1 or n.

    >>> torch.NAME_mean(torch.tensor([1.0, 3.0]), False)
    (tensor(1.), tensor(2.))
    """
    return _NAME_and_mean(input, None, 1.0 if unbiased else 0.0, False)


@NAME_mean.overload(each=("var", "std"), out=False)
def NAME_mean(
    input: Tensor, dim: Ints1 | None, unbiased: bool, keepdim: bool = False
) -> Tuple[Tensor, Tensor]:
    """Along `dim`.

    >>> torch.NAME_mean(torch.tensor([1.0, 3.0]), 0, False)
    (tensor(1.), tensor(2.))
    """
    return _NAME_and_mean(input, dim, 1.0 if unbiased else 0.0, keepdim)


@NAME_mean.overload(each=("var", "std"), out=False)
def NAME_mean(
    input: Tensor,
    dim: Ints1 | None = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> Tuple[Tensor, Tensor]:
    """With divisor n - correction (default 1), or 0 where that is negative.

    Source: Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance, 1983.

    >>> torch.NAME_mean(torch.tensor([1.0, 3.0]), correction=0)
    (tensor(1.), tensor(2.))
    """
    c = 1.0
    if correction is not None:
        c = float(correction)
    return _NAME_and_mean(input, dim, c, keepdim)


@structured(kernel="logsumexp", namespaces=(), method=False, out=False, batch=True, all_dims=True)
def _logsumexp(input: Tensor, dim: Ints, keepdim: bool) -> Tensor:
    """log(sum(exp(x))) of real numbers.

    >>> torch.logsumexp(torch.zeros(1), 0)
    tensor(0.)
    """
    return empty(_shape_without(input.shape, wrap_dims(dim, input.ndim), keepdim), like=input)


@_logsumexp.decompose
def _(input, dim, keepdim):
    x = input.to(opmath(input.dtype))
    top = x.amax(dim, True)
    top = top.masked_fill(top.abs() == inf, 0)
    total = (x - top).exp().sum(dim, True).log() + top
    shape = _shape_without(input.shape, _reduced_dims(dim, input.ndim), keepdim)
    return total.reshape(shape).to(input.dtype)


@_logsumexp.vjp
def _(g, input, dim, keepdim: bool, result):
    top = _unreduced(result, input.shape, dim, keepdim)
    # All of -inf: every entry's share is 0/0; PyTorch counts it as none.
    share = (input - top.masked_fill(top == -inf, inf)).exp()
    return _unreduced(g, input.shape, dim, keepdim) * share


@composite(aliases=("special.logsumexp",), out=True, out_casts=True)
def logsumexp(input: Tensor, dim: Ints1, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) along `dim`, computed relative to the greatest entry.

    >>> torch.logsumexp(torch.tensor([0.0, 0.0]), 0)
    tensor(0.6931)
    """
    if input.is_complex():
        every = _reduced_dims(dim, input.ndim)
        top = input.real.amax(every, True)
        top = top.masked_fill(top.abs() == inf, 0)
        total = (input - top).exp().sum(every, True).log() + top
        return total if keepdim else total.reshape(_shape_without(input.shape, every, False))
    x = input if input.dtype.is_inexact else input.to(default_dtype())
    return _logsumexp(x, _reduced_dims(dim, input.ndim), keepdim)


@composite(namespaces=(), out=False)
def norm(
    input: Tensor,
    p: Number | None = 2,
    dim: Ints1 | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """The p-norm of the entries along `dim`.

    >>> torch.tensor([3.0, 4.0]).norm()
    tensor(5.)
    """
    order = 2.0
    if p is not None:
        order = float(p)
    return linalg_vector_norm(input, order, dim, keepdim, dtype=dtype)


@norm.overload(namespaces=(), out=False)
def norm(
    input: Tensor,
    p: str,
    dim: Ints1 | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """The Frobenius ("fro") or nuclear ("nuc") norm.

    >>> torch.tensor([3.0, 4.0]).norm("fro")
    tensor(5.)
    """
    if p == "fro":
        return linalg_vector_norm(input, 2.0, dim, keepdim, dtype=dtype)
    dims: Ints = [-2, -1]
    if dim is not None:
        dims = dim
    return linalg_matrix_norm(input, p, dims, keepdim, dtype=dtype)


@composite(out=True)
def dist(input: Tensor, other: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the difference.

    >>> torch.dist(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0]))
    tensor(5.)
    """
    check(
        result_type(input, other).is_inexact,
        "norm(): input dtype should be either floating point or complex. Got "
        f"{scalar_type_name(result_type(input, other))} instead.",
    )
    return linalg_vector_norm(input - other, p)
