"""The profiler's vocabulary: activities, actions, schedules and named ranges.

Owns what programs state before a profiler runs. The profiler itself is not built yet.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from flambeau.autograd.profiler import record_function

__all__ = ["ProfilerAction", "ProfilerActivity", "kineto_available", "record_function", "schedule"]


class ProfilerActivity(enum.Enum):
    """What a profiler observes."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profiler does at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """Whether Kineto's tracer is built in: no."""
    return False


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Make a function from the number of a step to what is done at it.

    Args:
        wait, warmup, active: lengths of a cycle's parts, in steps.
        repeat: number of cycles; 0 for no end.
        skip_first: steps before the first cycle.
        skip_first_wait: other than 0: the first cycle has no waiting part.

    >>> at = torch.profiler.schedule(wait=1, warmup=0, active=1)
    >>> [at(step).name for step in range(3)]
    ['NONE', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, active, repeat, skip_first) < 0 or active == 0:
        raise AssertionError("schedule: expected numbers from 0, and active from 1")
    cycle = wait + warmup + active

    def at(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"schedule: expected a step from 0, got {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        if 0 < repeat <= step // cycle:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == cycle - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return at
