"""Rprop: steps of adaptive length along the sign of each gradient entry.

Owns ``Rprop`` and its rule. Invariant: an entry whose gradient changed sign does not move, and
its stored gradient is zero, so that the step after it neither grows nor shrinks. Must not know
how parameters are gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb

from ._lists import ListOps
from ._rule import (
    Group,
    Part,
    RuleOptimizer,
    State,
    check_lr,
    fill_groups,
    list_ops,
    new_step,
    steps_as_tensors,
    zeros_like,
)

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["Rprop"]


def rprop_rule(
    ops: ListOps,
    params: list[Tensor],
    grads: Any,
    previous: list[Tensor],
    lengths: list[Tensor],
    steps: list[Tensor],
    *,
    shrink: float,
    grow: float,
    shortest: float,
    longest: float,
    maximize: bool,
) -> None:
    """``s`` grows while the sign of ``g`` holds and shrinks where it flips;  ``p -= s sign(g)``."""
    if maximize:
        grads = ops.neg(grads)
    ops.add_(steps, 1)
    agreement = [product.sign() for product in ops.mul(grads, previous)]
    flipped = [a < 0 for a in agreement]
    factors = [
        a.masked_fill(a > 0, grow).masked_fill(f, shrink).masked_fill(a == 0, 1)
        for a, f in zip(agreement, flipped, strict=False)
    ]
    ops.mul_(lengths, factors)
    for length in lengths:
        length.copy_(length.clamp(shortest, longest))
    moving = [g.masked_fill(f, 0) for g, f in zip(grads, flipped, strict=False)]
    ops.addcmul_(params, [g.sign() for g in moving], lengths, -1)
    ops.copy_(previous, moving)


class Rprop(RuleOptimizer):
    """Resilient backpropagation, for full-batch gradients.

    Args:
        params: parameters or groups of them.
        lr: length of the first step of every entry.
        etas: factors by which a step shrinks and grows.
        step_sizes: shortest and longest step.
        capturable: keep counters on the device, for graph capture there.
        foreach: False updates parameter by parameter.
        maximize: ascend instead.
        differentiable: let autograd record the step (parameters must not be leaves).

    Source: Riedmiller, Braun, "A direct adaptive method for faster backpropagation learning", 1993.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
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
        lr = float(group["lr"])
        length = fb.full_like(param.detach(), complex(lr, lr) if param.is_complex() else lr)
        return {"step": new_step(param, group), "prev": zeros_like(param), "step_size": length}

    def _update(self, part: Part, group: Group) -> None:
        shrink, grow = group["etas"]
        shortest, longest = group["step_sizes"]
        rprop_rule(
            list_ops(part, group),
            part.params,
            part.grads,
            part.state("prev"),
            part.state("step_size"),
            part.steps(),
            shrink=shrink,
            grow=grow,
            shortest=shortest,
            longest=longest,
            maximize=group["maximize"],
        )
