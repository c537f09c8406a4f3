"""Losses composed of other operations."""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=("nn.functional",))
def mse_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """Squared difference of `input` and `target`: each one, their mean or their sum.

    >>> F.mse_loss(torch.ones(2), torch.zeros(2))
    tensor(1.)
    """
    check_value(
        reduction in ("none", "mean", "sum"),
        f"mse_loss: expected reduction to be none, mean or sum, got {reduction}",
    )
    difference = input - target
    loss = difference * difference
    if weight is not None:
        loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if weight is not None:
        return loss.sum() / weight.expand(loss.shape).sum()
    return loss.mean()
