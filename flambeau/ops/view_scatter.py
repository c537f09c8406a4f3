"""Views turned round: a copy of a tensor in which what a view would show holds other values.

`NAME_scatter(input, src, ...)` is `NAME` of views.py with `src` written to it, changing nothing.
Each is linear; its cotangents are the view of the cotangent, and the cotangent without it.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False, function=False)
def _check_view_source(view: Tensor, src: Tensor, op: str) -> None:
    """Refuses values that do not fill a view.

    >>> True
    True
    """
    check(
        view.shape == src.shape,
        f"{op}: expected src to have a size equal to the slice of self. src size = {src.shape}, "
        f"slice size = {view.shape}",
    )


@structured(kernel="select_scatter", linear=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Copy of `input` in which position `index` along `dim` is `src`.

    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    _check_view_source(input.select(dim, index), src, "select_scatter")
    return empty_as(input)


@select_scatter.vjp
def _(g, src, dim, index):
    rest = select_scatter(g, zeros(src.shape, dtype=g.dtype), dim, index)
    return rest, g.select(dim, index).to(src.dtype)


@structured(kernel="slice_scatter", linear=True)
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Copy of `input` in which a range of positions along `dim` is `src`.

    >>> torch.slice_scatter(torch.zeros(4), torch.ones(2), 0, 1, 3)
    tensor([0., 1., 1., 0.])
    """
    _check_view_source(slice(input, dim, start, end, step), src, "slice_scatter")
    return empty_as(input)


@slice_scatter.vjp
def _(g, src, dim, start, end, step):
    rest = slice_scatter(g, zeros(src.shape, dtype=g.dtype), dim, start, end, step)
    return rest, slice(g, dim, start, end, step).to(src.dtype)


@structured(kernel="diagonal_scatter", linear=True)
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Copy of `input` in which a diagonal of two dims is `src`.

    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    _check_view_source(input.diagonal(offset, dim1, dim2), src, "diagonal_scatter")
    return empty_as(input)


@diagonal_scatter.vjp
def _(g, src, offset, dim1, dim2):
    rest = diagonal_scatter(g, zeros(src.shape, dtype=g.dtype), offset, dim1, dim2)
    return rest, g.diagonal(offset, dim1, dim2).to(src.dtype)


@structured(kernel="as_strided_scatter", linear=True)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Tensor:
    """Copy of `input` in which the elements that `as_strided` would show are `src`.

    >>> torch.as_strided_scatter(torch.zeros(4), torch.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    offset = input.offset if storage_offset is None else storage_offset
    view = strided(input, size, stride, offset)
    _check_view_source(view, src, "as_strided_scatter")
    return empty_strided_as(input.shape, input.strides, dtype=input.dtype, like=input)


@as_strided_scatter.vjp
def _(g, src, size, stride, storage_offset):
    rest = as_strided_scatter(g, zeros(src.shape, dtype=g.dtype), size, stride, storage_offset)
    return rest, g.as_strided(size, stride, storage_offset).to(src.dtype)
