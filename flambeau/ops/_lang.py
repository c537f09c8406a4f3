"""Decorators and names with which the table is written, for Python's benefit.

The build reads entries with `ast` and never runs this. Imported at run time (by the compiler stack
and tests), the decorators file each entry in `TABLE` with the same information the build has, so
that bodies can run over other values than tensors: whoever runs one puts the meaning of the
intrinsics and of the other entries in `Entry.namespace()`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, TypeVar

F = Callable[..., Any]
_T = TypeVar("_T")


class _TypeName:
    """Stands for a type of the subset in annotations, which are never evaluated."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, items: object) -> _TypeName:
        return self

    def __repr__(self) -> str:
        return self.name


_TYPES = (
    "Tensor Tensors OptTensors Number Ints Ints1 Ints2 Ints3 Floats Bools Numbers DType Device "
    "Layout MemoryFormat Generator Tuple"
).split()


@dataclass
class Entry:
    """One entry: its functions as plain Python, callable over anything that acts like a tensor."""

    name: str
    kind: str
    body: F
    options: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, F] = field(default_factory=dict)
    rule_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    overload_index: int = 0

    @property
    def uid(self) -> str:
        return self.name if not self.overload_index else f"{self.name}_{self.overload_index}"

    def namespace(self) -> dict[str, Any]:
        """Globals of the entry's file: intrinsics and other operations are looked up there."""
        return self.body.__globals__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.body(*args, **kwargs)

    def _rule(self, kind: str, function: F | None, options: dict[str, Any]) -> Any:
        def attach(f: F) -> Entry:
            self.rules[kind] = f
            self.rule_options[kind] = options
            return self

        return attach if function is None else attach(function)

    def vjp(self, function: F | None = None, /, **options: Any) -> Any:
        return self._rule("vjp", function, options)

    def jvp(self, function: F | None = None, /, **options: Any) -> Any:
        return self._rule("jvp", function, options)

    def vmap(self, function: F | None = None, /, **options: Any) -> Any:
        return self._rule("vmap", function, options)

    def samples(self, function: F | None = None, /, **options: Any) -> Any:
        return self._rule("samples", function, options)

    def decompose(self, function: F | None = None, **options: Any) -> Any:
        return self._rule("decompose", function, options)

    def overload(self, function: F | None = None, /, **options: Any) -> Any:
        def add(f: F) -> Entry:
            return _file_all(f, self.kind, options)

        return add if function is None else add(function)


#: name -> its entries, overloads in order
TABLE: dict[str, list[Entry]] = {}


def _file(function: F, kind: str, options: dict[str, Any]) -> Entry:
    name = options.get("name", function.__name__)
    entries = TABLE.setdefault(name, [])
    entries.append(Entry(name, kind, function, options, overload_index=len(entries)))
    return entries[-1]


def _written_out(code: CodeType, name: str) -> CodeType:
    """The code with `NAME` replaced by `name` in all names that it uses."""
    constants = tuple(
        _written_out(c, name) if isinstance(c, CodeType) else c for c in code.co_consts
    )
    names = tuple(n.replace("NAME", name) for n in code.co_names)
    return code.replace(
        co_consts=constants, co_names=names, co_name=code.co_name.replace("NAME", name)
    )


def _copy_for(f: F, name: str) -> F:
    function = FunctionType(_written_out(f.__code__, name), f.__globals__, None, f.__defaults__)
    function.__kwdefaults__ = f.__kwdefaults__
    function.__doc__ = (f.__doc__ or "").replace("NAME", name)
    return function


def _file_all(f: F, kind: str, options: dict[str, Any]) -> Entry:
    """Files an entry, or one for each name of `each`, which are then names of the entry's file."""
    if "each" not in options:
        return _file(f, kind, options)
    entries = [_file(_copy_for(f, n), kind, options) for n in options["each"]]
    f.__globals__.update({e.name: e for e in entries})
    return entries[-1]


def _kind(kind: str) -> F:
    def decorate(function: F | None = None, /, **options: Any) -> Any:
        def file(f: F) -> Entry:
            return _file_all(f, kind, options)

        return file if function is None else file(function)

    decorate.__name__ = kind
    return decorate


pointwise = _kind("pointwise")
reduction = _kind("reduction")
view = _kind("view")
structured = _kind("structured")
composite = _kind("composite")

globals().update({name: _TypeName(name) for name in _TYPES})

# Memory formats stand in default values, which Python evaluates; whoever runs a body gives them
# their meaning.
contiguous_format, preserve_format = "contiguous_format", "preserve_format"
channels_last, channels_last_3d = "channels_last", "channels_last_3d"


class Scalars:
    """`s.NAME(...)` in pointwise bodies; an interpreter of the table replaces it."""

    def __getattr__(self, name: str) -> F:
        raise NotImplementedError(f"s.{name} has no meaning until an interpreter gives it one")


s = Scalars()


def check(condition: Any, message: str) -> None:
    """Raises RuntimeError unless the condition holds."""
    if not condition:
        raise RuntimeError(message)


def check_value(condition: Any, message: str) -> None:
    """Raises ValueError unless the condition holds."""
    if not condition:
        raise ValueError(message)


def check_type(condition: Any, message: str) -> None:
    """Raises TypeError unless the condition holds."""
    if not condition:
        raise TypeError(message)


def check_index(condition: Any, message: str) -> None:
    """Raises IndexError unless the condition holds."""
    if not condition:
        raise IndexError(message)


def check_not_implemented(condition: Any, message: str) -> None:
    """Raises NotImplementedError unless the condition holds."""
    if not condition:
        raise NotImplementedError(message)


inf, nan, pi = float("inf"), float("nan"), 3.141592653589793

__all__ = [
    "TABLE", "Entry", "pointwise", "reduction", "view", "structured", "composite", "s", "inf",
    "nan", "pi", "check", "check_value", "check_type", "check_index", "check_not_implemented",
    "contiguous_format", "preserve_format", "channels_last", "channels_last_3d", *_TYPES,
]  # fmt: skip
