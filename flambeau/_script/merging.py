"""One unit taken into another, under names that nobody there has.

Owns renaming. A script of a script, or of a trace, is made of the functions that it has already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .._ir.graph import Block, Function, Node, Value, map_values
from .._ir.types import Param, Type
from .unit import Class, Unit

#: nodes whose first argument names a class
#: kinds of classes that are one, whoever scripted them
_KEPT = ("tuple", "enum", "class", "interface", "native")
_NAMES_CLASS = ("core.new", "core.make_tuple", "core.enum", "core.enum_of")


def merged(into: Unit, unit: Unit) -> Callable[[str], str]:
    """Adds a unit's functions and classes; gives what each of its names is now."""
    clash = {n for n, f in unit.functions.items() if into.functions.get(n, f) is not f}
    clash |= {
        n for n, c in unit.classes.items()
        if n in into.classes and into.classes[n] is not c and not _alike(into.classes[n], c)
    }  # fmt: skip
    if not clash:
        into.functions.update(unit.functions)
        for n, c in unit.classes.items():
            into.classes.setdefault(n, c)
        return lambda name: name
    taken = {*into.functions, *into.classes}
    number = 1
    while any(_numbered(n, number) in taken for n in (*unit.functions, *unit.classes)):
        number += 1
    kept = {n for n, c in unit.classes.items() if c.kind in _KEPT}
    kept = {n for n in kept if n in into.classes and _alike(into.classes[n], unit.classes[n])}

    def name(old: str) -> str:
        owned = old in unit.functions or old in unit.classes
        under = any(old.startswith(f"{n}.") for n in kept)
        return _numbered(old, number) if owned and old not in kept and not under else old

    for n, c in unit.classes.items():
        if n not in kept:
            into.classes[name(n)] = _class(c, name)
    for n, f in unit.functions.items():
        if not any(n.startswith(f"{k}.") for k in kept):
            into.functions[name(n)] = _function(f, name)
    return name


def _numbered(name: str, number: int) -> str:
    return f"{name}_of{number}"


def _alike(a: Class, b: Class) -> bool:
    return (a.kind, a.attributes, a.defaults, a.places) == (
        b.kind, b.attributes, b.defaults, b.places
    ) and a.kind != "module"  # fmt: skip


def _type(t: Any, name: Callable[[str], str]) -> Any:
    if not isinstance(t, Type):
        return t
    items = tuple(_type(i, name) for i in t.items)
    return replace(t, base=name(t.base), items=items) if "." in t.base or items else t


def _class(c: Class, name: Callable[[str], str]) -> Class:
    attributes = {n: _type(t, name) for n, t in c.attributes.items()}
    methods = {n: name(f) for n, f in c.methods.items()}
    return Class(name(c.name), c.kind, attributes, dict(c.defaults), methods, dict(c.places))


def _function(f: Function, name: Callable[[str], str]) -> Function:
    made: dict[Value, Value] = {}

    def value(v: Value) -> Value:
        if v not in made:
            made[v] = Value(v.id, _type(v.type, name), v.name)
        return made[v]

    def block(b: Block) -> Block:
        inputs = tuple(map(value, b.inputs))
        nodes = [node(n) for n in b.nodes]
        return Block(inputs, nodes, tuple(map_values(a, value) for a in b.outputs))

    def node(n: Node) -> Node:
        target = n.target
        if target.startswith(("fn.", "host.")):
            space, _, rest = target.partition(".")
            target = f"{space}.{name(rest)}"
        args = tuple(map_values(a, value) for a in n.args)
        if target in _NAMES_CLASS:
            args = (name(str(args[0])), *args[1:])
        if target == "core.fork" and str(args[0]).startswith("fn."):
            args = (f"fn.{name(str(args[0])[3:])}", *args[1:])
        outs = tuple(map(value, n.outs))
        return Node(target, args, outs, n.where, n.grad, tuple(map(block, n.blocks)), n.outside)

    params = [Param(p.name, _type(p.type, name), p.default, p.kwonly) for p in f.params]
    whole = block(f)
    return Function(
        whole.inputs, whole.nodes, (), name(f.name), params, _type(f.returns, name), f.file, f.line
    )
