"""Clean-up passes over functional graphs. Each returns a new graph that shares values."""

from __future__ import annotations

from typing import Any

import flambeau

from .._ir.graph import CUSTOM, Graph, Node, Value, map_values, values_of
from .._ir.targets import resolve


def is_view(node: Node) -> bool:
    """Its result lies in the memory of an argument."""
    return node.target != CUSTOM and resolve(node.target).op.kind == "view"


def is_random(node: Node) -> bool:
    """It draws from a generator: random calls are never eliminated or merged."""
    return node.target != CUSTOM and resolve(node.target).draws


def _is_fresh(node: Node) -> bool:
    """It only takes memory, of which every user wants its own."""
    return resolve(node.target).op.option("kernel") == "nothing"


def _like(graph: Graph, nodes: list[Node], outputs: tuple[Any, ...]) -> Graph:
    return Graph(graph.inputs, nodes, outputs, graph.env, graph.attached)


def eliminate_dead(graph: Graph) -> Graph:
    """Without the nodes that no output needs."""
    needed = set(values_of(graph.outputs))
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if is_random(node) or any(v in needed for v in node.outs):
            kept.append(node)
            needed.update(node.inputs)
    return _like(graph, kept[::-1], graph.outputs)


def eliminate_common(graph: Graph) -> Graph:
    """Equal calls of equal arguments made once.

    But two results of the graph are never made one: each is a tensor with memory of its own.
    """
    seen: dict[Any, Node] = {}
    same: dict[Value, Value] = {}
    escaping = _memories(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        args = map_values(node.args, lambda v: same.get(v, v))
        if node.rule is not None:  # equal values may have derivatives that differ
            nodes.append(Node(node.target, args, node.outs, node.where, node.grad, node.blocks))
            continue
        key = (node.target, key_of(args), node.grad)
        first = seen.get(key)
        apart = first is not None and escaping & {*first.outs} and escaping & {*node.outs}
        if first is not None and not apart:
            escaping.update(a for a, b in zip(first.outs, node.outs, strict=True) if b in escaping)
            same.update(zip(node.outs, first.outs, strict=True))
            continue
        kept = Node(node.target, args, node.outs, node.where, node.grad)
        nodes.append(kept)
        if not is_random(node) and not _is_fresh(node):
            seen[key] = kept
    outputs = map_values(graph.outputs, lambda v: same.get(v, v))
    return _like(graph, nodes, outputs)


def _memories(graph: Graph) -> set[Value]:
    """The values whose memory the results of the graph lie in."""
    out = set(values_of(graph.outputs))
    for node in reversed(graph.nodes):
        if is_view(node) and any(v in out for v in node.outs):
            out.update(node.inputs)
    return out


def key_of(a: Any) -> Any:
    """What tells arguments apart: 1, 1.0 and True are three."""
    if isinstance(a, tuple):
        return tuple(map(key_of, a))
    return (type(a), repr(a)) if isinstance(a, (float, complex)) else (type(a), a)


def without_rules(graph: Graph) -> Graph:
    """Derivatives of their own are gone: what is left of their nodes are copies."""
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.rule is None:
            nodes.append(node)
            continue
        for made, out in zip(node.args[0], node.outs, strict=True):
            args = (made, None, flambeau.preserve_format, None)
            nodes.append(Node("_to_copy", args, (out,), node.where, node.grad))
    return _like(graph, nodes, graph.outputs)


def clean(graph: Graph) -> Graph:
    return eliminate_dead(eliminate_common(graph))
