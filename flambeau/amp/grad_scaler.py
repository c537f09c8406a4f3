"""``GradScaler``: scale the loss so that small gradients survive, and undo it before the step.

Invariant: between two ``update`` calls an optimiser is unscaled once and stepped once; a step
whose gradients hold an infinity or NaN is skipped and lowers the scale. Must not know any
optimiser.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau import Tensor
    from flambeau.optim import Optimizer

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """Where an optimiser is in its iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses and unscales gradients, with a scale that adapts.

    Args:
        device: device type whose gradients are scaled.
        init_scale: the first scale.
        growth_factor: factor on the scale after ``growth_interval`` good steps.
        backoff_factor: factor after a bad one.
        growth_interval: good steps in a row that make the scale grow.
        enabled: False turns ``scale``, ``unscale_`` and ``update`` into no-ops.

    Source: Micikevicius et al., "Mixed precision training", 2017 (arXiv 1710.03740).
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not fb.cuda.is_available():
            warnings.warn(
                "GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._fresh_states()

    def _fresh_states(self) -> None:
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    def _lazy_init_scale_growth_tracker(self, device: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = fb.full((), self._init_scale, dtype=fb.float32, device=device)
        self._growth_tracker = fb.full((), self._init_growth_tracker, dtype=fb.int32, device=device)

    def _check_scale_growth_tracker(self, name: str) -> tuple[Tensor, Tensor]:
        hint = (
            "This may indicate your script did not use scaler.scale(loss or outputs) earlier in "
            "the iteration."
        )
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  {hint}")
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {name} but _growth_tracker is None.  {hint}")
        return self._scale, self._growth_tracker

    # ---- an iteration -----------------------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """Multiply a tensor, or each of a (nested) iterable of tensors, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, fb.Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale.to(device=outputs.device)  # type: ignore[union-attr]
        if isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes)):
            scaled = [self.scale(output) for output in outputs]
            if isinstance(outputs, tuple) and hasattr(outputs, "_fields"):
                return type(outputs)(*scaled)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else iter(scaled)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimiser's parameters by the scale, e.g. before clipping.

        Raises:
            RuntimeError: it was done before, since the last ``update``; or the step was.
            ValueError: a gradient is float16, where dividing would lose what scaling gained.
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inv_scale = self._scale.double().reciprocal().float()  # type: ignore[union-attr]
        found_inf = fb.full((), 0.0, dtype=fb.float32, device=self._scale.device)  # type: ignore[union-attr]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, found_inf, False)
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(
        self, optimizer: Optimizer, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiply gradients by ``inv_scale``; return, per device, one where any is not finite."""
        kinds: dict[Any, list[Tensor]] = defaultdict(list)
        with fb.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    if not allow_fp16 and param.grad.dtype == fb.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    values = _entries(param)
                    kinds[values.device, values.dtype].append(values)
            found: dict[Any, Tensor] = {}
            for (device, _), grads in kinds.items():
                bad = found.setdefault(device, found_inf.to(device, copy=True))
                for grad in grads:
                    finite = fb.isfinite(grad).all()
                    bad.copy_(fb.maximum(bad, (~finite).to(bad.dtype)))
                factor = inv_scale.item()
                if factor != 1.0:
                    fb._foreach_mul_(grads, factor)
        return found

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscale if that was not done, and step unless a gradient is infinite or NaN.

        Returns:
            what ``optimizer.step(*args, **kwargs)`` returned, or None where it was skipped.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(
        self, optimizer: Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if any(bad.item() for bad in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what this iteration's steps found, or set it.

        Args:
            new_scale: a number or a one-element float32 tensor.
        """
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            self._set_scale(scale, new_scale)
        else:
            found = [
                bad
                for state in self._per_optimizer_states.values()
                for bad in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(scale, tracker, any(bad.item() for bad in found))
        self._fresh_states()

    @staticmethod
    def _set_scale(scale: Tensor, new: float | Tensor) -> None:
        if isinstance(new, fb.Tensor):
            if new.numel() != 1 or new.requires_grad or new.dtype != fb.float32:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                    "torch.FloatTensor with requires_grad=False."
                )
            new = new.item()
        scale.fill_(new)

    def _adapt(self, scale: Tensor, tracker: Tensor, bad: bool) -> None:
        if bad:
            scale.mul_(self._backoff_factor)
            tracker.zero_()
            return
        good = int(tracker.item()) + 1
        if good < self._growth_interval:
            tracker.fill_(good)
            return
        grown = scale * self._growth_factor
        if fb.isfinite(grown).item():
            scale.copy_(grown)
        tracker.zero_()

    # ---- settings, state --------------------------------------------------------------------

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale as a number; 1 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Factor of growth."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor of growth."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Factor after a bad step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor after a bad step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Good steps before the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the good steps before the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        if self._growth_tracker is None:
            return self._init_growth_tracker
        return int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether scaling takes place."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and counter; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` returned.

        Raises:
            RuntimeError: it came from a disabled scaler.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state.update(
                _init_scale=self.get_scale(),
                _init_growth_tracker=self._get_growth_tracker(),
                _scale=None,
                _growth_tracker=None,
            )
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer: Optimizer) -> dict[Any, Tensor]:
        """Look for infinities without changing the gradients."""
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = fb.full((), 1.0, dtype=fb.float32, device=scale.device)
        none = fb.full((), 0.0, dtype=fb.float32, device=scale.device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, none, True)
        return state["found_inf_per_device"]

    def _found_inf_per_device(self, optimizer: Optimizer) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]


def _entries(param: Tensor) -> Tensor:
    """The numbers a gradient holds. Repeated float16 indices may overflow only when summed."""
    grad: Any = param.grad
    if not grad.is_sparse:
        return grad
    if grad.dtype == fb.float16:
        param.grad = grad = grad.coalesce()
    return grad._values()
