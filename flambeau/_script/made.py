"""What the classes and functions of a unit were made of, and small readings of Python objects.

Owns the records that `compiler` keeps beside the unit. Types nothing.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flambeau
from flambeau.nn import Module

from .._ir.errors import CompileError
from .._ir.types import TENSOR, Type
from .annotations import TypeError_, type_of
from .hooks import Hooks
from .sources import NoSource, source_of
from .unit import Class, Signature


class Host(Signature):
    """A function left to Python: it runs as it is, and cannot be saved."""

    @property
    def uid(self) -> str:
        return f"host.{self.name}"


class Made:
    """What a class of the unit was made of."""

    def __init__(self, record: Class, python: type, module: Module | None = None) -> None:
        self.record, self.python, self.module = record, python, module
        self.statics: dict[str, Any] = {}
        self.failed: dict[str, str] = {}
        self.children: dict[str, Class] = {}
        self.signatures: dict[str, Signature] = {}
        self.hooks = Hooks()
        self.labels: dict[str, dict[Any, str]] = {}  # of methods, by the types they are given
        self.open = False  # its `__init__` is being read: attributes may be added


_NN = os.path.dirname(flambeau.nn.__file__) + os.sep


def ours(obj: Any) -> bool:
    """A module's class of `flambeau.nn`, a function of one, or its file."""
    if isinstance(obj, type):
        file = getattr(sys.modules.get(obj.__module__), "__file__", None) or ""
        return file.startswith(_NN)
    if isinstance(obj, str):
        return obj.startswith(_NN)
    return str(obj.__code__.co_filename).startswith(_NN)


def open_parameters(f: Any) -> list[str]:
    """Parameters of our own functions that are declared `Any`: a call says what they are."""
    if not ours(f):
        return []
    return [n for n, hint in f.__annotations__.items() if hint == "Any" and n != "return"]


def names_given(f: Any, count: int) -> tuple[str, ...]:
    """Names of the first parameters of a function, which get values by position."""
    code = f.__code__
    return tuple(code.co_varnames[: min(count, code.co_argcount)])


def qualified(obj: Any) -> str:
    """The name of a function or class in a unit: at least one dot."""
    name = obj.__qualname__.replace("<locals>.", "").replace("<lambda>", "lambda_")
    module = "".join(c if c.isalnum() or c in "._" else "_" for c in obj.__module__ or "main")
    return f"{module}.{name}"


class Library(Signature):
    """The `forward` of a module of the package."""

    @property
    def uid(self) -> str:
        return "core.call_module"


class Opening:
    """The signature of a method whose body is being typed."""

    def __init__(self, table: dict[str, Signature], label: str) -> None:
        self.table, self.label = table, label

    def keep(self, made: Signature) -> Signature:
        self.table[self.label] = made
        return made

    def drop(self) -> None:
        self.table.pop(self.label, None)


SEQUENTIAL = vars(flambeau.nn.Sequential)["forward"]
_PLAIN_STATE = {*vars(Module()), "_non_persistent_buffers_set", "_script_types"} - {"training"}


def module_state(name: str) -> bool:
    """An attribute that any module has, at once or when it is asked for."""
    return name in _PLAIN_STATE or (name.startswith("_") and "hook" in name)


def hinted_type(hint: tuple[Any, Any], named: Any) -> Type | None:
    try:
        return type_of(hint[0], named, hint[1])
    except TypeError_:
        return None


def guess(hint: Any, named: Any, look: Any) -> Type:
    if hint is None:
        return TENSOR
    try:
        return type_of(hint, named, look)
    except TypeError_:
        return TENSOR


def class_key(x: Any) -> Any:
    try:
        hash(x)
    except TypeError:
        return repr(x)
    return (type(x), x)


def looker(space: Mapping[str, Any]) -> Callable[[str], Any]:
    def look(name: str) -> Any:
        return space[name]

    return look


def naming(cls: type | None, look: Callable[[str], Any]) -> Callable[[str], Any]:
    """A look at names that also finds a class by its own, while a decorator is still at work."""

    def found(name: str) -> Any:
        try:
            return look(name)
        except KeyError:
            if cls is not None and name == cls.__name__:
                return cls
            raise

    return found


def scriptable(cls: type) -> bool:
    """A class of the program, whose source is there."""
    try:
        source_of(cls)
    except (NoSource, CompileError):
        return False
    return True


def raises(f: Any) -> Callable[..., Any]:
    def unused(*args: Any) -> Any:
        raise RuntimeError(f"{f.__qualname__} is marked as unused: scripts cannot call it")

    return unused


def longer(a: Sequence[str], b: Sequence[str]) -> Sequence[str]:
    out = list(a) + [""] * (len(b) - len(a))
    for i, line in enumerate(b):
        if line:
            out[i] = line
    return out


def comment_types(text: str) -> tuple[list[str] | None, str]:
    """Argument types and result of a type comment, as text."""
    if not text:
        return None, ""
    args, _, result = text.rpartition("->")
    try:
        tree = ast.parse(f"f{args.strip()}", mode="eval").body
    except SyntaxError:
        return None, ""
    if not isinstance(tree, ast.Call):
        return None, ""
    return [ast.unparse(a) for a in tree.args], result.strip()
