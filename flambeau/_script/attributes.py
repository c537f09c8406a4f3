"""Attributes of values of classes: of modules, objects, named tuples and enumerators.

Owns what an attribute means while a script is typed (a constant, a child, a tensor, a method), and
what may be assigned. How classes come about is `compiler`'s.
"""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any

import flambeau
from flambeau.nn import Module

from .._ir.errors import CompileError
from .._ir.typed import Expr
from .._ir.types import INT, NONE, STR, Type
from .made import Made, ours
from .meaning import Items, Method, constant, static
from .unit import Signature

CONTAINERS = (
    flambeau.nn.ModuleList, flambeau.nn.ModuleDict, flambeau.nn.ParameterList,
    flambeau.nn.ParameterDict,
)  # fmt: skip


class Attributes:
    """The part of a compiler that knows attributes."""

    _made: dict[str, Made]
    open_class: Any
    _method: Any

    def attribute(self, value: Expr, name: str, node: ast.AST, typer: Any) -> Expr:
        """An attribute of a value of a class."""
        made = self._made[value.type.base]
        record = made.record
        if record.kind == "class" and not made.open:
            self.open_class(made, node, typer)
        text = typer.make(node, "const", (), STR, name)
        if record.kind == "tuple" and name in record.attributes:
            at = typer.make(node, "const", (), INT, list(record.attributes).index(name))
            return typer.make(node, "part", (value, at), record.attributes[name])
        if record.kind == "enum" and name in record.attributes:
            return typer.core(node, f"attr_{name}", (value,), record.attributes[name])
        if name == "__class__":
            return static(made.python)
        if name == "_parameters" and made.module is not None:
            held = [n for n, x in made.module._parameters.items() if x is not None]
            values = tuple(self.attribute(value, n, node, typer) for n in held)
            return static(Items(tuple(held), values, True))
        if name == "_modules" and made.module is not None:
            items = self.children_of(value, made, typer, node)
            return static(Items(tuple(made.children), items.values, True))
        if name in made.children:
            child = made.children[name]
            got = typer.core(node, "getattr", (value, text), child.type)
            return self.items_of(got, typer, node) or got
        if name in made.statics:
            return typer.meaning(made.statics[name], node)
        if name in record.attributes:
            t = record.attributes[name]
            if t == NONE:
                return typer.make(node, "const", (), NONE, None)
            return typer.core(node, "getattr", (value, text), t)
        found = inspect.getattr_static(made.python, name, None)
        known = made.signatures.get(f"__get_{name}")
        if known is not None:
            return typer.call_signature(node, known, [value], {})
        if isinstance(found, property):
            getter = self._method(made, f"__get_{name}", found.fget, node, typer)
            return typer.call_signature(node, getter, [value], {})
        if isinstance(found, staticmethod):
            return static(found.__func__)
        if callable(found):
            return static(Method(value, name))
        if found is not None and constant(found) is not None:
            return typer.meaning(found, node)
        why = made.failed.get(name)
        kind = made.python.__name__
        if why:
            typer.fail(f"{kind} has an attribute {name!r} that scripts cannot hold: {why}", node)
        raise CompileError(f"{kind} has no attribute {name!r}", typer.file, node)

    def items_of(self, got: Expr, typer: Any, node: ast.AST) -> Expr | None:
        """A container of modules as its modules, known one by one."""
        made = self._made.get(got.type.base)
        if made is None or made.module is None or not isinstance(made.module, CONTAINERS):
            return None
        if type(made.module).forward is not Module.forward:
            return None  # it is called, and looped over by itself
        return static(self.children_of(got, made, typer, node))

    def sequence_of(self, e: Expr, typer: Any, node: ast.AST) -> Items | None:
        """The modules of a Sequential or another container, known one by one."""
        made = self._made.get(e.type.base)
        kinds = (*CONTAINERS, flambeau.nn.Sequential)
        if made is None or made.module is None or not isinstance(made.module, kinds):
            return None
        return self.children_of(e, made, typer, node)

    def children(self, e: Expr, name: str, typer: Any, node: ast.AST) -> Items | None:
        """What `children()` and the like of a module give; None where that is another method."""
        made = self._made.get(e.type.base)
        if made is None or made.module is None:
            return None
        container = isinstance(made.module, (*CONTAINERS, flambeau.nn.Sequential))
        if name not in ("children", "named_children") and not (
            container and name in ("items", "keys", "values")
        ):
            return None
        found = inspect.getattr_static(made.python, name, None)
        if isinstance(found, types.FunctionType) and not ours(found):
            return None
        keys = tuple(typer.meaning(n, node) for n in made.children)
        items = self.children_of(e, made, typer, node)
        match name:
            case "children" | "values":
                return Items(tuple(range(len(keys))), items.values)
            case "keys":
                return Items(tuple(range(len(keys))), keys)
        pairs = zip(keys, items.values, strict=True)
        return Items(tuple(made.children), tuple(static(Items((0, 1), p)) for p in pairs))

    def children_of(self, got: Expr, made: Made, typer: Any, node: ast.AST) -> Items:
        names = list(made.children)
        if isinstance(made.module, (flambeau.nn.ParameterList, flambeau.nn.ParameterDict)):
            names = [n for n in made.record.places if made.record.places[n] == "_parameters"]
        values = tuple(self.attribute(got, n, node, typer) for n in names)
        pairs = isinstance(made.module, (flambeau.nn.ModuleDict, flambeau.nn.ParameterDict))
        keys = tuple(names) if pairs else tuple(range(len(names)))
        return Items(keys, values, pairs)

    def declare_attribute(self, t: Type, name: str, kind: Type, typer: Any, node: ast.AST) -> None:
        """`self.x: T = ...` in an `__init__`."""
        made = self._made[t.base]
        if made.open:
            made.record.attributes.setdefault(name, kind.plain())

    def setter(self, t: Type, name: str, typer: Any, node: ast.AST) -> Signature | None:
        """What assigns a property of a class; None where the name is none."""
        made = self._made[t.base]
        found = inspect.getattr_static(made.python, name, None)
        if not isinstance(found, property) or name in made.record.attributes:
            return None
        if made.record.kind == "native" and found.fset is not None:
            return made.signatures[f"__set_{name}"]
        if found.fset is None:
            typer.fail(f"property {name!r} of {made.python.__name__} has no setter", node)
        made_one: Signature = self._method(made, f"__set_{name}", found.fset, node, typer)
        return made_one

    def attribute_to_set(self, t: Type, name: str, value: Expr, typer: Any, node: ast.AST) -> Type:
        """Type of an attribute that gets a value."""
        made = self._made[t.base]
        record = made.record
        if record.kind == "class" and not made.open:
            self.open_class(made, node, typer)
        if made.open and name not in record.attributes:
            record.attributes[name] = value.type.plain()
        if record.kind not in ("class", "module"):
            typer.fail(f"attributes of {made.python.__name__} cannot be assigned", node)
        if name in made.statics:
            typer.fail(f"{name!r} is a constant of {made.python.__name__}", node)
        if name not in record.attributes:
            typer.fail(f"{made.python.__name__} has no attribute {name!r} to assign; "
                       "make it in __init__", node)  # fmt: skip
        return record.attributes[name]
