"""Parts of Python's own library whose C code, or whose caches, following would stumble over:
regular expressions, heaps, bisection, single dispatch, context variables, classes made by `type`.

What they compute depends on their arguments, which are guarded, or gets a guard of its own here.
"""

from __future__ import annotations

import bisect
import contextvars
import functools
import inspect
import re
import types
from typing import Any

import flambeau
import flambeau._checks
from flambeau._ir.enumerations import CheckKind
from flambeau._trace.run_numbers import RunNumber

from . import calls, kinds, objects
from .builtin_calls import class_of, means
from .c_code import may_be_read, specialised
from .errors import Break, Raised
from .interpreter import Frame
from .kinds import UNSET

# Regular expressions ------------------------------------------------------------------------------


def text_function(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A function of `re`, or a method of a pattern: it depends on its arguments alone."""
    given, named = specialised(f, args), specialised(f, kwargs)
    for value in (*given, *named.values()):
        if not may_be_read(f, value):
            raise Break(f"a call of {kinds.describe(function)} with {kinds.describe(value)}")
    ready = {name: calls.prepared(f, value) for name, value in named.items()}
    return f.interpreter.direct(function, *(calls.prepared(f, v) for v in given), **ready)


def _of_text(function: Any) -> None:
    means(function)(lambda f, args, kwargs: text_function(f, function, args, kwargs))


for _name in "match fullmatch search sub subn split findall finditer compile escape".split():
    _of_text(getattr(re, _name))

calls.BY_KIND[type(re.compile("").match)] = calls.call_builtin  # methods of patterns and matches
calls.CALLERS.update(
    (bisect.bisect_left, bisect.bisect_right, bisect.insort_left, bisect.insort_right)
)


# Single dispatch ----------------------------------------------------------------------------------


class _Chooses:
    """A check that a function of single dispatch has this implementation for a class."""

    def __init__(self, cls: type, chosen: Any) -> None:
        self.cls, self.chosen = cls, chosen

    def __call__(self, dispatch: Any) -> bool:
        return dispatch(self.cls) is self.chosen


def _dispatch(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`dispatch(cls)` of a function of single dispatch; later calls are to find the same."""
    (cls,) = args
    found = f.interpreter.direct(function, cls)
    words = f"the implementation of {kinds.describe(found)} for {kinds.describe(cls)} is the same"
    f.shadow_state.source_of(function).check(CheckKind.Truth, _Chooses(cls, found), words)
    return found


_ANY: Any = functools.singledispatch(lambda x: x)
calls.BY_CODE[_ANY.dispatch.__code__] = _dispatch


# Signatures ---------------------------------------------------------------------------------------


@means(inspect.get_annotations)
def _annotations(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Annotations as they are: what evaluates them would read, and guard, all globals."""
    function = args[0]
    if len(args) > 1 or kwargs.get("eval_str") or type(function) is not types.FunctionType:
        return calls.follow(f, inspect.get_annotations, args, kwargs)
    return dict(objects.load_attr(f, function, "__annotations__"))


# Context variables --------------------------------------------------------------------------------


class ContextToken:
    """What `ContextVar.set` gives while a program is followed: the value to go back to."""

    __slots__ = ("before", "used", "var")

    def __init__(self, var: Any, before: Any) -> None:
        self.var, self.before, self.used = var, before, False


class _HasValue:
    """A check of what a context variable holds; UNSET: nothing."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, var: Any) -> bool:
        now = contextvars.copy_context().get(var, UNSET)
        if type(self.value) in kinds.CONSTANT_TYPES:
            return type(now) is type(self.value) and bool(now == self.value)
        return now is self.value


def _value_of(f: Frame, var: Any) -> Any:
    """What a context variable holds, without the default of a call; UNSET: nothing."""
    written = f.shadow_state.context
    if var in written:
        return written[var]
    value = contextvars.copy_context().get(var, UNSET)
    f.shadow_state.source_of(var).check(
        CheckKind.Truth, _HasValue(value), f"{var.name}.get() is the same"
    )
    return value if value is UNSET else _shown(f, var, value)


def _shown(f: Frame, var: Any, value: Any) -> Any:
    """A value of a context variable as the program sees it."""
    if type(value) not in kinds.CONSTANT_TYPES:
        if not kinds.is_tensor(value) and not isinstance(value, (type, types.FunctionType)):
            raise Break(
                f"the context variable {var.name} holds {kinds.describe(value)}; graphs follow "
                "those that hold numbers, text, None, tensors, functions and classes"
            )
    return f.shadow_state.wrap(value, f.shadow_state.sources.constant(value, f"{var.name}.get()"))


@means(contextvars.ContextVar.get)
def _context_get(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    var, *default = args
    value = _value_of(f, var)
    if value is not UNSET:
        return value
    if default:
        return default[0]
    try:  # the default that it was made with, which does not change
        value = contextvars.Context().run(var.get)
    except LookupError as e:
        raise Raised(e) from None
    return _shown(f, var, value)


@means(contextvars.ContextVar.set)
def _context_set(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    var, value = args
    token = ContextToken(var, _value_of(f, var))
    f.shadow_state.context[var] = value
    return f.shadow_state.create(token)


@means(contextvars.ContextVar.reset)
def _context_reset(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    var, token = args
    if type(token) is not ContextToken:
        raise Break("a context variable is reset to what it was before the graph")
    if token.var is not var:
        raise Raised(ValueError(f"{token!r} was created by a different ContextVar"))
    if token.used:
        raise Raised(RuntimeError(f"{token!r} has already been used once"))
    token.used = True
    if token.before is UNSET:  # it held nothing before the graph either
        del f.shadow_state.context[var]
    else:
        f.shadow_state.context[var] = token.before


# Classes ------------------------------------------------------------------------------------------


@means(type)
def type_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return class_of(f, args[0]) if len(args) == 1 else _make_class(f, args, kwargs)


def _make_class(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`type(name, bases, namespace)`: a class of this call, which may not outlive it."""
    if kwargs or len(args) != 3 or type(args[0]) is not str or type(args[2]) is not dict:
        raise Break("a class is made")
    name, bases, namespace = args
    if any(b is not object and not f.shadow_state.is_created(b) for b in bases):
        raise Break(f"the class {name} is made with bases; make it outside of compiled code")
    if any(type(n) is not str for n in namespace) or any(
        hasattr(type(v), "__set_name__") for v in namespace.values()
    ):
        raise Break(f"the class {name} is made; make it outside of compiled code")
    entries = {"__module__": f.globals.get("__name__"), **namespace}
    made = f.interpreter.direct(type, name, bases, entries)
    return f.shadow_state.create(made)


# Checks -------------------------------------------------------------------------------------------


def _checks(function: Any) -> None:
    """A check of a number that only the run tells is made between two graphs, and what comes after
    has the number as its input."""

    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if any(type(a) is RunNumber for a in (*args, *kwargs.values())):
            words = f"{function.__name__} is given a number that only the run tells"
            raise Break(words, ends_whole=False)
        return calls.follow(f, function, args, kwargs)

    means(function)(special)


for _check in vars(flambeau._checks).values():
    if isinstance(_check, types.FunctionType) and _check.__name__.startswith("_check"):
        if _check.__module__ == flambeau._checks.__name__:
            _checks(_check)
