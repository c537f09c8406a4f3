"""Classes of programs in scripts: enums, named tuples, classes, and what makes their values.

Owns which attributes they have (`__init__` says, or a dataclass's fields) and what is asked of
them. Modules are `compiler`'s.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import types
import typing
from typing import Any

import flambeau
from flambeau.nn import Module

from .._ir.errors import CompileError
from .._ir.graph import Function, Node, Value
from .._ir.typed import Callee, Expr
from .._ir.types import BOOL, NONE, STR, TENSOR, Param, Type
from .._ir.where import Where
from .._table import added
from .._table.model import Op
from ..classes import class_named, is_native
from .annotations import type_of
from .calls import Given
from .interfaces import Invoked, Native, is_interface, unlike
from .made import Made, looker, naming, qualified, scriptable
from .meaning import is_enum, is_named_tuple
from .sources import source_of
from .typer import ScriptTyper
from .unit import Class, Signature, Unit


def _is_made(f: types.FunctionType) -> bool:
    """Is a method made by `dataclass`, not written? A script that calls one is told so."""
    return inspect.unwrap(f).__code__.co_filename == "<string>"


class Classes:
    """The part of a compiler that knows classes."""

    unit: Unit
    python: dict[str, type]
    _classes: dict[Any, Made]
    _made: dict[str, Made]
    name_for: Any
    method: Any
    signature: Any

    def type_of_class(self, cls: Any) -> Type | None:
        """Type of a class of the program; None where scripts have none for it."""
        made = self.class_of(cls)
        return made.type if made is not None else None

    def class_of(self, cls: Any) -> Class | None:
        """The class of the unit made from an enum, a NamedTuple or a scripted class."""
        if not isinstance(cls, type):
            return None
        known = self._classes.get(cls)
        if known is not None:
            return known.record
        if is_interface(cls):
            return self._interface(cls)
        if issubclass(cls, flambeau.ScriptObject):
            return self._native(cls)
        if is_enum(cls):
            kinds = {type(m.value) for m in cls}  # type: ignore[attr-defined]
            if kinds - {int, float, str} or len(kinds) != 1:
                return None
            t = type_of(kinds.pop(), lambda _: None)
            values = {m.name: m.value for m in cls}  # type: ignore[attr-defined]
            record = Class("", "enum", {"value": t, "name": STR}, values)
        elif is_named_tuple(cls):
            hints = next((vars(c)["__annotations__"] for c in cls.__mro__
                          if "__annotations__" in vars(c)), {})  # fmt: skip
            space = vars(sys.modules.get(cls.__module__, types.ModuleType("")))
            look = looker(space)
            fields = {}
            for name in cls._fields:  # type: ignore[attr-defined]
                fields[name] = (
                    type_of(hints[name], self.type_of_class, look) if name in hints else TENSOR
                )
            record = Class("", "tuple", fields, dict(cls._field_defaults))  # type: ignore[attr-defined]
        elif issubclass(cls, (Module, flambeau.Tensor, BaseException)) or cls.__module__ in (
            "builtins", "typing", "flambeau",
        ):  # fmt: skip
            return None
        elif getattr(cls, "_script_class", False) or scriptable(cls):
            record = Class("", "class")
        else:
            return None
        record.name = self.name_for(qualified(cls), cls)
        made = Made(record, cls)
        self._classes[cls] = made
        self._register(made)
        return record

    def _interface(self, cls: type) -> Class:
        """An interface: its methods are functions of the unit that only say how they are called."""
        record = Class(self.name_for(qualified(cls), cls), "interface")
        self._classes[cls] = made = Made(record, cls)
        self._register(made)
        for n, f in vars(cls).items():
            if not isinstance(f, types.FunctionType):
                continue
            name, source = f"{record.name}.{n}", source_of(f)
            params, returns = self.signature(f, source, record.type, name)
            kind = returns if returns is not None else TENSOR
            made.signatures[n] = Invoked(n, params, kind)
            inputs = tuple(Value(i, p.type.plain(), p.name) for i, p in enumerate(params))
            where = Where("", 0, name)
            nodes = [Node("raise", ("NotImplementedError", name), (), where)]
            self.unit.functions[name] = Function(inputs, nodes, (), name, params, kind, "", 0)
            record.methods[n] = name
        return record

    def _native(self, cls: Any) -> Class:
        """A class of C++: its methods are operators."""
        record = Class(cls._script_name, "native")
        self._classes[cls] = made = Made(record, cls)
        self._register(made)
        named = dict(cls._script_methods)
        for n, (get, set_) in cls._script_properties.items():
            named |= {f"__get_{n}": get} | ({f"__set_{n}": set_} if set_ else {})
        for n, uid in named.items():
            op = added.record(uid)
            made.signatures[n] = Native(uid, list(op.params), op.returns)
            self.know(op)
        return record

    def know(self, op: Op) -> None:
        """Classes of C++ that an operator takes or gives become classes of the unit."""
        pending = [*(p.type for p in op.params), op.returns]
        while pending:
            t = pending.pop()
            pending += [*t.items, *([t.element] if t.is_list else [])]
            if is_native(t.base) and t.base not in self._made:
                self.class_of(class_named(t.base))

    def interface_of(self, t: Type | None) -> Class | None:
        """The interface that a type is."""
        made = self.made(t) if t is not None else None
        return made.record if made is not None and made.record.kind == "interface" else None

    def implement(self, child: Class, wanted: Class, where: str) -> None:
        """Types the methods of a module that an interface asks for.

        Raises:
            CompileError: one is not there, or called otherwise.
        """
        for n in wanted.methods:
            if self.has_method(child.type, n) or n in child.methods:
                child.methods[n] = self.method(child.type, n, None, None).name
        why = unlike(self.unit, child, self.unit, wanted)
        if why:
            raise CompileError(f"{where}: {why}", "")

    def _register(self, made: Made) -> None:
        self._made[made.record.name] = made
        self.unit.classes[made.record.name] = made.record
        self.python[made.record.name] = made.python

    def made(self, t: Type) -> Made | None:
        return self._made.get(t.base) if not t.optional else None

    def tuple_items(self, t: Type) -> list[Type] | None:
        """Types of the fields of a NamedTuple."""
        made = self.made(t)
        if made is None or made.record.kind != "tuple":
            return None
        return list(made.record.attributes.values())

    def enum_value(self, record: Class) -> Type:
        return record.attributes["value"]

    def derives(self, t: Type, base: Type) -> bool:
        a, b = self.made(t), self.made(base)
        return a is not None and b is not None and issubclass(a.python, b.python)

    def tuple_class(self, cls: type, node: ast.AST, typer: Any) -> Signature:
        record = self.class_of(cls)
        if record is None:
            typer.fail(f"{cls.__name__} has a field without a type of scripts", node)
        assert record is not None
        params = [
            Param(n, t, Given(record.defaults[n]) if n in record.defaults else None)
            for n, t in record.attributes.items()
        ]
        return Signature(record.name, params, record.type)

    def constructor(self, cls: type, node: ast.AST, typer: Any) -> Signature:
        """The function that makes a value of a class."""
        record = self.class_of(cls)
        if record is not None and record.kind == "native":
            found = self._made[record.name].signatures.get("__new__")
            if found is not None:
                return found
        if record is None or record.kind != "class":
            typer.fail(f"{cls.__name__} cannot be made in a script", node)
        assert record is not None
        made = self._made[record.name]
        known = made.signatures.get("__new__")
        if known is not None:
            return known
        init = self.open_class(made, node, typer)
        params = init.params[1:] if init else []
        name = f"{record.name}.__new__"
        made.signatures["__new__"] = out = Signature(name, params, record.type)
        inputs = [Value(i, p.type.plain(), p.name) for i, p in enumerate(params)]
        new = Value(len(inputs), record.type)
        where = Where("", 0, name)
        nodes = [Node("core.new", (record.name,), (new,), where)]
        if init is not None:
            nodes.append(Node(init.uid, (new, *inputs), (), where))
        nodes.append(Node("return", (new,), (), where))
        self.unit.functions[name] = Function(
            tuple(inputs), nodes, (), name, params, record.type, "", 0
        )
        return out

    def open_class(self, made: Made, node: ast.AST | None, typer: Any) -> Signature | None:
        """Reads `__init__`, which says what attributes there are."""
        if "__init__" in made.signatures:
            return made.signatures["__init__"]
        for name, hint in typing.cast(
            dict[str, Any], vars(made.python).get("__annotations__", {})
        ).items():
            look = naming(made.python, looker(vars(sys.modules[made.python.__module__])))
            made.record.attributes[name] = type_of(hint, self.type_of_class, look)
        init = inspect.getattr_static(made.python, "__init__")
        if dataclasses.is_dataclass(made.python) and _is_made(init):
            return self._init_of_fields(made)
        if not isinstance(init, types.FunctionType):
            return None
        made.open = True
        try:
            out = self.method(made.record.type, "__init__", node, typer)
        finally:
            made.open = False
        return out

    def _init_of_fields(self, made: Made) -> Signature:
        """What `dataclass` makes of a class's fields."""
        cls, source = made.python, source_of(made.python)
        params = [Param("self", made.record.type)]
        lines = []
        for f in dataclasses.fields(cls):  # type: ignore[arg-type]
            if f.default_factory is not dataclasses.MISSING or not f.init:
                raise CompileError(f"{cls.__name__}.{f.name} is made by Python in each __init__; "
                                   "write the __init__", source.file, source.tree)  # fmt: skip
            default = None if f.default is dataclasses.MISSING else Given(f.default)
            params.append(Param(f.name, made.record.attributes[f.name], default, bool(f.kw_only)))
            lines.append(f"  self.{f.name} = {f.name}\n")
        if hasattr(cls, "__post_init__"):
            lines.append("  self.__post_init__()\n")
        text = f"def __init__({', '.join(p.name for p in params)}):\n{''.join(lines) or '  pass'}"
        return self._of_text(made, "__init__", text, params, NONE)

    def compared(self, made: Made, name: str) -> Signature | None:
        """The comparison that `dataclass` has made of a class's fields; None where it made none."""
        found = inspect.getattr_static(made.python, name, None)
        op = {"__eq__": "==", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}.get(
            name
        )
        if op is None or not isinstance(found, types.FunctionType) or not _is_made(found):
            return None
        if name in made.signatures or not dataclasses.is_dataclass(made.python):
            return made.signatures.get(name)
        fields = [f.name for f in dataclasses.fields(made.python) if f.compare]
        own, theirs = (
            f"({''.join(f'{x}.{n}, ' for n in fields)})" if fields else "0"
            for x in ("self", "other")
        )
        params = [Param("self", made.record.type), Param("other", made.record.type)]
        text = f"def {name}(self, other):\n  return {own} {op} {theirs}\n"
        return self._of_text(made, name, text, params, BOOL)

    def _of_text(
        self, made: Made, method: str, text: str, params: list[Param], returns: Type
    ) -> Signature:
        """A method that has no source of its own."""
        cls, source = made.python, source_of(made.python)
        name = f"{made.record.name}.{method}"
        tree = ast.parse(text).body[0]
        assert isinstance(tree, ast.FunctionDef)
        for n in ast.walk(tree):
            if hasattr(n, "lineno"):
                n.lineno = n.end_lineno = source.tree.lineno
        compiler: Any = self
        look = naming(cls, looker(vars(sys.modules[cls.__module__])))
        made.signatures[method] = out = Signature(name, params, returns)
        made.open = True
        try:
            body = ScriptTyper(compiler, tree, params, returns, source.file, look, name, cls)
            self.unit.functions[name] = body.compile()
        finally:
            made.open = False
        return out

    def all_methods(self, cls: type) -> None:
        """Types every method of a class."""
        record = self.class_of(cls)
        assert record is not None
        made = self._made[record.name]
        self.open_class(made, None, None)
        for name, f in vars(cls).items():
            if isinstance(f, types.FunctionType) and name != "__init__" and not _is_made(f):
                self.method(record.type, name, None, None)

    def python_class(self, t: Type) -> type | None:
        """The Python class of the modules and objects of a type."""
        made = self.made(t)
        return made.python if made is not None else None

    def has_method(self, t: Type, name: str) -> bool:
        made = self.made(t)
        if made is None or made.record.kind in ("enum", "tuple"):
            return False
        if made.module is not None and name == "__call__":
            return True
        if made.record.kind != "module" and name.startswith("__") and name not in vars(made.python):
            return False
        return isinstance(inspect.getattr_static(made.python, name, None), types.FunctionType)

    def static_method(self, t: Type, name: str) -> Any:
        """The function of a static method; None where a name means something else."""
        made = self.made(t)
        found = inspect.getattr_static(made.python, name, None) if made is not None else None
        return found.__func__ if isinstance(found, staticmethod) else None

    def function_behind(self, t: Type, name: str) -> Any:
        """The Python function of a method; None where it is none of the class."""
        made = self.made(t)
        if (
            made is None
            or made.record.kind in ("interface", "native")
            or hasattr(made.module, "_script_record")
        ):
            return None  # typed already
        name = "forward" if name == "__call__" and made.module is not None else name
        found = inspect.getattr_static(made.python, name, None)
        return inspect.unwrap(found) if isinstance(found, types.FunctionType) else None

    def has_attribute(self, t: Type, name: str) -> bool:
        made = self.made(t)
        if made is None:
            return False
        if made.record.kind == "class":
            self.open_class(made, None, None) if not made.open else None
        found = name in made.record.attributes or name in made.statics or name in made.children
        return found or isinstance(inspect.getattr_static(made.python, name, None), property)

    def around(self, call: Expr, line: int) -> tuple[Expr, str]:
        """A function of the unit that makes one call of the table, and its name as a target."""
        name = self.name_for(f"call.{call.attr.uid}", call)
        inputs = tuple(Value(i, a.type.plain(), f"v{i}") for i, a in enumerate(call.args))
        out = Value(len(inputs), call.type.plain())
        where = Where("", line, name)
        nodes = [Node(call.attr.uid, inputs, (out,), where), Node("return", (out,), (), where)]
        params = [Param(v.name, a.type.plain()) for v, a in zip(inputs, call.args, strict=True)]
        self.unit.functions[name] = Function(inputs, nodes, (), name, params, out.type, "", 0)
        made = Signature(name, params, call.type.plain())
        return Expr("call", call.args, made.returns, Callee(made), line), made.uid

    def raising(self, name: str, message: str, returns: Type, line: int) -> Signature:
        """A function of the unit that raises; stands for one that may not be called."""
        where = Where("", line, name)
        nodes = [Node("raise", ("RuntimeError", message), (), where)]
        self.unit.functions[name] = Function((), nodes, (), name, [], returns, "", 0)
        return Signature(name, [], returns)
