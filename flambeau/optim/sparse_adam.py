"""SparseAdam: Adam that touches only the entries its sparse gradient holds.

Owns ``SparseAdam`` and its rule. Invariant: moments of entries without gradient neither decay nor
move their parameter. Must not know how parameters are gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb

from ._rule import (
    Group,
    Part,
    RuleOptimizer,
    State,
    check_betas,
    fill_groups,
    zeros_like,
)

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["SparseAdam"]


def sparse_adam_rule(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    *,
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    maximize: bool,
) -> None:
    """Adam's rule on the stored entries of ``grad``; the moments are dense, updated in place."""
    # The second moment is not linear in the gradient: repeated indices must be summed first.
    stored: Any = -grad if maximize else grad
    stored = stored.coalesce()
    values = stored._values()
    if values.numel() == 0:
        return
    indices, size = stored._indices(), stored.size()
    whole: Any = fb

    def add_entries(target: Tensor, entries: Tensor) -> None:
        target.add_(whole.sparse_coo_tensor(indices, entries, size, dtype=target.dtype))

    def move_towards(target: Any, goal: Tensor, weight: float) -> Tensor:
        old = target.sparse_mask(stored)._values()
        change = (goal - old) * weight
        add_entries(target, change)
        return old + change

    mean = move_towards(exp_avg, values, 1 - beta1)
    square = move_towards(exp_avg_sq, values * values, 1 - beta2)
    rate = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
    add_entries(param, mean / (square.sqrt() + eps) * -rate)


class SparseAdam(RuleOptimizer):
    """Adam for sparse gradients, such as those of ``Embedding(sparse=True)``.

    Args:
        params: dense parameters or groups of them.
        lr: learning rate.
        betas: decay of the running means of the gradient and of its square.
        eps: added to the denominator.
        maximize: ascend instead.
    """

    _sparse_grads = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, fb.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        self._refuse(
            lambda p: p.is_sparse,
            "Sparse params at indices {}: SparseAdam requires dense parameter tensors",
        )
        self._refuse(
            lambda p: p.is_complex(),
            "Complex params at indices {}: SparseAdam does not support complex parameters",
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        fill_groups(self, {"maximize": False})

    def _refuse(self, unfit: Any, message: str) -> None:
        found = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, p in enumerate(group["params"])
            if unfit(p)
        ]
        if found:
            raise ValueError(message.format(found))

    def _new_part(self, grad: Tensor) -> Part:
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        return super()._new_part(grad)

    def _init_state(self, param: Tensor, group: Group) -> State:
        return {"step": 0, "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}

    def _update(self, part: Part, group: Group) -> None:
        beta1, beta2 = group["betas"]
        for param, grad, state in zip(part.params, part.grads, part.states, strict=False):
            state["step"] += 1
            sparse_adam_rule(
                param,
                grad,
                state["exp_avg"],
                state["exp_avg_sq"],
                step=int(state["step"]),
                lr=float(group["lr"]),
                beta1=beta1,
                beta2=beta2,
                eps=group["eps"],
                maximize=group["maximize"],
            )
