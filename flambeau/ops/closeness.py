"""Equality within tolerances and quantiles: composed of comparisons, sorts and reductions."""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(out=False)
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Which entries differ by no more than atol + rtol * |other|. bool.

    >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    check(
        input.dtype == other.dtype,
        f"{scalar_type_name(input.dtype)} did not match {scalar_type_name(other.dtype)}",
    )
    check(rtol >= 0.0, f"rtol must be greater than or equal to zero, but got {rtol}")
    check(atol >= 0.0, f"atol must be greater than or equal to zero, but got {atol}")
    close = input == other
    if equal_nan and input.dtype.is_inexact:
        close = close | (input.isnan() & other.isnan())
    if rtol == 0.0 and atol == 0.0:
        return close
    a, b = input, other
    if not input.dtype.is_inexact:
        a, b = input.to(default_dtype()), other.to(default_dtype())
    allowed = (b * rtol).abs() + atol
    error = (a - b).abs()
    return close | (error.isfinite() & (error <= allowed))


@composite(out=False)
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Do no entries differ by more than atol + rtol * |other|?

    >>> torch.allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


@composite(out=False)
def equal(input: Tensor, other: Tensor) -> bool:
    """Have both the same shape and equal entries? NaN equals nothing.

    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    if input.shape != other.shape:
        return False
    return bool((input == other).all().item())


@composite(namespaces=(), method=False, out=False)
def _quantile(
    input: Tensor,
    q: Tensor,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
    ignore_nan: bool,
    name: str,
) -> Tensor:
    """Quantiles: the sorted entries, read at q * (n - 1) by the rule `interpolation`.

    >>> torch.quantile(torch.tensor([1.0, 2.0, 4.0]), 0.5)
    tensor(2.)
    """
    check(input.numel() > 0, f"{name}() input tensor must be non-empty")
    check(q.ndim <= 1, f"{name}() q must be a scalar or 1D tensor")
    check(
        input.dtype == float32 or input.dtype == float64,
        f"{name}() input tensor must be either float or double dtype",
    )
    check(q.dtype == input.dtype, f"{name}() q tensor must be same dtype as the input tensor")
    check(
        interpolation in ("linear", "lower", "higher", "midpoint", "nearest"),
        f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
        f"got {interpolation}",
    )
    check(
        truth(((q >= 0) & (q <= 1)).all(), True), f"{name}() q values must be in the range [0, 1]"
    )
    shape = input.shape
    x = input.reshape([-1])
    if dim is None:
        for d in range(len(shape)):
            shape[d] = 1
    elif input.ndim > 0:
        d = wrap_dim(dim, input.ndim)
        shape[d] = 1
        x = input.movedim([d], [-1])
    else:
        wrap_dim(dim, input.ndim)
    values, _ = _sort(x, False, -1, False)
    last = values.size(-1) - 1
    nans = values.isnan()
    counts = nans.logical_not().sum([-1], True).to(input.dtype)
    rank = (
        q * (counts - 1).clamp_min(0)
        if ignore_nan
        else (q * last).expand(x.shape[: x.ndim - 1] + [q.numel()])
    )
    if not ignore_nan:
        # One NaN makes the quantile NaN: NaN is sorted last, so all ranks point there.
        rank = where(nans.any([-1], True), float(last), rank)
    if interpolation == "lower":
        rank = rank.floor()
    elif interpolation == "higher":
        rank = rank.ceil()
    elif interpolation == "nearest":
        rank = rank.round()
    below = rank.floor().to(int64)
    result = values.gather(-1, below)
    if interpolation == "linear" or interpolation == "midpoint":
        weight = (
            rank - below.to(rank.dtype)
            if interpolation == "linear"
            else full(rank.shape, 0.5, dtype=rank.dtype)
        )
        above = values.gather(-1, rank.ceil().to(int64))
        result = lerp(result, above, weight)
    # The values of q come first, then what remains of the input's dims.
    result = result.movedim([-1], [0]).reshape([q.numel()] + shape)
    if q.ndim == 0:
        result = result.squeeze(0)
    if keepdim:
        return result
    front = 0 if q.ndim == 0 else 1
    if dim is None:
        return result.reshape([q.numel()] if q.ndim > 0 else result.shape[:0])
    if input.ndim > 0:
        return result.squeeze(wrap_dim(dim, input.ndim) + front)
    return result


@composite(out=True, autocast="float32")
def quantile(
    input: Tensor,
    q: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Quantiles of all entries or along `dim`.

    >>> torch.quantile(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0.5]))
    tensor([2.])
    """
    return _quantile(input, q, dim, keepdim, interpolation, False, "quantile")


@quantile.overload(out=True, autocast="float32")
def quantile(
    input: Tensor,
    q: float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """One quantile.

    >>> torch.quantile(torch.tensor([1.0, 2.0, 4.0]), 0.5)
    tensor(2.)
    """
    check(q >= 0.0 and q <= 1.0, f"quantile() q must be in the range [0, 1] but got {q}")
    at = full([], q, dtype=input.dtype if input.dtype.is_inexact else default_dtype())
    return _quantile(input, at, dim, keepdim, interpolation, False, "quantile")


@composite(out=True, autocast="float32")
def nanquantile(
    input: Tensor,
    q: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Quantiles of all entries or along `dim`, of the entries that are not NaN.

    >>> torch.nanquantile(torch.tensor([1.0, float("nan"), 4.0]), torch.tensor([0.5]))
    tensor([2.5000])
    """
    return _quantile(input, q, dim, keepdim, interpolation, True, "nanquantile")


@nanquantile.overload(out=True, autocast="float32")
def nanquantile(
    input: Tensor,
    q: float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """One quantile.

    >>> torch.nanquantile(torch.tensor([1.0, float("nan"), 4.0]), 0.5)
    tensor(2.5000)
    """
    check(q >= 0.0 and q <= 1.0, f"nanquantile() q must be in the range [0, 1] but got {q}")
    at = full([], q, dtype=input.dtype if input.dtype.is_inexact else default_dtype())
    return _quantile(input, at, dim, keepdim, interpolation, True, "nanquantile")
