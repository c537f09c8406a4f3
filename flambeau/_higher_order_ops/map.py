"""`map`: a function applied to each entry along the first dimension of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau.utils import _pytree

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(entry, *args)` for each entry of `xs`, stacked along a new first dimension.

    Args:
        f: a function of an entry of `xs`, without its first dimension, and of `args`; it returns a
            tensor or tree of tensors.
        xs: a tensor or tree of tensors, of one length along their first dimension.
        args: passed on as they are.

    Raises:
        ValueError: there is nothing to go along, or lengths differ.

    >>> from torch._higher_order_ops.map import map
    >>> map(lambda row, k: row.sum() * k, torch.ones(2, 3), 2)
    tensor([6., 6.])
    """
    if not callable(f):
        raise ValueError(f"map: expected a function, got {type(f).__name__}")
    leaves, spec = _pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(x, flambeau.Tensor) and x.dim() for x in leaves):
        raise ValueError("map: expected xs of one tensor with dims or more, and nothing else")
    lengths = [x.shape[0] for x in leaves]
    if len(set(lengths)) > 1 or not lengths[0]:
        raise ValueError(f"map: expected one length above zero along dim 0, got {lengths}")
    made = [
        f(_pytree.tree_unflatten([x.select(0, i) for x in leaves], spec), *args)
        for i in range(lengths[0])
    ]
    return _pytree.tree_map(lambda *each: flambeau.stack(each), *made)
