"""Programs for the machine (`csrc/script`): the text of a unit, and what it leaves to Python.

Owns the rule of what runs where. The machine is asked first; a node that it has no code for becomes
a Python function of that node alone. Where that would not mean the same, since the node changes a
list or hands out an object that only one side has, the whole function runs as Python, and so do
those that call it: `reason` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flambeau import _C

from .._ir.graph import Function, Node, Value
from .._ir.types import Param, Type
from . import runtime, text
from .emit import Body, Emitter
from .typer import CONTEXTS, context
from .unit import Unit

#: nodes that change their first argument where that is a list or a dict
CHANGES = {
    f"core.{n}" for n in (
        "append extend insert pop remove clear reverse sort update setdefault popitem setitem "
        "setslice delitem"
    ).split()
}  # fmt: skip
#: nodes that run code which is not the unit's
_ELSEWHERE = ("host.", "core.invoke_")
_DATA = {
    "Tensor", "int", "float", "bool", "str", "complex", "Number", "None", "DType", "Device",
    "Layout", "MemoryFormat", "Generator", "Any", "Slice", "Ellipsis",
}  # fmt: skip
_CONSTANT = _DATA - {"Any", "Slice", "Ellipsis", "Generator"}


class Machine:
    """The machine's program of a unit; makes what it asks for.

    Args:
        written: the unit's text, where it was read from one.
    """

    def __init__(
        self, unit: Unit, emitter: Emitter, python: Mapping[str, type], trusted: bool,
        written: str | None,
    ) -> None:  # fmt: skip
        self.unit, self.emitter = unit, emitter
        nodes = [n for f in unit.functions.values() for n in f.walk()]
        #: names of attributes that a script sets; functions of the program may set any
        self.assigned = {str(n.args[1]) for n in nodes if n.target == "core.setattr"}
        self.hosted = any(n.target.startswith(_ELSEWHERE) for n in nodes)
        self.forks = any(n.target == "core.fork" for n in nodes)
        self.changes = any(n.target in CHANGES for n in nodes)
        #: tasks, or functions of the program, run while a list of Python's is being changed here
        self.concurrent = self.forks or self.hosted
        self._nodes: dict[str, list[Node]] = {}

        def error_class(name: str) -> type[BaseException]:
            return runtime.error_class(name, emitter.errors)

        self.text = written or text.write(unit)
        self.program = _C._Script(self.text, self, dict(python), error_class, trusted)

    def reason(self, name: str) -> str | None:
        """Why a function runs as Python; None where the machine runs it."""
        f = self.unit.functions[name]
        params = [p.type for p in f.params]
        for t in (*params, f.returns):
            if not self.shared(t):
                return f"{t} has no form that both sides have"
        for t in params:
            if self.concurrent and not all(map(self.constant, _awaited(t))):
                return f"{t} has a list that a task could change"
        if self.changes and _awaited(f.returns) and any(map(_changeable, params)):
            return "a task that is handed out could change a list of the caller"
        return self.program.reason(name)

    # -- asked by the machine ---------------------------------------------------------------------

    def at(self, name: str, place: int) -> Node:
        """A node of a function, numbered as in its text."""
        if name not in self._nodes:
            self._nodes[name] = list(self.unit.functions[name].walk())
        return self._nodes[name][place]

    def node(self, name: str, place: int) -> Callable[..., Any] | None:
        """A node as a Python function of its values; None where that would mean something else."""
        node = self.at(name, place)
        if node.target == "core.fork":  # of a module that runs as it is: the machine forks that
            (out,) = node.outs
            if node.args[0] != "core.call_module" or not isinstance(out.type, Type):
                return None
            made = Value(out.id, out.type.items[0])
            node = Node("core.call_module", node.args[1:], (made,), node.where, node.grad)
        values = [a for a in node.args if isinstance(a, Value)]
        types = [v.type for v in (*values, *node.outs)]
        if not all(isinstance(t, Type) and self.shared(t) for t in types):
            return None
        holds_lists = any(_changeable(v.type) for v in values if isinstance(v.type, Type))
        if holds_lists and (node.target in CHANGES or node.target.startswith(_ELSEWHERE)):
            return None
        try:
            return self._alone(self.unit.functions[name], node)
        except ValueError:  # not known here either: the function's own code says so
            return None

    def context(self, name: str, place: int) -> Callable[..., Any] | None:
        """What makes the manager of a `with`; None where Python has none for it."""
        kind, (names, *args) = self.at(name, place).args
        if kind not in CONTEXTS:
            return None
        given = [n for n in str(names).split(",") if n]
        cut = len(args) - len(given)

        def make(*values: Any) -> Any:
            left = iter(values)
            found = [next(left) if isinstance(a, Value) else a for a in args]
            return context(kind)(*found[:cut], **dict(zip(given, found[cut:], strict=True)))

        return make

    def attribute(self, cls: str, name: str) -> int:
        """1: objects of Python have this attribute; 2: and it stays what it is during a run; else 0.

        A list or dict is converted when it is read, remembered for the call and changed back; tasks
        of other threads have nothing that remembers."""
        record = self.unit.classes[cls]
        if record.kind == "class":  # its objects live in Python once they have been there
            return int(self.shared(Type(cls)))
        t = record.attributes.get(name)
        known = name in record.places if t is None else self.constant(t)
        if t is not None and not known and self.shared(t) and not self._in_two_places(t):
            return 0 if _ours(name) else 1  # a list both sides have
        if not known or _ours(name):
            return 0
        return 1 if self.hosted or name in self.assigned else 2

    # -- types ------------------------------------------------------------------------------------

    def shared(self, t: Type) -> bool:
        """Values of it can go from one side to the other."""
        return self._shared(t, set())

    def _shared(self, t: Type, seen: set[str]) -> bool:
        if "." in t.base:
            record = self.unit.classes.get(t.base)
            if record is None or record.kind != "class" or t.base in seen:
                return record is not None
            seen.add(t.base)
            return all(
                self._shared(a, seen) and not self._in_two_places(a) and not _ours(name)
                for name, a in record.attributes.items()
            )
        if t.is_list:
            return t.base != "List" or self._shared(t.element, seen)
        if t.base == "Dict" and self._is_object(t.items[0]):
            return False  # found by its place in memory here, by its hash in Python
        return (t.base in _DATA or t.base in ("Tuple", "Dict", "Union", "Future")) and all(
            self._shared(item, seen) for item in t.items
        )

    def _in_two_places(self, t: Type) -> bool:
        """An object's list of it is here and in Python at once, and both could change it."""
        return self.concurrent and _changeable(t)

    def _is_object(self, t: Type) -> bool:
        record = self.unit.classes.get(t.base)
        return record is not None and record.kind == "class"

    def constant(self, t: Type) -> bool:
        """Values of it cannot change."""
        if "." in t.base:
            record = self.unit.classes.get(t.base)
            return record is not None and record.kind in (
                "module", "library", "enum", "interface", "native",
            )  # fmt: skip
        return (t.base in _CONSTANT or t.base == "Tuple") and all(map(self.constant, t.items))

    # -- nodes alone ------------------------------------------------------------------------------

    def _alone(self, f: Function, node: Node) -> Callable[..., Any]:
        values = [a for a in node.args if isinstance(a, Value)]
        inputs = tuple(Value(i, v.type) for i, v in enumerate(values))
        left = iter(inputs)
        args = tuple(next(left) if isinstance(a, Value) else a for a in node.args)
        outs = tuple(Value(len(inputs) + i, v.type) for i, v in enumerate(node.outs))
        nodes = [Node(node.target, args, outs, node.where, node.grad)]
        given = outs
        if len(outs) > 1:
            made = Value(len(inputs) + len(outs), Type("Tuple"))
            nodes.append(Node("core.tuple", outs, (made,), node.where))
            given = (made,)
        nodes.append(Node("return", given, (), node.where))
        params = [Param(f"v{v.id}", v.type) for v in inputs if isinstance(v.type, Type)]
        line = node.where.line if node.where else f.line
        alone = Function(inputs, nodes, (), f.name, params, Type("Any"), f.file, line)
        return self.emitter.compiled(Body(self.emitter, alone).tree(), f.file, f.name)


def _ours(attribute: str) -> bool:
    """What Python or this package has of an object, and no script."""
    return attribute.startswith(("__", "_script"))


def _awaited(t: Type) -> list[Type]:
    """What the futures of a type give."""
    own = list(t.items) if t.base == "Future" else []
    return own + [x for item in t.items for x in _awaited(item)]


def _changeable(t: Type) -> bool:
    return t.is_list or t.base in ("Dict", "Any") or any(map(_changeable, t.items))
