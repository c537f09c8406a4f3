"""Adagrad: gradients divided by the root of the sum of all their squares.

Owns ``Adagrad``, its rule and the form for sparse gradients. Invariant: the state exists from
construction on. Must not know how parameters are gathered.
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
    check_fused,
    check_least,
    check_lr,
    fill_groups,
    list_ops,
    new_step,
    number,
    steps_as_tensors,
    use_fused,
)

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["Adagrad"]


def adagrad_rule(
    ops: ListOps,
    params: list[Tensor],
    grads: Any,
    sums: list[Tensor],
    steps: list[Tensor],
    *,
    lr: Any,
    lr_decay: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
    sparse: bool,
) -> None:
    """``s += g^2;  p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)``."""
    if maximize:
        grads = ops.neg(grads)
    ops.add_(steps, 1)
    if weight_decay != 0:
        if sparse:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        grads = ops.add(grads, params, alpha=weight_decay)
    rates = [-lr / (1 + (t - 1) * lr_decay) for t in step_values(steps)]
    if sparse:
        for args in zip(params, grads, sums, rates, strict=False):
            _sparse_update(*args, eps)
        return
    ops.addcmul_(sums, grads, grads)
    denominators = ops.sqrt(sums)
    ops.add_(denominators, eps)
    ops.addcdiv_(params, grads, denominators, rates)


def _sparse_update(param: Tensor, grad: Tensor, total: Tensor, rate: Any, eps: float) -> None:
    """The rule on the rows that ``grad`` holds; the sum is not linear in g, so coalesce first."""
    whole: Any = fb
    stored: Any = grad
    stored = stored.coalesce()
    indices, values, size = stored._indices(), stored._values(), stored.size()

    def sparse(entries: Tensor) -> Tensor:
        return whole.sparse_coo_tensor(indices, entries, size)

    total.add_(sparse(values.pow(2)))
    kept: Any = total
    scale = kept.sparse_mask(stored)._values().sqrt().add_(eps)
    param.add_(sparse(values / scale), alpha=rate)


class Adagrad(RuleOptimizer):
    """Adagrad.

    Args:
        params: parameters or groups of them; gradients may be sparse.
        lr: learning rate; a one-element tensor may be changed in place between steps.
        lr_decay: the rate falls as ``lr / (1 + (t - 1) * lr_decay)``.
        weight_decay: L2 penalty.
        initial_accumulator_value: start of the sums of squares.
        eps: added to the denominator.
        foreach: False updates parameter by parameter.
        maximize: ascend instead.
        differentiable: let autograd record the step (parameters must not be leaves).
        fused: accepted; the multi-tensor form is used.

    Source: Duchi, Hazan, Singer, "Adaptive subgradient methods", JMLR 12, 2011.
    """

    _sparse_grads = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_least("lr_decay value", lr_decay)
        check_least("weight_decay value", weight_decay)
        check_least("initial_accumulator_value value", initial_accumulator_value)
        check_least("epsilon value", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._init_state(p, group))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        fill_groups(
            self, {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
        )
        steps_as_tensors(self)

    def share_memory(self) -> None:
        """Move the sums to shared memory, for training from several processes."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _init_state(self, param: Tensor, group: Group) -> State:
        start = group["initial_accumulator_value"]
        total = fb.full_like(
            param.detach(),
            complex(start, start) if param.is_complex() else start,
            memory_format=fb.preserve_format,
        )
        return {"step": new_step(param, group), "sum": total}

    def _update(self, part: Part, group: Group) -> None:
        ops = list_ops(part, group)
        use_fused(part, group)  # for its checks: there is no fused form
        adagrad_rule(
            ops,
            part.params,
            part.grads,
            part.state("sum"),
            part.steps(),
            lr=number(group["lr"], ops),
            lr_decay=group["lr_decay"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
            sparse=part.sparse,
        )
