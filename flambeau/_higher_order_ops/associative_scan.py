"""`associative_scan`: all prefixes of a sequence under an associative function, in log depth.

The even and odd entries are combined in pairs, the half as long sequence is scanned, and the rest
follows with one combination each (G. E. Blelloch, Prefix sums and their applications, 1990). Knows
nothing of what is combined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau.utils import _pytree

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """All prefixes of `xs` along a dimension, under an associative function.

    Args:
        combine_fn: an associative function of two trees like `xs`, which returns another.
        xs: a tensor or tree of tensors, of one length along `dim`.
        dim: the dimension of the sequence.
        reverse: from the last entry to the first.
        combine_mode: "pointwise": the function is elementwise, and is given many entries at once.
            "generic": it is given single entries, without `dim`, under `vmap`.

    Returns:
        A tree like `xs`: along `dim`, the combination of all entries up to each.

    Raises:
        ValueError: an argument is none of these, or lengths differ.

    >>> from torch._higher_order_ops import associative_scan
    >>> associative_scan(lambda a, b: a * b, torch.tensor([1, 2, 3, 4]), 0)
    tensor([ 1,  2,  6, 24])
    """
    if not callable(combine_fn):
        raise ValueError(
            f"associative_scan: expected a function, got {type(combine_fn).__name__}; combine_fn "
            "combines two entries"
        )
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            "associative_scan: expected combine_mode 'pointwise' or 'generic', got "
            f"{combine_mode!r}"
        )
    leaves, spec = _pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(x, flambeau.Tensor) for x in leaves):
        raise ValueError("associative_scan: expected xs of one tensor or more, and nothing else")
    moved = [x.movedim(dim, 0) for x in leaves]
    if len({len(x) for x in moved}) > 1 or not len(moved[0]):
        raise ValueError(
            f"associative_scan: expected one length above zero along dim {dim}, got "
            f"{[len(x) for x in moved]}"
        )
    function = flambeau.vmap(combine_fn) if combine_mode == "generic" else combine_fn

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        made = function(
            _pytree.tree_unflatten(left, spec),
            _pytree.tree_unflatten(right, spec),
        )
        found, made_spec = _pytree.tree_flatten(made)
        if made_spec != spec:
            raise ValueError(
                f"associative_scan: expected combine_fn to return {spec}, like xs, got {made_spec}"
            )
        for x, like in zip(found, left, strict=True):
            if x.shape != like.shape or x.dtype != like.dtype:
                raise ValueError(
                    f"associative_scan: expected combine_fn to return {like.dtype} of "
                    f"{tuple(like.shape)}, like its inputs, got {x.dtype} of {tuple(x.shape)}"
                )
        return found

    if reverse:
        moved = [x.flip(0) for x in moved]
    scanned = _scan(combine, moved)
    if reverse:
        scanned = [x.flip(0) for x in scanned]
    return _pytree.tree_unflatten([x.movedim(0, dim) for x in scanned], spec)


def _scan(combine: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any]) -> list[Any]:
    """The prefixes along the first dimension."""
    length = len(xs[0])
    if length < 2:
        return xs
    odd = _scan(combine, combine([x[:-1:2] for x in xs], [x[1::2] for x in xs]))
    if length == 2:
        return [flambeau.cat((x[:1], o)) for x, o in zip(xs, odd, strict=True)]
    before = [o[:-1] for o in odd] if length % 2 == 0 else odd
    rest = combine(before, [x[2::2] for x in xs])
    even = [flambeau.cat((x[:1], r)) for x, r in zip(xs, rest, strict=True)]
    return [_interleave(e, o) for e, o in zip(even, odd, strict=True)]


def _interleave(even: Any, odd: Any) -> Any:
    """Entries of two sequences in turn; the first has as many, or one more."""
    both = flambeau.stack((even[: len(odd)], odd), 1).flatten(0, 1)
    return both if len(even) == len(odd) else flambeau.cat((both, even[-1:]))
