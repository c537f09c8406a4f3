"""NAdam: Adam whose first moment looks one step ahead, with a momentum that warms up.

Owns ``NAdam`` and its rule. Invariant: ``mu_product`` is the product of all momenta used so far.
Must not know how parameters are gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb

from ._lists import ListOps, step_values
from ._moments import advance_moments, moment_options
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
    scalar_dtype,
    steps_as_tensors,
    zeros_like,
)

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["NAdam"]


def nadam_rule(
    ops: ListOps,
    params: list[Tensor],
    grads: Any,
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    steps: list[Tensor],
    *,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: float,
    weight_decay: float,
    momentum_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    """Adam's moments; the update mixes gradient and mean by the momenta of this and next step."""
    grads = advance_moments(
        ops,
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        steps,
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        weight_decay=weight_decay,
        decoupled=decoupled,
        maximize=maximize,
    )
    counts = step_values(steps)
    denominators = ops.sqrt(exp_avg_sqs)
    ops.div_(denominators, [(1 - beta2**t) ** 0.5 for t in counts])
    ops.add_(denominators, eps)

    def momentum(t: float) -> Any:
        return beta1 * (1.0 - 0.5 * 0.96 ** (t * momentum_decay))

    now = [momentum(t) for t in counts]
    ahead = [momentum(t + 1) for t in counts]
    ops.mul_(mu_products, now)
    products = step_values(mu_products)
    on_grad = [-lr * (1.0 - m) / (1.0 - p) for m, p in zip(now, products, strict=False)]
    on_mean = [-lr * m / (1.0 - p * m) for m, p in zip(ahead, products, strict=False)]
    ops.addcdiv_(params, grads, denominators, on_grad)
    ops.addcdiv_(params, exp_avgs, denominators, on_mean)


class NAdam(RuleOptimizer):
    """Adam with Nesterov momentum.

    Args:
        params: parameters or groups of them.
        lr: learning rate; a one-element tensor may be changed in place between steps.
        betas: decay of the running means of the gradient and of its square.
        eps: added to the denominator.
        weight_decay: L2 penalty, or the decay rate itself where decoupled.
        momentum_decay: how fast the momentum warms up to ``betas[0]``.
        decoupled_weight_decay: shrink the parameters instead of adding to the gradient.
        foreach: False updates parameter by parameter.
        maximize: ascend instead.
        capturable: keep counters on the device, for graph capture there.
        differentiable: let autograd record the step (parameters must not be leaves).

    Source: Dozat, "Incorporating Nesterov momentum into Adam", 2016.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_least("epsilon value", eps)
        check_betas(betas)
        check_least("weight_decay value", weight_decay)
        check_least("momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        defaults = {
            "maximize": False,
            "foreach": None,
            "capturable": False,
            "differentiable": False,
            "decoupled_weight_decay": False,
        }
        fill_groups(self, defaults)
        steps_as_tensors(self, ("step", "mu_product"))

    def _init_state(self, param: Tensor, group: Group) -> State:
        return {
            "step": new_step(param, group),
            "mu_product": fb.tensor(1.0, dtype=scalar_dtype()),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }

    def _update(self, part: Part, group: Group) -> None:
        ops = list_ops(part, group, "params, mu_products and state_steps")
        nadam_rule(
            ops,
            part.params,
            part.grads,
            part.state("exp_avg"),
            part.state("exp_avg_sq"),
            [s["mu_product"] for s in part.states],
            part.steps(),
            momentum_decay=group["momentum_decay"],
            **moment_options(group, ops),
        )
