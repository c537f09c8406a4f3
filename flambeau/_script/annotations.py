"""Types of scripts from what programs write: annotations, type comments, values.

Owns the reading of `typing`'s forms as objects and as text. Text is parsed and its names looked
up; it is never evaluated, so a type comment cannot run code (CVE-2022-45907). Classes of the
program are asked for by `named`.
"""

from __future__ import annotations

import ast
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau.futures import Future

from .._ir.coerce import EMPTY_DICT as EMPTY_DICT
from .._ir.types import BOOL, DEVICE, DTYPE, FLOAT, INT, NONE, NUMBER, STR, TENSOR, Type, list_of
from .._ir.types import parse_type as plain_type

ANY = Type("Any")
COMPLEX = Type("complex")
#: asks for the type of a class of the program; None where it has none
Named = Callable[[Any], Type | None]

_PLAIN: dict[Any, Type] = {
    flambeau.Tensor: TENSOR, flambeau.nn.Parameter: TENSOR, int: INT, float: FLOAT, bool: BOOL,
    str: STR, complex: COMPLEX, type(None): NONE, None: NONE, Any: ANY, flambeau.dtype: DTYPE,
    flambeau.device: DEVICE, flambeau.layout: Type("Layout"),
    flambeau.memory_format: Type("MemoryFormat"), flambeau.Generator: Type("Generator"),
    flambeau.Size: list_of(INT), list: list_of(TENSOR), dict: Type("Dict", items=(STR, TENSOR)),
}  # fmt: skip
#: named lists that an int may stand for, by their length
_NUMBERS = {INT, FLOAT, BOOL, COMPLEX}


class TypeError_(Exception):
    """Why an annotation stands for no type; becomes an error with its place."""


def dict_of(key: Type, value: Type) -> Type:
    """Type of a dict."""
    if key not in (STR, INT, FLOAT, BOOL, COMPLEX, TENSOR) and "." not in key.base:
        raise TypeError_(f"keys of a dict are str, int, float, bool, complex or Tensor, not {key}")
    return Type("Dict", items=(key.plain(), value.plain()))


def future_of(item: Type) -> Type:
    """Type of a value that a task computes."""
    return Type("Future", items=(item.plain(),))


def union_of(members: Sequence[Type]) -> Type:
    """One of several types; numbers together are a Number, None makes the rest optional."""
    optional = any(m == NONE or m.optional for m in members)
    flat: list[Type] = []
    for m in members:
        parts = m.items if m.base == "Union" else (m.required(),)
        flat += [p.plain() for p in parts if p != NONE and p.plain() not in flat]
    if not flat:
        return NONE
    if len(flat) > 1 and set(flat) <= _NUMBERS | {NUMBER}:
        flat = [NUMBER]
    made = flat[0] if len(flat) == 1 else Type("Union", items=tuple(flat))
    return made.or_none() if optional else made


def type_of(annotation: Any, named: Named, names: Callable[[str], Any] | None = None) -> Type:
    """Type of an annotation.

    Args:
        annotation: an object of `typing`, a class, or text.
        named: the type of a class of the program.
        names: what a name in a text stands for (KeyError: nothing).

    Raises:
        TypeError_: it stands for no type of scripts.
    """
    if isinstance(annotation, str):
        try:
            tree = ast.parse(annotation.strip(), mode="eval").body
        except SyntaxError:
            raise TypeError_(f"unknown type {annotation!r}") from None
        return type_of(_resolved(tree, names), named, names)
    if isinstance(annotation, typing.ForwardRef):
        return type_of(annotation.__forward_arg__, named, names)
    try:
        if annotation in _PLAIN:
            return _PLAIN[annotation]
    except TypeError:
        pass
    if isinstance(annotation, Type):
        return annotation
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None:
        found = named(annotation)
        if found is None:
            raise TypeError_(f"unknown type {_shown(annotation)}")
        return found
    items = [type_of(a, named, names) for a in args if a is not Ellipsis]
    if origin in (typing.Union, types.UnionType):
        return union_of(items)
    if origin is list or origin is typing.List:  # noqa: UP006
        return list_of(items[0])
    if origin is dict:
        return dict_of(*items)
    if origin is tuple:
        if Ellipsis in args:
            raise TypeError_(f"a tuple has a length: {_shown(annotation)}; write a list")
        return Type("Tuple", items=tuple(i.plain() for i in items))
    if origin is typing.Final or origin is typing.ClassVar:
        return items[0]
    if isinstance(origin, type) and issubclass(origin, Future):
        return future_of(items[0])
    raise TypeError_(f"unknown type {_shown(annotation)}")


def _shown(annotation: Any) -> str:
    return getattr(annotation, "__qualname__", None) or str(annotation)


def _resolved(node: ast.expr, names: Callable[[str], Any] | None) -> Any:
    """The object of `typing` that a parsed annotation spells."""
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str(text)):
            return _resolved(ast.parse(text, mode="eval").body, names)
        case ast.Name(id=name):
            for look in (names, _known):
                try:
                    if look is not None:
                        return look(name)
                except KeyError:
                    continue
            raise TypeError_(f"unknown type {name!r}")
        case ast.Attribute(value=value, attr=attr):
            found = _resolved(value, names)
            if not hasattr(found, attr):
                raise TypeError_(f"unknown type {ast.unparse(node)!r}")
            return getattr(found, attr)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return typing.Union[_resolved(left, names), _resolved(right, names)]  # noqa: UP007
        case ast.Subscript(value=value, slice=index):
            origin = _resolved(value, names)
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            items = tuple(Ellipsis if _dots(p) else _resolved(p, names) for p in parts)
            if not _generic(origin):
                raise TypeError_(f"unknown type {ast.unparse(node)!r}")
            return origin[items if len(items) > 1 else items[0]]
        case ast.Tuple(elts=[]):
            return typing.Tuple[()]  # noqa: UP006
    raise TypeError_(f"unknown type {ast.unparse(node)!r}")


def _dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _known(name: str) -> Any:
    if name == "Tensor":
        return flambeau.Tensor
    if name in ("int", "float", "bool", "str", "complex", "list", "dict", "tuple"):
        return {k.__name__: k for k in (int, float, bool, str, complex, list, dict, tuple)}[name]
    if name in ("List", "Dict", "Tuple", "Optional", "Union", "Any", "Final"):
        return getattr(typing, name)
    raise KeyError(name)


def _generic(origin: Any) -> bool:
    """Taking an item of it makes a type, and runs nothing of the program's."""
    from flambeau.jit.annotations import _BroadcastingList

    if origin in (list, dict, tuple):
        return True
    if isinstance(origin, type) and issubclass(origin, Future):
        return True
    return getattr(origin, "__module__", "") == "typing" or isinstance(origin, _BroadcastingList)


def type_of_value(value: Any, named: Named) -> Type | None:
    """Type of an attribute by its value; None where scripts have none for it."""
    kind = type(value)
    if isinstance(value, flambeau.Tensor):
        return TENSOR
    if kind in _PLAIN and kind not in (list, dict):
        return _PLAIN[kind]
    if isinstance(value, tuple) and kind is tuple:
        items = [type_of_value(v, named) for v in value]
        return None if None in items else Type("Tuple", items=tuple(i.plain() for i in items if i))
    if isinstance(value, list):
        common = _common([type_of_value(v, named) for v in value])
        return list_of(common) if common else None
    if isinstance(value, dict):
        key = _common([type_of_value(v, named) for v in value])
        item = _common([type_of_value(v, named) for v in value.values()])
        return dict_of(key, item) if key and item else None
    return named(kind)


def _common(items: Sequence[Type | None]) -> Type | None:
    if not items or None in items:
        return None
    first = items[0]
    if all(i == first for i in items):
        return first
    both = union_of([i for i in items if i])
    return both if both.base not in ("Union", "Number") else None


def parse_type(node: ast.expr, file: str = "text") -> Type:
    """Type of a text of the IR: those of the table, containers, and classes with dots."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return parse_type(left).or_none()
        case ast.Attribute():
            return Type(ast.unparse(node))
        case ast.Name(id="Any" | "complex" | "Slice" | "Ellipsis" | "Tuple" as name):
            return Type(name)
        case ast.Subscript(value=ast.Name(id="List"), slice=item):
            return list_of(parse_type(item))
        case ast.Subscript(
            value=ast.Name(id="Tuple" | "Dict" | "Union" | "Future" as name), slice=item
        ):
            items = item.elts if isinstance(item, ast.Tuple) else [item]
            return Type(name, items=tuple(parse_type(i) for i in items))
    return plain_type(node, file)
