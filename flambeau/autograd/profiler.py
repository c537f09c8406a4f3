"""Names for stretches of a program: `record_function`, kept while no profiler listens.

Owns the form of a range: a context manager and a decorator. Must not know what a profiler does
with it; there is none yet, so that a range costs next to nothing.
"""

from __future__ import annotations

import contextlib
from typing import Any, Self

__all__ = ["record_function"]


class record_function(contextlib.ContextDecorator):
    """Name what runs inside, for a profiler.

    Args:
        name: what to show.
        args: more text to show with it.

    >>> with torch.autograd.profiler.record_function("square"):
    ...     y = torch.tensor(3.0) ** 2
    >>> y
    tensor(9.)
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function: expected a name, got {type(name).__name__}")
        self.name, self.args = name, args
        self.run_callbacks_on_exit = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        pass
