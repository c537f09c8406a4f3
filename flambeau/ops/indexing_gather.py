"""Entries along one dim at places that a tensor gives: gather, scatter and what reduces.

The index has the shape of what is read or written, but for corners that are left alone; kernels
check every index. Must not know advanced indexing.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_fits


@composite(namespaces=(), method=False)
def _pad_corner(x: Tensor, shape: Ints) -> Tensor:
    """`x` in the corner of a zero tensor of a larger shape; no dims count as one of one entry."""
    if x.shape == shape:
        return x
    out = x.new_zeros(shape)
    if x.numel() == 0:
        return out
    corner = out
    for k in range(out.ndim):
        corner = corner.narrow(k, 0, x.size(k) if x.ndim > 0 else 1)
    corner.copy_(x if x.shape == corner.shape else x.reshape(corner.shape))
    return out


@composite(namespaces=(), method=False)
def _check_scatter(input: Tensor, dim: int, index: Tensor, src: Ints, op: str) -> None:
    """The rules on shapes that every scatter shares."""
    d = wrap_dim(dim, input.ndim)
    if index.numel() == 0:
        return
    check(
        index.dtype == int64 or index.dtype == int32,
        f"{op}(): Expected dtype int32/int64 for index",
    )
    check(
        max(index.ndim, 1) == max(input.ndim, 1) and max(index.ndim, 1) == max(len(src), 1),
        f"{op}: expected index of as many dims as self and src, got {index.ndim} for "
        f"{input.ndim} and {len(src)}",
    )
    for k in range(max(index.ndim, 1)):
        size = index.size(k) if index.ndim > 0 else 1
        check(
            (k == d or input.ndim == 0 or size <= input.size(k))
            and size <= (src[k] if len(src) > 0 else 1),
            f"{op}: expected index no larger than self {input.shape} apart from dim {d} and "
            f"than src {src}, got shape {index.shape}",
        )


@structured(
    kernel="gather",
    element="gathered",
    outside="RuntimeError: gather(): index {index} is out of bounds for dimension {dim} with size "
    "{size}",
    batch=True,
    out_apart=True,
)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on. Shape: that of `index`.

    >>> torch.tensor([[1, 2], [3, 4]]).gather(1, torch.tensor([[0], [1]]))
    tensor([[1],
            [4]])
    """
    d = wrap_dim(dim, input.ndim)
    if index.numel() > 0:
        check(
            index.dtype == int64 or index.dtype == int32,
            "gather(): Expected dtype int32/int64 for index",
        )
        check(
            max(index.ndim, 1) == max(input.ndim, 1),
            "Index tensor must have the same number of dimensions as input tensor",
        )
        for k in range(index.ndim):
            check(
                k == d or input.ndim == 0 or index.size(k) <= input.size(k),
                f"gather: expected index no larger than input {input.shape} apart from dim {d}, "
                f"got shape {index.shape}",
            )
    return empty(index.shape, like=input)


@gather.vjp
def _(g, input, dim: int, index):
    return zeros(input.shape, dtype=input.dtype).scatter_add(dim, index, g), None


@structured(kernel="scatter", inplace=True, own_memory=True, batch=True)
def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Copy of `input` with out[index[i][j]][j] = src[i][j] (for dim 0).

    >>> torch.zeros(3).scatter(0, torch.tensor([1]), torch.tensor([5.0]))
    tensor([0., 5., 0.])
    """
    _check_scatter(input, dim, index, src.shape, "scatter")
    check(
        src.dtype == input.dtype,
        "scatter(): Expected self.dtype to be equal to src.dtype",
    )
    return empty(input.shape, like=input)


@scatter.vjp
def _(g, dim: int, index, src):
    return g.scatter(dim, index, 0), None, _pad_corner(g.gather(dim, index), src.shape)


@scatter.overload(kernel="scatter_value", inplace=True, own_memory=True, batch=True)
def scatter(input: Tensor, dim: int, index: Tensor, value: Number) -> Tensor:
    """Copy of `input` with `value` at the places of `index`.

    >>> torch.zeros(3).scatter(0, torch.tensor([1]), 5.0)
    tensor([0., 5., 0.])
    """
    _check_scatter(input, dim, index, index.shape, "scatter")
    _check_fits("scatter", "value", value, input.dtype)
    return empty(input.shape, like=input)


@scatter.vjp
def _(g, dim: int, index):
    return g.scatter(dim, index, 0), None


@scatter.decompose(
    outside="RuntimeError: scatter(): index {index} is out of bounds for dimension {dim} with size "
    "{size}"
)
def _(input, dim, index, value):
    shape = input.shape
    if input.ndim > 0:
        shape[wrap_dim(dim, input.ndim)] = 1
    if input.ndim == 0 or index.shape != shape:
        return scatter(input, dim, index, value)
    d = wrap_dim(dim, input.ndim)
    line = [1] * input.ndim
    line[d] = input.size(d)
    places = arange(input.size(d)).view(line)
    shape[d] = input.size(d)
    return where(places == places.expand(shape).gather(d, index), value, input)


@scatter.overload(kind="composite", inplace=True, out=True)
def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """Copy of `input` with the entries of `src` added ("add") or multiplied ("multiply").

    >>> torch.ones(2).scatter(0, torch.tensor([1]), torch.tensor([5.0]), reduce="add")
    tensor([1., 6.])
    """
    check(
        reduce == "add" or reduce == "multiply",
        f"reduce argument must be either add or multiply, got {reduce}",
    )
    return _scatter_reduce(input, dim, index, src, "sum" if reduce == "add" else "prod", True)


@scatter.overload(kind="composite", inplace=True, out=True)
def scatter(input: Tensor, dim: int, index: Tensor, value: Number, *, reduce: str) -> Tensor:
    """Copy of `input` with `value` added or multiplied at the places of `index`.

    >>> torch.ones(2).scatter(0, torch.tensor([1]), 5.0, reduce="multiply")
    tensor([1., 5.])
    """
    return scatter(input, dim, index, full(index.shape, value, dtype=input.dtype), reduce=reduce)


@composite(inplace=True, out=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Entries of `src` that meet at one place are reduced: sum, prod, mean, amax, amin.

    >>> torch.zeros(2).scatter_reduce(0, torch.tensor([0, 0]), torch.ones(2), "sum")
    tensor([2., 0.])
    """
    check(
        reduce == "sum"
        or reduce == "prod"
        or reduce == "mean"
        or reduce == "amax"
        or reduce == "amin",
        f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.",
    )
    return _scatter_reduce(input, dim, index, src, reduce, include_self)


@structured(kernel="scatter_reduce", namespaces=(), method=False, out=False, batch=True)
def _scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    """The kernel of scatter_reduce."""
    _check_scatter(input, dim, index, src.shape, "scatter_reduce")
    check(
        src.dtype == input.dtype, "scatter_reduce(): Expected self.dtype to be equal to src.dtype"
    )
    return empty(input.shape, like=input)


@_scatter_reduce.vjp
def _(g, input, dim: int, index, src, result, reduce: str, include_self: bool):
    to_input = g
    to_src = g
    if index.numel() == 0:
        return g, None, src.new_zeros(src.shape)
    if reduce == "sum":
        to_src = g.gather(dim, index)
    elif reduce == "mean":
        ones_self = (
            ones(input.shape, dtype=g.dtype) if include_self else zeros(input.shape, dtype=g.dtype)
        )
        count = ones_self.scatter_add(dim, index, ones(index.shape, dtype=g.dtype))
        count = count.masked_fill(count == 0, 1)
        to_input = g / count
        to_src = (g / count).gather(dim, index)
    elif reduce == "prod":
        base = input if include_self else ones(input.shape, dtype=input.dtype)
        masked_self = base.masked_fill(base == 0, 1)
        masked_self_result = _scatter_reduce(masked_self, dim, index, src, "prod", include_self)
        to_input = (g * masked_self_result) / masked_self
        zero_self = zeros(input.shape, dtype=g.dtype)
        src_zero = src == 0
        hits = src_zero.to(g.dtype)
        zeros_met = zero_self.scatter_add(
            dim, index, hits if hits.shape == index.shape else _corner(hits, index.shape)
        ).gather(dim, index)
        part = _corner(src, index.shape)
        part_zero = part == 0
        single_zero = part_zero & (zeros_met == 1)
        masked_src = part.masked_fill(single_zero, 1)
        masked_src_result = _scatter_reduce(input, dim, index, masked_src, "prod", include_self)
        usual = (g * result).gather(dim, index) / part.masked_fill(part_zero, 1)
        to_src = where(single_zero, (g * masked_src_result).gather(dim, index), usual)
        to_src = to_src.masked_fill(part_zero & (zeros_met > 1), 0)
    else:
        value = result.gather(dim, index)
        part = _corner(src, index.shape)
        src_hit = (part == value).to(g.dtype)
        self_hit = (input == result).to(g.dtype)
        if not include_self:
            self_hit = self_hit.scatter(dim, index, 0)
        n = self_hit.scatter_add(dim, index, src_hit)
        shared = g / n.masked_fill(n == 0, 1)
        to_input = self_hit * shared
        to_src = src_hit * shared.gather(dim, index)
    if not include_self:
        to_input = to_input.scatter(dim, index, 0)
    return to_input, None, _pad_corner(to_src, src.shape)


@composite(namespaces=(), method=False)
def _corner(x: Tensor, shape: Ints) -> Tensor:
    """The corner of `x` of a smaller shape; no dims count as one of one entry."""
    out = x
    for k in range(x.ndim):
        out = out.narrow(k, 0, shape[k] if len(shape) > 0 else 1)
    return out if out.shape == shape else out.reshape(shape)


@structured(kernel="scatter_add", inplace=True, own_memory=True, batch=True)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Copy of `input` with out[index[i][j]][j] += src[i][j] (for dim 0).

    >>> torch.zeros(2).scatter_add(0, torch.tensor([1, 1]), torch.ones(2))
    tensor([0., 2.])
    """
    _check_scatter(input, dim, index, src.shape, "scatter_add")
    check(src.dtype == input.dtype, "scatter(): Expected self.dtype to be equal to src.dtype")
    return empty(input.shape, like=input)


@scatter_add.vjp
def _(g, dim: int, index, src):
    return g, None, _pad_corner(g.gather(dim, index), src.shape)
