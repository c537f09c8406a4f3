"""Operators that programs add (`flambeau.library`), as graphs look at entries.

Owns the record of one (`Added`), made of its schema. What it returns is what the function says that
was registered as its fake; it has no body and no rules here: its derivative is recorded where it is
called (`_capture/operators.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from flambeau import _C
from flambeau._library.operators import OpOverload, OpOverloadPacket, overload_of

from .._ir import targets
from .._ir.graph_parse import parts
from .._ir.types import NONE, Param, Type, list_of, tuple_of
from ..classes import is_native
from .model import Op

if TYPE_CHECKING:
    from flambeau._library.schemas import Argument

_BASES = {
    "Tensor": "Tensor", "int": "int", "SymInt": "int", "float": "float", "SymFloat": "float",
    "bool": "bool", "SymBool": "bool", "str": "str", "Scalar": "Number", "complex": "Number",
    "ScalarType": "DType", "Device": "Device", "Layout": "Layout", "MemoryFormat": "MemoryFormat",
    "Generator": "Generator",
}  # fmt: skip
_LISTS = {
    "Tensor": "Tensors", "Tensor?": "OptTensors", "int": "Ints", "SymInt": "Ints",
    "float": "Floats", "SymFloat": "Floats", "bool": "Bools", "Scalar": "Numbers",
}  # fmt: skip


T = TypeVar("T")


class Added(Op):
    """The record of an added operator."""

    overload_object: OpOverload

    @property
    def mutates(self) -> bool:
        """What it writes to is in `updates`: no result stands for it."""
        return False


_by_name: list[Any] = []  # caches of what follows from an operator's name


def by_name(function: Callable[..., T]) -> Callable[..., T]:
    """`functools.cache` for facts of entries by name: names of added operators come and go."""
    made = cache(function)
    _by_name.append(made)
    return made


def is_added(uid: str) -> bool:
    """Whether a name is one of an added operator: they have namespaces."""
    return "::" in uid


def _type(text: str) -> Type:
    if text.endswith("?"):
        return _type(text[:-1]).or_none()
    item, bracket, length = text.rpartition("[")
    if bracket and item in _LISTS:
        return Type(_LISTS[item], length=int(length.rstrip("]") or 0))
    if bracket and text.endswith("]"):
        return list_of(_type(item))
    if text.endswith(")"):
        word, _, inside = text[:-1].partition("(")
        return Type(word or "Tuple", items=tuple(_type(t) for t in parts(inside)))
    if is_native(text) or text == "Any":
        return Type(text)
    return Type(_BASES[text])


def _default(a: Argument) -> ast.expr | None:
    """As entries of the table have them: something literal, or a name of the package."""
    if not a.has_default_value():
        return None
    value = a.default_value
    if isinstance(value, (_C.dtype, _C.memory_format, _C.layout)):
        return ast.Name(str(value).rpartition(".")[2])
    if isinstance(value, _C.device):
        return ast.Constant(str(value))
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return ast.Name("inf") if value > 0 else ast.parse("-1e999", mode="eval").body
    return ast.parse(repr(value), mode="eval").body


@by_name
def record(uid: str) -> Added:
    """The record of an added operator.

    Raises:
        KeyError: there is none of that name.
    """
    try:
        overload = overload_of(uid)
    except RuntimeError:
        raise KeyError(uid) from None
    schema = overload._schema
    params = [
        Param(a.name, _type(a.type.text), _default(a), a.kwarg_only) for a in schema.arguments
    ]
    types = [_type(r.type.text) for r in schema.returns]
    returns = NONE if not types else types[0] if len(types) == 1 else tuple_of(*types)
    node = ast.parse("def operator(): pass").body[0]
    assert isinstance(node, ast.FunctionDef)
    written = tuple(a.name for a in schema.arguments if a.is_write)
    made = Added(
        uid, "structured", params, returns, node, "", "added", "", options={"updates": written}
    )
    made.overload_object = overload
    return made


def is_there(uid: str) -> bool:
    """Whether there is an added operator of that name."""
    return _find(uid.removesuffix(".new")) is not None


def overloads(operator: Any) -> list[Added]:
    """The records of what a program holds as an operator; none where it is no added one."""
    if isinstance(operator, OpOverloadPacket):
        found = operator.overloads() if operator._function is None else []
        return [record(operator.overload(name)._uid) for name in found]
    overload = getattr(operator, "_opoverload", operator)
    if isinstance(overload, OpOverload) and overload.overloadpacket._function is None:
        return [record(overload._uid)]
    return []


def _find(uid: str) -> Any:
    if not is_added(uid):
        return None
    try:
        return record(uid)
    except KeyError:
        return None


def forget() -> None:
    """Names came or went."""
    for function in (targets.resolve, *_by_name):
        function.cache_clear()


targets.provide(_find)
