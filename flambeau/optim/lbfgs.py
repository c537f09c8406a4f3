"""L-BFGS: quasi-Newton directions from the last few changes of point and gradient.

Owns ``LBFGS``. All parameters are one flat real vector, and the state of the whole belongs to the
first parameter. Invariant: ``old_dirs`` (gradient changes), ``old_stps`` (moves) and ``ro`` have
equal lengths. The line search is in ``_line_search``.

Source: Nocedal, Wright, "Numerical Optimization", 2nd edition, algorithms 7.4 and 7.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau as fb

from ._line_search import Point, strong_wolfe
from ._rule import as_real
from .optimizer import Optimizer

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import ParamsT

__all__ = ["LBFGS"]

_MIN_CURVATURE = 1e-10


# What PyTorch writes at the end of a step: so stand the keys of a first step's state in files.
_LAST_KEYS = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    """Limited-memory BFGS. ``step`` needs a closure, which it calls several times.

    Args:
        params: parameters, in a single group.
        lr: length of a step without line search, and first trial with it.
        max_iter: iterations per step.
        max_eval: evaluations of the closure per step; None means ``max_iter * 5 // 4``.
        tolerance_grad: stop where no gradient entry is larger.
        tolerance_change: stop where neither the point nor the loss moves by more.
        history_size: pairs that approximate the curvature.
        line_search_fn: None or ``"strong_wolfe"``.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if isinstance(lr, fb.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_params": self._params}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Run up to ``max_iter`` iterations.

        Args:
            closure: clears the gradients, computes loss and gradients, returns the loss.

        Returns:
            the loss at the start.
        """
        state = self.state[self._params[0]]
        first = "d" not in state
        with fb.no_grad():
            loss = self._minimize(fb.enable_grad()(closure))
        for name in _LAST_KEYS if first and "d" in state else ():
            state[name] = state.pop(name)
        return loss

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, grad = float(first_loss), self._flat_grad()
        evals = 1
        state["func_evals"] += 1
        if _largest(grad) <= group["tolerance_grad"]:
            return first_loss

        t = state.get("t")
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, grad, group["history_size"])
            state["d"], state["prev_flat_grad"], state["prev_loss"] = direction, grad, loss
            slope = grad.dot(direction)
            lr = group["lr"]
            lr = float(lr) if isinstance(lr, fb.Tensor) else lr
            t = min(1.0, float(1.0 / grad.abs().sum())) * lr if state["n_iter"] == 1 else lr
            state["t"] = t
            if slope > -group["tolerance_change"]:
                break
            start = Point(0.0, loss, grad, slope)
            point, used = self._move(closure, start, direction, t, group, n == group["max_iter"])
            t, loss, grad = point.t, point.loss, point.grad
            state["t"] = t
            evals += used
            state["func_evals"] += used
            if (
                evals >= group["max_eval"]
                or _largest(grad) <= group["tolerance_grad"]
                or _largest(direction) * t <= group["tolerance_change"]
                or abs(loss - state["prev_loss"]) < group["tolerance_change"]
            ):
                break
        return first_loss

    # ---- directions -------------------------------------------------------------------------

    def _direction(self, state: dict[str, Any], grad: Tensor, history: int) -> Tensor:
        """Minus the approximate inverse Hessian times the gradient (two-loop recursion)."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        changes, moves, ro = state["old_dirs"], state["old_stps"], state["ro"]
        change = grad - state["prev_flat_grad"]
        move = state["d"] * state["t"]
        curvature = change.dot(move)  # scalars of the recursion round as the parameters' dtype does
        if float(curvature) > _MIN_CURVATURE:
            if len(changes) == history:
                for kept in (changes, moves, ro):
                    kept.pop(0)
            changes.append(change)
            moves.append(move)
            ro.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        weights = state["al"] = state.get("al") or [None] * history
        r = grad.neg()
        for i in reversed(range(len(changes))):
            weights[i] = moves[i].dot(r) * ro[i]
            r.add_(changes[i], alpha=-float(weights[i]))
        r.mul_(state["H_diag"])
        for i in range(len(changes)):
            r.add_(moves[i], alpha=float(weights[i] - changes[i].dot(r) * ro[i]))
        return r

    # ---- moves ------------------------------------------------------------------------------

    def _move(
        self,
        closure: Callable[[], Any],
        start: Point,
        direction: Tensor,
        t: float,
        group: dict[str, Any],
        last: bool,
    ) -> tuple[Point, int]:
        """Go along ``direction``; return where we are and how many evaluations it took."""
        search = group["line_search_fn"]
        if search is None:
            self._add(t, direction)
            if last:  # nobody will look at the gradient there
                return start._replace(t=t), 0
            return Point(t, float(closure()), self._flat_grad(), 0.0), 1
        if search != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        origin = [p.clone(memory_format=fb.contiguous_format) for p in self._params]

        def evaluate(length: Any) -> Point:
            self._add(length, direction)
            loss, grad = float(closure()), self._flat_grad()
            for p, at in zip(self._params, origin, strict=False):
                p.copy_(at)
            return Point(length, loss, grad, grad.dot(direction))

        point, used = strong_wolfe(evaluate, start, t, _largest(direction))
        self._add(point.t, direction)
        return point, used

    def _flat_grad(self) -> Tensor:
        """All gradients as one real vector; zeros where there is none."""
        pieces = []
        for p in self._params:
            grad = p.grad
            if grad is None:
                grad = fb.zeros_like(p)
            elif grad.is_sparse:
                grad = grad.to_dense()
            pieces.append(as_real(grad).reshape(-1))
        return fb.cat(pieces, 0)

    def _add(self, t: Any, direction: Tensor) -> None:
        offset = 0
        for p in self._params:
            target = as_real(p)
            count = target.numel()
            piece = direction[offset : offset + count]
            target.add_(piece.reshape(target.shape), alpha=float(t))
            offset += count


def _largest(x: Tensor) -> float:
    return float(x.abs().max())
