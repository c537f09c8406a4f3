"""Losses of `nn.functional` that the table cannot state: they take a Python function or object.

The arithmetic is in the table (flambeau/ops/losses*.py). Must not know modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import _C
from flambeau._C import nn_functional as _ops

Tensor = _C.Tensor

__all__ = ["linear_cross_entropy", "triplet_margin_with_distance_loss"]


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """The same with any distance (default: the Euclidean one)."""
    check_triplets(anchor, positive, negative, margin, reduction)
    distance = distance_function or _ops.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    return triplet_loss(near, far, margin, reduction)


def check_triplets(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, reduction: str
) -> None:
    """Raise unless the arguments of a loss of triplets fit each other."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )


def triplet_loss(near: Tensor, far: Tensor, margin: float, reduction: str) -> Tensor:
    """The loss of distances to positive and negative."""
    loss = (margin + near - far).clamp_min(0)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def _as_tuple(shape: list[int]) -> str:
    """A shape as Python shows a tuple."""
    return f"({', '.join([str(n) for n in shape])}{',' if len(shape) == 1 else ''})"


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Cross entropy of the outputs of a linear layer; see `LinearCrossEntropyLoss`.

    `options` (how to split the work) may be given and change nothing: all logits exist at once.
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    classes, features = linear_weight.shape[:-1], linear_weight.shape[-1]
    if input.shape[-1] != features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {features}, respectively"
        )
    if input.ndim == 1 and len(classes) > 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {_as_tuple(linear_weight.shape)} "
            f"requires batched input, (N, {features}), got unbatched input with shape ({features},)"
        )
    if linear_bias is not None and linear_bias.shape != classes:
        raise RuntimeError(
            f"expected linear_bias shape {_as_tuple(classes)}, "
            f"got {_as_tuple(linear_bias.shape)}"
        )
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = _ops.linear(input, linear_weight.reshape(-1, features), bias)
    logits = logits.reshape(input.shape[:-1] + classes)
    ignored = -100 if ignore_index is None else ignore_index
    return _ops.cross_entropy(
        logits,
        target,
        weight,
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
