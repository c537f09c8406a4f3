"""`scan`: a function with a state, applied along a dimension of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau.utils import _pytree

__all__ = ["scan"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Goes along a dimension with a state, and collects what is made of each entry.

    Args:
        combine_fn: a function of the state and of an entry of `xs`, without `dim`; it returns the
            next state and an output, a tensor or tree of tensors.
        init: the first state, a tensor or tree of tensors.
        xs: a tensor or tree of tensors, of one length along `dim`.
        dim: the dimension of the sequence.
        reverse: from the last entry to the first; outputs keep the place of their entry.

    Returns:
        The last state, and the outputs, stacked along a new first dimension.

    Raises:
        ValueError: there is nothing to go along, lengths differ, or the state's form changes.

    >>> from torch._higher_order_ops import scan
    >>> scan(lambda state, x: (state + x, state * x), torch.tensor(0), torch.arange(1, 5))
    (tensor(10), tensor([ 0,  2,  9, 24]))
    """
    if not callable(combine_fn):
        raise ValueError(f"scan: expected a function, got {type(combine_fn).__name__}")
    leaves, spec = _pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(x, flambeau.Tensor) for x in leaves):
        raise ValueError("scan: expected xs of one tensor or more, and nothing else")
    lengths = [x.shape[dim] for x in leaves]
    if len(set(lengths)) > 1 or not lengths[0]:
        raise ValueError(f"scan: expected one length above zero along dim {dim}, got {lengths}")
    state, outputs = init, []
    order = range(lengths[0])
    for i in reversed(order) if reverse else order:
        entry = _pytree.tree_unflatten([x.select(dim, i) for x in leaves], spec)
        made, output = combine_fn(state, entry)
        wanted, got = _pytree.tree_structure(state), _pytree.tree_structure(made)
        if wanted != got:
            raise ValueError(f"scan: expected the next state to be {wanted}, like init, got {got}")
        state = made
        outputs.append(output)
    if reverse:
        outputs.reverse()
    return state, _pytree.tree_map(lambda *each: flambeau.stack(each), *outputs)
