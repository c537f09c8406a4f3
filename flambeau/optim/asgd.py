"""Averaged SGD: gradient descent that also keeps the mean of its iterates.

Owns ``ASGD`` and its rule. Invariant: ``eta`` and ``mu`` hold the rate and the averaging weight
of the next step. Must not know how parameters are gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb

from ._lists import ListOps, step_values
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
    scalar_dtype,
    steps_as_tensors,
    zeros_like,
)

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["ASGD"]


def asgd_rule(
    ops: ListOps,
    params: list[Tensor],
    grads: Any,
    averages: list[Tensor],
    etas: list[Tensor],
    mus: list[Tensor],
    steps: list[Tensor],
    *,
    lr: Any,
    lambd: float,
    alpha: float,
    t0: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """``p = (1 - lambd eta) p - eta g;  a += mu (p - a)``; eta decays, mu ends as 1 / (t - t0)."""
    if maximize:
        grads = ops.neg(grads)
    ops.add_(steps, 1)
    if weight_decay != 0:
        grads = ops.add(grads, params, alpha=weight_decay)
    rates, weights = step_values(etas), step_values(mus)
    ops.mul_(params, [1 - lambd * eta for eta in rates])
    ops.add_(params, ops.mul(grads, [-eta for eta in rates]))

    following = [i for i, mu in enumerate(weights) if mu == 1]
    averaging = [i for i, mu in enumerate(weights) if mu != 1]
    if following:
        ops.copy_([averages[i] for i in following], [params[i] for i in following])
    if averaging:
        means = [averages[i] for i in averaging]
        moves = ops.sub([params[i] for i in averaging], means)
        ops.mul_(moves, [weights[i] for i in averaging])
        ops.add_(means, moves)

    for t, eta, mu in zip(step_values(steps), etas, mus, strict=False):
        eta.copy_(fb.as_tensor(lr / ((1 + lambd * lr * t) ** alpha)))
        mu.fill_(1 / max(1, t - t0))


class ASGD(RuleOptimizer):
    """Averaged stochastic gradient descent.

    Args:
        params: parameters or groups of them.
        lr: learning rate; a one-element tensor may be changed in place between steps.
        lambd: decay of the parameters and of the rate.
        alpha: power of the rate's decay.
        t0: step after which averaging starts.
        weight_decay: L2 penalty.
        foreach: False updates parameter by parameter.
        maximize: ascend instead.
        differentiable: let autograd record the step (parameters must not be leaves).
        capturable: keep counters on the device, for graph capture there.

    Source: Polyak, Juditsky, "Acceleration of stochastic approximation by averaging", 1992.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_least("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
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
        steps_as_tensors(self, ("step", "eta", "mu"))

    def _init_state(self, param: Tensor, group: Group) -> State:
        lr = group["lr"]
        return {
            "step": new_step(param, group),
            "eta": fb.tensor(float(lr), dtype=scalar_dtype()),
            "mu": fb.tensor(1.0, dtype=scalar_dtype()),
            "ax": zeros_like(param),
        }

    def _update(self, part: Part, group: Group) -> None:
        ops = list_ops(part, group, "params, mus, etas, and state_steps")
        asgd_rule(
            ops,
            part.params,
            part.grads,
            part.state("ax"),
            [s["eta"] for s in part.states],
            [s["mu"] for s in part.states],
            part.steps(),
            lr=number(group["lr"], ops),
            lambd=group["lambd"],
            alpha=group["alpha"],
            t0=group["t0"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
