"""Classes of the standard library that hold data, and how a pickle makes and fills them.

Owns the list of what needs nobody's permission. Invariant: every argument is checked for its kind
before the class sees it, and what a call copies is charged to the file's budget, so that a small
file cannot ask for much work. It knows neither tensors nor NumPy.
"""

from __future__ import annotations

import argparse
import datetime
import pathlib
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from flambeau import _C

_FACTORIES = (
    list, dict, set, frozenset, tuple, int, float, str, bool, bytes, complex, OrderedDict, Counter,
)  # fmt: skip
_NUMBERS = (bool, int, float)
_LATIN = ("latin1", "latin-1", "iso-8859-1")


class PlainData:
    """Makers of plain objects for one file.

    Args:
        budget: how many items all calls together may copy.

    Attributes:
        names: what a file calls a class, and the class.
        calls: by identity of the class or function, how to call it with the file's arguments.
    """

    def __init__(self, budget: int) -> None:
        self._left = budget
        self._odd_keys = 0
        self.names: dict[str, Any] = {}
        self.calls: dict[int, Callable[..., Any]] = {}
        self.factories: list[Any] = list(_FACTORIES)
        for kind in (*_FACTORIES, object, bytearray, slice, range, type(None), Ellipsis.__class__):
            self.names[f"builtins.{kind.__name__}"] = kind
        self._allow(set, self._set(set))
        self._allow(frozenset, self._set(frozenset))
        self._allow(list, self._sequence(list))
        self._allow(tuple, self._sequence(tuple))
        self._allow(dict, self._mapping(dict))
        self._allow(OrderedDict, self._mapping(OrderedDict))
        self._allow(Counter, self._mapping(Counter))
        self._allow(defaultdict, self._defaultdict)
        self._allow(bytes, self._bytes)
        self._allow(bytearray, self._bytearray)
        self._allow(complex, self._scalars(complex, 2))
        self._allow(slice, self._scalars(slice, 3, (*_NUMBERS, type(None), str)))
        self._allow(range, self._scalars(range, 3, (int,)))
        for kind in (int, float, str, bool):
            self._allow(kind, self._scalars(kind, 1, (*_NUMBERS, str)))
        self._allow(_encode, self._encode, "_codecs.encode")
        self._allow(argparse.Namespace, lambda: argparse.Namespace())
        self._allow_paths()
        self._allow_times()

    def _allow(self, value: Any, call: Callable[..., Any], name: str | None = None) -> None:
        self.names[name or f"{value.__module__}.{value.__qualname__}"] = value
        self.calls[id(value)] = call

    def charge(self, count: int) -> None:
        """Notes that ``count`` items are copied. ValueError: too many for a file of this size."""
        self._left -= count
        if self._left < 0:
            raise ValueError("load: the file asks for far more data than it holds")

    def _check_keys(self, keys: list[Any]) -> None:
        self._odd_keys = _C._check_keys(keys, self._odd_keys)

    # -- containers

    def _items(self, args: tuple[Any, ...], kinds: tuple[type, ...]) -> Any:
        if len(args) > 1 or (args and type(args[0]) not in kinds):
            raise TypeError(f"a container made from {[type(a).__name__ for a in args]}")
        items = args[0] if args else ()
        self.charge(len(items) + 1)
        return items

    def _sequence(self, kind: type) -> Callable[..., Any]:
        return lambda *args: kind(self._items(args, (list, tuple)))

    def _set(self, kind: type) -> Callable[..., Any]:
        def make(*args: Any) -> Any:
            items = self._items(args, (list, tuple, set, frozenset))
            self._check_keys(list(items))
            return kind(items)

        return make

    def _mapping(self, kind: type) -> Callable[..., Any]:
        def make(*args: Any) -> Any:
            items = self._items(args, (list, tuple, dict, OrderedDict))
            if not isinstance(items, dict):
                for item in items:
                    if type(item) not in (list, tuple) or len(item) != 2:
                        raise TypeError(f"a {kind.__name__} of something that is not a pair")
                self._check_keys([item[0] for item in items])
                items = dict(items)
            return kind(items)

        return make

    def _defaultdict(self, factory: Any = None, *args: Any) -> Any:
        if factory is not None and not any(factory is kind for kind in self.factories):
            raise TypeError(f"a defaultdict whose default comes from {str(factory)[:80]}")
        return defaultdict(factory, self._mapping(dict)(*args))

    # -- scalars and bytes

    def _scalars(
        self, kind: Any, most: int, kinds: tuple[type, ...] = _NUMBERS
    ) -> Callable[..., Any]:
        def make(*args: Any) -> Any:
            if len(args) > most or any(type(arg) not in kinds for arg in args):
                raise TypeError(f"{kind.__name__} of {[type(a).__name__ for a in args]}")
            self.charge(sum(len(arg) for arg in args if type(arg) is str) + 1)
            return kind(*args)

        return make

    def _encode(self, text: str, encoding: str = "latin1") -> bytes:
        if type(text) is not str or encoding not in _LATIN:
            raise TypeError(f"bytes of a {type(text).__name__} in encoding {str(encoding)[:20]!r}")
        self.charge(len(text))
        return text.encode("latin-1")

    def _bytes(self, *args: Any) -> bytes:
        if not args:
            return b""
        if len(args) == 2:
            return self._encode(*args)
        return bytes(self._items(args, (bytes, bytearray)))

    def _bytearray(self, *args: Any) -> bytearray:
        return bytearray(self._bytes(*args))

    # -- paths and times

    def _allow_paths(self) -> None:
        for kind in (pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PurePath):
            self._allow_path(kind, kind.__name__)
        self._allow_path(pathlib.Path, "Path")
        # A path of the other system comes back as a pure path, which can be looked at there.
        local = type(pathlib.Path())
        for concrete, pure in (
            ("PosixPath", pathlib.PurePosixPath),
            ("WindowsPath", pathlib.PureWindowsPath),
        ):
            self._allow_path(local if local.__name__ == concrete else pure, concrete)

    def _allow_path(self, kind: Any, name: str) -> None:
        def make(*parts: Any) -> Any:
            if any(type(part) is not str for part in parts):
                raise TypeError("a path of something that is not text")
            self.charge(sum(map(len, parts)) + len(parts))
            return kind(*parts)

        self._allow(kind, make, f"pathlib.{name}")
        self.names[f"pathlib._local.{name}"] = kind  # Python 3.13's name

    def _allow_times(self) -> None:
        self._allow(datetime.timedelta, self._scalars(datetime.timedelta, 3, (int, float)))
        self._allow(datetime.timezone, _timezone)
        self._allow(datetime.date, _date)
        self._allow(datetime.time, _time)
        self._allow(datetime.datetime, _datetime)
        self.names["datetime.timezone.utc"] = datetime.UTC


def _encode() -> None:
    """Stands for `_codecs.encode`, by which protocol 2 spells bytes."""


def _timezone(offset: Any, *name: Any) -> datetime.timezone:
    if type(offset) is not datetime.timedelta or any(type(part) is not str for part in name):
        raise TypeError("a time zone of something that is not a time difference and a name")
    return datetime.timezone(offset, *name)


def _raw(value: Any, size: int) -> list[int]:
    raw = value.encode("latin-1") if type(value) is str else value
    if type(raw) is not bytes or len(raw) != size:
        raise TypeError(f"a date or time is not {size} bytes")
    return list(raw)


def _zone(zone: tuple[Any, ...]) -> Any:
    if len(zone) > 1 or (zone and type(zone[0]) not in (datetime.timezone, type(None))):
        raise TypeError("a time with a zone that is not a datetime.timezone")
    return zone[0] if zone else None


# The classes' own ways in take most bytes unchecked; these go through the checked one.


def _date(value: Any, *rest: Any) -> datetime.date:
    if rest:
        return datetime.date(value, *rest)
    high, low, month, day = _raw(value, 4)
    return datetime.date(high << 8 | low, month, day)


def _time(value: Any, *zone: Any) -> datetime.time:
    hour, minute, second, a, b, c = _raw(value, 6)
    fold, hour = hour >> 7, hour & 127
    micro = a << 16 | b << 8 | c
    return datetime.time(hour, minute, second, micro, tzinfo=_zone(zone), fold=fold)


def _datetime(value: Any, *zone: Any) -> datetime.datetime:
    high, low, month, day, hour, minute, second, a, b, c = _raw(value, 10)
    fold, month = month >> 7, month & 127
    micro = a << 16 | b << 8 | c
    return datetime.datetime(
        high << 8 | low, month, day, hour, minute, second, micro, _zone(zone), fold=fold
    )
