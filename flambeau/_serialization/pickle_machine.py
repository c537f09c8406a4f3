"""Pickles read as data, protocols 0 to 5, by the machine in C++ (`csrc/files/pickle.h`).

Owns the errors of malformed pickles and the names of Python 2. Invariant: nothing is imported and
nothing is called by the file's word. Whatever is not a plain Python value is asked of the `Builder`
handed in: names, persistent ids, calls, states. Work and memory are bounded by the bytes at hand,
and bad input ends in `pickle.UnpicklingError`. It knows neither tensors nor files.
"""

from __future__ import annotations

import _compat_pickle
import pickle
import struct
from typing import Any, Protocol

from flambeau import _C

# What malformed input provokes in the machine and in builders; anything else passes unchanged.
_MALFORMED = (
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    EOFError,
    RecursionError,
    MemoryError,
    struct.error,
)


class Builder(Protocol):
    """What the machine asks of its user. Each method may raise `pickle.UnpicklingError`."""

    def find_global(self, module: str, name: str) -> Any:
        """The value that stands for a name of the file."""

    def persistent_load(self, pid: Any) -> Any:
        """The object of a persistent id."""

    def reduce(self, function: Any, args: tuple[Any, ...]) -> Any:
        """The result of a call."""

    def new(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A new, empty instance of a class."""

    def build(self, obj: Any, state: Any) -> None:
        """Gives an object its state."""

    def extend(self, obj: Any, items: list[Any]) -> None:
        """Appends to an object that is not a plain list."""

    def set_items(self, obj: Any, pairs: list[tuple[Any, Any]]) -> None:
        """Sets items of an object that is not a plain dict."""


def read(data: Any, start: int, builder: Builder, encoding: str = "utf-8") -> tuple[Any, int]:
    """Reads one pickle.

    Args:
        data: bytes, or an `mmap.mmap`.
        start: where the pickle begins.
        builder: gives everything that is not a plain value.
        encoding: of texts that Python 2 wrote; "bytes" leaves them as bytes.

    Returns:
        The object, and the position after the pickle.

    Raises:
        pickle.UnpicklingError: the pickle is malformed, or the builder refused something.
    """
    at = [start]
    try:
        return _C._unpickle(data, start, builder, _finder(builder), encoding, at), at[0]
    except pickle.UnpicklingError:
        raise
    except _MALFORMED as error:
        if str(error).startswith("load: "):
            raise pickle.UnpicklingError(str(error)) from error
        raise pickle.UnpicklingError(
            f"load: malformed pickle at byte {at[0]} ({type(error).__name__}: {str(error)[:200]})"
        ) from error


def _finder(builder: Builder) -> Any:
    def find(module: str, name: str, protocol: int) -> Any:
        if protocol < 3:  # Python 3 writes the names of Python 2 up to protocol 2
            renamed = _compat_pickle.NAME_MAPPING.get((module, name))
            if renamed is not None:
                module, name = renamed
            else:
                module = _compat_pickle.IMPORT_MAPPING.get(module, module)
        return builder.find_global(module, name)

    return find
