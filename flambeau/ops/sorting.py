"""Order: sort, topk, medians, unique values, places in sorted sequences, counts.

The kernels are stable merge sorts of (value, place) pairs line by line; NaN counts as largest.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.batching import _in_front
from flambeau.ops.reduction import _shared_among_ties


@structured(kernel="sort", fields=("values", "indices"), method=False, name="_sort", batch=True)
def _sort(input: Tensor, stable: bool, dim: int, descending: bool) -> Tuple[Tensor, Tensor]:
    """The kernel of sort: values and int64 places.

    >>> torch.sort(torch.tensor([2, 1])).indices
    tensor([1, 0])
    """
    wrap_dim(dim, input.ndim)
    check(
        not input.is_complex(),
        "sort: complex numbers have no order, got " + dtype_name(input.dtype),
    )
    return empty_as(input), empty_as(input, dtype=int64)


@_sort.vjp(undefined=True)
def _(g0: Tensor | None, input, dim: int, result1):
    if g0 is None:
        return zeros(input.shape, dtype=input.dtype)
    return zeros(input.shape, dtype=input.dtype).scatter(dim, result1, g0)


@composite(fields=("values", "indices"), out=True)
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> Tuple[Tensor, Tensor]:
    """Sorted along `dim`, with the places that the values came from (int64).

    >>> torch.sort(torch.tensor([3, 1, 2])).values
    tensor([1, 2, 3])
    """
    return _sort(input, stable, dim, descending)


@sort.overload(fields=("values", "indices"), out=True)
def sort(
    input: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> Tuple[Tensor, Tensor]:
    """With `stable` by name.

    >>> torch.sort(torch.tensor([3, 1, 2]), stable=True).values
    tensor([1, 2, 3])
    """
    return _sort(input, True, dim, descending)


@composite()
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Places that would sort `input` along `dim`. int64.

    >>> torch.argsort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    values, indices = _sort(input, stable, dim, descending)
    return indices


@composite(out=True)
def msort(input: Tensor) -> Tensor:
    """Sorted along the first dim.

    >>> torch.msort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    values, indices = _sort(input, False, 0, False)
    return values


@structured(kernel="topk", fields=("values", "indices"), batch=True, sizes=("k",))
def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Tuple[Tensor, Tensor]:
    """The k largest (or smallest) entries along `dim`, and their places.

    >>> torch.topk(torch.tensor([3, 1, 2]), 2).values
    tensor([3, 2])
    """
    d = wrap_dim(dim, input.ndim)
    n = input.size(d) if input.ndim > 0 else 1
    check(k >= 0 and k <= n, "selected index k out of range")
    check(
        not input.is_complex(),
        "topk: complex numbers have no order, got " + dtype_name(input.dtype),
    )
    shape = input.shape
    if input.ndim > 0:
        shape[d] = k
    return empty(shape, like=input), empty(shape, dtype=int64)


@topk.vjp(undefined=True)
def _(g0: Tensor | None, input, dim: int, result1):
    if g0 is None:
        return zeros(input.shape, dtype=input.dtype)
    return zeros(input.shape, dtype=input.dtype).scatter(dim, result1, g0)


@structured(kernel="kthvalue", fields=("values", "indices"), batch=True, sizes=("k",))
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    """The k-th smallest entry (from 1) along `dim`, and its place.

    >>> torch.kthvalue(torch.tensor([3, 1, 2]), 2).values
    tensor(2)
    """
    d = wrap_dim(dim, input.ndim)
    n = input.size(d) if input.ndim > 0 else 1
    check_index(
        input.ndim == 0 or n > 0,
        f"kthvalue(): Expected reduction dim {d} to have non-zero size.",
    )
    check(k >= 1 and k <= n, "kthvalue(): selected number k out of range for dimension " + f"{d}")
    shape = _reduced_shape(input, d, keepdim)
    return empty(shape, like=input), empty(shape, dtype=int64)


@kthvalue.vjp(undefined=True)
def _(g0: Tensor | None, input, dim: int, keepdim: bool, result1):
    return _scatter_selected(g0, input.shape, input.dtype, dim, keepdim, result1)


@composite(namespaces=(), method=False)
def _reduced_shape(input: Tensor, dim: int, keepdim: bool) -> Ints:
    """Shape after one dim was reduced."""
    shape = input.shape
    if input.ndim > 0:
        if keepdim:
            shape[dim] = 1
        else:
            shape.pop(dim)
    return shape


@composite(namespaces=(), method=False)
def _scatter_selected(
    g: Tensor | None, shape: Ints, dtype: DType, dim: int, keepdim: bool, places: Tensor
) -> Tensor:
    """Cotangent of a tensor of that shape, of which one entry along `dim` was selected."""
    out = zeros(shape, dtype=dtype)
    if g is None:
        return out
    if len(shape) == 0:
        return g
    if keepdim:
        return out.scatter(dim, places, g)
    return out.scatter(dim, places.unsqueeze(dim), g.unsqueeze(dim))


@structured(kernel="mode", fields=("values", "indices"), batch=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    """The most frequent entry along `dim` (the smallest of several), and a place of it.

    >>> torch.mode(torch.tensor([1, 2, 2])).values
    tensor(2)
    """
    d = wrap_dim(dim, input.ndim)
    check_index(
        input.ndim == 0 or input.size(d) > 0,
        f"mode(): Expected reduction dim {d} to have non-zero size.",
    )
    shape = _reduced_shape(input, d, keepdim)
    return empty(shape, like=input), empty(shape, dtype=int64)


@mode.vjp(undefined=True)
def _(g0: Tensor | None, input, dim: int, keepdim: bool, result1):
    return _scatter_selected(g0, input.shape, input.dtype, dim, keepdim, result1)


@structured(
    kernel="median_dim", fields=("values", "indices"), namespaces=(), method=False, batch=True
)
def _median_dim(input: Tensor, dim: int, keepdim: bool, skip_nan: bool) -> Tuple[Tensor, Tensor]:
    """The kernel of median and nanmedian along a dim."""
    d = wrap_dim(dim, input.ndim)
    check_index(
        input.ndim == 0 or input.size(d) > 0,
        f"median(): Expected reduction dim {d} to have non-zero size.",
    )
    shape = _reduced_shape(input, d, keepdim)
    return empty(shape, like=input), empty(shape, dtype=int64)


@_median_dim.vjp(undefined=True)
def _(g0: Tensor | None, input, dim: int, keepdim: bool, result1):
    return _scatter_selected(g0, input.shape, input.dtype, dim, keepdim, result1)


@composite(out=False)
def median(input: Tensor) -> Tensor:
    """The median of all entries; the lower of the two middle ones; NaN if there is any.

    >>> torch.median(torch.tensor([3, 1, 2]))
    tensor(2)
    """
    return _median_all(input, False)


@median.overload(fields=("values", "indices"), out=True)
def median(input: Tensor, dim: int, keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    """Medians along `dim`, and their places.

    >>> torch.median(torch.tensor([3, 1, 2]), 0).indices
    tensor(2)
    """
    return _median_dim(input, dim, keepdim, False)


@composite(out=False)
def nanmedian(input: Tensor) -> Tensor:
    """The median of all entries that are not NaN.

    >>> torch.nanmedian(torch.tensor([3.0, float("nan"), 2.0]))
    tensor(2.)
    """
    return _median_all(input, True)


@nanmedian.overload(fields=("values", "indices"), out=True)
def nanmedian(input: Tensor, dim: int, keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    """Medians along `dim` without NaN, and their places.

    >>> torch.nanmedian(torch.tensor([3.0, float("nan"), 2.0]), 0).values
    tensor(2.)
    """
    return _median_dim(input, dim, keepdim, True)


@composite(namespaces=(), method=False)
def _median_all(input: Tensor, skip_nan: bool) -> Tensor:
    """Median of the flattened tensor; NaN (or the smallest integer) of an empty one."""
    if input.numel() == 0:
        if input.dtype.is_floating_point:
            return full([], nan, dtype=input.dtype)
        return full([], smallest(input.dtype), dtype=input.dtype)
    return _median_of_run(input.reshape([-1]), skip_nan)


@structured(kernel="median_of_run", namespaces=(), method=False, out=False)
def _median_of_run(input: Tensor, skip_nan: bool) -> Tensor:
    """The median of a vector. Entries that tie share the derivative.

    >>> torch.median(torch.tensor([3, 1, 2]))
    tensor(2)
    """
    none: Ints = []
    return empty(none, like=input)


@_median_of_run.vjp
def _(g, input, result):
    return _shared_among_ties(g, input, result, None, False)


@_median_of_run.vmap
def _(input, skip_nan, input_b, batch):
    values, _ = _median_dim(_in_front(input, input_b, batch), 1, False, skip_nan)
    return values


@structured(kernel="searchsorted", differentiable=False, method=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Places in the (last dim of the) sorted sequence where values would keep it sorted.

    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3]))
    tensor([1])
    """
    if side is not None:
        check(
            side == "left" or side == "right",
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}",
        )
        check(
            side == "right" or not right,
            "searchsorted: expected side and right to agree, got side 'left' and right=True",
        )
    if sorted_sequence.ndim != 1 and not is_wrapped(input):
        check(
            input.ndim == sorted_sequence.ndim
            and input.ndim > 0
            and input.shape[: input.ndim - 1] == sorted_sequence.shape[: input.ndim - 1],
            f"searchsorted: expected sorted_sequence of 1 dim or of the shape of input apart "
            f"from the last dim, got {sorted_sequence.shape} for {input.shape}",
        )
    check(
        sorted_sequence.ndim == 1 or not is_wrapped(input),
        f"searchsorted: expected sorted_sequence of 1 dim for a number, got shape "
        f"{sorted_sequence.shape}",
    )
    check(
        sorted_sequence.ndim != 0,
        "searchsorted: expected sorted_sequence of at least 1 dim, got 0",
    )
    if sorter is not None:
        check(
            sorter.shape == sorted_sequence.shape,
            f"searchsorted: expected sorter of shape {sorted_sequence.shape}, that of "
            f"sorted_sequence, got {sorter.shape}",
        )
        check(
            sorter.dtype == int64,
            f"searchsorted: expected sorter of dtype int64, got {dtype_name(sorter.dtype)}",
        )
    return empty(input.shape, dtype=int32 if out_int32 else int64)


@searchsorted.vmap
def _(
    sorted_sequence,
    input,
    out_int32,
    right,
    side,
    sorter,
    sorted_sequence_b,
    input_b,
    sorter_b,
    batch,
):
    if not sorted_sequence_b and not sorter_b and sorted_sequence.ndim == 1:
        return searchsorted(
            sorted_sequence, input, out_int32=out_int32, right=right, side=side, sorter=sorter
        )
    s = _in_front(sorted_sequence, sorted_sequence_b, batch)
    x = _in_front(input, input_b, batch)
    o = None if sorter is None else _in_front(sorter, sorter_b, batch)
    flat = x.reshape([batch, -1]) if s.ndim == 2 else x
    at = searchsorted(s, flat, out_int32=out_int32, right=right, side=side, sorter=o)
    return at.reshape(x.shape)


@composite(method=False, out=True)
def bucketize(
    input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Numbers of the buckets between sorted boundaries that the values fall in.

    >>> torch.bucketize(torch.tensor([2]), torch.tensor([1, 3]))
    tensor([1])
    """
    check(
        boundaries.ndim == 1,
        f"bucketize: boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})",
    )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@structured(
    kernel="bincount",
    dynamic="[([n], int64 if weights is None else float32 "
    "if weights.dtype == float32 else float64)]",
    differentiable=False, out=False, sizes=("minlength",),
)  # fmt: skip
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each non-negative integer occurs (or the sum of its weights).

    >>> torch.bincount(torch.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    """
    check(
        input.ndim == 1,
        f"bincount only supports 1-d non-negative integral inputs, got shape {input.shape}",
    )
    check_not_implemented(
        input.is_integral(),
        f"\"bincount_cpu\" not implemented for '{scalar_type_name(input.dtype)}': bincount only "
        "supports 1-d non-negative integral inputs",
    )
    check(minlength >= 0, f"minlength should be >= 0, got {minlength}")
    if weights is not None:
        check(
            input.numel() == 0 or (weights.ndim == 1 and weights.numel() == input.numel()),
            "weights should be 1-d and have the same length as input",
        )


@structured(kernel="histc", differentiable=False)
def histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """Histogram with equal bins between min and max (of the data when both are 0).

    >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    check(bins > 0, "torch.histc(): bins must be > 0")
    check_not_implemented(
        input.is_floating_point(),
        f"'histogram_cpu' not implemented for '{scalar_type_name(input.dtype)}'",
    )
    return empty([bins], like=input)


@structured(
    kernel="unique",
    dynamic="[([n] if dim is None else [*input.shape[:dim], n, *input.shape[dim % input.ndim + 1:]]"
    ", input.dtype), ([0] if not return_inverse else input.shape if dim is None else "
    "[input.shape[dim]], int64), ([n] if return_counts else [0], int64)]",
    method=False,
)  # fmt: skip
def _unique(
    input: Tensor, dim: int | None, sorted: bool, return_inverse: bool, return_counts: bool
) -> Tuple[Tensor, Tensor, Tensor]:
    """Distinct values (or slices along `dim`), sorted; where each input went; how often.

    >>> torch.unique(torch.tensor([2, 1, 2]))
    tensor([1, 2])
    """


@structured(
    kernel="unique_consecutive",
    dynamic="[([n] if dim is None else [*input.shape[:dim], n, *input.shape[dim % input.ndim + 1:]]"
    ", input.dtype), ([0] if not return_inverse else input.shape if dim is None else "
    "[input.shape[dim]], int64), ([n] if return_counts else [0], int64)]",
    method=False,
)  # fmt: skip
def _unique_consecutive(
    input: Tensor, dim: int | None, return_inverse: bool, return_counts: bool
) -> Tuple[Tensor, Tensor, Tensor]:
    """Like _unique, but only neighbours are merged and nothing is sorted.

    >>> torch.unique_consecutive(torch.tensor([2, 2, 1, 2]))
    tensor([2, 1, 2])
    """


@composite(method=False, out=True)
def isin(
    elements: Tensor | Number,
    test_elements: Tensor | Number,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Which elements occur among the test elements. bool.

    >>> torch.isin(torch.tensor([1, 2]), torch.tensor([2, 3]))
    tensor([False,  True])
    """
    kind = result_type(elements, test_elements)
    x = elements.to(kind)
    line = test_elements.to(kind).reshape([-1])
    if line.numel() == 0:
        return full(x.shape, invert, dtype=bool_)
    values, places = _sort(line, False, 0, False)
    at = searchsorted(values, x).clamp_max(line.numel() - 1)
    hit = values.take(at) == x
    return hit.logical_not() if invert else hit
