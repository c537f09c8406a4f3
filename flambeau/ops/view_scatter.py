"""Views turned round: a copy of a tensor in which what a view shows holds other values.

`NAME_scatter(input, src, ...)` is `NAME` of views.py with `src` written to it. None of them changes
anything, not even a copy of its own: the compiler makes writes to views of them.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False, function=False)
def _check_view_source(view: Ints, src: Ints, op: str) -> None:
    """Refuses values that do not fill a view."""
    check(view == src, f"{op}: expected src size {view}, that of the view, got src size {src}")


@composite(namespaces=(), method=False, function=False)
def _replaced(input: Tensor, src: Tensor, dim: int, start: int, end: int) -> Tensor:
    """Copy of `input` in which the positions from `start` to `end` along `dim` are `src`."""
    parts: Tensors = []
    if start != 0:
        parts.append(input.slice(dim, 0, start))
    parts.append(src.to(input.dtype))
    if end != input.shape[dim]:
        parts.append(input.slice(dim, end))
    return cat(parts, dim) if len(parts) > 1 else parts[0].clone()


@composite()
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Copy of `input` with a diagonal replaced by `src`.

    >>> torch.zeros(2, 2).diagonal_scatter(torch.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    target = input.diagonal(offset, dim1, dim2)
    _check_view_source(target.shape, src.shape, "diagonal_scatter")
    places = arange(input.numel()).view(input.shape).diagonal(offset, dim1, dim2)
    flat = input.contiguous().view([-1])
    out = flat.index_copy(0, places.reshape([-1]), src.to(input.dtype).reshape([-1]))
    return out.view(input.shape)


@composite(sizes=("index",))
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Copy of `input` with entry `index` of `dim` replaced by `src`.

    >>> torch.zeros(2, 2).select_scatter(torch.ones(2), 0, 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    _check_view_source(input.select(dim, index).shape, src.shape, "select_scatter")
    d = wrap_dim(dim, input.ndim)
    i = index + input.shape[d] if index < 0 else index
    return _replaced(input, src.unsqueeze(d), d, i, i + 1)


@composite(sizes=("start", "end", "step"))
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Copy of `input` with a slice replaced by `src`.

    >>> torch.zeros(3).slice_scatter(torch.ones(1), 0, 1, 2)
    tensor([0., 1., 0.])
    """
    _check_view_source(input.slice(dim, start, end, step).shape, src.shape, "slice_scatter")
    d = wrap_dim(dim, input.ndim)
    n = input.shape[d]
    first = 0 if start is None else start
    last = n if end is None else end
    first = min(max(first + n if first < 0 else first, 0), n)
    last = min(max(last + n if last < 0 else last, first), n)
    if step == 1:
        return _replaced(input, src, d, first, last)
    return input.index_copy(d, arange(first, last, step), src.to(input.dtype))


@composite(sizes=("storage_offset",))
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Tensor:
    """Copy of `input` in which the elements that `as_strided` would show are `src`.

    The input's elements must fill its memory.

    >>> torch.zeros(4).as_strided_scatter(torch.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    _check_view_source(size, src.shape, "as_strided_scatter")
    check(
        input.is_contiguous(),
        "as_strided_scatter: expected a contiguous input; call contiguous() first",
    )
    first = 0 if storage_offset is None else storage_offset - input.offset
    places = arange(input.numel()).as_strided(size, stride, first)
    flat = input.view([-1])
    out = flat.index_copy(0, places.reshape([-1]), src.to(input.dtype).reshape([-1]))
    return out.view(input.shape)
