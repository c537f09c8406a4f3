"""Stochastic gradient descent, with momentum (Polyak) and Nesterov's variant of it.

Owns ``SGD`` and its rule. Invariant: a momentum buffer starts as the first gradient, undamped.
Must not know how parameters are gathered.
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
    check_fused,
    check_lr,
    fill_groups,
    list_ops,
    number,
    use_fused,
    zeros_like,
)

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["SGD"]


def sgd_rule(
    ops: ListOps,
    params: list[Tensor],
    grads: Any,
    buffers: list[Tensor],
    *,
    lr: Any,
    momentum: float,
    dampening: float,
    weight_decay: Any,
    nesterov: bool,
    maximize: bool,
    first_step: bool,
) -> None:
    """``b = momentum b + (1 - dampening) g; p -= lr b`` (or ``p -= lr (g + momentum b)``)."""
    if maximize:
        grads = ops.neg(grads)
    if not isinstance(weight_decay, (int, float)) or weight_decay != 0:
        grads = ops.add(grads, params, alpha=weight_decay)
    if momentum != 0:
        if first_step:  # the buffers are zero
            ops.add_(buffers, grads)
        else:
            ops.mul_(buffers, momentum)
            ops.add_(buffers, grads, alpha=1 - dampening)
        if nesterov:
            ahead = ops.mul(buffers, momentum)
            ops.add_(ahead, grads)
            grads = ahead
        else:
            grads = buffers
    ops.add_(params, grads, alpha=-lr)


class SGD(RuleOptimizer):
    """Stochastic gradient descent.

    Args:
        params: parameters or groups of them.
        lr: learning rate; a one-element tensor may be changed in place between steps.
        momentum: share of the previous update that is kept.
        dampening: share of the gradient that does not enter the momentum buffer.
        weight_decay: L2 penalty.
        nesterov: look ahead along the momentum; needs momentum and no dampening.
        maximize: ascend instead.
        foreach: False updates parameter by parameter.
        differentiable: let autograd record the step (parameters must not be leaves).
        fused: use the core's single-call kernel; None means where it exists.

    Source: Sutskever et al., "On the importance of initialization and momentum in deep learning",
    2013.
    """

    _sparse_grads = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, fb.Tensor):
            check_lr(lr)
        for what, value in (
            ("learning rate", lr),
            ("momentum value", momentum),
            ("weight_decay value", weight_decay),
        ):
            if value < 0.0:
                raise ValueError(f"Invalid {what}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        defaults = {
            "nesterov": False,
            "maximize": False,
            "foreach": None,
            "differentiable": False,
            "fused": None,
        }
        fill_groups(self, defaults)

    def _has_state(self, group: Group) -> bool:
        return group["momentum"] != 0

    def _init_state(self, param: Tensor, group: Group) -> State:
        return {"momentum_buffer": None}

    def _update(self, part: Part, group: Group) -> None:
        if not part.states:
            return self._step_part(part, group, [], first_step=False)
        fresh = [i for i, s in enumerate(part.states) if s.get("momentum_buffer") is None]
        if not fresh:
            return self._step_part(part, group, part.state("momentum_buffer"), first_step=False)
        for i in fresh:
            part.states[i]["momentum_buffer"] = self._new_buffer(part, i)
        old = [i for i in range(len(part.params)) if i not in set(fresh)]
        for indices, first in ((fresh, True), (old, False)):
            if indices:
                some = part.subset(indices)
                self._step_part(some, group, some.state("momentum_buffer"), first_step=first)
        return None

    @staticmethod
    def _new_buffer(part: Part, i: int) -> Tensor:
        param = part.params[i].detach()
        return zeros_like(fb.view_as_complex(param) if part.complex else param)

    @staticmethod
    def _step_part(part: Part, group: Group, buffers: list[Tensor], *, first_step: bool) -> None:
        ops = list_ops(part, group)
        hyper = {
            "lr": number(group["lr"], ops),
            "momentum": group["momentum"],
            "dampening": group["dampening"],
            "weight_decay": number(group["weight_decay"], ops),
            "nesterov": group["nesterov"],
            "maximize": group["maximize"],
            "first_step": first_step,
        }
        if use_fused(part, group):
            fb._fused_sgd_(part.params, part.grads, buffers, **hyper)
        else:
            sgd_rule(ops, part.params, part.grads, buffers, **hyper)
