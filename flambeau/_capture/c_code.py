"""What C code may do with wrapped values: which it may look into, and how it computes with them."""

from __future__ import annotations

import enum
import functools
import itertools
import operator
import sys
import types
from typing import Any

import numpy as np

import flambeau
from flambeau._trace.run_numbers import RunNumber
from flambeau._trace.tensor import SymSize

from . import kinds
from .errors import Break, Raised
from .interpreter import Followed, Frame, Generator

ITERATORS = frozenset(
    v for v in vars(itertools).values() if isinstance(v, type) and v is not itertools.tee
)
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
MODES = (
    flambeau.no_grad,
    flambeau.enable_grad,
    flambeau.set_grad_enabled,
    flambeau.inference_mode,
)


def may_be_read(f: Frame, value: Any, depth: int = 3) -> bool:
    """Whether C code may look into a value: everything in it is guarded, or made here."""
    cls = type(value)
    if cls in kinds.STATEFUL and id(value) in f.shadow_state.origin:
        return False  # what comes next is not guarded, and reading it would consume it
    if cls is types.MappingProxyType:  # one of a class shows what has no guard
        return bool(f.shadow_state.is_created(value))
    if cls in (list, tuple, set, frozenset):
        return depth == 0 or all(may_be_read(f, v, depth - 1) for v in value)
    f.shadow_state.refuse_large(value)
    if cls in (dict, *kinds.MAPPINGS):
        return depth == 0 or all(may_be_read(f, v, depth - 1) for v in value.values())
    if cls is types.MethodWrapperType:
        return may_be_read(f, value.__self__, depth)
    if kinds.is_plain(value) or cls in ITERATORS or f.interpreter.tensors.is_symbol(value):
        return True
    if f.shadow_state.is_created(value) or id(value) in f.shadow_state.shadows:
        return True
    if isinstance(value, (type, types.ModuleType, BaseException, Generator, Followed, super)):
        return True
    return cls in _SAFE_KINDS or _python_class(cls)  # type: ignore[arg-type]


_SAFE_KINDS = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.CellType,
    functools.partial,
    property,
    *kinds.METHOD_WRAPPERS,
    *GETTERS,
    *MODES,
)


@functools.lru_cache(maxsize=4096)
def _python_class(cls: type) -> bool:
    """A class written in Python, down to `object` or a plain type."""
    return all(_written_in_python(b) or b is object or b in _PLAIN_BASES for b in cls.__mro__)


_PLAIN_BASES = kinds.PLAIN_TYPES | {enum.Enum, BaseException, Exception}


def _written_in_python(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    made = kinds.by_statement(cls) and module is not None
    return made and not (file or "").endswith(".so")


def specialised(f: Frame, value: Any) -> Any:
    """The value with symbolic numbers decided, for code that shows or converts them."""
    tensors = f.interpreter.tensors
    if tensors.is_symbol(value):
        return tensors.decide(value)
    if type(value) is SymSize:
        return flambeau.Size(specialised(f, v) for v in value)
    if type(value) in (tuple, list) and has_symbol(f, value):
        items = [specialised(f, v) for v in value]
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        return type(value)(items)
    if type(value) is dict and has_symbol(f, value):
        return {k: specialised(f, v) for k, v in value.items()}
    return value


def has_symbol(f: Frame, value: Any, within: tuple[Any, ...] = ()) -> bool:
    """Whether a symbolic number is in a tuple, list or dict, which may hold itself."""
    if any(value is w for w in within):
        return False
    if type(value) in (tuple, list, SymSize):
        return any(has_symbol(f, v, (*within, value)) for v in value)
    if type(value) is dict:
        return any(has_symbol(f, v, (*within, value)) for v in value.values())
    return bool(f.interpreter.tensors.is_symbol(value))


def operate(f: Frame, function: Any, *args: Any) -> Any:
    """An operator on values as they are; on the numbers that were seen, where symbols have none."""
    direct, is_symbol = f.interpreter.direct, f.interpreter.tensors.is_symbol
    if any(map(kinds.is_tensor, args)) and any(type(a) is RunNumber for a in args):
        args = tuple(f.interpreter.tensors.beside(f, args))
    elif any(type(a) is RunNumber for a in args):
        return _operate_on_run(f, function, args)
    symbols = any(map(is_symbol, args)) and not any(map(kinds.is_tensor, args))
    if not (symbols and any(isinstance(a, np.generic) for a in args)):
        try:
            return direct(function, *args)
        except Raised as raised:
            if not (symbols and isinstance(raised.error, TypeError)):
                raise
    return direct(function, *specialised(f, args))


def _operate_on_run(f: Frame, function: Any, args: Any) -> Any:
    """An operator on numbers that only the run tells; on constants, where they may be taken so."""
    try:
        return f.interpreter.direct(function, *args)
    except Break:
        decided = f.interpreter.tensors.decided_of(args)
        if any(type(a) is RunNumber for a in decided):
            raise
    return operate(f, function, *decided)
