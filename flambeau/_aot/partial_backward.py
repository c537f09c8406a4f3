"""Backward for calls of which some results were not used, or used in one way all over, or of which
some gradients are not asked for.

Backward is linear in its cotangents, so what depends on absent ones alone is zero, and so is what
is made of it: such parts are left out, with the saved values that only they need. As in eager, an
infinite derivative of an unused result does no harm, a saved value that only such a derivative
needs may change, and an input that nothing used depends on has no gradient.

The cotangent of a result whose elements were summed is one number. Loops that read it spare the
memory that it would fill. What only gradients need that nobody asks for is left out, as in eager.

A derivative of the user's own need not be linear: `runtime` then asks for no such graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._ir.graph import Arg, Graph, Node, TensorType, Value, map_values, renumbered, values_of
from .partition import needing, sized
from .passes import eliminate_dead


@dataclass(frozen=True)
class PartialBackward:
    """A backward graph, and which of the whole one's saved values, cotangents and gradients it has.
    It takes all sizes."""

    graph: Graph
    saved: tuple[int, ...]
    cotangents: tuple[int, ...]
    grads: tuple[int, ...]


def partial_backward(graph: Graph, there: str, sizes: int) -> PartialBackward:
    """The backward graph for some of the cotangents and some of the gradients.

    Args:
        graph: of saved values, sizes and cotangents to gradients, as `partition` makes it.
        there: of each cotangent "1", "0" where there is none, "e" where its elements are equal: it
            is given without dims. Where some gradients are not asked for, a slash follows, and of
            each gradient "1" or "0".
        sizes: how many of the inputs are sizes.
    """
    there, _, wanted = there.partition("/")
    asked = [kind == "1" for kind in wanted] or [True] * len(graph.outputs)
    saved = len(graph.inputs) - sizes - len(there)
    cotangents = graph.inputs[saved + sizes :]
    absent = {v for v, kind in zip(cotangents, there, strict=True) if kind == "0"}
    alive = needing(graph, {*cotangents} - absent)
    zero = needing(graph, absent) - alive
    if absent:  # a gradient that no cotangent reaches is zero, too: that of what was overwritten
        zero |= {*values_of(graph.outputs)} - alive
    pruned = _Pruned(graph, zero)
    given = {v: v for v in cotangents if v not in absent}
    for v, kind in zip(cotangents, there, strict=True):
        if kind == "e":
            given[v] = pruned.spread(v)
    pruned.add(graph.nodes)
    grads = tuple(k for k, v in enumerate(graph.outputs) if v not in zero and asked[k])
    outputs = tuple(pruned.now(graph.outputs[k]) for k in grads)
    body = eliminate_dead(Graph(graph.inputs, pruned.nodes, outputs, graph.env))
    used = {v for n in body.nodes for v in n.inputs} | {*outputs}
    kept = tuple(k for k, v in enumerate(graph.inputs[:saved]) if v in used)
    body.inputs = (
        *(graph.inputs[k] for k in kept),
        *graph.inputs[saved : saved + sizes],
        *given.values(),
    )
    names = [s.name for s in graph.env.symbols.values()]
    body.env = sized(graph.env, names, len(kept))
    given_at = tuple(k for k, kind in enumerate(there) if kind != "0")
    return PartialBackward(renumbered(body), kept, given_at, grads)


class _Pruned:
    """The nodes without those of values that are zero. Sums leave zeros out; other nodes that take
    one are given zeros."""

    def __init__(self, graph: Graph, zero: set[Value]) -> None:
        self.nodes: list[Node] = []
        self.zero = zero
        self.same: dict[Value, Value] = {}
        self.count = max((v.id for v in graph.values()), default=0) + 1

    def add(self, nodes: list[Node]) -> None:
        for node in nodes:
            if self.zero.isdisjoint(node.outs):
                self.keep(node)

    def keep(self, node: Node) -> None:
        term = None if self.zero.isdisjoint(node.inputs) else self.only_term(node)
        if term is not None:
            self.same[node.out] = self.now(term)
            return
        args = map_values(node.args, self.now)
        self.nodes.append(replace(node, args=args))

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
            self.same[v] = self.filled(v, "fill_.new", 0)
        return self.same.get(v, v)

    def spread(self, v: Value) -> Value:
        """Stands for a value with equal elements: the new input that holds one of them."""
        t = v.type
        assert isinstance(t, TensorType)
        one = self.fresh(TensorType(t.dtype, (), (), t.device))
        self.same[v] = self.filled(v, "copy_.new", one, False)
        return one

    def filled(self, v: Value, target: str, *how: Arg) -> Value:
        """A tensor laid out as a value is, which an entry fills."""
        t = v.type
        assert isinstance(t, TensorType)
        room = self.made("empty_strided", (t.shape, t.strides, t.dtype, t.device), t)
        return self.made(target, (room, *how), t)

    def made(self, target: str, args: tuple[Arg, ...], t: TensorType) -> Value:
        out = self.fresh(t)
        self.nodes.append(Node(target, args, (out,)))
        return out

    def fresh(self, t: TensorType) -> Value:
        self.count += 1
        return Value(self.count - 1, t)
