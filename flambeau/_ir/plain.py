"""Plain data as text, for files: numbers, strings, None, tuples, and the constants of the library
that occur in descriptions of programs. Reading runs nothing and makes nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import flambeau

_NAMED = {  # constants that the package has under their names
    "dtype": flambeau.dtype,
    "memory_format": flambeau.memory_format,
    "layout": flambeau.layout,
}
_BEYOND = ("inf", "-inf", "nan")  # numbers that JSON has no word for, as files for C++ have them
_KINDS = {kind: word for word, kind in _NAMED.items()}


class NotPlain(TypeError):
    """Something that cannot be written."""


def tagged(x: Any) -> dict[str, Any]:
    """What JSON has no word for, as an object of one member.

    Raises:
        NotPlain: it is not plain data.
    """
    word = _KINDS.get(type(x))
    if word is not None:
        name = str(x).rpartition(".")[2]
        if getattr(flambeau, name, None) == x:
            return {word: name}
    if isinstance(x, complex):
        return {"complex": [x.real, x.imag]}
    if isinstance(x, flambeau.device):
        return {"device": str(x)}
    raise NotPlain(f"plain data: expected numbers, strings and tuples, got {type(x).__name__}")


def dumps(x: Any, other: Callable[[Any], Any] = tagged) -> str:
    """The text of plain data; equal data has equal text. `other` is asked for what JSON lacks.

    >>> from flambeau._ir import plain
    >>> plain.dumps((1, 1.0, True, torch.float32))
    '[1,1.0,true,{"dtype":"float32"}]'
    """
    return json.dumps(x, default=other, separators=(",", ":"))


def loads(text: str | bytes) -> Any:
    """The data of a text.

    Raises:
        ValueError: it is no such text.

    >>> from flambeau._ir import plain
    >>> plain.loads('[1,{"dtype":"float32"},[]]')
    (1, torch.float32, ())
    """
    try:
        read = json.loads(text, object_hook=_constant)
        return _tuples(read) if type(read) is list else read
    except RecursionError:
        raise ValueError("plain data: expected fewer levels") from None


def _constant(members: dict[str, Any]) -> Any:
    if len(members) == 1:
        ((word, value),) = members.items()
        if word == "complex" and isinstance(value, list) and len(value) == 2:
            re, im = value
            if isinstance(re, float) and isinstance(im, float):
                return complex(re, im)
        if isinstance(value, str) and word in _NAMED:
            found = getattr(flambeau, value, None)
            if isinstance(found, _NAMED[word]):
                return found
        if word == "float" and value in _BEYOND:
            return float(value)
        if isinstance(value, str) and word == "device":
            try:
                return flambeau.device(value)
            except (RuntimeError, ValueError) as e:
                raise ValueError(f"plain data: {e}") from None
    raise ValueError(f"plain data: expected a constant, got {str(members)[:80]}")


def _tuples(x: list[Any]) -> tuple[Any, ...]:
    return tuple([_tuples(i) if type(i) is list else i for i in x])
