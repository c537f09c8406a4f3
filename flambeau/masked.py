"""Reductions, scans and normalisations of the elements under a mask.

Elements whose mask is false take no part: they are replaced by what leaves the result as it is
(0 in a sum, 1 in a product, minus infinity in a maximum). The mask is a bool tensor that broadcasts
to the input; None selects everything. No arithmetic of its own beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flambeau as fb

Tensor = fb.Tensor

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


def _filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """`input` with `value` where the mask is false."""
    if mask is None:
        return input
    try:
        inside = mask.to(fb.bool).expand(input.shape)
    except RuntimeError as error:
        raise ValueError(
            f"mask: expected a shape that broadcasts to {list(input.shape)}, got {list(mask.shape)}"
        ) from error
    return fb.where(inside, input, fb.tensor(value, dtype=input.dtype, device=input.device))


def _lowest(dtype: Any) -> Any:
    if dtype.is_floating_point or dtype.is_complex:
        return -math.inf
    return False if dtype == fb.bool else fb.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    if dtype.is_floating_point or dtype.is_complex:
        return math.inf
    return True if dtype == fb.bool else fb.iinfo(dtype).max


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dims meant, each once: all of them for None."""
    if dim is None:
        return tuple(range(ndim))
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    span = max(ndim, 1)
    found: list[int] = []
    for d in given:
        if not -span <= d < span:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but "
                f"got {d})"
            )
        if d % span in found:
            raise RuntimeError(f"dim={d % span} appears multiple times in the list of dims")
        found.append(d % span)
    return tuple(found)


def _wide(input: Tensor, dtype: Any) -> Any:
    """The dtype in which sums and products of small whole numbers are made."""
    if dtype is not None:
        return dtype
    return input.dtype if input.is_floating_point() or input.is_complex() else fb.int64


def sum(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Sum of the elements under the mask; 0 where there are none.

    Args:
        dim: an int, several, or None for all dims.
        dtype: of the result; int64 for whole numbers unless given.
        mask: bool, broadcasts to `input`.

    >>> torch.masked.sum(torch.tensor([1, 2, 3]), mask=torch.tensor([True, False, True]))
    tensor(4)
    """
    dims = _dims(dim, input.ndim)
    return fb.sum(_filled(input, mask, 0), dims, bool(keepdim), dtype=_wide(input, dtype))


def prod(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Product of the elements under the mask; 1 where there are none.

    >>> torch.masked.prod(torch.tensor([1, 2, 3]), mask=torch.tensor([True, False, True]))
    tensor(3)
    """
    result = _filled(input, mask, 1).to(_wide(input, dtype))
    for d in sorted(_dims(dim, input.ndim), reverse=True):
        result = fb.prod(result, d, bool(keepdim))
    return result


def _extreme(operation: Callable[..., Tensor], fill: Callable[[Any], Any]) -> Callable[..., Tensor]:
    def reduce(
        input: Tensor,
        dim: Any = None,
        *,
        keepdim: bool | None = False,
        dtype: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        x = input if dtype is None else input.to(dtype)
        return operation(_filled(x, mask, fill(x.dtype)), _dims(dim, x.ndim), bool(keepdim))

    return reduce


amax = _extreme(fb.amax, _lowest)
amax.__doc__ = "Greatest element under the mask; the lowest number of the dtype where none is."
amin = _extreme(fb.amin, _highest)
amin.__doc__ = "Least element under the mask; the highest number of the dtype where none is."


def _place(operation: Callable[..., Tensor], fill: Callable[[Any], Any]) -> Callable[..., Tensor]:
    def reduce(
        input: Tensor,
        dim: int | None = None,
        *,
        keepdim: bool | None = False,
        dtype: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        x = input if dtype is None else input.to(dtype)
        return operation(_filled(x, mask, fill(x.dtype)), dim, bool(keepdim)).to(x.dtype)

    return reduce


argmax = _place(fb.argmax, _lowest)
argmax.__doc__ = "Place of the greatest element under the mask, in the dtype of the input."
argmin = _place(fb.argmin, _highest)
argmin.__doc__ = "Place of the least element under the mask, in the dtype of the input."


def _count(input: Tensor, dims: tuple[int, ...], mask: Tensor | None) -> Tensor:
    """How many elements take part, dims kept."""
    ones = fb.ones(input.shape, dtype=fb.int64, device=input.device)
    return sum(ones, dims, keepdim=True, mask=mask)


def mean(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Mean of the elements under the mask; NaN where there are none.

    Raises:
        ValueError: neither `dtype` nor the dtype of `input` has fractions.

    >>> torch.masked.mean(torch.tensor([1.0, 2.0, 6.0]), mask=torch.tensor([True, True, False]))
    tensor(1.5000)
    """
    dims = _dims(dim, input.ndim)
    kind = dtype or input.dtype
    if not (kind.is_floating_point or kind.is_complex):
        raise ValueError(f"mean: expected a floating-point or complex dtype, got {kind}")
    total = sum(input, dims, keepdim=keepdim, dtype=kind, mask=mask)
    return total / _count(input, dims, mask).reshape(total.shape)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Median (the lower one of two) of the elements under the mask; NaN where there are none.

    Raises:
        ValueError: whole numbers, none of them under the mask.

    >>> torch.masked.median(torch.tensor([1.0, 9.0, 3.0]), 0)
    tensor(3.)
    """
    x = input if dtype is None else input.to(dtype)
    floating = x if x.is_floating_point() else x.to(fb.float32)
    (at,) = _dims(dim, x.ndim)
    result = fb.nanmedian(_filled(floating, mask, math.nan), at, keepdim)[0]
    if x.is_floating_point():
        return result
    if result.isnan().any():
        raise ValueError(
            f"masked.median: expected an element under the mask in every slice of {x.dtype}, got "
            "slices without one"
        )
    return result.to(x.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Vector norm of order `ord` of the elements under the mask.

    >>> torch.masked.norm(torch.tensor([3.0, 4.0, 9.0]), mask=torch.tensor([True, True, False]))
    tensor(5.)
    """
    order = 2.0 if ord is None else ord
    x = input if dtype is None else input.to(dtype)
    x = _filled(x, mask, math.inf if order == -math.inf else 0)
    return fb.linalg.vector_norm(x, order, _dims(dim, x.ndim), bool(keepdim))


def _moment(
    input: Tensor,
    dim: Any,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool | None,
    dtype: Any,
    mask: Tensor | None,
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError("masked.var: expected unbiased or correction, got both")
    less = correction if correction is not None else int(unbiased is not False)
    dims = _dims(dim, input.ndim)
    inexact = input.is_floating_point() or input.is_complex()
    kind = dtype or (input.dtype if inexact else fb.float32)
    count = _count(input, dims, mask)
    centre = sum(input, dims, keepdim=True, dtype=kind, mask=mask) / count
    x = input - centre
    total = sum(x * x.conj(), dims, keepdim=keepdim, dtype=kind, mask=mask)
    left = (count.reshape(total.shape).to(total.real.dtype) - less).clamp(min=0)
    return total / left


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Variance of the elements under the mask, over their count less `correction` (1).

    >>> torch.masked.var(torch.tensor([1.0, 3.0, 9.0]), mask=torch.tensor([True, True, False]))
    tensor(2.)
    """
    return _moment(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Root of `var`.

    >>> torch.masked.std(torch.tensor([1.0, 3.0]), correction=0)
    tensor(1.)
    """
    return _moment(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def logsumexp(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Logarithm of the sum of exponentials under the mask; minus infinity where there are none.

    >>> torch.masked.logsumexp(torch.zeros(2), 0, mask=torch.tensor([True, False]))
    tensor(0.)
    """
    x = input if dtype is None else input.to(dtype)
    return fb.logsumexp(_filled(x, mask, _lowest(x.dtype)), _dims(dim, x.ndim), keepdim)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Logarithm of the sum of two exponentials, each counted where its own mask is true.

    >>> torch.masked.logaddexp(torch.zeros(1), torch.zeros(1), other_mask=torch.tensor([False]))
    tensor([0.])
    """
    kind = dtype or input.dtype
    return fb.logaddexp(
        _filled(input.to(kind), input_mask, -math.inf),
        _filled(other.to(kind), other_mask, -math.inf),
    )


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running sums of the elements under the mask.

    >>> torch.masked.cumsum(torch.tensor([1, 2, 3]), 0, mask=torch.tensor([True, False, True]))
    tensor([1, 1, 4])
    """
    (at,) = _dims(dim, input.ndim)
    return fb.cumsum(_filled(input, mask, 0), at, dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running products of the elements under the mask.

    >>> torch.masked.cumprod(torch.tensor([2, 5, 3]), 0, mask=torch.tensor([True, False, True]))
    tensor([2, 2, 6])
    """
    (at,) = _dims(dim, input.ndim)
    return fb.cumprod(_filled(input, mask, 1), at, dtype=dtype or input.dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Softmax along `dim` of the elements under the mask.

    >>> torch.masked.softmax(torch.zeros(3), 0, mask=torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    x = input if dtype is None else input.to(dtype)
    return fb.softmax(_filled(x, mask, _lowest(x.dtype)), _dims(dim, x.ndim)[0])


def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Logarithm of `softmax`.

    >>> torch.masked.log_softmax(torch.zeros(2), 0, mask=torch.tensor([True, False]))
    tensor([0., -inf])
    """
    x = input if dtype is None else input.to(dtype)
    return fb.log_softmax(_filled(x, mask, _lowest(x.dtype)), _dims(dim, x.ndim)[0])


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the negative input.

    >>> torch.masked.softmin(torch.zeros(2), 0)
    tensor([0.5000, 0.5000])
    """
    x = input if dtype is None else input.to(dtype)
    return fb.softmax(-_filled(x, mask, _highest(x.dtype)), _dims(dim, x.ndim)[0])


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Elements under the mask over their norm along `dim`, which is at least `eps`; 0 elsewhere.

    >>> torch.masked.normalize(torch.tensor([3.0, 4.0, 9.0]), 2.0, 0,
    ...                        mask=torch.tensor([True, True, False]))
    tensor([0.6000, 0.8000, 0.0000])
    """
    (at,) = _dims(dim, input.ndim)
    length = norm(input, ord, at, keepdim=True, dtype=dtype, mask=mask)
    x = _filled(input, mask, 0)
    return x / length.clamp(min=eps)
