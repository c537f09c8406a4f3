"""``vmap``: a function of one sample becomes a function of a batch.

Owns what the arguments and results of a batched function may be, and their errors. The batch itself
is a level of the core: tensors are put in and taken out here, operations are none of this file's
business.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flambeau import _C
from flambeau.utils import _pytree as pytree

__all__ = ["vmap"]

InDims = Any  # an int, None, or a tree of them like the arguments
OutDims = Any


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _is_dim(x: Any) -> bool:
    return x is None or isinstance(x, int)


# ---- arguments -----------------------------------------------------------------------------


def flat_in_dims(in_dims: InDims, args: Sequence[Any], func: Callable[..., Any]) -> Any:
    """Leaves of the arguments, their structure, and a dim or None for each leaf."""

    def head() -> str:  # only when needed: the name may be a large module's text
        return f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "

    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(
            f"{head()}expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(f"{head()}got no inputs; a function without inputs has nothing to batch.")
    leaves, spec = pytree.tree_flatten(tuple(args))
    tree = tuple(in_dims) if isinstance(in_dims, list) else in_dims
    dims = pytree._broadcast_to_and_flatten(tree, spec, is_leaf=_is_dim)
    if dims is None:
        raise ValueError(
            f"{head()}in_dims is not compatible with the structure of `inputs`: in_dims has "
            f"structure {pytree.tree_structure(in_dims)}, inputs have structure {spec}."
        )
    return leaves, spec, [_checked(head, x, dim) for x, dim in zip(leaves, dims, strict=True)]


def _checked(head: Callable[[], str], x: Any, dim: Any) -> int | None:
    """The dim, counted from the front."""
    if not _is_dim(dim) or isinstance(dim, bool):
        raise ValueError(
            f"{head()}Got in_dim={dim} for an input but in_dim must be either an integer dimension "
            "or None."
        )
    if dim is None:
        return None
    if not isinstance(x, _C.Tensor):
        raise ValueError(
            f"{head()}Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot "
            "vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -x.dim() <= dim < x.dim():
        raise ValueError(
            f"{head()}Got in_dim={dim} for some input, but that input is a Tensor of "
            f"dimensionality {x.dim()} so expected in_dim to satisfy -{x.dim()} <= in_dim < "
            f"{x.dim()}."
        )
    return dim % x.dim()


def batch_size(leaves: Sequence[Any], dims: Sequence[int | None]) -> int:
    """How many samples the leaves hold along these dims."""
    sizes = [x.size(d) for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


# ---- results -------------------------------------------------------------------------------


def _unwrapped(level: Any, outputs: Any, out_dims: OutDims, func: Callable[..., Any]) -> Any:
    leaves, spec = pytree.tree_flatten(outputs)
    if isinstance(out_dims, int) and not isinstance(outputs, (tuple, list)) and len(leaves) == 1:
        dims: list[Any] | None = [out_dims]
    else:
        dims = _flat_out_dims(out_dims, spec)
    if dims is None or not all(_is_dim(d) for d in dims):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`: outputs have structure {spec}; `out_dims` must be "
            "an int, None or a Python collection of them, one for each output."
        )
    out = [_taken_out(level, y, d, func) for y, d in zip(leaves, dims, strict=True)]
    return pytree.tree_unflatten(out, spec)


def _flat_out_dims(out_dims: OutDims, spec: Any) -> list[Any] | None:
    # A tuple of one dim stands for a single output too.
    if isinstance(out_dims, tuple) and len(out_dims) == 1 and spec.is_leaf():
        return list(out_dims)
    return pytree._broadcast_to_and_flatten(out_dims, spec, is_leaf=_is_dim)


def _head(func: Callable[..., Any]) -> str:
    return f"vmap({_name(func)}, ...): `{_name(func)}` "


def _taken_out(level: Any, y: Any, dim: int | None, func: Callable[..., Any]) -> Any:
    if dim is None:
        if not isinstance(y, _C.Tensor):
            return y
        if _C._vmap_is_batched(level, y):
            raise ValueError(f"{_head(func)}can not return a batched tensor when out_dim is None")
        return _C._vmap_remove(level, y, None)
    if not isinstance(y, _C.Tensor):
        raise ValueError(
            f"{_head(func)}must only return Tensors, got type {type(y)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    if not -y.dim() - 1 <= dim <= y.dim():
        raise IndexError(
            f"vmap({_name(func)}, ...): Dimension out of range (expected to be in range of "
            f"[{-y.dim() - 1}, {y.dim()}], but got {dim})"
        )
    return _C._vmap_remove(level, y, dim)


# ---- the transform -------------------------------------------------------------------------


def _run(
    func: Callable[..., Any],
    leaves: Sequence[Any],
    spec: Any,
    dims: Sequence[int | None],
    batch: int,
    out_dims: OutDims,
    randomness: str,
    kwargs: dict[str, Any],
) -> Any:
    level = _C._vmap_enter(batch, randomness)
    try:
        inside = [
            x if d is None else _C._vmap_add(level, x, d) for x, d in zip(leaves, dims, strict=True)
        ]
        outputs = func(*pytree.tree_unflatten(inside, spec), **kwargs)
        return _unwrapped(level, outputs, out_dims, func)
    finally:
        _C._vmap_leave(level)


def _chunks(
    leaves: Sequence[Any], dims: Sequence[int | None], batch: int, size: int
) -> Iterator[tuple[list[Any], int]]:
    for start in range(0, batch, size):
        n = min(size, batch - start)
        yield (
            [x if d is None else x.narrow(d, start, n) for x, d in zip(leaves, dims, strict=True)],
            n,
        )


def _joined(parts: list[Any], out_dims: OutDims) -> Any:
    """Results of chunks, one after another along the batch."""
    flat = [pytree.tree_flatten(part) for part in parts]
    spec = flat[0][1]
    dims = _flat_out_dims(out_dims, spec) or [out_dims]
    out = []
    for k, dim in enumerate(dims):
        pieces = [leaves[k] for leaves, _ in flat]
        out.append(pieces[0] if dim is None else _C.cat(pieces, dim))
    return pytree.tree_unflatten(out, spec)


def vmap(
    func: Callable[..., Any],
    in_dims: InDims = 0,
    out_dims: OutDims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that applies ``func`` to every sample of a batch, with one call of each operation.

    Args:
        func: takes tensors (and anything else), returns tensors or a tree of them. Control flow may
            depend on shapes and dtypes, not on values.
        in_dims: which dim of each argument numbers the samples; None: the same for all samples. One
            for all arguments, or a tree like the arguments. Keyword arguments are not batched.
        out_dims: where the results have the batch; one for all, or a tree like the results.
        randomness: of random operations inside: "error" refuses them, "different" draws for each
            sample, "same" once for all.
        chunk_size: how many samples at a time; None: all.

    Raises:
        ValueError: dims that do not fit the arguments or the results.
        RuntimeError: an operation inside that has no meaning for a batch.

    >>> rows = torch.arange(6.0).view(3, 2)
    >>> torch.func.vmap(torch.dot, in_dims=(0, None))(rows, torch.ones(2))
    tensor([1., 5., 9.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        leaves, spec, dims = flat_in_dims(in_dims, args, func)
        batch = batch_size(leaves, dims)
        if chunk_size is None or batch <= chunk_size:
            return _run(func, leaves, spec, dims, batch, out_dims, randomness, kwargs)
        # The same for all samples: each chunk draws from where the first one did.
        state = _C.get_rng_state() if randomness == "same" else None
        parts = []
        for chunk, n in _chunks(leaves, dims, batch, chunk_size):
            if state is not None:
                _C.set_rng_state(state)
            parts.append(_run(func, chunk, spec, dims, n, out_dims, randomness, kwargs))
        return _joined(parts, out_dims)

    return batched
