"""Adadelta: updates scaled by the ratio of running mean squares of past updates and gradients.

Owns ``Adadelta`` and its rule. Must not know how parameters are gathered.
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

__all__ = ["Adadelta"]


def adadelta_rule(
    ops: ListOps,
    params: list[Tensor],
    grads: Any,
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    steps: list[Tensor],
    *,
    lr: Any,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """``s, d``: running means of ``g^2, u^2``; ``u = sqrt((d + eps) / (s + eps)) g; p -= lr u``."""
    ops.add_(steps, 1)
    if maximize:
        grads = ops.neg(grads)
    if weight_decay != 0:
        grads = ops.add(grads, params, alpha=weight_decay)
    ops.mul_(square_avgs, rho)
    ops.addcmul_(square_avgs, grads, grads, 1 - rho)
    updates = _root(ops, acc_deltas, eps)
    ops.div_(updates, _root(ops, square_avgs, eps))
    ops.mul_(updates, grads)
    ops.mul_(acc_deltas, rho)
    ops.addcmul_(acc_deltas, updates, updates, 1 - rho)
    ops.add_(params, updates, alpha=-lr)


def _root(ops: ListOps, squares: list[Tensor], eps: float) -> Any:
    shifted = ops.mul(squares, 1.0)
    ops.add_(shifted, eps)
    return ops.sqrt(shifted)


class Adadelta(RuleOptimizer):
    """Adadelta.

    Args:
        params: parameters or groups of them.
        lr: factor on the update; a one-element tensor may be changed in place between steps.
        rho: decay of the running means.
        eps: added to the mean squares, inside the roots.
        weight_decay: L2 penalty.
        foreach: False updates parameter by parameter.
        capturable: keep counters on the device, for graph capture there.
        maximize: ascend instead.
        differentiable: let autograd record the step (parameters must not be leaves).

    Source: Zeiler, "ADADELTA: an adaptive learning rate method", 2012 (arXiv 1212.5701).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_least("epsilon value", eps)
        check_least("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
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
            "square_avg": zeros_like(param),
            "acc_delta": zeros_like(param),
        }

    def _update(self, part: Part, group: Group) -> None:
        ops = list_ops(part, group)
        adadelta_rule(
            ops,
            part.params,
            part.grads,
            part.state("square_avg"),
            part.state("acc_delta"),
            part.steps(),
            lr=number(group["lr"], ops),
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
