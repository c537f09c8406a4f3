"""Adamax: Adam's first moment divided by a decaying maximum of gradient magnitudes.

Owns ``Adamax`` and its rule. Must not know how parameters are gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._lists import ListOps, step_values
from ._rule import (
    Group,
    Part,
    RuleOptimizer,
    State,
    check_betas,
    check_least,
    check_lr,
    fill_groups,
    list_ops,
    new_step,
    number,
    steps_as_tensors,
    zeros_like,
)

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["Adamax"]


def adamax_rule(
    ops: ListOps,
    params: list[Tensor],
    grads: Any,
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    steps: list[Tensor],
    *,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """``m`` is a running mean of ``g``, ``u = max(beta2 u, |g| + eps)``;  ``p -= lr m' / u``."""
    ops.add_(steps, 1)
    if maximize:
        grads = ops.neg(grads)
    if weight_decay != 0:
        grads = ops.add(grads, params, alpha=weight_decay)
    ops.lerp_(exp_avgs, grads, 1 - beta1)
    magnitudes = ops.abs(grads)
    ops.add_(magnitudes, eps)
    ops.mul_(exp_infs, beta2)
    ops.maximum_(exp_infs, magnitudes)
    rates = [-lr / (1 - beta1**t) for t in step_values(steps)]
    ops.addcdiv_(params, exp_avgs, exp_infs, rates)


class Adamax(RuleOptimizer):
    """Adamax, Adam in the infinity norm.

    Args:
        params: parameters or groups of them.
        lr: learning rate; a one-element tensor may be changed in place between steps.
        betas: decay of the mean of gradients and of the maximum.
        eps: added to the magnitudes.
        weight_decay: L2 penalty.
        foreach: False updates parameter by parameter.
        maximize: ascend instead.
        differentiable: let autograd record the step (parameters must not be leaves).
        capturable: keep counters on the device, for graph capture there.

    Source: Kingma, Ba, "Adam", 2014, section 7 (arXiv 1412.6980).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_least("epsilon value", eps)
        check_betas(betas)
        check_least("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        fill_groups(
            self, {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
        )
        steps_as_tensors(self)

    def _init_state(self, param: Tensor, group: Group) -> State:
        return {
            "step": new_step(param, group),
            "exp_avg": zeros_like(param),
            "exp_inf": zeros_like(param),
        }

    def _update(self, part: Part, group: Group) -> None:
        ops = list_ops(part, group)
        beta1, beta2 = group["betas"]
        adamax_rule(
            ops,
            part.params,
            part.grads,
            part.state("exp_avg"),
            part.state("exp_inf"),
            part.steps(),
            lr=number(group["lr"], ops),
            beta1=number(beta1, ops),
            beta2=number(beta2, ops),
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
