"""Backward for calls of which some results were not used.

Backward is linear in its cotangents, so what depends on absent ones alone is zero, and so is what
is made of it: such parts are left out, with the saved values that only they need. As in eager, an
infinite derivative of an unused result does no harm, a saved value that only such a derivative
needs may change, and an input that nothing used depends on has no gradient.

A derivative of the user's own need not be linear: `runtime` then asks for no such graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._ir.graph import Arg, Graph, Node, TensorType, Value, map_values, renumbered, values_of
from .partition import needing, sized
from .passes import eliminate_dead


@dataclass(frozen=True)
class Narrowed:
    """A backward graph, and which of the whole one's saved values, cotangents and gradients it has.
    It takes all sizes."""

    graph: Graph
    saved: tuple[int, ...]
    cotangents: tuple[int, ...]
    grads: tuple[int, ...]


def narrowed(graph: Graph, present: Sequence[bool], sizes: int) -> Narrowed:
    """The backward graph for the case that only some cotangents are there.

    Args:
        graph: of saved values, sizes and cotangents to gradients, as `partition` makes it.
        present: of each cotangent, whether it is there.
        sizes: how many of the inputs are sizes.
    """
    saved = len(graph.inputs) - sizes - len(present)
    cotangents = graph.inputs[saved + sizes :]
    absent = {v for v, there in zip(cotangents, present, strict=True) if not there}
    zero = _zero(graph, absent, {*cotangents} - absent)
    if absent:  # a gradient that no cotangent reaches is zero, too: that of what was overwritten
        zero |= {*values_of(graph.outputs)} - needing(graph, {*cotangents} - absent)
    pruned = _Pruned(graph, zero)
    grads = tuple(k for k, v in enumerate(graph.outputs) if v not in zero)
    outputs = tuple(pruned.now(graph.outputs[k]) for k in grads)
    body = eliminate_dead(Graph(graph.inputs, pruned.nodes, outputs, graph.env))
    used = {v for n in body.nodes for v in n.inputs} | {*outputs}
    kept = tuple(k for k, v in enumerate(graph.inputs[:saved]) if v in used)
    given = tuple(k for k, there in enumerate(present) if there)
    body.inputs = (
        *(graph.inputs[k] for k in kept),
        *graph.inputs[saved : saved + sizes],
        *(cotangents[k] for k in given),
    )
    names = [s.name for s in graph.env.symbols.values()]
    body.env = sized(graph.env, names, len(kept))
    return Narrowed(renumbered(body), kept, given, grads)


def _zero(graph: Graph, absent: set[Value], present: set[Value]) -> set[Value]:
    """Values that depend on cotangents, all of them absent."""
    zero, alive = set(absent), set(present)
    for node in graph.nodes:
        if not alive.isdisjoint(node.inputs):
            alive.update(node.outs)
        elif not zero.isdisjoint(node.inputs):
            zero.update(node.outs)
    return zero


class _Pruned:
    """The nodes without those of values that are zero. Sums leave zeros out; other nodes that take
    one are given zeros."""

    def __init__(self, graph: Graph, zero: set[Value]) -> None:
        self.nodes: list[Node] = []
        self.zero = zero
        self.same: dict[Value, Value] = {}
        self.count = max((v.id for v in graph.values()), default=0) + 1
        for node in graph.nodes:
            if zero.isdisjoint(node.outs):
                self.keep(node)

    def keep(self, node: Node) -> None:
        term = None if self.zero.isdisjoint(node.inputs) else self.only_term(node)
        if term is not None:
            self.same[node.out] = self.now(term)
            return
        args = map_values(node.args, self.now)
        self.nodes.append(Node(node.target, args, node.outs, node.where, node.grad))

    def only_term(self, node: Node) -> Value | None:
        """What a sum or a difference is equal to, where that is one of its arguments."""
        if node.target not in ("add", "sub"):
            return None
        a, b, factor = node.args
        term: Arg = None
        if b in self.zero:
            term = a
        elif node.target == "add" and factor == 1:
            term = b
        return term if isinstance(term, Value) and term.type == node.out.type else None

    def now(self, v: Value) -> Value:
        """What stands for a value."""
        if v in self.zero and v not in self.same:
            self.same[v] = self.filled(v)
        return self.same.get(v, v)

    def filled(self, v: Value) -> Value:
        """Zeros, laid out as a value is."""
        t = v.type
        assert isinstance(t, TensorType)
        room = self.made("empty_strided", (t.shape, t.strides, t.dtype, t.device), t)
        return self.made("fill_.new", (room, 0), t)

    def made(self, target: str, args: tuple[Arg, ...], t: TensorType) -> Value:
        out = Value(self.count, t)
        self.count += 1
        self.nodes.append(Node(target, args, (out,)))
        return out
