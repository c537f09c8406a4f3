"""Reductions over any dims: sums, means, products, logical ones, counts.

Kernels: csrc/kernels/reductions.cpp. `dim=None` (and, but for `any` and `all`, no dims at all)
means all dims. Which dims are meant and which shape remains is decided here alone.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False, out=False)
def _reduced_dims(dim: Ints | None, ndim: int) -> Ints:
    """The dims that `dim` names, counted from the front; all of them for None and for no dim."""
    if dim is None or len(dim) == 0:
        return list(range(ndim))
    return wrap_dims(dim, ndim)


@composite(namespaces=(), method=False, out=False)
def _shape_without(shape: Ints, dims: Ints, keepdim: bool) -> Ints:
    """What remains of `shape` when `dims` (counted from the front) are reduced."""
    out: Ints = []
    for d in range(len(shape)):
        if not contains(dims, d):
            out.append(shape[d])
        elif keepdim:
            out.append(1)
    return out


@composite(namespaces=(), method=False, out=False)
def _unreduced(x: Tensor, shape: Ints, dim: Ints | None, keepdim: bool) -> Tensor:
    """A result of a reduction over `dim`, as a view that broadcasts to what was reduced."""
    if keepdim or len(shape) == 0:
        return x
    kept = shape[:]
    for d in _reduced_dims(dim, len(shape)):
        kept[d] = 1
    return x.reshape(kept)


@composite(namespaces=(), method=False, out=False)
def _shared_among_ties(
    g: Tensor, input: Tensor, result: Tensor, dim: Ints | None, keepdim: bool
) -> Tensor:
    """Cotangent of a choice along several dims: equal shares for all entries that attain it."""
    best = _unreduced(result, input.shape, dim, keepdim)
    hit = (input == best) | (input.isnan() & best.isnan())
    dims = _reduced_dims(dim, input.ndim)
    share = _unreduced(g, input.shape, dim, keepdim) / hit.sum(dims, True)
    return hit * share


@composite(namespaces=(), method=False, out=False)
def _count_reduced(shape: Ints, dim: Ints | None) -> int:
    """How many entries each result of a reduction over `dim` is made of."""
    n = 1
    if len(shape) > 0:
        for d in _reduced_dims(dim, len(shape)):
            n *= shape[d]
    return n


@structured(
    kernel="sum",
    reduction="total",
    linear=True,
    batch=True,
    all_dims=True,
    out_cast=True,
    layout="follows",
)
def sum(
    input: Tensor, dim: Ints1 | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Sum of the entries along `dim`. Integers and bool are summed in int64.

    >>> torch.sum(torch.tensor([[1, 2], [3, 4]]), 1)
    tensor([3, 7])
    """
    kind = dtype if dtype is not None else input.dtype if input.dtype.is_inexact else int64
    dims = _reduced_dims(dim, input.ndim)
    return empty(_shape_without(input.shape, dims, keepdim), dtype=kind, like=input)


@sum.vjp
def _(g, input, dim, keepdim):
    wide = _unreduced(g, input.shape, dim, keepdim).expand(input.shape)
    return wide if g.dtype == input.dtype else wide.to(input.dtype)


@structured(
    kernel="mean",
    reduction="average",
    linear=True,
    batch=True,
    all_dims=True,
    out_cast=True,
    layout="follows",
)
def mean(
    input: Tensor, dim: Ints1 | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Mean of the entries along `dim`.

    >>> torch.mean(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 0)
    tensor([2., 3.])
    """
    which = "Input" if dtype is None else "Optional"
    kind = input.dtype if dtype is None else dtype
    check(
        kind.is_inexact,
        f"mean(): could not infer output dtype. {which} dtype must be either a floating point or "
        f"complex dtype. Got: {scalar_type_name(kind)}",
    )
    dims = _reduced_dims(dim, input.ndim)
    return empty(_shape_without(input.shape, dims, keepdim), dtype=kind, like=input)


@mean.vjp
def _(g, input, dim, keepdim):
    part = _unreduced(g / _count_reduced(input.shape, dim), input.shape, dim, keepdim).expand(
        input.shape
    )
    return part if g.dtype == input.dtype else part.to(input.dtype)


@structured(kernel="any", reduction="some", differentiable=False, batch=True, out_also=("UInt8",))
def any(input: Tensor, dim: Ints1 | None = None, keepdim: bool = False) -> Tensor:
    """Is any entry along `dim` other than zero? bool, but uint8 for uint8.

    >>> torch.any(torch.tensor([[0, 2], [0, 0]]), 1)
    tensor([ True, False])
    """
    dims = wrap_dims(dim, input.ndim) if dim is not None else list(range(input.ndim))
    kind = uint8 if input.dtype == uint8 else bool_
    return empty(_shape_without(input.shape, dims, keepdim), dtype=kind, like=input)


@structured(kernel="all", reduction="every", differentiable=False, batch=True, out_also=("UInt8",))
def all(input: Tensor, dim: Ints1 | None = None, keepdim: bool = False) -> Tensor:
    """Are all entries along `dim` other than zero? bool, but uint8 for uint8.

    >>> torch.all(torch.tensor([[1, 2], [0, 1]]), 1)
    tensor([ True, False])
    """
    dims = wrap_dims(dim, input.ndim) if dim is not None else list(range(input.ndim))
    kind = uint8 if input.dtype == uint8 else bool_
    return empty(_shape_without(input.shape, dims, keepdim), dtype=kind, like=input)


@composite(namespaces=(), method=False, out=False)
def _prod_of_others(input: Tensor, dim: int) -> Tensor:
    """For each entry the product of the others along `dim`; no division, so zeros may occur."""
    shape = input.shape
    shape[dim] = 1
    one = ones(shape, dtype=input.dtype)
    n = input.size(dim) - 1
    before = cat([one, input.narrow(dim, 0, n)], dim).cumprod(dim)
    after = cat([one, input.narrow(dim, 1, n).flip([dim])], dim).cumprod(dim).flip([dim])
    return before * after


@composite(namespaces=(), method=False, out=False)
def _prod_cotangent(g: Tensor, input: Tensor, result: Tensor, dim: int) -> Tensor:
    """Cotangent of a product along `dim`; g and result broadcast to input."""
    if input.numel() == 0:
        return (g * input).to(input.dtype)
    if truth((input != 0).all(), False):
        return (g * result.conj() / input.conj()).to(input.dtype)
    if input.ndim == 0:
        return g.to(input.dtype)
    return (g * _prod_of_others(input, dim).conj()).to(input.dtype)


@structured(kernel="prod", reduction="product", out=True, autocast="float32", out_cast=True)
def prod(input: Tensor, *, dtype: DType | None = None) -> Tensor:
    """Product of all entries. Integers and bool are multiplied in int64.

    >>> torch.prod(torch.tensor([2, 3, 4]))
    tensor(24)
    """
    kind = dtype if dtype is not None else input.dtype if input.dtype.is_inexact else int64
    return empty([], dtype=kind, like=input)


@prod.vjp
def _(g, input, result):
    flat = _prod_cotangent(g, input.reshape([-1]), result, 0)
    return flat.reshape(input.shape)


@prod.vmap
def _(input, dtype, batch):
    return input.reshape([batch, -1]).prod(1, False, dtype=dtype)


@prod.overload(
    kernel="prod", reduction="product", out=True, autocast="float32", batch=True, out_cast=True
)
def prod(input: Tensor, dim: int, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Products along one dim.

    >>> torch.prod(torch.tensor([[1, 2], [3, 4]]), 1)
    tensor([ 2, 12])
    """
    kind = dtype if dtype is not None else input.dtype if input.dtype.is_inexact else int64
    shape = _shape_without(input.shape, [wrap_dim(dim, input.ndim)], keepdim)
    return empty(shape, dtype=kind, like=input)


@prod.vjp
def _(g, input, dim: int, keepdim: bool, result):
    whole = _unreduced(result, input.shape, [dim], keepdim)
    wide = _unreduced(g, input.shape, [dim], keepdim)
    return _prod_cotangent(wide, input, whole, wrap_dim(dim, input.ndim))


@structured(kernel="nansum", batch=True, all_dims=True, out_cast=True)
def nansum(
    input: Tensor, dim: Ints1 | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Sum of the entries along `dim` that are not NaN.

    >>> torch.nansum(torch.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    check(not input.is_complex(), "nansum on CPU does not support complex inputs")
    kind = dtype if dtype is not None else input.dtype if input.dtype.is_inexact else int64
    dims = _reduced_dims(dim, input.ndim)
    return empty(_shape_without(input.shape, dims, keepdim), dtype=kind, like=input)


@nansum.decompose
def _(input, dim, keepdim, dtype):
    x = input if not input.dtype.is_inexact else input.masked_fill(input.isnan(), 0)
    return x.sum(dim, keepdim, dtype=dtype)


@nansum.vjp
def _(g, input, dim, keepdim):
    return _unreduced(g.to(input.dtype), input.shape, dim, keepdim) * input.isnan().logical_not()


@composite(out=True, out_casts=True)
def nanmean(
    input: Tensor, dim: Ints1 | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Mean of the entries along `dim` that are not NaN.

    >>> torch.nanmean(torch.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    check(
        input.dtype.is_inexact,
        "nanmean(): expected input to have floating point or complex dtype but got "
        f"{scalar_type_name(input.dtype)}",
    )
    there = input.isnan().logical_not().sum(dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / there


@structured(kernel="count_nonzero", differentiable=False, out=False, batch=True, all_dims=True)
def count_nonzero(input: Tensor, dim: Ints1 | None = None) -> Tensor:
    """How many entries along `dim` are not zero. int64.

    >>> torch.count_nonzero(torch.tensor([0, 3, 0, 1]))
    tensor(2)
    """
    dims = _reduced_dims(dim, input.ndim)
    return empty(_shape_without(input.shape, dims, False), dtype=int64, like=input)


@count_nonzero.decompose
def _(input, dim):
    return (input != 0).sum(dim)


@composite(namespaces=())
def sum_to_size(input: Tensor, size: Ints) -> Tensor:
    """Sum over the dims that broadcasting from `size` to the shape of `input` repeats.

    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    lead = input.ndim - len(size)
    fits = lead >= 0
    dims: Ints = []
    for d in range(input.ndim):
        if d < lead:
            dims.append(d)
        elif fits and size[d - lead] != input.size(d):
            fits = size[d - lead] == 1
            dims.append(d)
    check(fits, f"size {{{size}}} is not expandable to size {{{input.shape}}}.")
    if len(size) == 0:
        return input.sum()
    if len(dims) == 0:
        return input
    return _unsafe_view(input.sum(dims, True).contiguous(), size)
