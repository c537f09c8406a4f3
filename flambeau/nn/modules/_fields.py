"""Fields: what a module is made of, declared once in the body of its class.

Owns what follows from the declaration: `__init__` with the public signature, `__constants__` and
`extra_repr`. Invariant: a method that the class writes itself is never replaced. Knows no module in
particular.

Note [Fields of a module]
An annotated name in a class under `@fields` is an argument of `__init__` and an attribute:
`name: type`, `name: type = default` or `name: type = option(...)`. `parameter` and `optional`
declare parameters, their shapes as expressions over the other fields. `InitVar[...]` is an argument
and no attribute, `ClassVar[...]` no field. The order is that of a dataclass. `__init__` sets the
options, calls `_settle` of each class that has one (with the `InitVar`s it names; it checks, and
completes fields), makes the parameters and resets them. Only the first use writes the function:
importing a hundred modules must not compile a hundred.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, dataclass_transform, overload

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.parameter import Parameter

from .module import Module

Class = TypeVar("Class", bound=type)
_MISSING: Any = object()
_TABLE = "__module_fields__"


class Maybe:
    """Type of a parameter that a flag of its name asks for."""

    if TYPE_CHECKING:

        def __get__(self, module: object, cls: Any = None) -> Tensor: ...
        def __set__(self, module: object, value: bool | Tensor | None) -> None: ...


#: annotations of attributes whose argument has another type
_ARGUMENTS = {"Maybe": "bool"}


class Field:
    """A field of a class.

    Attributes:
        name, type: of the attribute; the type as text.
        kind: "option", "argument" (no attribute), "parameter", or "optional" (a parameter that a
            flag of its name asks for).
        default: of the argument; `_MISSING` where it is required.
        alias: name of the argument, where that is another.
        shape: of a parameter, an expression over options.
    """

    name = type = ""

    def __init__(
        self, kind: str, default: Any = _MISSING, *, alias: str = "", shape: str = ""
    ) -> None:
        self.kind, self.default, self.alias, self.shape = kind, default, alias, shape

    @property
    def argument(self) -> str:
        return self.alias or self.name

    def text(self, module: Any) -> str:
        """How it stands in the printed form."""
        if self.kind not in ("option", "optional"):
            return ""
        value = getattr(module, self.name)
        return f"{self.name}={value if self.kind == 'option' else value is not None}"


def option(*, default: Any = _MISSING, alias: str) -> Any:
    """An option whose argument has another name."""
    return Field("option", default, alias=alias)


def parameter(shape: str, *, init: Literal[False] = False) -> Any:
    """A parameter."""
    return Field("parameter", shape=shape)


def optional(shape: str, *, default: bool) -> Any:
    """A parameter that a flag of its name asks for."""
    return Field("optional", default, shape=shape)


@overload
def fields(cls: Class) -> Class: ...
@overload
def fields(*, shown: bool) -> Callable[[Class], Class]: ...
@dataclass_transform(field_specifiers=(option, parameter, optional))
def fields(cls: Any = None, *, shown: bool = True) -> Any:
    """Give a module what follows from its fields, printed or not; see Note [Fields of a module]."""
    if cls is None:
        return lambda cls: _declare(cls, shown)
    return _declare(cls, shown)


def _declare(cls: type, shown: bool) -> type:
    inherited: dict[str, Field] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited.update(base.__dict__.get(_TABLE, {}))
    own: dict[str, Field] = {}
    taken: list[str] = []
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():
        if annotation.startswith("ClassVar"):
            continue
        value = cls.__dict__.get(name, _MISSING)
        field = value if isinstance(value, Field) else Field("option", value)
        if annotation.startswith("InitVar["):
            field.kind, annotation = "argument", annotation[8:-1]
            taken.append(name)
        field.name, field.type = name, annotation
        own[name] = field
        if value is not _MISSING:
            delattr(cls, name)
    for name in taken:  # no attribute, and nothing for get_type_hints to find
        del cls.__annotations__[name]
    table = {**inherited, **own}
    members: dict[str, Any] = {_TABLE: table, "__init__": _Unwritten(cls)}
    members["__constants__"] = [f.name for f in table.values() if f.kind == "option"]
    made: Any = cls
    if shown and made.extra_repr is Module.extra_repr:
        members["extra_repr"] = _extra_repr
    for name, value in members.items():
        if name not in cls.__dict__:
            setattr(cls, name, value)
    return cls


def fields_of(module: Any) -> dict[str, Field]:
    """Fields of a module or class by name, in the order of its arguments."""
    found: dict[str, Field] = getattr(module, _TABLE, {})
    return found


def _extra_repr(self: Module) -> str:
    return ", ".join(text for f in fields_of(self).values() if (text := f.text(self)))


class _Unwritten:
    """Stands for the `__init__` of a class until it is first asked for."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def __get__(self, module: Any, cls: Any = None) -> Any:
        made: Any = self.cls
        function = made.__init__ = _write_init(self.cls)
        return function.__get__(module, cls)


def _write_init(cls: type) -> Any:
    table = list(fields_of(cls).values())
    modules = [c for c in cls.__mro__ if issubclass(c, Module) and c is not Module]
    names: dict[str, Any] = {"_fb": fb, "_base": modules[-1], "_Parameter": Parameter}
    lines = ["super(_base, self).__init__()"]
    for f in table:
        if f.kind == "option":
            local = f"{f.name} = " if f.alias else ""
            lines.append(f"{local}self.{f.name} = {f.argument}")
    for i, c in enumerate(reversed(cls.__mro__)):
        if "_settle" in c.__dict__:
            names[f"_settle_{i}"] = settle = c.__dict__["_settle"]
            wanted = settle.__code__.co_varnames[1 : settle.__code__.co_argcount]
            lines.append(f"_settle_{i}(self, {', '.join(wanted)})")
    tensors = [f for f in table if f.shape]
    for f in tensors:
        empty = f"_fb.empty(({f.shape},), device=device, dtype=dtype)"
        made = f"self.{f.name} = _Parameter({empty})"
        if f.kind == "optional":
            lines.append(f"if {f.name}: {made}")
            made = f"else: self.register_parameter({f.name!r}, None)"
        lines.append(made)
    if tensors:
        lines.append("self.reset_parameters()")
    text = ["self"]
    hints: dict[str, str] = {}
    for f in table:
        if f.kind == "parameter":
            continue
        names[f"_default_{f.name}"] = f.default
        text.append(f.argument + ("" if f.default is _MISSING else f"=_default_{f.name}"))
        hints[f.argument] = _ARGUMENTS.get(f.type, f.type)
    source = f"def made({', '.join(names)}):\n def __init__({', '.join(text)}):\n  "
    source += "\n  ".join(lines) + "\n return __init__\n"
    scope = vars(sys.modules[cls.__module__])
    file = f"{scope['__file__']}: fields of {cls.__qualname__}"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    place: dict[str, Any] = {}
    exec(compile(source, file, "exec"), scope, place)
    function = place["made"](**names)
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__module__ = cls.__module__
    function.__annotations__ = {**hints, "return": "None"}
    return function
