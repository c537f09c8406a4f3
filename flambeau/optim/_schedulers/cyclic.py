"""Schedules that go up and down: cycles, one cycle, cosine with restarts.

Invariant: a schedule that cycles momentum writes ``momentum``, or the first of ``betas``,
whichever the optimiser has. Must not know other schedules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal

from ..optimizer import Optimizer
from .base import (
    LRScheduler,
    check_optimizer,
    per_group,
    set_value,
)


def _find_momentum(optimizer: Optimizer) -> bool:
    """Whether the momentum is ``betas[0]`` rather than ``momentum``."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    return "betas" in optimizer.defaults


def _set_momentum(group: dict[str, Any], value: float, use_beta1: bool) -> None:
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """The rate runs between two bounds in cycles of constant length.

    Args:
        optimizer: the optimiser.
        base_lr: lower bound, or one per group.
        max_lr: upper bound, or one per group.
        step_size_up: steps of the rising half.
        step_size_down: steps of the falling half; None means as many.
        mode: ``"triangular"``, ``"triangular2"`` (halved in each cycle) or ``"exp_range"``.
        gamma: factor per step of ``"exp_range"``.
        scale_fn: own factor on the height; replaces ``mode``.
        scale_mode: what ``scale_fn`` is a function of, ``"cycle"`` or ``"iterations"``.
        cycle_momentum: run the momentum the other way between its bounds.
        base_momentum: lower bound of the momentum, or one per group.
        max_momentum: upper bound of the momentum, or one per group.
        last_epoch: steps already taken.

    Source: Smith, "Cyclical learning rates for training neural networks", 2015 (arXiv 1506.01186).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = check_optimizer(optimizer)
        base_lrs = per_group("base_lr", base_lr, optimizer)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=False):
                set_value(group, "lr", lr)
        self.max_lrs = per_group("max_lr", max_lr, optimizer)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _find_momentum(optimizer)
            self.base_momentums = per_group("base_momentum", base_momentum, optimizer)
            self.max_momentums = per_group("max_momentum", max_momentum, optimizer)
            if last_epoch == -1:
                self._start_momentum()
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _start_momentum(self) -> None:
        groups = self.optimizer.param_groups
        for high, low, group in zip(self.max_momentums, self.base_momentums, groups, strict=False):
            _set_momentum(group, high, self.use_beta1)
            group["max_momentum"] = high
            group["base_momentum"] = low

    def scale_fn(self, x: float) -> float:
        """Factor on the height of a cycle."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        if self.mode == "triangular2":
            return 1 / 2.0 ** (x - 1)
        return self.gamma**x

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        if x <= self.step_ratio:
            height = x / self.step_ratio
        else:
            height = (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=False
            )
            for low, high, group in bounds:
                _set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        return [
            base + (top - base) * height * scale
            for base, top in zip(self.base_lrs, self.max_lrs, strict=False)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; of an own ``scale_fn``, its attributes."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        plain = custom is None or isinstance(custom, FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(getattr(custom, "__dict__", {}))
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` returned; the ``scale_fn`` itself stays."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class CosineAnnealingWarmRestarts(LRScheduler):
    """The rate falls along half a cosine and restarts, in periods that may grow.

    Args:
        optimizer: the optimiser.
        T_0: steps of the first period.
        T_mult: factor from one period to the next.
        eta_min: least rate.
        last_epoch: steps already taken.

    Source: Loshchilov, Hutter, "SGDR", 2016 (arXiv 1608.03983).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next step, or to ``epoch``, fractional perhaps (epoch + batch / batches)."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=False):
            set_value(group, "lr", lr)
        self._last_lr = self._present()

    def _jump(self, epoch: float) -> None:
        """Find the period that holds ``epoch`` and the place in it."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_cur, self.T_i = epoch, self.T_0
        elif self.T_mult == 1:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
        else:
            growth = self.T_mult - 1
            n = int(math.log(epoch / self.T_0 * growth + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / growth
            self.T_i = self.T_0 * self.T_mult**n


def _anneal(kind: str, start: float, end: float, progress: float) -> float:
    if kind == "cos":
        return end + (start - end) / 2.0 * (math.cos(math.pi * progress) + 1)
    return (end - start) * progress + start


class OneCycleLR(LRScheduler):
    """The rate rises to ``max_lr`` and falls far below its start; momentum goes the other way.

    Args:
        optimizer: the optimiser.
        max_lr: the peak, or one per group.
        total_steps: steps of the cycle; or give both of the next two.
        epochs: number of epochs.
        steps_per_epoch: steps in each.
        pct_start: share of the cycle that rises.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: also run the momentum.
        base_momentum: its value at the peak of the rate, or one per group.
        max_momentum: its value at both ends, or one per group.
        div_factor: ``max_lr`` over the first rate.
        final_div_factor: the first rate over the last.
        three_phase: fall back to the first rate as fast as it rose, then to the last.
        last_epoch: steps already taken.

    Source: Smith, Topin, "Super-convergence", 2017 (arXiv 1708.07120).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = check_optimizer(optimizer)
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        peaks = per_group("max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for peak, group in zip(peaks, optimizer.param_groups, strict=False):
                group["initial_lr"] = peak / div_factor
                group["max_lr"] = peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _find_momentum(optimizer)
            high = per_group("max_momentum", max_momentum, optimizer)
            low = per_group("base_momentum", base_momentum, optimizer)
            if last_epoch == -1:
                for top, bottom, group in zip(high, low, optimizer.param_groups, strict=False):
                    _set_momentum(group, top, self.use_beta1)
                    group["max_momentum"] = top
                    group["base_momentum"] = bottom
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(
                f"Tried to step {now} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases:
            if now <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        progress = (now - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:

            def between(what: str, g: dict[str, Any] = group) -> float:
                first, last = g[phase[f"start_{what}"]], g[phase[f"end_{what}"]]
                return _anneal(self._anneal_func_type, first, last, progress)

            rates.append(between("lr"))
            if self.cycle_momentum:
                _set_momentum(group, between("momentum"), self.use_beta1)
        return rates


def _count_steps(total: int | None, epochs: int | None, per_epoch: int | None) -> int:
    def positive(name: str, value: int) -> int:
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        return value

    if total is not None:
        return positive("total_steps", total)
    if epochs is None or per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return positive("epochs", epochs) * positive("steps_per_epoch", per_epoch)


def _phases(total: int, pct_start: float, three: bool) -> list[dict[str, Any]]:
    """Where each phase ends and which of a group's values it runs between."""

    def phase(end: float, lr: tuple[str, str], momentum: tuple[str, str]) -> dict[str, Any]:
        return {
            "end_step": end,
            "start_lr": lr[0],
            "end_lr": lr[1],
            "start_momentum": momentum[0],
            "end_momentum": momentum[1],
        }

    down, up = ("max_momentum", "base_momentum"), ("base_momentum", "max_momentum")
    peak = float(pct_start * total) - 1
    phases = [phase(peak, ("initial_lr", "max_lr"), down)]
    if three:
        back = float(2 * pct_start * total) - 2
        phases.append(phase(back, ("max_lr", "initial_lr"), up))
        phases.append(phase(total - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")))
    else:
        phases.append(phase(total - 1, ("max_lr", "min_lr"), up))
    return phases
