"""The CPU by the names that other devices have: for programs that take a device's module and go on
with it (`torch.get_device_module`). Work is done when a function returns, so that there is nothing
to wait for; streams are names. Source: PyTorch's documentation of `torch.cpu`.
"""

from __future__ import annotations

import importlib
from typing import Any

import flambeau as fb

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is a CPU: always.

    >>> torch.cpu.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether the device is ready: always."""
    return True


def device_count() -> int:
    """Number of devices of this kind, which is 1 whatever the processors.

    >>> torch.cpu.device_count()
    1
    """
    return 1


def current_device() -> str:
    """The device that is in use: "cpu"."""
    return "cpu"


def _check(device: Any, what: str) -> None:
    if device is None or isinstance(device, int):
        return
    if fb.device(device).type != "cpu":
        raise ValueError(f"cpu.{what}: expected a device of the CPU, got {device!r}")


def set_device(device: Any) -> None:
    """Choose the device, of which there is one.

    Raises:
        ValueError: it is another kind of device.
    """
    _check(device, "set_device")


def synchronize(device: Any = None) -> None:
    """Wait for all that was begun: nothing is left to wait for."""
    _check(device, "synchronize")


class Stream:
    """An order of work. All work on the CPU is in one, and done when its function returns."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Wait for the work of another stream, which is done."""

    def wait_event(self, event: Any) -> None:
        """Wait for an event, which has happened."""

    def record_event(self, event: Event | None = None) -> Event:
        """An event that has happened."""
        return Event() if event is None else event

    def synchronize(self) -> None:
        """Wait for the work of the stream, which is done."""

    def query(self) -> bool:
        """Whether all work is done: always."""
        return True


class Event:
    """A point in a stream, which has passed when there is an event."""

    def query(self) -> bool:
        """Whether it has happened: always."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Put the event behind the work of a stream."""

    def synchronize(self) -> None:
        """Wait for the event, which has happened."""

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for the event, which has happened."""


_the_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The stream that work goes to."""
    _check(device, "current_stream")
    return _the_stream


class StreamContext:
    """Work inside goes to a stream.

    >>> with torch.cpu.stream(torch.cpu.Stream()) as s:
    ...     torch.ones(2).sum()
    tensor(2.)
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[Stream] = []

    def __enter__(self) -> None:
        global _the_stream
        self._before.append(_the_stream)
        if self.stream is not None:
            _the_stream = self.stream

    def __exit__(self, *error: object) -> None:
        global _the_stream
        _the_stream = self._before.pop()


def stream(stream: Stream | None) -> StreamContext:
    """A context whose work goes to a stream; None: nothing changes."""
    return StreamContext(stream)


def __getattr__(name: str) -> Any:
    if name == "amp":
        return importlib.import_module(f"{__name__}.amp")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
