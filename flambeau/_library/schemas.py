"""Schemas of operators as programs look at them, and schemas made of annotations.

The core parses the text (`csrc/dispatch/schema.h`); nothing here knows its notation.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import flambeau
from flambeau import _C

from .tags import Tag


@dataclass(frozen=True)
class SchemaType:
    """A type of a schema, by its text."""

    text: str

    def kind(self) -> str:
        """What sort of type it is, as PyTorch calls them."""
        if self.text.endswith("?"):
            return "OptionalType"
        if self.text.endswith("]"):
            return "ListType"
        return _KINDS.get(self.text, f"{self.text}Type")

    def getElementType(self) -> SchemaType:
        """What a list or an optional holds."""
        inner = self.text[:-1] if self.text.endswith("?") else self.text.rpartition("[")[0]
        if not inner:
            raise RuntimeError(f"getElementType: expected a list or an optional, got {self.text}")
        return SchemaType(inner)

    @property
    def holds_tensors(self) -> bool:
        """A tensor, an optional one, or a list of them."""
        return self.text.rstrip("?]0123456789[") == "Tensor"

    def __str__(self) -> str:
        if self.text.endswith("?"):
            return f"Optional[{self.getElementType()}]"
        if self.text.endswith("]"):
            return f"List[{self.getElementType()}]"
        return _SHOWN.get(self.text, self.text)

    __repr__ = __str__


_KINDS = {
    "int": "IntType", "SymInt": "SymIntType", "float": "FloatType", "bool": "BoolType",
    "str": "StringType", "Scalar": "NumberType", "ScalarType": "ScalarTypeType",
    "Device": "DeviceObjType",
}  # fmt: skip
_SHOWN = {"SymInt": "int", "ScalarType": "int", "Scalar": "number", "Layout": "int",
          "MemoryFormat": "int"}  # fmt: skip


@dataclass(frozen=True)
class AliasInfo:
    """Sets of memory in which a value lies, before and after the call."""

    before_set: frozenset[str]
    after_set: frozenset[str]
    is_write: bool


class Argument:
    """An argument or a result of a schema."""

    def __init__(self, given: tuple[Any, ...]) -> None:
        self.name, type_text, default, self.kwarg_only, alias = given
        self.type = self.real_type = SchemaType(type_text)
        self._has_default = default is not ...
        self.default_value = None if default is ... else default
        self.alias_info = None
        if alias is not None:
            before, after, write = alias
            self.alias_info = AliasInfo(frozenset(before), frozenset(after or before), write)

    def has_default_value(self) -> bool:
        """Whether calls may leave it out."""
        return self._has_default

    @property
    def is_out(self) -> bool:
        return self.kwarg_only and self.is_write

    @property
    def is_write(self) -> bool:
        """The operator writes to it."""
        return self.alias_info is not None and self.alias_info.is_write

    def __repr__(self) -> str:
        return f"Argument({self.type} {self.name})"


class FunctionSchema:
    """The signature of an operator."""

    def __init__(self, given: tuple[Any, ...]) -> None:
        self.name, self.overload_name, arguments, returns, self._text = given
        self.arguments = [Argument(a) for a in arguments]
        self.returns = [Argument(r) for r in returns]

    @property
    def is_mutable(self) -> bool:
        """Whether it writes to an argument."""
        return any(a.is_write for a in self.arguments)

    @property
    def positional(self) -> int:
        """How many arguments may be given by position."""
        return sum(not a.kwarg_only for a in self.arguments)

    def __str__(self) -> str:
        return str(self._text)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def parse(text: str) -> FunctionSchema:
    """The schema of a text.

    Raises:
        RuntimeError: it is none; the message says where.
    """
    return FunctionSchema(_C._parse_schema(text))


# Of annotations -----------------------------------------------------------------------------------

_NAMES: dict[Any, str] = {
    flambeau.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    flambeau.dtype: "ScalarType",
    flambeau.device: "Device",
}
_NUMBER = frozenset((int, float, bool))
_SEQUENCES = (list, collections.abc.Sequence)
_RETURNS = ("Tensor", "SymInt", "float", "bool", "Scalar", "Tensor[]")


def _type_text(annotation: Any) -> str | None:
    """How a schema spells an annotation; None where it cannot."""
    if isinstance(annotation, type) and annotation in _NAMES:
        return _NAMES[annotation]
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in inside if a is not type(None)]
        if frozenset(rest) == _NUMBER:
            text: str | None = "Scalar"
        else:
            text = _type_text(rest[0]) if len(rest) == 1 else None
        return text if text is None or len(rest) == len(inside) else f"{text}?"
    if origin in _SEQUENCES and len(inside) == 1:
        item = _type_text(inside[0])
        if item in ("str", "ScalarType", "Device") or item is None or item.endswith("]"):
            return None
        return f"{item}[]" if not item.endswith("?") or item == "Tensor?" else None
    return None


def _default_text(value: Any, text: str) -> str | None:
    if value is None and text.endswith("?"):
        return "None"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, (flambeau.dtype, flambeau.device)):
        return str(value).removeprefix("torch.").removeprefix("flambeau.")
    return None


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Sequence[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema of a function, from its annotations.

    Args:
        prototype_function: a function all of whose parameters and whose result are annotated.
        mutates_args: names of the arguments that it writes to; "unknown" means all tensors.
        op_name: written in front, if given.
        tags: `Tag.inplace`: the function returns its first argument, which it writes to;
            `Tag.out`: it returns the arguments given by name that it writes to.

    Returns:
        The text, as `Library.define` takes it.

    Raises:
        ValueError: an annotation is missing, or no schema can say what it says.

    >>> def scale(x: torch.Tensor, by: float = 2.0) -> torch.Tensor: ...
    >>> torch.library.infer_schema(scale, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function)

    def refuse(words: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {words}, got func with signature {signature}")

    try:
        hints = typing.get_type_hints(prototype_function)
    except (NameError, TypeError) as e:
        refuse(f"expected annotations that can be evaluated ({e})")
    written = {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    parts: list[str] = []
    seen: set[str] = set()
    memory: dict[str, str] = {}  # of what is written to
    starred = False
    for name, p in signature.parameters.items():
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            refuse(f"expected parameters that can be given by name, not {p}")
        if p.annotation is p.empty:
            refuse(f"Parameter {name} must have a type annotation")
        text = _type_text(hints.get(name, p.annotation))
        if text is None:
            refuse(f"Parameter {name} has the unsupported type {p.annotation}")
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        tensors = text.startswith("Tensor")
        if name in written or (written == {"unknown"} and tensors):
            if not tensors:
                refuse(f"expected tensors in mutates_args, but {name} is {text}")
            memory[name] = f"Tensor(a{len(seen)}!)"
            text = memory[name] + text.removeprefix("Tensor")
        seen.add(name)
        if p.default is p.empty:
            parts.append(f"{text} {name}")
            continue
        default = _default_text(p.default, text)
        if default is None:
            refuse(f"Parameter {name} has the unsupported default {p.default!r}")
        parts.append(f"{text} {name}={default}")
    if unknown := sorted(written - seen - {"unknown"}):
        refuse(f"{unknown} in mutates_args are no parameters")
    returns = _returns_text(hints.get("return", signature.return_annotation), refuse)
    kinds = tags if isinstance(tags, (list, tuple)) else [tags]
    if Tag.inplace in kinds or Tag.out in kinds:
        returns = _written_returns(Tag.inplace in kinds, signature, memory, returns, refuse)
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"


def _written_returns(
    inplace: bool,
    signature: inspect.Signature,
    memory: dict[str, str],
    returns: str,
    refuse: Callable[[str], typing.NoReturn],
) -> str:
    """Results that are the arguments which are written to."""
    params = list(signature.parameters.values())
    if inplace and list(memory) != [p.name for p in params[:1]]:
        refuse("torch.Tag.inplace requires mutates_args to contain exactly the first argument")
    if not inplace and any(p.kind is not p.KEYWORD_ONLY for p in params if p.name in memory):
        refuse("torch.Tag.out requires arguments that are written to to be given by name alone")
    expected = ", ".join("Tensor" for _ in memory)
    if not memory or returns.strip("()") != expected:
        refuse(f"expected the result to be annotated as {expected or 'Tensor'}")
    texts = list(memory.values())
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _returns_text(annotation: Any, refuse: Callable[[str], typing.NoReturn]) -> str:
    if annotation is inspect.Signature.empty:
        refuse("expected an annotation of the result")
    if annotation in (None, type(None)):
        return "()"
    inside = typing.get_args(annotation)
    many = typing.get_origin(annotation) is tuple and ... not in inside
    texts = [_type_text(a) for a in inside] if many else [_type_text(annotation)]
    for text in texts:
        if text not in _RETURNS:
            refuse(f"Return has the unsupported type {annotation}")
    return f"({', '.join(map(str, texts))})" if many else str(texts[0])
