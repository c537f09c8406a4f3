"""Schedules made of schedules: one after another, or all at once.

Invariant: all parts act on one optimiser, and a part's state sits in the whole's state dict under
``_schedulers``. Must not know what any part computes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, set_value
from .cyclic import CosineAnnealingWarmRestarts
from .plateau import ReduceLROnPlateau


class _Composed(LRScheduler):
    """Checks the parts and keeps their states."""

    _schedulers: list[Any]

    def _check_parts(self, parts: Sequence[Any], optimizer: Optimizer | None) -> Optimizer:
        name = type(self).__name__
        if optimizer is None:
            optimizer = parts[0].optimizer
        for i, part in enumerate(parts):
            if not hasattr(part, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(part, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, but got one at index "
                    f"{i} in the given schedulers sequence."
                )
            if part.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(part).__name__} at index {i} with another "
                    f"{type(part.optimizer).__name__}."
                )
        return optimizer

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser, with the states of the parts."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [part.state_dict() for part in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` returned."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for part, state in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            part.load_state_dict(state)


class SequentialLR(_Composed):
    """One schedule after another, each from its own start.

    Args:
        optimizer: the optimiser.
        schedulers: the parts, in order.
        milestones: the steps at which the second and later parts begin.
        last_epoch: steps already taken, less one; the parts are stepped again up to there, so they
            are given without their own ``last_epoch``.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        self._check_parts(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = 0
        self.optimizer = optimizer
        # Each part has written its first rate on construction: take all of that back.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()
        self._catch_up(last_epoch + 1)

    def _catch_up(self, steps: int) -> None:
        """Take the steps of a run that is resumed; the optimiser's own were taken before."""
        called = getattr(self.optimizer, "_opt_called", True)
        self.optimizer._opt_called = True  # type: ignore[attr-defined]
        for _ in range(steps):
            self.step()
        self.optimizer._opt_called = called  # type: ignore[attr-defined]

    def recursive_undo(self, sched: Any = None) -> None:
        """Take one step back in ``sched`` (default: this one) and all its parts."""
        scheds = self if sched is None else sched
        if hasattr(scheds, "_schedulers"):
            for part in scheds._schedulers:
                self.recursive_undo(part)
        elif hasattr(scheds, "last_epoch"):
            scheds.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Step the part whose turn it is; at its milestone, from its own start."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        part = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            if isinstance(part, CosineAnnealingWarmRestarts):
                part.step(0)
            elif isinstance(part, _Composed):
                raise NotImplementedError(
                    f"SequentialLR: {type(part).__name__} at index {turn} cannot start at a "
                    "milestone; only the first scheduler may be made of others"
                )
            else:
                part._update_lr(0)
        else:
            part.step()
        self._last_lr = part.get_last_lr()


class ChainedScheduler(_Composed):
    """All schedules at once: each multiplies what those before it left.

    Args:
        schedulers: the parts, in order.
        optimizer: their optimiser; None takes it from the first part.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        self.optimizer = self._check_parts(schedulers, optimizer)
        self._schedulers = list(schedulers)
        self._last_lr = self._present()

    def step(self) -> None:  # type: ignore[override]
        """Step all parts."""
        for part in self._schedulers:
            part.step()
        self._last_lr = self._present()
