"""Frames of functions that are followed: arguments bound to slots as CPython binds them."""

from __future__ import annotations

import builtins
import inspect
import types
from typing import Any

from . import kinds
from .errors import Raised
from .interpreter import Frame
from .kinds import UNSET
from .opcodes import decoded


def frame_of(
    f: Frame, function: types.FunctionType, args: list[Any], kwargs: dict[str, Any]
) -> Frame:
    """A frame with the arguments bound."""
    code = function.__code__
    slots = bind_arguments(f, function, code, args, kwargs)
    free = code.co_freevars
    if free:
        cells = function.__closure__ or ()
        if not f.shadow_state.is_created(function):
            source = f.shadow_state.source_of(function).attribute("__closure__")
            cells = tuple(
                f.shadow_state.outside_cell(c, source.item(n)) for n, c in enumerate(cells)
            )
        slots[len(slots) - len(free) :] = cells
    namespace = function.__globals__
    found = namespace.get("__builtins__", builtins.__dict__)
    names = found if isinstance(found, dict) else found.__dict__
    return Frame(f.interpreter, code, namespace, names, slots, function)


def bind_arguments(
    f: Frame,
    function: types.FunctionType,
    code: types.CodeType,
    args: list[Any],
    kwargs: dict[str, Any],
) -> list[Any]:
    """The slots of a new frame."""
    names = decoded(code).names
    slots: list[Any] = [UNSET] * len(names)
    n, kwonly = code.co_argcount, code.co_kwonlyargcount
    flags = code.co_flags
    slots[: min(len(args), n)] = args[:n]
    at = n + kwonly
    if flags & inspect.CO_VARARGS:
        slots[at] = tuple(args[n:])
        at += 1
    elif len(args) > n:
        _refuse(function, f"takes {_count(n, function)} but {len(args)} were given")
    rest: dict[str, Any] = {}
    for name, value in kwargs.items():
        try:
            index = names.index(name, code.co_posonlyargcount, n + kwonly)
        except ValueError:
            if not flags & inspect.CO_VARKEYWORDS:
                _refuse(function, f"got an unexpected keyword argument '{name}'")
            rest[name] = value
            continue
        if slots[index] is not UNSET:
            _refuse(function, f"got multiple values for argument '{name}'")
        slots[index] = value
    if flags & inspect.CO_VARKEYWORDS:
        slots[at] = rest
    _fill_defaults(f, function, names, slots, n, kwonly)
    return slots


def _fill_defaults(
    f: Frame,
    function: types.FunctionType,
    names: tuple[str, ...],
    slots: list[Any],
    n: int,
    kwonly: int,
) -> None:
    defaults = function.__defaults__ or ()
    first = n - len(defaults)
    missing = [names[k] for k in range(first) if slots[k] is UNSET]
    if missing:
        listed = ", ".join(repr(m) for m in missing)
        _refuse(function, f"missing {len(missing)} required positional arguments: {listed}")
    for k in range(max(first, 0), n):
        if slots[k] is UNSET:
            slots[k] = _default(f, function, "__defaults__", k - first, defaults)
    keyword_defaults = function.__kwdefaults__ or {}
    for k in range(n, n + kwonly):
        if slots[k] is UNSET:
            if names[k] not in keyword_defaults:
                _refuse(function, f"missing 1 required keyword-only argument: '{names[k]}'")
            slots[k] = _default(f, function, "__kwdefaults__", names[k], keyword_defaults)


def _default(f: Frame, function: Any, attribute: str, key: Any, values: Any) -> Any:
    value = values[key]
    if f.shadow_state.is_created(function):
        return value
    if type(value) in kinds.CONSTANT_TYPES and kinds.in_library(function.__code__.co_filename):
        return value
    source = f.shadow_state.source_of(function).attribute(attribute)
    if isinstance(key, int):
        return f.shadow_state.wrap(value, source.item(key))
    return f.shadow_state.entries(values, source).get(key)


def _count(n: int, function: types.FunctionType) -> str:
    least = n - len(function.__defaults__ or ())
    words = f"{n}" if least == n else f"from {least} to {n}"
    return f"{words} positional argument{'' if n == 1 else 's'}"


def _refuse(function: types.FunctionType, words: str) -> None:
    raise Raised(TypeError(f"{function.__qualname__}() {words}"))


def _get_all(sequence: Any) -> Any:
    at = 0
    while True:
        try:
            value = sequence[at]
        except IndexError:
            return
        yield value
        at += 1


def sequence_frame(f: Frame, sequence: Any) -> Frame:
    """Iteration over an object that has only `__getitem__`."""
    return frame_of(f, _get_all, [sequence], {})  # type: ignore[arg-type]
