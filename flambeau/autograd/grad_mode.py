"""Switches of recording.

Owns the names of ``flambeau.autograd.grad_mode``; the four context managers that matter for speed
are types of the compiled core. Each changes the state of the current thread only.
"""

from __future__ import annotations

from typing import Any

from flambeau import _C
from flambeau._C import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "enable_grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _Switch:
    """Sets a flag when made, puts it back on leaving; a decorator acts inside the function."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev = self._get()
        self._set(mode)

    @staticmethod
    def _get() -> bool:
        raise NotImplementedError

    @staticmethod
    def _set(mode: bool, /) -> None:
        raise NotImplementedError

    def __enter__(self) -> None:
        self._set(self.mode)

    def __exit__(self, *exception: Any) -> None:
        self._set(self.prev)

    def __call__(self, function: Any) -> Any:
        from flambeau.utils._contextlib import context_decorator

        self._set(self.prev)
        return context_decorator(lambda: type(self)(self.mode), function)

    def clone(self) -> _Switch:
        return type(self)(self.mode)


class set_multithreading_enabled(_Switch):
    """Whether backward may use several threads. It is remembered; backward runs on its caller's.

    >>> with torch.autograd.grad_mode.set_multithreading_enabled(False):
    ...     pass
    """

    _get = staticmethod(_C._is_multithreading_enabled)
    _set = staticmethod(_C._set_multithreading_enabled)


class _force_original_view_tracking(_Switch):
    """Whether views are replayed by their own operation."""

    _get = staticmethod(_C._is_view_replay_enabled)
    _set = staticmethod(_C._set_view_replay_enabled)
