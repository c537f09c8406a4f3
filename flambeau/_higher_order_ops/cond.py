"""`cond`: one of two functions, by a truth value. Only the one that is chosen runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau

__all__ = ["cond"]


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple[Any, ...] | list[Any] = (),
) -> Any:
    """`true_fn(*operands)` where `pred` is true, else `false_fn(*operands)`.

    Compiled code decides anew at each call: with `fullgraph=True` in the graph, which must then hold
    two functions that return the same shapes and dtypes; else a tensor's truth ends the graph.

    Args:
        pred: a bool, or a tensor of one entry.
        true_fn, false_fn: functions of the operands.
        operands: what they are called with.

    Raises:
        RuntimeError: `pred` is something else, or the operands are no tuple or list.

    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.cond(x.sum() > 2, lambda x: x * 2, lambda x: x - 1, (x,))
    tensor([2., 4.])
    """
    tensor = isinstance(pred, flambeau.Tensor)
    if not (isinstance(pred, bool | int | float) or (tensor and pred.numel() == 1)):
        got = f"a tensor of {tuple(pred.shape)}" if tensor else type(pred).__name__
        raise RuntimeError(f"cond: expected pred to be a bool or a tensor of one entry, got {got}")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("cond: expected two functions, true_fn and false_fn")
    if not isinstance(operands, tuple | list):
        raise RuntimeError(
            f"cond: expected operands in a tuple or list, got {type(operands).__name__}"
        )
    return true_fn(*operands) if pred else false_fn(*operands)
