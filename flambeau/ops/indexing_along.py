"""Whole slices along one dim: index_select, index_add, index_copy, index_fill, index_reduce.

The index is a vector; kernels check every entry of it. Must not know advanced indexing.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_fits
from flambeau.ops.reduction import _shape_without


@structured(
    kernel="index_select",
    element="selected",
    outside="IndexError: index out of range in self: index_select() got {index} for size {size}",
    batch=("input",),
    out_apart=True,
)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Entries `index` of dim `dim`, as a copy.

    >>> torch.arange(3).index_select(0, torch.tensor([2, 0]))
    tensor([2, 0])
    """
    check_index(index.ndim <= 1, "index_select(): Index is supposed to be a vector")
    check(
        index.dtype == int64 or index.dtype == int32,
        "index_select(): Expected dtype int32 or int64 for index",
    )
    d = wrap_dim(dim, input.ndim)
    if input.ndim == 0:
        check(index.numel() == 1, "index_select(): Index to scalar can have only 1 value")
        return empty([], like=input)
    shape = input.shape
    shape[d] = index.numel()
    return empty(shape, like=input)


@index_select.vjp
def _(g, input, dim: int, index):
    return zeros(input.shape, dtype=input.dtype).index_add(dim, index, g), None


@index_select.vmap
def _(input, dim, index, input_b, index_b, batch):
    x = _in_front(input, input_b, batch)
    d = wrap_dim(dim, x.ndim - 1) + 1
    if x.ndim == 1:
        return x.unsqueeze(1).gather(1, index.reshape([batch, -1])).squeeze([1])
    return x.gather(d, _index_like(index, index_b, x, d))


@structured(kernel="index_add", inplace=True, own_memory=True, batch=("input", "source"))
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1
) -> Tensor:
    """Copy of `input` with alpha * source added to the entries `index` of dim `dim`.

    >>> torch.zeros(2).index_add(0, torch.tensor([1, 1]), torch.ones(2))
    tensor([0., 2.])
    """
    _check_index_source(input, dim, index, source, "index_add")
    _check_fits("index_add", "alpha", alpha, input.dtype)
    return empty(input.shape, like=input)


@index_add.vjp
def _(g, dim: int, index, source, alpha: Number):
    to_source = g.index_select(dim, index).reshape(source.shape) * alpha
    return g, None, to_source


@index_add.vmap
def _(input, dim, index, source, alpha, input_b, index_b, source_b, batch):
    x = _in_front(input, input_b, batch)
    y = _in_front(source, source_b, batch)
    d = wrap_dim(dim, x.ndim - 1) + 1
    scaled = y if alpha == 1 else y * wrapped(alpha)
    return x.scatter_add(d, _index_like(index, index_b, y, d), scaled)


@structured(
    kernel="index_copy", inplace=True, own_memory=True, autocast="widest",
    batch=("input", "source"),
)  # fmt: skip
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Copy of `input` with entries `index` of dim `dim` replaced by those of `source`.

    >>> torch.zeros(2).index_copy(0, torch.tensor([1]), torch.ones(1))
    tensor([0., 1.])
    """
    _check_copied(input, dim, index, source)
    return empty(input.shape, like=input)


@index_copy.vjp
def _(g, dim: int, index, source):
    return g.index_fill(dim, index, 0), None, g.index_select(dim, index).reshape(source.shape)


@index_copy.vmap
def _(input, dim, index, source, input_b, index_b, source_b, batch):
    x = _in_front(input, input_b, batch)
    y = _in_front(source, source_b, batch)
    d = wrap_dim(dim, x.ndim - 1) + 1
    return x.scatter(d, _index_like(index, index_b, y, d), y)


@composite(namespaces=(), method=False)
def _check_index_source(input: Tensor, dim: int, index: Tensor, source: Tensor, op: str) -> None:
    """What index_add and index_reduce ask of their arguments."""
    d = wrap_dim(dim, input.ndim)
    check_index(
        index.ndim <= 1,
        f"{op}_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
        f"{scalar_type_name(index.dtype)} and size: {index.shape}",
    )
    check(
        index.dtype == int64 or index.dtype == int32,
        f"{op}_(): Expected dtype int32/int64 for index but got: {scalar_type_name(index.dtype)}",
    )
    check(
        input.dtype == source.dtype,
        f"{op}_(): self ({scalar_type_name(input.dtype)}) and source "
        f"({scalar_type_name(source.dtype)}) must have the same scalar type",
    )
    count = 1
    if source.ndim > 0:
        count = source.size(d)
    check(
        index.numel() == count,
        f"{op}_(): Number of indices ({index.numel()}) should be equal to source.size(dim): "
        f"({count}), for dim: {d}",
    )
    fits = source.ndim == input.ndim
    if fits:
        for k in range(input.ndim):
            fits = fits and (k == d or input.size(k) == source.size(k))
    check(
        fits,
        f"{op}_(): source tensor shape must match self tensor shape, excluding the specified "
        f"dimension. Got self.shape = {input.shape} source.shape = {source.shape}",
    )


@composite(namespaces=(), method=False)
def _check_copied(input: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """What index_copy asks of its arguments."""
    d = wrap_dim(dim, input.ndim)
    check_index(
        index.ndim <= 1,
        f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})",
    )
    check_index(
        source.ndim > 0 or index.numel() == 1,
        f"index_copy_(): When source is scalar, index should have one element (got "
        f"{index.numel()})",
    )
    check_index(
        source.ndim == input.ndim or source.ndim == 0 or input.ndim == 0,
        "index_copy_(): When source and destination are not scalars, their dimensionality must "
        f"match. Source dimensionality ({source.ndim}), destination dimensionality ({input.ndim})",
    )
    check(
        index.dtype == int64,
        f"index_copy_(): Expected a long tensor for index, but got {scalar_type_name(index.dtype)}",
    )
    check(
        input.dtype == source.dtype,
        "index_copy_(): self and source expected to have the same dtype, but got (self) "
        f"{scalar_type_name(input.dtype)} and (source) {scalar_type_name(source.dtype)}",
    )
    to: Ints = []
    if input.ndim > 0:
        to = _shape_without(input.shape, [d], False)
    given: Ints = []
    count = 1
    if source.ndim > 0:
        given = _shape_without(source.shape, [d], False)
        count = source.size(d)
    check(
        to == given,
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice "
        f"shape: {to} at dimension {d} and source slice shape: {given} at dimension {d}.",
    )
    check_index(
        index.numel() == count,
        f"index_copy_(): Number of indices ({index.numel()}) should be equal to source.size(dim) "
        f"({count})",
    )


@structured(kernel="index_fill", inplace=True, own_memory=True, batch=("input",))
def index_fill(input: Tensor, dim: int, index: Tensor, value: Number) -> Tensor:
    """Copy of `input` with the entries `index` of dim `dim` set to `value`.

    >>> torch.zeros(2).index_fill(0, torch.tensor([1]), 3.0)
    tensor([0., 3.])
    """
    wrap_dim(dim, input.ndim)
    check_index(index.dtype == int64, "index_fill_(): Expected dtype int64 for index.")
    check(
        not value.is_complex() or input.is_complex(),
        "index_fill_(): Converting complex Scalar to non-complex type is not supported",
    )
    _check_fits("index_fill", "value", value, input.dtype)
    check_index(index.ndim <= 1, "Index is supposed to be a vector")
    return empty_as(input)


@index_fill.vjp
def _(g, dim: int, index):
    return g.index_fill(dim, index, 0), None


@index_fill.vmap
def _(input, dim, index, value, input_b, index_b, batch):
    x = _in_front(input, input_b, batch)
    d = wrap_dim(dim, x.ndim - 1) + 1
    return x.scatter(d, _index_like(index, index_b, x, d), value)


@index_fill.overload(kernel="index_fill_tensor", inplace=True, own_memory=True, batch=("input",))
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    """The value given as a 0-d tensor.

    >>> torch.zeros(2).index_fill(0, torch.tensor([1]), torch.tensor(3.0))
    tensor([0., 3.])
    """
    wrap_dim(dim, input.ndim)
    check_index(index.dtype == int64, "index_fill_(): Expected dtype int64 for index.")
    check(
        value.ndim == 0,
        f"Only supports 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)",
    )
    check_index(index.ndim <= 1, "Index is supposed to be a vector")
    return empty_as(input)


@index_fill.vjp
def _(g, dim: int, index, value):
    # A place that is named twice is filled once.
    places, _, _ = _unique(index.reshape([-1]), None, True, False, False)
    to_value = g.index_select(dim, places).sum().to(value.dtype)
    return g.index_fill(dim, index, 0), None, to_value


@index_fill.vmap
def _(input, dim, index, value, input_b, index_b, value_b, batch):
    x = _in_front(input, input_b, batch)
    d = wrap_dim(dim, x.ndim - 1) + 1
    chosen = zeros(x.shape, dtype=bool_).scatter(d, _index_like(index, index_b, x, d), 1)
    return where(chosen, _aligned(value, value_b, x.ndim - 1).to(x.dtype), x)


@composite(inplace=True, out=True)
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Slices of `source` that meet at one entry `index` of dim `dim` are reduced: prod, mean,
    amax, amin.

    >>> torch.ones(2).index_reduce(0, torch.tensor([1, 1]), torch.tensor([3.0, 5.0]), "prod")
    tensor([ 1., 15.])
    """
    check(
        reduce == "prod" or reduce == "mean" or reduce == "amax" or reduce == "amin",
        f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.",
    )
    _check_index_source(input, dim, index, source, "index_reduce")
    shape: Ints = [1 for n in source.shape]
    if source.ndim > 0:
        shape[wrap_dim(dim, source.ndim)] = index.numel()
    places = index.reshape(shape).expand(source.shape)
    return _scatter_reduce(input, dim, places, source, reduce, include_self)
