"""``LRScheduler``: counts steps and writes the rates that ``get_lr`` computes into the groups.

Invariant: ``last_epoch`` is the number of steps taken since the start; ``_last_lr`` is what the
groups hold. A schedule computes the next rate from the present one, so that schedules compose and
manual changes survive; where it also has a closed form, a jump to an epoch uses that. Must not
know any schedule.
"""

from __future__ import annotations

import warnings
from typing import Any

import flambeau as fb

from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch argument of scheduler.step() is deprecated: call step() without it. Where it is "
    "given, the closed form of the schedule replaces the one that composes with other schedules."
)


def copy_value(value: Any) -> Any:
    """A rate that later in-place changes of ``value`` do not touch."""
    return value.clone() if isinstance(value, fb.Tensor) else value


def to_number(value: Any) -> Any:
    return value.item() if isinstance(value, fb.Tensor) else value


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Write a hyperparameter; a tensor is filled in place, because compiled steps hold on to it."""
    if isinstance(group[key], fb.Tensor):
        group[key].fill_(to_number(value))
    else:
        group[key] = value


def per_group(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """One value per parameter group, the schedule's own, from a number or a sequence of them."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copy_value(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {count}."
        )
    return [copy_value(v) for v in value]


def check_optimizer(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


class LRScheduler:
    """Base of the schedules: subclasses define ``get_lr``, one rate per group.

    Args:
        optimizer: whose groups' ``lr`` is scheduled.
        last_epoch: steps already taken; -1 starts anew and stores each group's ``initial_lr``.
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = check_optimizer(optimizer)
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", copy_value(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                        "scheduler with last_epoch >= 0; load the optimizer's state dict first, "
                        "or use last_epoch=-1 for a fresh run"
                    )
        self.base_lrs = [copy_value(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        optimizer._opt_called = False  # type: ignore[attr-defined]
        self._initial_step()

    def _initial_step(self) -> None:
        """Write the first rate."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates last written, one per group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates at ``last_epoch``; for ``step`` alone, as it builds on the rates before."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or (deprecated) to the given one."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", True):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: call them in "
                "the opposite order, or the first value of the schedule is skipped.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=False):
            set_value(group, "lr", lr)
        self._last_lr = [copy_value(group["lr"]) for group in self.optimizer.param_groups]

    # ---- for subclasses ---------------------------------------------------------------------

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _present(self) -> list[Any]:
        """The rates the groups hold now."""
        return [copy_value(group["lr"]) for group in self.optimizer.param_groups]

    def _times(self, factor: Any) -> list[Any]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _base_times(self, factor: Any) -> list[Any]:
        return [base * factor for base in self.base_lrs]


class _LRScheduler(LRScheduler):
    """The former name of the base class."""
