"""`while_loop`: a function applied to values for as long as a condition on them holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.utils import _pytree

__all__ = ["while_loop"]


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> Any:
    """Values `body_fn(*values)`, again and again, while `cond_fn(*values)` is true.

    Args:
        cond_fn: a function of the values that returns a bool or a tensor of one entry.
        body_fn: a function of the values that returns as many.
        carried_inputs: a tuple or list of the values at the start.

    Returns:
        The values for which `cond_fn` is false, a tuple or what `body_fn` returned.

    Raises:
        RuntimeError: the values are no tuple or list, or `body_fn` returns others than it got.

    >>> from torch._higher_order_ops import while_loop
    >>> start = (torch.tensor(0), torch.tensor(1.0))
    >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), start)
    (tensor(3), tensor(8.))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("while_loop: expected two functions, cond_fn and body_fn")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(
            "while_loop: expected carried_inputs in a tuple or list, got "
            f"{type(carried_inputs).__name__}"
        )
    values: Any = tuple(carried_inputs)
    while cond_fn(*values):
        made = body_fn(*values)
        made = tuple(made) if isinstance(made, list) else made
        wanted, got = _pytree.tree_structure(values), _pytree.tree_structure(made)
        if wanted != got:
            raise RuntimeError(
                f"while_loop: expected body_fn to return {wanted}, like its inputs, got {got}"
            )
        values = made
    return values
