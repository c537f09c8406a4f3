"""The accelerator of this machine: in this build there is none.

Queries answer truthfully; what would need a device raises. Must not know the core.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "is_available",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is an accelerator: never in this build."""
    return False


def device_count() -> int:
    """Number of accelerators."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """The accelerator's kind of device: None.

    >>> torch.accelerator.current_accelerator() is None
    True
    """
    return None


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError("accelerator: expected a device, but this build has no accelerator")


def empty_cache() -> None:
    """Hand unused device memory back: there is none."""


current_device_index = current_device_idx = _refuse
current_stream = set_stream = synchronize = _refuse
set_device_index = set_device_idx = device_index = _refuse
