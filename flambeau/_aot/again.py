"""Backward as a function of what forward was given, for gradients that are differentiated again.

Backward takes values that forward saved, and saving cuts those that depend on the inputs off from
them. With `create_graph` this graph runs in its place. It takes the same values, as results of the
compiled call besides those that the user sees: they have cotangents of their own, which come back
to the call, and this graph has those as well. What else it needs it computes again, from these and
from the inputs. Being a graph like any other it is compiled like any other, and has such a graph of
its own: orders do not end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flambeau

from .._ir.graph import Graph, Node, TensorType, Value, map_values, renumbered, values_of
from .._ir.targets import resolve
from .joint import active_values
from .layouts import is_last, is_layout, laid_out, reads_layout
from .metadata import Metadata
from .partition import backward_graph, needing, nodes_for
from .passes import is_random, key_of


@dataclass(frozen=True)
class Again:
    """That graph: kept values, sizes, cotangents to gradients, as the backward graph has them."""

    graph: Graph
    saved: tuple[int, ...]  # values that forward saves which it takes
    inputs: tuple[int, ...]  # of forward, which it takes after them
    sizes: tuple[str, ...]  # symbols that it takes
    values: tuple[int, ...]  # saved ones that have cotangents, which follow those of the results


class NotAgain(Exception):
    """Why there is none."""


def again(
    joint: Graph,
    meta: Metadata,
    tangents: Sequence[Value],
    requires_grad: Sequence[bool],
    saved: Sequence[Value],
    places: Mapping[Value, int],
    values: Sequence[Value],
) -> Again:
    """The graph for a joint one.

    Args:
        joint: results, then gradients, which have derivatives.
        tangents: its last inputs.
        requires_grad: of each of the inputs before, whether gradients flow to it.
        saved: what forward saves, values of the graph that was compiled.
        places: values of this graph that are among them, up to their layout (`same_values`).
        values: those of them that have cotangents, the last ones.

    Raises:
        NotAgain: it needs random numbers that are not among the saved values, or an input that the
            function changes as it was before, or an entry has no derivative.
    """
    try:
        active = _active(joint, tangents, requires_grad)
    except NotImplementedError as e:
        raise NotAgain(str(e)) from None
    inside = {*joint.values()}
    fixed = {v: k for v, k in places.items() if v in inside and (v not in active or v in values)}
    nodes = nodes_for(joint, joint.outputs[meta.results :], inside, stop={*fixed})
    nodes = [n for node in nodes for n in _undrawn(node, fixed)]
    if any(map(is_random, nodes)):
        raise NotAgain("it needs random numbers that are not saved")
    for n in joint.nodes:
        if n.rule is not None and n.rule.nodes and not any(m.grad for m in n.rule.nodes):
            raise NotAgain("the backward of a function in it records nothing (once_differentiable)")
    made = {v for n in nodes for v in n.outs}  # a node may give a saved value besides others
    used = {v for n in nodes for v in n.inputs} | {*values_of(joint.outputs[meta.results :])}
    inputs = [
        k for k, v in enumerate(joint.inputs) if v in used and v not in fixed and v not in tangents
    ]
    if not {*inputs}.isdisjoint(meta.mutated):
        raise NotAgain("its derivatives need an input that it changes in place")
    kept = [v for v in fixed if v in used and v not in made]
    given = [joint.inputs[k] for k in inputs]
    laid = {v: saved[fixed[v]].type for v in kept}  # and cotangents as what they are of
    laid |= {
        t: saved[places[v]].type
        for t, v in zip(tangents[::-1], values[::-1], strict=False)
        if is_last(saved[places[v]])
    }
    other = {v: Value(v.id, t) for v, t in laid.items() if t != v.type}
    nodes[:0] = [laid_out(x, flambeau.contiguous_format, v) for v, x in other.items()]
    taken, cotangents = ([other.get(v, v) for v in vs] for vs in ((*kept, *given), tangents))
    graph, sizes = backward_graph(joint, meta.results, tuple(cotangents), taken, nodes)
    graph = renumbered(graph)
    numbers, with_cotangents = (tuple(places[v] for v in vs) for vs in (kept, values))
    return Again(graph, numbers, tuple(inputs), tuple(sizes), with_cotangents)


def same_values(saved: Sequence[Value], made: Graph, graph: Graph) -> dict[Value, int]:
    """The values of a graph that equal saved ones, with the places of those.

    Args:
        saved: values of `made`.
        made: what was compiled: another graph of the same function, with layouts of its own.

    A dense one may be saved with its channels last.
    """
    both = {*made.values()} & {*graph.values()}
    table: dict[Any, int] = {}
    theirs, ours = (_numbered(g, both, table) for g in (made, graph))
    places: dict[int, list[int]] = {}
    for k, v in enumerate(saved):
        if v in theirs:
            places.setdefault(theirs[v], []).append(k)
    found = {}
    for v, n in ours.items():
        dense = isinstance(v.type, TensorType) and v.type.contiguous
        same = [
            k for k in places.get(n, ())
            if saved[k].type == v.type or (dense and is_last(saved[k]))
        ]  # fmt: skip
        if same:
            found[v] = min(same, key=lambda k: saved[k].type != v.type)
    return found


def _numbered(graph: Graph, both: Collection[Value], table: dict[Any, int]) -> dict[Value, int]:
    """Values by numbers that are the same where the values are, wherever they lie in memory."""
    numbers: dict[Value, int] = {}

    def number(v: Value, key: Any) -> None:
        numbers[v] = table.setdefault(v if v in both else key, len(table))

    for k, v in enumerate(graph.inputs):
        number(v, ("input", k))
    for node in graph.nodes:
        alone = bool(node.blocks) or is_random(node) or reads_layout(node)
        if is_layout(node) and node.out not in both:
            numbers[node.out] = numbers[node.inputs[0]]
            continue
        given = key_of(map_values(node.args, lambda v: ("value", numbers[v])))
        for j, v in enumerate(node.outs):
            number(v, v if alone else (node.target, given, j))
    return numbers


def _active(joint: Graph, tangents: Sequence[Value], requires_grad: Sequence[bool]) -> set[Value]:
    """What forward computes that gradients flow through; backward's own values that depend on it
    alone, too."""
    late = needing(joint, {*tangents})
    early = Graph(joint.inputs, [n for n in joint.nodes if late.isdisjoint(n.outs)])
    return active_values(early, [*requires_grad, *(False for _ in tangents)])


def _undrawn(node: Node, saved: Collection[Value]) -> list[Node]:
    """Dropout as it was drawn, where its mask is saved; any other node as it is."""
    op = None if node.rule is not None else resolve(node.target).op
    if op is None or not op.option("masks") or node.outs[1] not in saved:
        return [node]
    given = dict(zip((p.name for p in op.params), node.args, strict=True))
    out, mask = node.outs
    assert isinstance(out.type, TensorType)
    kept, scaled = Value(0, out.type), Value(0, out.type)  # numbered when the graph is
    as_number = (mask, out.type.dtype, flambeau.preserve_format, None)
    return [
        Node("_to_copy", as_number, (kept,), node.where),
        Node("mul", (kept, 1.0 / (1.0 - given["p"])), (scaled,), node.where),
        Node("mul", (given["input"], scaled), (out,), node.where, node.grad),
    ]


def random_between(
    joint: Graph,
    tangents: Sequence[Value],
    requires_grad: Sequence[bool],
    saved: Sequence[Value],
    values: Collection[Value],
) -> frozenset[Value]:
    """Random values without which saved ones, but for `values`, cannot be computed again, and which
    are not saved."""
    if not any(map(is_random, joint.nodes)):
        return frozenset()
    try:
        active = _active(joint, tangents, requires_grad)
    except NotImplementedError:
        return frozenset()
    wanted = tuple(v for v in saved if v in active and v not in values)
    fixed = {v for v in saved if v not in wanted}
    nodes = nodes_for(joint, wanted, {*joint.values()}, stop=fixed)
    return frozenset(v for n in nodes if is_random(n) for v in n.outs if v not in active) - fixed
