"""Whether a value fits a type hint: what the checks of pipes ask.

Owns the meaning of the hints that occur there (classes, unions, tuples, lists, dictionaries,
literals, type variables). A hint that it does not know admits everything.
"""

from __future__ import annotations

import collections.abc
import types
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

#: numbers that are accepted where another kind is asked for, as type checkers do
_WIDER = {float: (int, float), complex: (int, float, complex)}


def matches(value: Any, hint: Any) -> bool:
    """Whether `value` is an instance of `hint`, looking into tuples, lists, sets and dicts."""
    if hint is Any or isinstance(hint, str):
        return True
    if hint is None:
        return value is None
    if isinstance(hint, TypeVar):
        options = hint.__constraints__ or ((hint.__bound__,) if hint.__bound__ else ())
        return not options or any(matches(value, option) for option in options)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Union or origin is types.UnionType:
        return any(matches(value, option) for option in args)
    if origin is Literal:
        return value in args
    cls = origin or hint
    if not isinstance(cls, type):
        return True
    try:
        if not isinstance(value, _WIDER.get(cls, cls)):
            return False
    except TypeError:
        return True
    return not args or _parts_match(value, cls, args)


def _parts_match(value: Any, cls: type, args: tuple[Any, ...]) -> bool:
    if issubclass(cls, tuple):
        if len(args) == 2 and args[1] is Ellipsis:
            return all(matches(part, args[0]) for part in value)
        args = () if args == ((),) else args
        return len(value) == len(args) and all(map(matches, value, args))
    if issubclass(cls, collections.abc.Mapping) and len(args) == 2:
        return all(matches(k, args[0]) and matches(v, args[1]) for k, v in value.items())
    if issubclass(cls, list | set | frozenset | collections.deque):
        return all(matches(part, args[0]) for part in value)
    return True  # an iterator would be used up by looking


def element_type(cls: type) -> Any:
    """What a class of pipes yields: `Iterator[T]` of its `__iter__`, else `IterDataPipe[T]`."""
    iterate = cls.__dict__.get("__iter__")
    if iterate is not None:
        hint = _hints(iterate).get("return")
        if get_origin(hint) in (collections.abc.Iterator, collections.abc.Generator):
            return get_args(hint)[0]
    return parameter(cls)


def parameter(cls: Any) -> Any:
    """T of `IterDataPipe[T]`, of a class or of a hint; Any where nothing is said."""
    args = get_args(cls)
    if args:
        return args[0]
    for base in getattr(cls, "__orig_bases__", ()):
        args = get_args(base)
        if args and not isinstance(args[0], TypeVar):
            return args[0]
    for base in getattr(cls, "__bases__", ()):
        found = parameter(base)
        if found is not Any:
            return found
    return Any


def _hints(function: Any) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except Exception:  # a name that does not exist at run time says nothing
        return {}


def shown(hint: Any) -> str:
    """A hint as one writes it."""
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def is_subtype(left: Any, right: Any) -> bool:
    """Whether each value of hint `left` fits hint `right`; True where that cannot be told."""
    if right is Any or left is Any or left == right or isinstance(right, TypeVar):
        return True
    if isinstance(left, TypeVar):
        return True
    unions = (Union, types.UnionType)
    if get_origin(left) in unions:
        return all(is_subtype(option, right) for option in get_args(left))
    if get_origin(right) in unions:
        return any(is_subtype(left, option) for option in get_args(right))
    a, b = get_origin(left) or left, get_origin(right) or right
    if not (isinstance(a, type) and isinstance(b, type)):
        return True
    if not issubclass(a, _WIDER.get(b, b)):
        return False
    inner, outer = get_args(left), get_args(right)
    if not inner or not outer or len(inner) != len(outer):
        return not (issubclass(b, tuple) and inner and outer and Ellipsis not in (*inner, *outer))
    return all(map(is_subtype, inner, outer))
