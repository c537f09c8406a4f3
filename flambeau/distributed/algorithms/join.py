"""`Join`: processes that run out of input wait for the others.

Of one process it is the last to join as it leaves the block: no shadow step is needed, and the
hooks are told so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What to do in place of an input, and when all have ended."""

    def main_hook(self) -> None:
        """Take part in a collective step of those that go on."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Run once all processes have ended."""


class Joinable(ABC):
    """What can take part in a `Join`."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()

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
    """Wait at the end of the block for processes that have more inputs: there are none.

    Args:
        joinables: what takes part, in groups of one process.
        enable: whether inputs are uneven.
        throw_on_early_termination: raise where a process ends early; none can.
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
        self._joinables = joinables
        size = max(getattr(j.join_process_group, "size", lambda: 1)() for j in joinables)
        if enable and size > 1:
            raise NotImplementedError(
                f"Join: expected one process, got {size}; uneven inputs are not built yet"
            )
        self._hooks = [j.join_hook(**kwargs) for j in joinables]
        self._enable = enable

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if self._enable and kind is None:
            for hook in self._hooks:
                hook.post_hook(True)

    @staticmethod
    def notify_join_context(joinable: Any) -> None:
        """Tell the others that this process goes on: nobody waits."""
