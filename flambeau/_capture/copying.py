"""`copy.copy` and `copy.deepcopy` of objects: `copy` is followed, and asks an object for its parts
by methods of `object` that are C code. Here is what those say, in Python that is followed.

The reference is Python's own: https://docs.python.org/3/library/pickle.html#object.__reduce_ex__
"""

from __future__ import annotations

import collections
import copyreg
from typing import Any

from . import calls, kinds
from .builtin_calls import means
from .errors import Break
from .interpreter import Frame


def _state(self: Any) -> Any:
    """`object.__getstate__`: what is stored in an object by name, and in its slots."""
    names = copyreg._slotnames(type(self))  # type: ignore[attr-defined]
    stored = getattr(self, "__dict__", None) or None
    slots = {name: getattr(self, name) for name in names if hasattr(self, name)}
    return (stored, slots) if slots else stored


def _reduced(self: Any) -> Any:
    """`object.__reduce_ex__` of protocol 2 and later."""
    cls = type(self)
    if cls.__reduce__ is collections.OrderedDict.__reduce__:
        return cls, (), _state(self), None, iter(self.items())
    if cls.__reduce__ is collections.defaultdict.__reduce__:
        args = () if self.default_factory is None else (self.default_factory,)
        return cls, args, None, None, iter(self.items())
    if cls.__reduce__ is not object.__reduce__:
        return self.__reduce__()
    make, args = copyreg.__newobj__, ()
    if hasattr(cls, "__getnewargs_ex__"):
        args, kwargs = self.__getnewargs_ex__()
        if kwargs:
            make, args = copyreg.__newobj_ex__, (args, kwargs)
    elif hasattr(cls, "__getnewargs__"):
        args = self.__getnewargs__()
    state = self.__getstate__()
    items = iter(self) if isinstance(self, list) else None
    pairs = iter(self.items()) if isinstance(self, dict) else None
    return make, (cls, *args), state, items, pairs


def _is_made_in_python(value: Any) -> bool:
    """Whether memory and parts of an object are those of `object`, or of a container."""
    bases = (b for b in type(value).__mro__ if not kinds.by_statement(b))
    return next(bases) in (object, list, tuple, *kinds.MAPPINGS)


@means(object.__reduce_ex__)
def _reduce_ex(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if len(args) != 2 or type(args[1]) is not int or args[1] < 2 or not _is_made_in_python(args[0]):
        raise Break("a call of object.__reduce_ex__")
    return calls.follow(f, _reduced, args[:1], {})


@means(object.__getstate__)
def _getstate(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if not _is_made_in_python(args[0]):
        raise Break("a call of object.__getstate__")
    return calls.follow(f, _state, args, {})


@means(copyreg._slotnames)  # type: ignore[attr-defined]
def _slotnames(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Names of slots, which Python keeps in a class once it was asked."""
    return list(copyreg._slotnames(args[0]))  # type: ignore[attr-defined]
