"""One case: how it is built, and in which kinds of file it is held."""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Case:
    """An object that a file can hold.

    Attributes:
        make: builds it with the library given.
        legacy: whether the format before 1.6 can hold it.
        safe: whether PyTorch reads it with `weights_only=True`.
        run: of a whole module, what it computes; such files are read with `weights_only=False`.
        theirs: whether PyTorch can save it.
        close: whether its numbers are computed, so that rounding may differ.
    """

    make: Callable[[Any], Any]
    legacy: bool = True
    safe: bool = True
    close: bool = False
    theirs: bool = True
    run: Callable[[Any, Any], Any] | None = None
