"""What Adam, NAdam and RAdam begin their steps with: decay, then the two running moments.

Owns that half of their rules and the hyperparameters it takes. Must not know what each makes of
the moments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._lists import ListOps
from ._rule import Group, number

if TYPE_CHECKING:
    from flambeau import Tensor


def moment_options(group: Group, ops: ListOps) -> dict[str, Any]:
    """The hyperparameters of `advance_moments` and of the step after it, for the rule."""
    beta1, beta2 = group["betas"]
    return {
        "lr": number(group["lr"], ops),
        "beta1": number(beta1, ops),
        "beta2": number(beta2, ops),
        "eps": group["eps"],
        "weight_decay": group["weight_decay"],
        "decoupled": group["decoupled_weight_decay"],
        "maximize": group["maximize"],
    }


def advance_moments(
    ops: ListOps,
    params: list[Tensor],
    grads: Any,
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    steps: list[Tensor],
    *,
    lr: Any,
    beta1: Any,
    beta2: Any,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> Any:
    """Counts the step and moves ``m, v``, the running means of ``g, g^2``; returns ``g``.

    ``g`` is the gradient (minus it to ascend) with the part of the L2 penalty; decoupled decay
    shrinks the parameters instead.
    """
    if maximize:
        grads = ops.neg(grads)
    ops.add_(steps, 1)
    if weight_decay != 0:
        if decoupled:
            ops.mul_(params, 1 - lr * weight_decay)
        else:
            grads = ops.add(grads, params, alpha=weight_decay)
    ops.lerp_(exp_avgs, grads, 1 - beta1)
    ops.mul_(exp_avg_sqs, beta2)
    ops.addcmul_(exp_avg_sqs, grads, grads, 1 - beta2)
    return grads
