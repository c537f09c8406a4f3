"""Reductions of runs of neighbours: `segment_reduce`.

Owns how lengths or offsets of runs become the place each entry is added to; the sums themselves,
and their derivatives, are those of scatter_reduce. Entries that no run holds are dropped.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.indexing_gather import _scatter_reduce


@composite(namespaces=(), method=False)
def _segment_ends(
    data: Tensor, lengths: Tensor | None, offsets: Tensor | None, axis: int, unsafe: bool
) -> Tuple[Tensor, Tensor]:
    """First entry of each run and the one behind its last; checked unless `unsafe`.

    >>> torch.segment_reduce(torch.ones(3), "sum", lengths=torch.tensor([1, 2]))
    tensor([1., 2.])
    """
    size = data.size(axis)
    if offsets is not None:
        check(
            offsets.ndim - 1 == axis,
            f"segment_reduce(): Expected axis to be the last dimension of offsets but got {axis}.",
        )
        check_not_implemented(
            offsets.dtype == int64 or offsets.dtype == int32,
            f"segment_reduce(): offsets are int64 or int32, got {dtype_name(offsets.dtype)}",
        )
        check(offsets.size(axis) > 0, "segment_reduce(): offsets hold one entry more than segments")
        first = offsets.narrow(axis, 0, offsets.size(axis) - 1).to(int64)
        last = offsets.narrow(axis, 1, offsets.size(axis) - 1).to(int64)
        if not unsafe and not offsets.is_meta:
            check(
                not bool(((last < first) | (first < 0) | (last > size)).any().item()),
                f"segment_reduce(): offsets must not decrease, and lie in [0, {size}]",
            )
        return first, last
    check(lengths is not None, "segment_reduce(): Either lengths or offsets must be defined.")
    check(
        lengths.ndim - 1 == axis,
        f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.",
    )
    check_not_implemented(
        lengths.dtype == int64 or lengths.dtype == int32,
        f"segment_reduce(): lengths are int64 or int32, got {dtype_name(lengths.dtype)}",
    )
    counts = lengths.to(int64)
    ends = counts.cumsum(axis)
    if not unsafe and not counts.is_meta:
        check(not bool((counts < 0).any().item()), "lengths contains negative value!")
        check(
            not bool((counts.sum([axis]) != size).any().item()),
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            "data.size(lengths.dim()-1) when !unsafe.",
        )
    return ends - counts, ends


@composite(namespaces=("torch",), method=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Number | None = None,
) -> Tensor:
    """Reduction of runs of neighbours along `axis`: sum, mean, max, min or prod.

    Runs of no entries give 0, NaN, -inf, inf and 1, or `initial`.

    Args:
        data: (..., L, ...), floating point, with L at `axis`
        reduce: "sum", "mean", "max" ("amax"), "min" ("amin") or "prod"
        lengths: (..., S) of the runs, with `axis` its last dimension
        indices: not supported, as in PyTorch
        offsets: (..., S + 1) where runs begin, and the last ends; instead of lengths
        axis: the dimension of `data` that is reduced
        unsafe: lengths and offsets are not checked; entries beyond the last run are dropped
        initial: what each run starts from

    Returns:
        The reductions, of the shape of `data` with S at `axis`.

    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "max", lengths=torch.tensor([2, 1]))
    tensor([2., 3.])
    """
    d = wrap_dim(axis, data.ndim)
    check(data.numel() > 0 or data.ndim > 0, "segment_reduce(): expected data with dimensions")
    check(indices is None, "segment_reduce(): indices based reduction is not supported yet.")
    check_not_implemented(
        data.is_floating_point(),
        f"\"segment_reduce\" not implemented for '{scalar_type_name(data.dtype)}'",
    )
    by_sum = reduce == "sum" or reduce == "mean"
    largest = reduce == "max" or reduce == "amax"
    smallest = reduce == "min" or reduce == "amin"
    check(
        by_sum or largest or smallest or reduce == "prod",
        f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}",
    )
    first, last = _segment_ends(data, lengths, offsets, d, unsafe)
    outer = prod(data.shape[:d])
    inner = prod(data.shape[d + 1 :])
    size, runs = data.size(d), last.size(d)
    check(
        first.shape[:d] == data.shape[:d],
        f"segment_reduce(): the dimensions of lengths or offsets before axis are data's "
        f"{data.shape[:d]}, got {first.shape[:d]}",
    )
    x = data.reshape([outer, size, inner])
    firsts, lasts = first.reshape([outer, runs]), last.reshape([outer, runs])
    places = arange(size, device=data.device).expand([outer, size]).contiguous()
    # The run of an entry is the first that ends behind it; what lies in none goes to a run more.
    run = searchsorted(lasts.contiguous(), places, right=True)
    begun = cat([firsts, firsts.new_full([outer, 1], size)], 1).gather(1, run) <= places
    run = where(begun, run, runs)
    target = run.unsqueeze(2).expand([outer, size, inner])
    start = 1.0 if reduce == "prod" else -inf if largest else inf if smallest else 0.0
    base = data.new_full([outer, runs + 1, inner], start if initial is None else initial)
    how = "sum" if by_sum else "prod" if reduce == "prod" else "amax" if largest else "amin"
    out = _scatter_reduce(base, 1, target, x, how, True).narrow(1, 0, runs)
    if reduce == "mean":
        count = (lasts - firsts).unsqueeze(2)
        mean = out / count.clamp_min(1).to(data.dtype)
        out = mean if initial is not None else mean.masked_fill(count == 0, nan)
    return out.reshape(data.shape[:d] + [runs] + data.shape[d + 1 :])
