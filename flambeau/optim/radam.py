"""RAdam: Adam that waits, as momentum descent, until its second moment can be trusted.

Owns ``RAdam`` and its rule. Invariant: the adaptive form is used from the step on where the
variance of the second moment is finite. Must not know how parameters are gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    steps_as_tensors,
    zeros_like,
)

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["RAdam"]


def radam_rule(
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
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    """``p -= lr m' r / (sqrt(v') + eps)``; while r is undefined ``p -= lr m'``."""
    advance_moments(
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
    scales = [_rectified_scale(t, beta2) for t in counts]
    rates = [-lr / (1 - beta1**t) for t in counts]
    early = [i for i, scale in enumerate(scales) if scale is None]
    late = [i for i, scale in enumerate(scales) if scale is not None]
    if early:
        steps_taken = ops.mul([exp_avgs[i] for i in early], [rates[i] for i in early])
        ops.add_([params[i] for i in early], steps_taken)
    if late:
        denominators = ops.sqrt([exp_avg_sqs[i] for i in late])
        ops.add_(denominators, eps)
        ops.addcdiv_(
            [params[i] for i in late],
            [exp_avgs[i] for i in late],
            denominators,
            [rates[i] * scales[i] for i in late],
        )


def _rectified_scale(t: float, beta2: Any) -> Any:
    """Rectification times the root of the second moment's bias correction; None while undefined."""
    longest = 2 / (1 - beta2) - 1
    correction = 1 - beta2**t
    length = longest - 2 * t * beta2**t / correction
    if length <= 5.0:
        return None
    variance_ratio = (
        (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    )
    return (variance_ratio * correction) ** 0.5


class RAdam(RuleOptimizer):
    """Rectified Adam.

    Args:
        params: parameters or groups of them.
        lr: learning rate; a one-element tensor may be changed in place between steps.
        betas: decay of the running means of the gradient and of its square.
        eps: added to the denominator.
        weight_decay: L2 penalty, or the decay rate itself where decoupled.
        decoupled_weight_decay: shrink the parameters instead of adding to the gradient.
        foreach: False updates parameter by parameter.
        maximize: ascend instead.
        capturable: keep counters on the device, for graph capture there.
        differentiable: let autograd record the step (parameters must not be leaves).

    Source: Liu et al., "On the variance of the adaptive learning rate and beyond", 2019
    (arXiv 1908.03265).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
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
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        defaults = {
            "foreach": None,
            "maximize": False,
            "differentiable": False,
            "decoupled_weight_decay": False,
            "capturable": False,
        }
        fill_groups(self, defaults)
        steps_as_tensors(self)

    def _init_state(self, param: Tensor, group: Group) -> State:
        return {
            "step": new_step(param, group),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }

    def _update(self, part: Part, group: Group) -> None:
        ops = list_ops(part, group)
        radam_rule(
            ops,
            part.params,
            part.grads,
            part.state("exp_avg"),
            part.state("exp_avg_sq"),
            part.steps(),
            **moment_options(group, ops),
        )
