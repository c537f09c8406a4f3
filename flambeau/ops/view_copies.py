"""The functions whose names end in `_copy`: views, but in memory of their own.

Each is the view named before the ending, cloned. Nothing else lives here.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(
    each=("alias", "t", "view_as_real", "view_as_complex", "squeeze"), method=False, out=True
)
def NAME_copy(input: Tensor) -> Tensor:
    """Copy of what `NAME` gives.

    >>> torch.view_as_real_copy(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return NAME(input).clone(memory_format=contiguous_format)


@squeeze_copy.overload(method=False, out=True)
def squeeze_copy(input: Tensor, dim: Ints) -> Tensor:
    """Copy without those of the given dims that have size 1.

    >>> torch.squeeze_copy(torch.ones(2, 1), 1).shape
    torch.Size([2])
    """
    return squeeze(input, dim).clone(memory_format=contiguous_format)


@composite(method=False, out=True)
def unsqueeze_copy(input: Tensor, dim: int) -> Tensor:
    """Copy with a dim of size 1 put in.

    >>> torch.unsqueeze_copy(torch.ones(2), 1).shape
    torch.Size([2, 1])
    """
    return unsqueeze(input, dim).clone(memory_format=contiguous_format)


@composite(method=False, out=True, sizes=("storage_offset",))
def as_strided_copy(
    input: Tensor, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Tensor:
    """Copy of a view of any geometry.

    >>> torch.as_strided_copy(torch.arange(3), (2,), (2,))
    tensor([0, 2])
    """
    return as_strided(input, size, stride, storage_offset).clone(memory_format=contiguous_format)


@composite(method=False, out=True)
def diagonal_copy(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Copy of a diagonal.

    >>> torch.diagonal_copy(torch.eye(2))
    tensor([1., 1.])
    """
    return diagonal(input, offset, dim1, dim2).clone(memory_format=contiguous_format)


@composite(method=False, out=True)
def expand_copy(input: Tensor, size: Ints, *, implicit: bool = False) -> Tensor:
    """Copy expanded to `size`.

    >>> torch.expand_copy(torch.ones(1), (2,))
    tensor([1., 1.])
    """
    return expand(input, size).clone(memory_format=contiguous_format)


@composite(out=True, sizes=("start", "length"))
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Copy of a range of a dim.

    >>> torch.narrow_copy(torch.arange(3), 0, 1, 2)
    tensor([1, 2])
    """
    return narrow(input, dim, start, length).clone(memory_format=contiguous_format)


@composite(method=False, out=True)
def permute_copy(input: Tensor, dims: Ints) -> Tensor:
    """Copy with the dims in another order.

    >>> torch.permute_copy(torch.ones(2, 3), (1, 0)).shape
    torch.Size([3, 2])
    """
    return permute(input, dims).clone(memory_format=contiguous_format)


@composite(method=False, out=True, sizes=("index",))
def select_copy(input: Tensor, dim: int, index: int) -> Tensor:
    """Copy of one position of a dim.

    >>> torch.select_copy(torch.arange(3), 0, 1)
    tensor(1)
    """
    return select(input, dim, index).clone(memory_format=contiguous_format)


@composite(method=False, out=True, sizes=("start", "end", "step"))
def slice_copy(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Copy of a range of a dim, with a step.

    >>> torch.slice_copy(torch.arange(5), 0, 1, None, 2)
    tensor([1, 3])
    """
    return input.slice(dim, start, end, step).clone(memory_format=contiguous_format)


@composite(method=False)
def split_copy(input: Tensor, split_size: int, dim: int = 0) -> Tensors:
    """Copies of pieces of a dim.

    >>> len(torch.split_copy(torch.arange(5), 2))
    3
    """
    return [x.clone(memory_format=contiguous_format) for x in split(input, split_size, dim)]


@composite(method=False)
def split_with_sizes_copy(input: Tensor, split_sizes: Ints, dim: int = 0) -> Tensors:
    """Copies of pieces of a dim, of given sizes.

    >>> len(torch.split_with_sizes_copy(torch.arange(5), (2, 3)))
    2
    """
    parts = split_with_sizes(input, split_sizes, dim)
    return [x.clone(memory_format=contiguous_format) for x in parts]


@composite(method=False, out=True)
def transpose_copy(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Copy with two dims swapped.

    >>> torch.transpose_copy(torch.ones(2, 3), 0, 1).shape
    torch.Size([3, 2])
    """
    return transpose(input, dim0, dim1).clone(memory_format=contiguous_format)


@composite(method=False)
def unbind_copy(input: Tensor, dim: int = 0) -> Tensors:
    """Copies of all positions of a dim.

    >>> torch.unbind_copy(torch.arange(2))
    (tensor(0), tensor(1))
    """
    return [x.clone(memory_format=contiguous_format) for x in unbind(input, dim)]


@composite(method=False, out=True)
def unfold_copy(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Copy of the windows of a dim.

    >>> torch.unfold_copy(torch.arange(3), 0, 2, 1)
    tensor([[0, 1],
            [1, 2]])
    """
    return unfold(input, dimension, size, step).clone(memory_format=contiguous_format)


@composite(method=False, out=True)
def view_copy(input: Tensor, size: Ints) -> Tensor:
    """Copy in another shape.

    >>> torch.view_copy(torch.arange(4), (2, 2)).shape
    torch.Size([2, 2])
    """
    return input.view(size).clone(memory_format=contiguous_format)


@view_copy.overload(method=False, out=True)
def view_copy(input: Tensor, dtype: DType) -> Tensor:
    """Copy of the same bytes as elements of another dtype.

    >>> torch.view_copy(torch.zeros(1), torch.int32)
    tensor([0], dtype=torch.int32)
    """
    return view_dtype(input, dtype).clone(memory_format=contiguous_format)
