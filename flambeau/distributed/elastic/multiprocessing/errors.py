"""How a launched program reports its failure: its exception ends it, and nobody listens.

Owns `record` and the exception of a launcher, which nothing raises yet.
"""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["ChildFailedError", "record"]

_F = TypeVar("_F")


class ChildFailedError(Exception):
    """A process that a launcher has started failed."""

    def __init__(self, name: str, failures: dict[int, Any]) -> None:
        super().__init__(f"{name} failed on ranks {sorted(failures)}")
        self.name, self.failures = name, failures


def record(fn: _F, error_handler: Any = None) -> _F:
    """Report the function's exceptions to the launcher: without one, they end the program."""
    return fn
