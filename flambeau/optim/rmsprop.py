"""RMSprop: gradients divided by the root of their running mean square.

Owns ``RMSprop`` and its rule. Invariant: ``grad_avg`` exists where ``centered``,
``momentum_buffer`` where ``momentum > 0``. Must not know how parameters are gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._lists import ListOps
from ._rule import (
    Group,
    Part,
    RuleOptimizer,
    State,
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

__all__ = ["RMSprop"]


def rmsprop_rule(
    ops: ListOps,
    params: list[Tensor],
    grads: Any,
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    buffers: list[Tensor],
    steps: list[Tensor],
    *,
    lr: Any,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    """``s``: running mean of ``g^2`` (centred: less the mean squared); ``p -= lr g / sqrt(s)``."""
    if maximize:
        grads = ops.neg(grads)
    ops.add_(steps, 1)
    if weight_decay != 0:
        grads = ops.add(grads, params, alpha=weight_decay)
    ops.mul_(square_avgs, alpha)
    ops.addcmul_(square_avgs, grads, grads, 1 - alpha)
    if centered:
        ops.lerp_(grad_avgs, grads, 1 - alpha)
        variances = ops.mul(square_avgs, 1.0)
        ops.addcmul_(variances, grad_avgs, grad_avgs, -1)
    else:
        variances = square_avgs
    denominators = ops.sqrt(variances)
    ops.add_(denominators, eps)
    if momentum > 0:
        ops.mul_(buffers, momentum)
        ops.addcdiv_(buffers, grads, denominators)
        ops.add_(params, buffers, alpha=-lr)
    else:
        ops.addcdiv_(params, grads, denominators, -lr)


class RMSprop(RuleOptimizer):
    """RMSprop.

    Args:
        params: parameters or groups of them.
        lr: learning rate; a one-element tensor may be changed in place between steps.
        alpha: decay of the running means.
        eps: added to the denominator, outside the root.
        weight_decay: L2 penalty.
        momentum: share of the previous update that is kept.
        centered: divide by an estimate of the standard deviation.
        capturable: keep counters on the device, for graph capture there.
        foreach: False updates parameter by parameter.
        maximize: ascend instead.
        differentiable: let autograd record the step (parameters must not be leaves).

    Sources: Hinton, lecture 6 of "Neural networks for machine learning", 2012; centred: Graves,
    "Generating sequences with recurrent neural networks", 2013 (arXiv 1308.0850).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_least("epsilon value", eps)
        check_least("momentum value", momentum)
        check_least("weight_decay value", weight_decay)
        check_least("alpha value", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        defaults = {
            "momentum": 0,
            "centered": False,
            "foreach": None,
            "maximize": False,
            "differentiable": False,
            "capturable": False,
        }
        fill_groups(self, defaults)
        steps_as_tensors(self)

    def _init_state(self, param: Tensor, group: Group) -> State:
        state = {"step": new_step(param, group), "square_avg": zeros_like(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)
        return state

    def _update(self, part: Part, group: Group) -> None:
        ops = list_ops(part, group)
        rmsprop_rule(
            ops,
            part.params,
            part.grads,
            part.state("square_avg"),
            part.state("grad_avg") if group["centered"] else [],
            part.state("momentum_buffer") if group["momentum"] > 0 else [],
            part.steps(),
            lr=number(group["lr"], ops),
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            centered=group["centered"],
            maximize=group["maximize"],
        )
