"""Extremes over any dims, with or without their places.

Kernels: csrc/kernels/reductions.cpp. NaN is beyond everything; the place is that of the first of
several equal entries.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.reduction import _reduced_dims, _shape_without, _shared_among_ties
from flambeau.ops.sorting import _scatter_selected


@composite(namespaces=(), method=False, out=False)
def _extreme_shape(op: str, loop: str, input: Tensor, dim: Ints | None, keepdim: bool) -> Ints:
    """Shape of a reduction to extremes: there are none of nothing, and complex has no order."""
    dims = _reduced_dims(dim, input.ndim)
    if input.numel() == 0:
        check(
            dim is not None and len(dim) > 0,
            f"{op}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument.",
        )
        for d in dims:
            check_index(
                input.size(d) > 0, f"{op}(): Expected reduction dim {d} to have non-zero size."
            )
    check_not_implemented(
        not input.is_complex(),
        f"\"{loop}\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    return _shape_without(input.shape, dims, keepdim)


@structured(kernel="amax", reduction="greatest", batch=True, all_dims=True, layout="follows")
def amax(input: Tensor, dim: Ints1 = (), keepdim: bool = False) -> Tensor:
    """Greatest entry along `dim`. Entries that tie share the derivative.

    >>> torch.amax(torch.tensor([[1, 5], [3, 2]]), 1)
    tensor([5, 3])
    """
    return empty(_extreme_shape("amax", "max_values_cpu", input, dim, keepdim), like=input)


@amax.vjp
def _(g, input, dim: Ints, keepdim, result):
    return _shared_among_ties(g, input, result, dim, keepdim)


@structured(kernel="amin", reduction="least", batch=True, all_dims=True, layout="follows")
def amin(input: Tensor, dim: Ints1 = (), keepdim: bool = False) -> Tensor:
    """Smallest entry along `dim`. Entries that tie share the derivative.

    >>> torch.amin(torch.tensor([[1, 5], [3, 2]]), 1)
    tensor([1, 2])
    """
    return empty(_extreme_shape("amin", "min_values_cpu", input, dim, keepdim), like=input)


@amin.vjp
def _(g, input, dim: Ints, keepdim, result):
    return _shared_among_ties(g, input, result, dim, keepdim)


@composite(namespaces=(), method=False, out=False)
def _position_shape(op: str, input: Tensor, dim: int | None, keepdim: bool) -> Ints:
    """Shape of the places of extremes along a dim, or in the whole tensor."""
    check(not input.is_complex(), f"{op}(): does not support complex input")
    check(input.dtype != bool_, f"{op}(): does not support bool input")
    if dim is None:
        check_index(
            input.numel() > 0,
            f"{op}(): Expected reduction dim to be specified for input.numel() == 0.",
        )
        return _shape_without(input.shape, list(range(input.ndim)), keepdim)
    d = wrap_dim(dim, input.ndim)
    check_index(
        input.ndim == 0 or input.size(d) > 0,
        f"{op}(): Expected reduction dim {d} to have non-zero size.",
    )
    return _shape_without(input.shape, [d], keepdim)


@structured(kernel="argmax", differentiable=False)
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Place of the greatest entry along `dim`, or in the flattened tensor. The first of several.

    >>> torch.argmax(torch.tensor([3, 9, 5]))
    tensor(1)
    """
    return empty(_position_shape("argmax", input, dim, keepdim), dtype=int64, like=input)


@argmax.decompose
def _(input, dim, keepdim):
    if input.ndim == 0:
        return argmax(input, dim, keepdim)
    if dim is not None:
        _, places = _max_with_place(input, dim, keepdim)
        return places
    _, place = _max_with_place(input.reshape([-1]), 0, False)
    return place.reshape([1] * input.ndim) if keepdim else place


@argmax.vmap
def _(input, dim, keepdim, batch):
    if dim is not None and input.ndim > 1:
        return input.argmax(wrap_dim(dim, input.ndim - 1) + 1, keepdim)
    place = input.reshape([batch, -1]).argmax(1)
    return place.view([batch] + [1] * (input.ndim - 1)) if keepdim else place


@structured(kernel="argmin", differentiable=False)
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Place of the smallest entry along `dim`, or in the flattened tensor. The first of several.

    >>> torch.argmin(torch.tensor([3, 9, 5]))
    tensor(0)
    """
    return empty(_position_shape("argmin", input, dim, keepdim), dtype=int64, like=input)


@argmin.decompose
def _(input, dim, keepdim):
    if input.ndim == 0:
        return argmin(input, dim, keepdim)
    if dim is not None:
        _, places = _min_with_place(input, dim, keepdim)
        return places
    _, place = _min_with_place(input.reshape([-1]), 0, False)
    return place.reshape([1] * input.ndim) if keepdim else place


@argmin.vmap
def _(input, dim, keepdim, batch):
    if dim is not None and input.ndim > 1:
        return input.argmin(wrap_dim(dim, input.ndim - 1) + 1, keepdim)
    place = input.reshape([batch, -1]).argmin(1)
    return place.view([batch] + [1] * (input.ndim - 1)) if keepdim else place


@composite(namespaces=(), method=False, out=False)
def _with_place_shape(op: str, input: Tensor, dim: int, keepdim: bool) -> Ints:
    """Shape of the extremes along one dim."""
    check(not input.is_complex(), f"{op}(): does not support complex input")
    d = wrap_dim(dim, input.ndim)
    check_index(
        input.ndim == 0 or input.size(d) > 0,
        f"{op}(): Expected reduction dim {d} to have non-zero size.",
    )
    return _shape_without(input.shape, [d], keepdim)


@structured(
    kernel="max_with_place", namespaces=(), method=False, fields=("values", "indices"), batch=True
)
def _max_with_place(input: Tensor, dim: int, keepdim: bool) -> Tuple[Tensor, Tensor]:
    """Greatest entries along `dim` and their places.

    >>> torch.max(torch.tensor([3, 9, 5]), 0).indices
    tensor(1)
    """
    shape = _with_place_shape("max", input, dim, keepdim)
    return empty(shape, like=input), empty(shape, dtype=int64, like=input)


@_max_with_place.decompose
def _(input, dim, keepdim):
    if input.ndim == 0:
        return _max_with_place(input, dim, keepdim)
    d = wrap_dim(dim, input.ndim)
    n = input.size(d)
    line = [1] * input.ndim
    line[d] = n
    best = input.amax([d], True)
    hit = (input == best) | (input != input)
    places = where(hit, arange(n).view(line), n).amin([d], keepdim)
    return best if keepdim else best.squeeze([d]), places


@_max_with_place.vjp(undefined=True)
def _(g0: Tensor | None, input, dim: int, keepdim: bool, result1):
    d = wrap_dim(dim, input.ndim)
    return _scatter_selected(g0, input.shape, input.dtype, d, keepdim, result1)


@composite(out=True, out_casts=True)
def max(input: Tensor) -> Tensor:
    """Greatest of all entries. Entries that tie share the derivative.

    >>> torch.max(torch.tensor([3, 9, 5]))
    tensor(9)
    """
    check(
        input.numel() > 0,
        "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
        "reduction dim with the 'dim' argument.",
    )
    check_not_implemented(
        not input.is_complex(), f"\"max_all\" not implemented for '{scalar_type_name(input.dtype)}'"
    )
    return amax(input)


@max.overload(out=True, out_casts=True)
def max(input: Tensor, other: Tensor) -> Tensor:
    """Greatest of each two entries: `maximum`.

    >>> torch.max(torch.tensor([1, 5]), torch.tensor([3, 3]))
    tensor([3, 5])
    """
    return maximum(input, other)


@max.overload(fields=("values", "indices"), out=True)
def max(input: Tensor, dim: int, keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    """Greatest entries along `dim`, and their places (int64).

    >>> torch.max(torch.tensor([[3, 9], [4, 1]]), 1).indices
    tensor([1, 0])
    """
    return _max_with_place(input, dim, keepdim)


@structured(
    kernel="min_with_place", namespaces=(), method=False, fields=("values", "indices"), batch=True
)
def _min_with_place(input: Tensor, dim: int, keepdim: bool) -> Tuple[Tensor, Tensor]:
    """Smallest entries along `dim` and their places.

    >>> torch.min(torch.tensor([3, 9, 5]), 0).indices
    tensor(0)
    """
    shape = _with_place_shape("min", input, dim, keepdim)
    return empty(shape, like=input), empty(shape, dtype=int64, like=input)


@_min_with_place.decompose
def _(input, dim, keepdim):
    if input.ndim == 0:
        return _min_with_place(input, dim, keepdim)
    d = wrap_dim(dim, input.ndim)
    n = input.size(d)
    line = [1] * input.ndim
    line[d] = n
    best = input.amin([d], True)
    hit = (input == best) | (input != input)
    places = where(hit, arange(n).view(line), n).amin([d], keepdim)
    return best if keepdim else best.squeeze([d]), places


@_min_with_place.vjp(undefined=True)
def _(g0: Tensor | None, input, dim: int, keepdim: bool, result1):
    d = wrap_dim(dim, input.ndim)
    return _scatter_selected(g0, input.shape, input.dtype, d, keepdim, result1)


@composite(out=True, out_casts=True)
def min(input: Tensor) -> Tensor:
    """Smallest of all entries. Entries that tie share the derivative.

    >>> torch.min(torch.tensor([3, 9, 5]))
    tensor(3)
    """
    check(
        input.numel() > 0,
        "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
        "reduction dim with the 'dim' argument.",
    )
    check_not_implemented(
        not input.is_complex(), f"\"min_all\" not implemented for '{scalar_type_name(input.dtype)}'"
    )
    return amin(input)


@min.overload(out=True, out_casts=True)
def min(input: Tensor, other: Tensor) -> Tensor:
    """Smallest of each two entries: `minimum`.

    >>> torch.min(torch.tensor([1, 5]), torch.tensor([3, 3]))
    tensor([1, 3])
    """
    return minimum(input, other)


@min.overload(fields=("values", "indices"), out=True)
def min(input: Tensor, dim: int, keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    """Smallest entries along `dim`, and their places (int64).

    >>> torch.min(torch.tensor([[3, 9], [4, 1]]), 1).indices
    tensor([0, 1])
    """
    return _min_with_place(input, dim, keepdim)


@composite(fields=("min", "max"), out=True)
def aminmax(
    input: Tensor, *, dim: int | None = None, keepdim: bool = False
) -> Tuple[Tensor, Tensor]:
    """Smallest and greatest entry, of all or along `dim`.

    >>> torch.aminmax(torch.tensor([3, 9, 5]))
    torch.return_types.aminmax(
    min=tensor(3),
    max=tensor(9))
    """
    check_not_implemented(
        not input.is_complex(),
        f"\"aminmax_cpu\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    if dim is None:
        check(
            input.numel() > 0,
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
            "identity.",
        )
        every = list(range(input.ndim))
        return amin(input, every, keepdim), amax(input, every, keepdim)
    d = wrap_dim(dim, input.ndim)
    check_index(
        input.ndim == 0 or input.size(d) > 0,
        f"aminmax: Expected reduction dim {d} to have non-zero size.",
    )
    return amin(input, [d], keepdim), amax(input, [d], keepdim)
