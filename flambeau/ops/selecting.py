"""Picking elements by index tensors along a dimension. Kernels: csrc/kernels/selecting.cpp."""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="index_select")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Slices of `input` along `dim` at the positions in `index`.

    >>> torch.arange(6).view(3, 2).index_select(0, torch.tensor([2, 0]))
    tensor([[4, 5],
            [0, 1]])
    """
    d = wrap_dim(dim, input.ndim)
    check_index(
        index.ndim <= 1,
        f"index_select: expected index to be a vector, got shape {index.shape}",
    )
    check(
        index.dtype == int64 or index.dtype == int32,
        f"index_select: expected index to have dtype int32 or int64, got {index.dtype}",
    )
    shape = list(input.shape)
    if input.ndim > 0:
        shape[d] = index.numel()
    return empty(shape, dtype=input.dtype, like=input)


@index_select.vjp
def _(g, input, dim, index):
    return g.new_zeros(input.shape).index_add_(dim, index, g), None


@structured(kernel="index_add_", inplace_kernel=True)
def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
    """Adds slices of `source`, times `alpha`, to those of `self` at the positions in `index`.

    >>> torch.zeros(3).index_add_(0, torch.tensor([2, 2]), torch.ones(2))
    tensor([0., 0., 2.])
    """
    d = wrap_dim(dim, self.ndim)
    check(
        self.dtype == source.dtype,
        f"index_add_: expected source to have the dtype of self, {self.dtype}, got {source.dtype}",
    )
    check(
        index.dtype == int64 or index.dtype == int32,
        f"index_add_: expected index to have dtype int32 or int64, got {index.dtype}",
    )
    check_index(
        source.ndim == 0 or source.shape[d] == index.numel(),
        f"index_add_: expected as many indices as slices of source, got {index.numel()} and {source.shape}",
    )


@index_add_.vjp
def _(g, dim, index, alpha):
    return g, None, g.index_select(dim, index) * alpha
