"""Puts typed expressions into blocks: nodes in the order of evaluation, values of variables.

Owns which value a variable is at each place: `values` has the last version, `joined` finds what
leaves an `if`. Knows no Python syntax; what has a value where is the front end's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from .graph import Arg, Block, Node, Value, values_of
from .typed import Expr
from .types import NONE, Type
from .where import Where


class Placer:
    """The block at hand and the variables in it."""

    def __init__(self, file: str, function: str) -> None:
        self.file, self.function = file, function
        self.values: dict[str, Value] = {}
        self.nodes: list[Node] = []
        self.count = 0
        self.joins = False  # something leaves an `if`
        self._where = Where(file, 0, function)

    def value(self, t: Type, name: str = "") -> Value:
        self.count += 1
        return Value(self.count, t, name)

    def where(self, line: int) -> Where:
        if self._where.line != line:
            self._where = Where(self.file, line, self.function)
        return self._where

    def add(
        self, target: str, args: Sequence[Arg], outs: Sequence[Value], line: int,
        blocks: Sequence[Block] = (),
    ) -> Node:  # fmt: skip
        """Appends a node."""
        node = Node(target, tuple(args), tuple(outs), self.where(line), blocks=tuple(blocks))
        self.nodes.append(node)
        return node

    @contextmanager
    def nested(self, inputs: Sequence[Value] = ()) -> Iterator[Block]:
        """A block inside of the one at hand; named inputs are variables there."""
        nodes, values = self.nodes, self.values
        block = Block(tuple(inputs))
        self.nodes, self.values = block.nodes, values | {v.name: v for v in inputs if v.name}
        yield block
        self.nodes, self.values = nodes, values

    # -- variables --------------------------------------------------------------------------------

    def bind(self, name: str, t: Type, arg: Arg, line: int) -> None:
        """The variable gets a value: what was placed last is it, or a node that says so."""
        last = self.nodes[-1] if self.nodes else None
        if (
            isinstance(arg, Value) and not arg.name and arg.type == t
            and last is not None and last.outs == (arg,) and last.target != "if"
        ):  # fmt: skip
            arg.name = name
            last.where = self.where(line)
        else:
            arg = self.add("core.same", (arg,), (self.value(t, name),), line).out
        self.values[name] = arg

    def current(self, names: Iterable[str]) -> tuple[Value, ...]:
        return tuple(self.values[n] for n in names)

    def joined(
        self, arriving: Sequence[tuple[Block, dict[str, Value]]], known: Iterable[str]
    ) -> tuple[Value, ...]:
        """Results of an `if` whose blocks left these variables: those that have another value."""
        outs: list[Value] = []
        for name in known:
            before, found = self.values.get(name), [values[name] for _, values in arriving]
            if any(v is not before for v in found):
                self.joins = True
                assert isinstance(found[0].type, Type)
                outs.append(self.value(found[0].type, name))
                for (block, _), v in zip(arriving, found, strict=True):
                    block.outputs += (v,)
                self.values[name] = outs[-1]
        return tuple(outs)

    # -- expressions ------------------------------------------------------------------------------

    def place(self, e: Expr) -> Arg:
        """Appends the nodes of an expression; what it is as an argument."""
        op = e.op
        special = _SPECIAL.get(op)
        if special is not None:
            return special(self, e)
        args = tuple([self.place(a) for a in e.args])
        target = e.attr.uid if op == "call" else f"core.{e.attr if op == 'core' else op}"
        outs = () if e.type == NONE else (self.value(e.type),)
        self.nodes.append(Node(target, args, outs, self.where(e.line)))
        return outs[0] if outs else None

    def _choose(self, e: Expr, test: Expr, then: Expr | bool, other: Expr | bool) -> Value:
        condition, blocks = self.place(test), []
        for branch in (then, other):
            with self.nested() as b:
                b.outputs = (branch if isinstance(branch, bool) else self.place(branch),)
            blocks.append(b)
        return self.add("if", (condition,), (self.value(e.type),), e.line, blocks).out

    def _once(self, e: Expr) -> Arg:
        """An expression that several in a row take: its nodes stand before the first of them."""
        for nodes, made in e.attr:
            if nodes is self.nodes:
                placed: Arg = made
                return placed
        e.attr.append((self.nodes, self.place(e.args[0])))
        return self._once(e)

    def _collect(self, e: Expr) -> Value:
        comp = e.attr
        n = len(e.args) - 1 - int(comp.filtered)
        lists, blocks = tuple(self.place(a) for a in e.args[:n]), []
        for part in e.args[n:]:
            items = [self.value(t, x) for t, x in zip(comp.types, comp.targets, strict=True)]
            with self.nested(items) as b:
                b.outputs = (self.place(part),)
            blocks.append(b)
        outs = (self.value(e.type),)
        return self.add("collect", (comp.over, lists), outs, e.line, blocks).out


_SPECIAL: dict[str, Callable[[Placer, Expr], Arg]] = {
    "const": lambda p, e: e.attr,
    "placed": lambda p, e: e.attr,
    "none": lambda p, e: None,
    "read": lambda p, e: p.values[e.attr],
    "some": lambda p, e: p.place(e.args[0]),
    "and": lambda p, e: p._choose(e, e.args[0], e.args[1], False),
    "or": lambda p, e: p._choose(e, e.args[0], True, e.args[1]),
    "if": lambda p, e: p._choose(e, *e.args),
    "once": Placer._once,
    "comp": Placer._collect,
}


def prune(block: Block, live: set[Value]) -> None:
    """Takes away what leaves an `if` and is not read; `live` is what is read after the block."""
    live.update(values_of(block.outputs))
    for node in reversed(block.nodes):
        if node.target == "if":
            keep = [i for i, v in enumerate(node.outs) if v in live]
            node.outs = tuple(node.outs[i] for i in keep)
            for b in node.blocks:
                if b.outputs:
                    b.outputs = tuple(b.outputs[i] for i in keep)
        for b in reversed(node.blocks):
            prune(b, live)
        live.update(node.inputs)
