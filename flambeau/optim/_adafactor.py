"""Adafactor: second moments of matrices kept as one row and one column.

Owns ``Adafactor`` and its rule. Invariant: a parameter of two or more dimensions has ``row_var``
and ``col_var`` (last two dimensions), any other has ``variance``. Must not know how parameters
are gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb

from ._rule import (
    Group,
    Part,
    RuleOptimizer,
    State,
    fill_groups,
    new_step,
    steps_as_tensors,
)

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["Adafactor"]


def adafactor_rule(
    param: Tensor,
    grad: Tensor,
    state: State,
    *,
    lr: float,
    beta2_decay: float,
    eps1: float | None,
    eps2: float,
    d: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """``u = g / sqrt(v)``, clipped to rms ``d``;  ``p -= min(lr, 1 / sqrt(t)) rms(p) u``."""
    if maximize:
        grad = -grad
    state["step"].add_(1)
    step = state["step"].item()
    if eps1 is None:
        eps1 = fb.finfo(param.dtype).eps
    weight = step**beta2_decay
    rate = min(lr, 1 / step**0.5)
    scale = max(eps2, _rms(param)) * rate
    if weight_decay != 0:
        param.mul_(1 - lr * weight_decay)
    if grad.dim() > 1:
        variance = _factored_variance(grad, state["row_var"], state["col_var"], weight, eps1)
    else:
        state["variance"].lerp_(grad.square(), weight)
        variance = state["variance"]
    update = variance.clamp(min=eps1 * eps1).rsqrt_().mul_(grad)
    param.add_(update, alpha=-scale / max(1.0, _rms(update) / d))


def _rms(x: Tensor) -> float:
    return x.norm(2).item() / x.numel() ** 0.5


def _factored_variance(
    grad: Tensor, row_var: Tensor, col_var: Tensor, weight: float, eps1: float
) -> Tensor:
    """Move both marginals of ``g^2`` by ``weight``; return their outer product over the mean."""
    for var, dim in ((row_var, -1), (col_var, -2)):
        marginal = grad.norm(dim=dim, keepdim=True).square_().div_(grad.size(dim))
        var.lerp_(marginal, weight)
    return (row_var @ col_var).div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=eps1))


class Adafactor(RuleOptimizer):
    """Adafactor, with sublinear memory for its second moments.

    Args:
        params: real parameters or groups of them.
        lr: largest relative step.
        beta2_decay: the second moments move by ``t ** beta2_decay`` at step t.
        eps: floor of the squared gradient's root (None: the dtype's epsilon) and floor of the
            parameter scale.
        d: clipping threshold of the update's root mean square.
        weight_decay: rate at which parameters shrink.
        foreach: accepted; the factored moments are per parameter.
        maximize: ascend instead.

    Source: Shazeer, Stern, "Adafactor", 2018 (arXiv 1804.04235).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, fb.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        fill_groups(self, {"foreach": None})
        steps_as_tensors(self)

    def _new_part(self, grad: Tensor) -> Part:
        if grad.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        return super()._new_part(grad)

    def _init_state(self, param: Tensor, group: Group) -> State:
        state = {"step": new_step(param, group)}
        shape = list(param.shape)
        if param.dim() > 1:
            state["row_var"] = param.new_zeros(shape[:-1] + [1])
            state["col_var"] = param.new_zeros(shape[:-2] + [1, shape[-1]])
        else:
            state["variance"] = fb.zeros_like(param, memory_format=fb.preserve_format)
        return state

    def _update(self, part: Part, group: Group) -> None:
        eps1, eps2 = group["eps"]
        for param, grad, state in zip(part.params, part.grads, part.states, strict=False):
            adafactor_rule(
                param,
                grad,
                state,
                lr=float(group["lr"]),
                beta2_decay=group["beta2_decay"],
                eps1=eps1,
                eps2=eps2,
                d=group["d"],
                weight_decay=group["weight_decay"],
                maximize=group["maximize"],
            )
