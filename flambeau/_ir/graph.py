"""The compiler's one graph: typed values, nodes that call entries of the table, a `Graph` of them.

A value is defined once, by the graph's inputs or by one node, before its uses. A node's target is
the `uid` of an entry, with a trailing `_` for its derived in-place form, or with `.new` for the
form of a mutating entry that leaves its first argument alone; its arguments are all parameters of
the entry in order. The result of an in-place form is its first argument after the change, under a
new name. What a stage allows beyond that is `graph_verify`'s. Must not know how
graphs are made or run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import flambeau

from .symbols import ShapeEnv, Symbol
from .symexpr import Expr
from .symscalar import FloatExpr
from .where import Where

Dim = int | Expr


def contiguous_strides(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Strides of a dense row-major tensor; a dim of size 0 counts as 1."""
    out: list[Dim] = []
    step: Dim = 1
    for n in reversed(shape):
        out.append(step)
        if n != 0:
            step = dim(step * n)
    return tuple(reversed(out))


def dim(e: Dim) -> Dim:
    """A dim in its only form: an int where it is constant."""
    return e if isinstance(e, int) or e.constant is None else e.constant


@dataclass(frozen=True)
class TensorType:
    """Type of a tensor: all that a shape rule may ask."""

    dtype: Any
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    device: Any

    @property
    def contiguous(self) -> bool:
        """The strides are those of a dense row-major tensor."""
        return self.strides == contiguous_strides(self.shape)


@dataclass(frozen=True)
class ScalarType:
    """Type of a number that varies at run time."""

    name: str  # int | float | bool


ValueType = TensorType | ScalarType


@dataclass(eq=False)
class Value:
    """A value of a graph; identity is what distinguishes it, `id` is its name in print."""

    id: int
    type: ValueType

    def __repr__(self) -> str:
        return f"%{self.id}"

    @property
    def shape(self) -> tuple[Dim, ...]:
        assert isinstance(self.type, TensorType)
        return self.type.shape

    @property
    def dtype(self) -> Any:
        assert isinstance(self.type, TensorType)
        return self.type.dtype


#: Value, number, str, None, dtype, device, layout, memory format, expression, tuple of these
Arg = Any


# Note [Derivatives of their own]
# `custom_gradient(made, wanted, given)` copies the tensors `made`. Gradients of its results flow
# to `wanted` by the node's `rule`: a graph of `given` and of the cotangents of all results, which
# gives a cotangent (or None) for each of `wanted`. Such a node is no entry of the table. It
# occurs in captured graphs, and in functional ones until they are differentiated.
#: The target of nodes that give tensors a derivative of the user's own.
CUSTOM = "custom_gradient"


@dataclass(eq=False)
class Node:
    """One call of an entry; without `grad` it runs as under no_grad.

    `rule` is for the one target that is no entry, see Note [Derivatives of their own].
    """

    target: str
    args: tuple[Arg, ...]
    outs: tuple[Value, ...]
    where: Where | None = None
    grad: bool = True
    rule: Graph | None = None

    @property
    def out(self) -> Value:
        """The only result."""
        (value,) = self.outs
        return value

    @property
    def inputs(self) -> list[Value]:
        """Values among the arguments, those in lists too, in order."""
        return list(values_of(self.args))


def values_of(arg: Arg) -> Iterator[Value]:
    """All values in an argument."""
    if isinstance(arg, Value):
        yield arg
    elif isinstance(arg, tuple):
        for a in arg:
            yield from values_of(a)


def map_values(arg: Arg, f: Callable[[Value], Arg]) -> Arg:
    """The argument with other things for its values."""
    if isinstance(arg, Value):
        return f(arg)
    return tuple(map_values(a, f) for a in arg) if isinstance(arg, tuple) else arg


@dataclass(eq=False)
class Graph:
    """A straight-line program.

    `attached` are tensors bound to the last inputs: what the traced function closed over.
    `replaced` are pairs of an output and the input whose new value it is: a back end may change
    that input, if no other output shows it. Neither is part of the text.
    """

    inputs: tuple[Value, ...] = ()
    nodes: list[Node] = field(default_factory=list)
    outputs: tuple[Arg, ...] = ()
    env: ShapeEnv = field(default_factory=ShapeEnv)
    attached: tuple[Any, ...] = ()
    replaced: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return show(self)

    def values(self) -> Iterator[Value]:
        """All values in the order of definition."""
        yield from self.inputs
        for node in self.nodes:
            yield from node.outs

    def uses(self) -> dict[Value, list[Node]]:
        """Nodes that take each value, in order; a value that none takes is absent."""
        out: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for v in dict.fromkeys(node.inputs):
                out.setdefault(v, []).append(node)
        return out

    def next_id(self) -> int:
        return max((v.id for v in self.values()), default=-1) + 1


class Builder:
    """Makes a graph: numbers values, appends nodes."""

    def __init__(self, env: ShapeEnv) -> None:
        self.graph = Graph(env=env)
        self.count = 0

    def value(self, type: ValueType) -> Value:
        self.count += 1
        return Value(self.count - 1, type)

    def input(self, type: ValueType) -> Value:
        v = self.value(type)
        self.graph.inputs += (v,)
        return v

    def add(
        self, target: str, args: tuple[Arg, ...], types: tuple[ValueType, ...],
        where: Where | None, grad: bool = True,
    ) -> Node:  # fmt: skip
        node = Node(target, args, tuple(self.value(t) for t in types), where, grad)
        self.graph.nodes.append(node)
        return node


def renumbered(graph: Graph) -> Graph:
    """The same graph, its values numbered in the order of definition."""
    for i, v in enumerate(graph.values()):
        v.id = i
    return graph


# Text --------------------------------------------------------------------------------------------

SCALARS = ("int", "float", "bool")


@cache
def dtype_names() -> dict[Any, str]:
    names = {"uint": "u", "int": "i", "float": "f", "complex": "c", "bfloat": "bf"}
    out = {flambeau.bool: "bool"}
    for kind, short in names.items():
        for bits in (8, 16, 32, 64, 128):
            dtype = getattr(flambeau, f"{kind}{bits}", None)
            if dtype is not None:
                out[dtype] = f"{short}{bits}"
    return out


@cache
def constant_names() -> dict[Any, str]:
    """Enumerations that occur as arguments, by their public names."""
    kinds = (flambeau.memory_format, flambeau.layout)
    found = {name: getattr(flambeau, name) for name in dir(flambeau)}
    return {x: name for name, x in found.items() if type(x) in kinds}


def show_type(t: ValueType) -> str:
    """`f32[s0, 128]`, `int`."""
    if isinstance(t, ScalarType):
        return t.name
    text = f"{dtype_names()[t.dtype]}[{', '.join(map(str, t.shape))}]"
    if not t.contiguous:
        text += f"{{{', '.join(map(str, t.strides))}}}"
    return text if t.device.type == "cpu" else f"{text}@{t.device}"


def show_arg(a: Arg) -> str:
    """An argument of a node."""
    if isinstance(a, tuple):
        inner = ", ".join(map(show_arg, a))
        return f"({inner},)" if len(a) == 1 else f"({inner})"
    if isinstance(a, flambeau.dtype):
        return dtype_names()[a]
    if isinstance(a, flambeau.device):
        return f"device({str(a)!r})"
    if isinstance(a, FloatExpr):
        return f"number({a!r})"
    if isinstance(a, complex):  # its repr is a sum, which has lost the signs of zeros
        return f"complex({a.real!r}, {a.imag!r})"
    if isinstance(a, (Value, Expr, str, int, float)) or a is None:
        return repr(a)
    return constant_names()[a]


def show_node(node: Node) -> str:
    outs = ", ".join(f"%{v.id}: {show_type(v.type)}" for v in node.outs) or "()"
    mode = "" if node.grad else "no_grad "
    text = f"{outs} = {mode}{node.target}({', '.join(map(show_arg, node.args))})"
    return f"{text}  # {node.where}" if node.where else text


def _show_symbol(s: Symbol) -> str:
    hint = "?" if s.hint is None else str(s.hint)
    source = f" from {s.source}" if s.source else ""
    return f"{s.name} = {hint} in [{s.low}, {s.high}]{source}"


def show(graph: Graph) -> str:
    """A whole graph with its symbols and guards."""
    lines = [_show_symbol(s) for s in graph.env.symbols.values()]
    for g in graph.env.guards:
        lines.append(f"guard {g.expr} {g.relation} 0" + (f"  # {g.where}" if g.where else ""))
    inputs = ", ".join(f"%{v.id}: {show_type(v.type)}" for v in graph.inputs)
    lines.append(f"graph({inputs}):")
    for n in graph.nodes:
        lines.append(f"  {show_node(n)}")
        if n.rule is not None:
            rule = show(n.rule).splitlines()
            lines += [f"    backward {line}" for line in rule[len(n.rule.env.symbols) :]]
    outputs = ", ".join(map(show_arg, graph.outputs))
    return "\n".join([*lines, f"  return {outputs}".rstrip()]) + "\n"


# Parsing ----------------------------------------------------------------------------------------
