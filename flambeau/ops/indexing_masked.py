"""Entries where a mask is true or at flat places: masked_select, take, put, nonzero and kin.

Sizes of results hang on data here; kernels check every index. Must not know advanced indexing.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="masked_select", dynamic="[([n], input.dtype)]", out_apart=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Entries where `mask` (broadcast with `input`) is true. Shape: (count,).

    >>> torch.arange(3).masked_select(torch.tensor([True, False, True]))
    tensor([0, 2])
    """
    check(mask.dtype == bool_, "masked_select: expected BoolTensor for mask")
    broadcast_shapes(input.shape, mask.shape)


@masked_select.vjp
def _(g, input, mask):
    shape = broadcast_shapes(input.shape, mask.shape)
    full = zeros(shape, dtype=g.dtype).masked_scatter(mask.expand(shape), g)
    return sum_to(full, input.shape), None


@structured(kernel="masked_scatter", inplace=True, out=False)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Copy of `input` with the entries under `mask` taken from `source`, in order.

    >>> torch.zeros(2).masked_scatter(torch.tensor([False, True]), torch.tensor([7.0]))
    tensor([0., 7.])
    """
    check(
        mask.dtype == bool_,
        f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}",
    )
    check(
        input.dtype == source.dtype,
        f"masked_scatter: expected source of dtype {dtype_name(input.dtype)}, got "
        f"{dtype_name(source.dtype)}",
    )
    return empty(broadcast_shapes(input.shape, mask.shape), like=input)


@masked_scatter.vjp
def _(g, input, mask, source):
    to_input = sum_to(g.masked_fill(mask, 0), input.shape)
    n = source.numel()
    if not traced():
        picked = g.masked_select(mask)
        rest = zeros([n - picked.numel()], dtype=g.dtype)
        return to_input, None, cat([picked, rest], 0).view(source.shape)
    # Of a fixed size, which takes longer: what is not taken goes behind the source.
    taken = mask.expand(g.shape).reshape([-1])
    at = where(taken, taken.cumsum(0) - 1, n)
    d_source = zeros([n + 1], dtype=g.dtype).scatter(0, at, g.reshape([-1]))
    return to_input, None, d_source.narrow(0, 0, n).view(source.shape)


@structured(kernel="take", out_apart=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """Entries of the flattened input. Shape: that of `index`.

    >>> torch.tensor([[1, 2], [3, 4]]).take(torch.tensor([0, 3]))
    tensor([1, 4])
    """
    check(
        index.dtype == int64,
        f"take(): Expected a long tensor for index, but got {scalar_type_name(index.dtype)}",
    )
    check_index(
        input.numel() > 0 or index.numel() == 0, "take(): tried to take from an empty tensor"
    )
    return empty(index.shape, like=input)


@take.vjp
def _(g, input, index):
    return zeros(input.shape, dtype=input.dtype).put(index, g, True), None


@take.vmap
def _(input, index, input_b, index_b, batch):
    if not input_b:
        return input.take(index)
    flat = input.reshape([batch, -1])
    at = _in_front(index, index_b, batch).reshape([batch, -1])
    return flat.gather(1, where(at < 0, at + flat.size(1), at)).reshape(
        index.shape if index_b else [batch] + index.shape
    )


@structured(kernel="put", inplace=True, out=False)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Copy of `input`, seen flat, with `source` written to (or added at) the places `index`.

    >>> torch.zeros(3).put(torch.tensor([1]), torch.tensor([5.0]))
    tensor([0., 5., 0.])
    """
    check(
        index.dtype == int64,
        f"put_(): Expected a long tensor for index, but got {scalar_type_name(index.dtype)}",
    )
    check(
        source.dtype == input.dtype,
        f"put_: expected source of dtype {dtype_name(input.dtype)}, got {dtype_name(source.dtype)}",
    )
    check(
        index.numel() == source.numel(),
        f"put_: expected source of {index.numel()} elements, as many as index, got "
        f"{source.numel()}",
    )
    check_index(
        input.numel() > 0 or index.numel() == 0,
        "put_(): tried to put elements into an empty tensor",
    )
    return empty_as(input)


@put.vjp
def _(g, index, source, accumulate: bool):
    to_input = g
    if not accumulate:
        to_input = g.put(index, zeros(source.shape, dtype=g.dtype), False)
    return to_input, None, g.take(index).reshape(source.shape)


@composite(out=True, out_apart=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather after broadcasting `input` and `indices` except along `dim`; flat without one.

    >>> torch.tensor([[1, 2]]).take_along_dim(torch.tensor([[1]]), 1)
    tensor([[2]])
    """
    check(
        indices.dtype == int64,
        f"take_along_dim: expected indices of dtype int64, got {dtype_name(indices.dtype)}",
    )
    if dim is None:
        return input.reshape([-1]).gather(0, indices.reshape([-1]))
    check(
        input.ndim == indices.ndim,
        f"take_along_dim: expected indices of {input.ndim} dims, as many as input, got "
        f"{indices.ndim}",
    )
    d = wrap_dim(dim, input.ndim)
    a = input.shape
    b = indices.shape
    a[d] = 1
    b[d] = 1
    shape = broadcast_shapes(a, b)
    left = list(shape)
    right = list(shape)
    left[d] = input.size(d)
    right[d] = indices.size(d)
    places = where(indices < 0, indices + input.size(d), indices)
    return input.expand(left).gather(d, places.expand(right))


@structured(kernel="nonzero", dynamic="[([n, input.ndim], int64)]", differentiable=False, out=False)
def nonzero(input: Tensor) -> Tensor:
    """Places of entries that are not zero, in row-major order. Shape: (count, ndim), int64.

    >>> torch.nonzero(torch.tensor([0, 3]))
    tensor([[1]])
    """


@composite(out=True, sizes=("size",))
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` rows of `nonzero`, filled up with `fill_value`. Shape: (size, ndim).

    >>> torch.nonzero_static(torch.tensor([0, 3]), size=2)
    tensor([[ 1],
            [-1]])
    """
    check(size >= 0, f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    places = nonzero(input)
    n = places.size(0)
    if n >= size:
        return places.narrow(0, 0, size).clone()
    return cat([places, full([size - n, input.ndim], fill_value, dtype=int64)], 0)


@composite(method=False)
def unravel_index(indices: Tensor, shape: Ints1) -> Tensors:
    """Coordinates, one tensor per dim, of places in a flattened tensor of shape `shape`.

    >>> torch.unravel_index(torch.tensor([3]), (2, 2))
    (tensor([1]), tensor([1]))
    """
    check_type(
        indices.is_integral() and indices.dtype != bool_,
        f"expected 'indices' to be integer dtype, but got {indices.dtype}",
    )
    for n in shape:
        check_value(n >= 0, f"'shape' cannot have negative values, but got {shape}")
    out: Tensors = []
    step = prod(shape)
    for n in shape:
        step = step // n if n > 0 else 0
        out.append(indices.floor_divide(step).remainder(n) if step > 0 else indices.clone())
    return out


@composite()
def argwhere(input: Tensor) -> Tensor:
    """Places of entries that are not zero.

    >>> torch.argwhere(torch.tensor([0, 3]))
    tensor([[1]])
    """
    return nonzero(input)
