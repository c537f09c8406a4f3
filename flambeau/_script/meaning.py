"""What a Python object stands for in a script: a constant, or something known while typing.

Owns the expression `static` (a module, a function, a class, a method of a value, a sequence of
submodules), which never becomes a value, and the constants. Must not know statements.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flambeau

from .._ir.typed import Expr
from .._ir.types import BOOL, DEVICE, DTYPE, FLOAT, INT, NONE, STR, Type, list_of, tuple_of
from .annotations import COMPLEX

STATIC = Type("Static")
_CONSTANTS: dict[type, Type] = {
    bool: BOOL, int: INT, float: FLOAT, str: STR, type(None): NONE, complex: COMPLEX,
    flambeau.dtype: DTYPE, flambeau.device: DEVICE, flambeau.layout: Type("Layout"),
    flambeau.memory_format: Type("MemoryFormat"),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Method:
    """A method of a value of a class."""

    owner: Expr
    name: str


@dataclass(frozen=True, eq=False)
class Items:
    """Values known one by one: a ModuleList's modules, a ModuleDict's pairs, a tuple."""

    keys: tuple[Any, ...]
    values: tuple[Expr, ...]
    pairs: bool = False


@dataclass(frozen=True, eq=False)
class Super:
    """`super()` inside of a method."""

    owner: Expr
    after: type


def static(obj: Any, line: int = 0) -> Expr:
    """An expression that stands for a Python object."""
    return Expr("static", (), STATIC, obj, line)


def constant(obj: Any, line: int = 0) -> Expr | None:
    """The literal of a Python object; None where it has none."""
    kind = _CONSTANTS.get(type(obj))
    if kind is not None:
        return Expr("const", (), kind, obj, line)
    if isinstance(obj, (tuple, list)) and type(obj) in (tuple, list, flambeau.Size):
        parts = [constant(x, line) for x in obj]
        if None in parts or not parts:
            return None
        items = tuple(p for p in parts if p is not None)
        if type(obj) is tuple:
            return Expr("tuple", items, tuple_of(*(i.type for i in items)), None, line)
        if len({i.type for i in items}) == 1:
            return Expr("list", items, list_of(items[0].type), None, line)
    return None


def is_enum(obj: Any) -> bool:
    """A class of enumerators."""
    return isinstance(obj, type) and issubclass(obj, enum.Enum)


def is_named_tuple(obj: Any) -> bool:
    """A class made by `NamedTuple` or `namedtuple`."""
    return isinstance(obj, type) and issubclass(obj, tuple) and hasattr(obj, "_fields")


def contained(kind: Any, t: Type) -> list[Type] | None:
    """The members of a type that `tuple`, `list` or `dict` alone names; None where it names more."""
    tests: dict[Any, Callable[[Type], bool]] = {
        tuple: lambda m: m.base == "Tuple", list: lambda m: m.is_list, dict: lambda m: m.base == "Dict",
    }  # fmt: skip
    if not isinstance(kind, type) or kind not in tests:
        return None
    members = t.items if t.base == "Union" else (t.required(),)
    return [m for m in members if tests[kind](m)] or [Type(kind.__name__)]
