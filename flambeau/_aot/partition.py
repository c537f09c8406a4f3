"""The joint graph cut in two: what forward computes, what it saves, what backward computes.

Backward may compute forward values again where that is cheap. Which values are saved is a least cut
between what cannot be computed again and what backward needs, by the bytes of the values; of equal
cuts the one that leaves least to compute. What forward and backward both hand to kernels is in
memory anyway: it is saved. What is computed again is computed where backward first needs it, so
that memory holds it no longer than it must.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flambeau

from .._ir.graph import Block, Graph, Node, TensorType, Value, map_values, values_of
from .._ir.symbols import Origin, ShapeEnv, Symbol, UnbackedError
from .._ir.symexpr import Expr, expr
from .._ir.symscalar import FloatExpr
from .._ir.targets import resolve
from .._ir.types import INT
from .mincut import Network
from .passes import eliminate_dead, is_random, is_view


@dataclass
class Parts:
    """Forward (results, saved) and backward (saved, sizes, cotangents -> gradients)."""

    forward: Graph
    backward: Graph
    saved: list[Value]
    sizes: list[str]


def is_cheap(node: Node) -> bool:
    """Computing it again costs little more than reading what it computes."""
    if is_random(node):
        return False
    op = resolve(node.target).op
    if op.kind in ("pointwise", "view") or op.option("element"):
        return True
    return bool(op.option("factory") or op.option("like_factory"))


def _bytes(v: Value, env: ShapeEnv) -> float:
    if not isinstance(v.type, TensorType):
        return 8.0
    n = expr(1)
    for d in v.type.shape:
        n = n * d
    try:
        count = env.hint(n)
    except UnbackedError:
        count = 1 << 20
    return float(max(count, 1) * v.type.dtype.itemsize)


def needing(graph: Graph, roots: set[Value]) -> set[Value]:
    """Values that depend on the roots."""
    out = set(roots)
    for node in graph.nodes:
        if any(v in out for v in node.inputs):
            out.update(node.outs)
    return out


def partition(
    graph: Graph,
    results: int,
    tangents: tuple[Value, ...],
    recompute: bool,
    changing: frozenset[Value] | set[Value] = frozenset(),
    also: frozenset[Value] | set[Value] = frozenset(),
) -> Parts:
    """Cuts a joint graph whose outputs are `results` results and then gradients.

    Values that are `changing`, and views of them, may hold other values by the time that backward
    runs (inputs that the graph changes; Note [Only what eager keeps]): a copy of them is saved.
    Random values that are `also` wanted are saved whatever backward needs.
    """
    late = needing(graph, set(tangents))
    grads = graph.outputs[results:]
    backward = nodes_for(graph, grads, late)
    needed = {v for n in backward for v in n.inputs if v not in late}
    needed |= {v for v in values_of(grads) if v not in late} | also
    early = [n for n in graph.nodes if not any(v in late for v in n.outs)]
    unsafe = _views_of(graph, set(changing))
    if recompute:
        free = ({*graph.inputs} | {*values_of(graph.outputs[:results])}) - unsafe
        kept_anyway = _handed_on(graph, early) & _handed_on(graph, backward)
        saved = _least_saved(graph, early, needed, free, kept_anyway)
    else:
        saved = needed
    order = {v: i for i, v in enumerate(graph.values())}
    kept = sorted(saved, key=order.__getitem__)
    again = nodes_for(Graph(nodes=early), tuple(needed - saved), set(order), stop=saved)
    return _built(graph, results, tangents, kept, _as_needed(again, backward), unsafe)


def _handed_on(graph: Graph, nodes: list[Node]) -> set[Value]:
    """Values that kernels among the nodes are called with, directly or through views."""
    out = {v for n in nodes if _runs_alone(n) for v in n.inputs}
    for node in reversed(graph.nodes):
        if is_view(node) and any(v in out for v in node.outs):
            out.update(node.inputs)
    return out


def _runs_alone(node: Node) -> bool:
    """A kernel of its own runs it: no loop of the back end does."""
    if is_cheap(node):
        return False
    op = resolve(node.target).op
    return not op.written_out and op.looped is None


def _as_needed(early: list[Node], late: list[Node]) -> list[Node]:
    """All nodes; each of the early ones just before the first late one that needs it."""
    first = {v: k for k, n in reversed([*enumerate(late)]) for v in n.inputs}
    before: list[list[Node]] = [[] for _ in range(len(late) + 1)]
    for node in reversed(early):
        at = min(first.get(v, len(late)) for v in node.outs)
        for v in node.inputs:
            first[v] = min(first.get(v, at), at)
        before[at].append(node)
    out: list[Node] = []
    for made, at_last in zip(before, [*late, None], strict=True):
        out += made[::-1]
        out += [at_last] if at_last is not None else []
    return out


def _views_of(graph: Graph, roots: set[Value]) -> set[Value]:
    """The roots and what shares memory with them."""
    out = set(roots)
    for node in graph.nodes:
        if resolve(node.target).op.kind == "view" and node.args[0] in out:
            out.update(node.outs)
    return out


def nodes_for(
    graph: Graph,
    outputs: tuple[Any, ...],
    within: set[Value],
    stop: frozenset[Value] | set[Value] = frozenset(),
) -> list[Node]:
    """Nodes among those that define values of `within` that the outputs need."""
    wanted = set(values_of(outputs)) - set(stop)
    out: list[Node] = []
    for node in reversed(graph.nodes):
        if any(v in wanted and v in within for v in node.outs):
            out.append(node)
            wanted.update(v for v in node.inputs if v not in stop)
    return out[::-1]


def _least_saved(
    graph: Graph, early: list[Node], needed: set[Value], free: set[Value], in_memory: set[Value]
) -> set[Value]:
    """The values to keep, see above. Those that are `free` are kept alive by others anyway; those
    that are in memory on both sides are never computed again."""
    net = Network()

    def vertex(v: Value, side: str) -> tuple[str, Value]:
        return side, v

    values = [*graph.inputs, *(v for n in early for v in n.outs)]
    for v in values:
        size = _bytes(v, graph.env)
        net.edge(vertex(v, "in"), vertex(v, "out"), size * (1e-3 if v in free else 1.0))
        if v in needed:
            net.edge(vertex(v, "out"), "sink", math.inf)
    for v in graph.inputs:
        net.edge("source", vertex(v, "in"), math.inf)
    for node in early:
        for out in node.outs:
            if is_cheap(node) and (is_view(node) or out not in in_memory):
                for v in node.inputs:
                    net.edge(vertex(v, "out"), vertex(out, "in"), math.inf)
            else:
                net.edge("source", vertex(out, "in"), math.inf)
    net.out.setdefault("source", [])
    net.out.setdefault("sink", [])
    side = net.cut("source", "sink")
    return {v for v in values if vertex(v, "in") in side and vertex(v, "out") not in side}


def _symbols_of(a: Any) -> set[str]:
    if isinstance(a, tuple):
        return set().union(*map(_symbols_of, a)) if a else set()
    return set(a.symbols) if isinstance(a, (Expr, FloatExpr)) else set()


def sized(env: ShapeEnv, names: Sequence[str], first: int) -> ShapeEnv:
    """The environment of a graph whose inputs from `first` on are these symbols' values."""
    out = ShapeEnv(env.locate)
    for k, name in enumerate(names):
        s = env.symbols[name]
        out.declare(Symbol(name, s.hint, s.low, s.high, Origin(first + k, "value")))
    for fact in env.facts:  # what the shapes of forward rely on holds of these sizes too
        if fact.expr.symbols <= out.symbols.keys():
            out.learn(fact)
    return out


def _built(
    graph: Graph, results: int, tangents: tuple[Value, ...], saved: list[Value], nodes: list[Node],
    unsafe: set[Value],
) -> Parts:  # fmt: skip
    inputs = tuple(v for v in graph.inputs if v not in tangents)
    count = max((v.id for v in graph.values()), default=0) + 1
    copies_made: list[Node] = []
    safe: list[Value] = []
    for v in saved:
        if v in unsafe:
            twin = Value(count, v.type)
            count += 1
            copies_made.append(Node("_to_copy", (v, None, flambeau.preserve_format, None), (twin,)))
            v = twin
        safe.append(v)
    outputs = (*graph.outputs[:results], *safe)
    body = [*graph.nodes, *copies_made]
    forward = eliminate_dead(Graph(inputs, body, outputs, graph.env, graph.attached))
    backward, sizes = backward_graph(graph, results, tangents, saved, nodes)
    return Parts(forward, backward, saved, sizes)


def backward_graph(
    graph: Graph,
    results: int,
    tangents: tuple[Value, ...],
    saved: Sequence[Value],
    nodes: list[Node],
) -> tuple[Graph, list[str]]:
    """The gradients of a joint graph by some of its nodes, and the symbols whose values they need.

    The graph takes saved values, then the values of the symbols, then the cotangents. It shares no
    values with the joint one: what is saved is an output of one graph and an input of another.
    """
    count = max((v.id for v in graph.values()), default=0) + 1
    used = set().union(*(_symbols_of(n.args) for n in nodes)) if nodes else set()
    for v in {*saved, *tangents, *(o for n in nodes for o in n.outs)}:
        if isinstance(v.type, TensorType):
            used |= _symbols_of((*v.type.shape, *v.type.strides))
    sizes = sorted(used)
    env = sized(graph.env, sizes, len(saved))
    names = [Value(count + k, INT) for k in range(len(sizes))]
    copies: dict[Value, Value] = {}

    def copy(v: Value) -> Value:
        if v not in copies:
            copies[v] = Value(v.id, v.type)
        return copies[v]

    def block(b: Block) -> Block:
        copied = Block(tuple(map(copy, b.inputs)), [node(n) for n in b.nodes])
        copied.outputs = map_values(b.outputs, copy)
        return copied

    def node(n: Node) -> Node:
        outs, blocks = tuple(map(copy, n.outs)), tuple(map(block, n.blocks))
        return Node(n.target, map_values(n.args, copy), outs, n.where, n.grad, blocks)

    taken = [*map(copy, saved), *names, *map(copy, tangents)]
    made = [node(n) for n in nodes]
    return Graph(tuple(taken), made, map_values(graph.outputs[results:], copy), env), sizes
