"""Adam and AdamW: steps scaled by running means of the gradient and of its square.

Owns ``Adam``, ``AdamW`` and their one rule; ``fb._fused_adam_`` is the same rule as one core
call. Invariant: ``max_exp_avg_sq`` exists for every parameter of a group that ever stepped with
``amsgrad``. Must not know how parameters are gathered.
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
    check_fused,
    check_least,
    check_lr,
    fill_groups,
    list_ops,
    new_step,
    steps_as_tensors,
    use_fused,
    zeros_like,
)

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["Adam", "AdamW"]


def adam_rule(
    ops: ListOps,
    params: list[Tensor],
    grads: Any,
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    steps: list[Tensor],
    *,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> None:
    """``m, v``: running means of ``g, g^2``;  ``p -= lr m' / (sqrt(v') + eps)``, bias corrected."""
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
    if amsgrad:
        ops.maximum_(max_exp_avg_sqs, exp_avg_sqs)
    denominators = ops.sqrt(max_exp_avg_sqs if amsgrad else exp_avg_sqs)
    counts = step_values(steps)
    ops.div_(denominators, [(1 - beta2**t) ** 0.5 for t in counts])
    ops.add_(denominators, eps)
    ops.addcdiv_(params, exp_avgs, denominators, [-lr / (1 - beta1**t) for t in counts])


class Adam(RuleOptimizer):
    """Adam.

    Args:
        params: parameters or groups of them.
        lr: learning rate; a one-element tensor may be changed in place between steps.
        betas: decay of the running means of the gradient and of its square; both numbers or both
            one-element tensors.
        eps: added to the denominator.
        weight_decay: L2 penalty, or the decay rate itself where decoupled.
        amsgrad: divide by the largest second moment so far.
        foreach: False updates parameter by parameter.
        maximize: ascend instead.
        capturable: keep counters on the device, for graph capture there.
        differentiable: let autograd record the step (parameters must not be leaves).
        fused: use the core's single-call kernel; None means where it exists.
        decoupled_weight_decay: shrink the parameters instead of adding to the gradient (AdamW).

    Sources: Kingma, Ba, "Adam", 2014 (arXiv 1412.6980); Reddi et al., "On the convergence of Adam
    and beyond", 2018.
    """

    _sparse_hint = ", please consider SparseAdam instead"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_lr(lr, foreach, capturable)
        check_least("epsilon value", eps)
        check_betas(betas)
        check_least("weight_decay value", weight_decay)
        _check_tensor_betas(betas, foreach, capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        defaults = {
            "amsgrad": False,
            "maximize": False,
            "foreach": None,
            "capturable": False,
            "differentiable": False,
            "fused": None,
            "decoupled_weight_decay": False,
        }
        fill_groups(self, defaults)
        steps_as_tensors(self)

    def _rule_name(self) -> str:
        return "Adam"

    def _init_state(self, param: Tensor, group: Group) -> State:
        state = {
            "step": new_step(param, group),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)
        return state

    def _update(self, part: Part, group: Group) -> None:
        ops = list_ops(part, group)
        amsgrad, steps = group["amsgrad"], part.steps()
        tensors = (
            part.params,
            part.grads,
            part.state("exp_avg"),
            part.state("exp_avg_sq"),
            part.state("max_exp_avg_sq") if amsgrad else [],
            steps,
        )
        hyper = {**moment_options(group, ops), "amsgrad": amsgrad}
        if use_fused(part, group) and steps[0].dtype == fb.float32:
            fb._fused_adam_(*tensors, **hyper)
        else:
            adam_rule(ops, *tensors, **hyper)


class AdamW(Adam):
    """Adam with decoupled weight decay: parameters shrink by ``lr * weight_decay`` at every step.

    Arguments as for :class:`Adam`.

    Source: Loshchilov, Hutter, "Decoupled weight decay regularization", 2017 (arXiv 1711.05101).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def _check_tensor_betas(betas: tuple[Any, Any], foreach: bool | None, capturable: bool) -> None:
    tensors = [isinstance(beta, fb.Tensor) for beta in betas]
    if not any(tensors):
        return
    if not all(tensors):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if foreach and not capturable:
            raise ValueError(
                f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        if beta.numel() != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")
