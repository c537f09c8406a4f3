"""`Join`: processes that run out of input take part in the steps of those that go on.

Owns the counting of who goes on. Invariant: before each step of theirs all processes of the group
sum how many have input left; those that have none then run their hooks, whose collectives are those
of a step. Must not know which collectives these are.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import flambeau.distributed as dist
from flambeau import ones, zeros

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY_STEPS = 1000


class JoinHook:
    """What to do in place of an input, and when all have ended."""

    def main_hook(self) -> None:
        """Take part in a collective step of those that go on."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Run once all processes have ended.

        Args:
            is_last_joiner: whether this process is one of those with the most inputs.
        """


@dataclass
class _JoinConfig:
    """What a joinable knows of the block that it is in."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(ABC):
    """What can take part in a `Join`: it calls `Join.notify_join_context` before each step."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Device of its collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """Group of its collectives."""


class Join:
    """A block in which processes take steps for as long as they have inputs, some more than others.

    A process that leaves the block waits for the others: for each step of theirs it runs the hooks
    of its joinables, whose collectives match those of the step. Steps of each process call
    collectives of the joinables alone.

    Args:
        joinables: what takes part, all of one group.
        enable: whether inputs are uneven; without it the block does nothing.
        throw_on_early_termination: all raise as soon as one has no input left.
        kwargs: given to each joinable's `join_hook`.

    Raises:
        ValueError: there is no joinable, or they are of several groups.
        RuntimeError: a process has no input left, with `throw_on_early_termination`.
    """

    def __init__(
        self,
        joinables: list[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        groups = [joinable.join_process_group for joinable in joinables]
        if any(group is not groups[0] for group in groups):
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables = joinables
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throws = enable, throw_on_early_termination
        self._group, self._device = groups[0], joinables[0].join_device
        self._rank = dist.get_rank(self._group)

    def __enter__(self) -> None:
        for i, joinable in enumerate(self._joinables):
            joinable._join_config = _JoinConfig(self._enable, self._throws, i == 0)

    def __exit__(self, kind: Any, *rest: Any) -> None:
        try:
            if self._enable and kind is None:
                self._follow()
        finally:
            for joinable in self._joinables:
                joinable._join_config = _JoinConfig()

    def _follow(self) -> None:
        """Take part in the steps of those that have inputs, until there are none."""
        steps = 0
        while self._sum(zeros(1, device=self._device)) > 0:
            if self._throws:
                self._sum(ones(1, device=self._device))
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            steps += 1
            if steps == _MANY_STEPS + 1:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_MANY_STEPS}. This means that "
                    f"rank {self._rank} has at least {_MANY_STEPS} fewer inputs than other "
                    "currently-active ranks. This level of skew could lead to performance "
                    "degradation during training.",
                    stacklevel=3,
                )
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(steps == 0)

    def _sum(self, mine: Any) -> float:
        dist.all_reduce(mine, group=self._group)
        return float(mine.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> dist.Work | None:
        """Tell the others that this process takes a step.

        Args:
            joinable: which of the block's; the first one alone tells.

        Returns:
            The work of the sum whose result is the number of processes that take the step; None
            outside of a block, and for others than the first.

        Raises:
            RuntimeError: another process has no input left, with `throw_on_early_termination`.
        """
        assert hasattr(joinable, "_join_config"), (
            f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
        )
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = dist.all_reduce(ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = zeros(1, device=device)
            dist.all_reduce(ended, group=group)
            if ended.item() > 0:
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                )
        return work
