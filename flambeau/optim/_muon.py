"""Muon: momentum whose matrix update is replaced by the nearest orthogonal one.

Owns ``Muon``, its rule and the Newton-Schulz iteration. Invariant: only matrices are updated.
Must not know how parameters are gathered.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import flambeau as fb

from ._rule import Group, Part, RuleOptimizer, State, zeros_like

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["Muon"]

MAX_NS_STEPS = 100


def muon_rule(
    param: Tensor,
    grad: Tensor,
    buffer: Tensor,
    *,
    lr: float,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    eps: float,
    ns_steps: int,
    adjust_lr_fn: str | None,
) -> None:
    """``b`` is a running mean of ``g``;  ``p = (1 - lr wd) p - rate orth(b)``."""
    buffer.lerp_(grad, 1 - momentum)
    update = grad.lerp(buffer, momentum) if nesterov else buffer
    update = orthogonalize(update, ns_coefficients, ns_steps, eps)
    param.mul_(1 - lr * weight_decay)
    param.add_(update, alpha=-lr * rate_factor(adjust_lr_fn, param.shape))


def orthogonalize(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Push all singular values towards one with a quintic Newton-Schulz iteration, in bfloat16.

    Args:
        matrix: m by n.
        coefficients: a, b, c of ``x -> a x + b (x x') x + c (x x')^2 x``.
        steps: number of iterations.
        eps: least norm to divide by.
    """
    if steps >= MAX_NS_STEPS:
        raise ValueError(f"Muon: ns_steps must be less than {MAX_NS_STEPS}, got {steps}")
    if matrix.dim() != 2:
        raise ValueError(f"Muon: expected a 2D gradient, got shape {tuple(matrix.shape)}")
    if len(coefficients) != 3:
        raise ValueError(f"Muon: ns_coefficients must be exactly 3 values, got {coefficients}")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    if tall:  # the Gram matrix is then the smaller one
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = fb.addmm(x, fb.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def rate_factor(adjust: str | None, shape: Any) -> float:
    """Factor on the rate that makes updates of differently shaped matrices comparable."""
    rows, cols = shape[:2]
    if adjust == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, cols))
    return math.sqrt(max(1.0, rows / cols))


class Muon(RuleOptimizer):
    """Muon, for the weight matrices of hidden layers.

    Args:
        params: 2D parameters or groups of them; give the others to AdamW.
        lr: learning rate.
        weight_decay: rate at which parameters shrink.
        momentum: decay of the running mean of gradients.
        nesterov: look ahead along the momentum.
        ns_coefficients: coefficients of the orthogonalising iteration.
        eps: least norm to divide by.
        ns_steps: iterations.
        adjust_lr_fn: ``"original"`` (or None) scales by the root of rows over columns,
            ``"match_rms_adamw"`` so that AdamW's rate and decay can be reused.

    Sources: Jordan, "Muon: an optimizer for hidden layers in neural networks", 2024; Liu et al.,
    "Muon is scalable for LLM training", 2025 (arXiv 2502.16982).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, fb.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with "
                        f"size: {p.size()}"
                    )

    def _new_part(self, grad: Tensor) -> Part:
        if grad.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return super()._new_part(grad)

    def _init_state(self, param: Tensor, group: Group) -> State:
        return {"momentum_buffer": zeros_like(param)}

    def _update(self, part: Part, group: Group) -> None:
        names = ("weight_decay", "momentum", "nesterov", "ns_coefficients", "eps", "ns_steps")
        hyper = {name: group[name] for name in (*names, "adjust_lr_fn")}
        for param, grad, state in zip(part.params, part.grads, part.states, strict=False):
            muon_rule(param, grad, state["momentum_buffer"], lr=float(group["lr"]), **hyper)
