"""What others may change before backward runs: inputs and results whose memory eager does not keep.

Note [Only what eager keeps]
A tensor that eager keeps for a derivative may not be changed in place until backward has run: it
would raise. Every other input or result of a graph may be, by whoever holds it, and eager's
gradients do not notice. A compiled function keeps what is cheapest, so of memory that is exposed in
this way it keeps a copy, or something else (`partition`).

Knows nothing of partitions. Runs before equal calls are made one: eager keeps each by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .._ir.graph import Graph, Node, Value, values_of
from .._ir.targets import resolve
from .._trace import table
from .passes import is_view


@dataclass
class MutationHazards:
    """Positions of inputs and of results that may be changed where eager would not mind."""

    inputs: list[int]
    results: list[int]

    def values(self, graph: Graph) -> set[Value]:
        """The values, in a graph made of the one that was looked at, with whose memory they lie."""
        roots = memories(graph)
        given = [graph.inputs[i] for i in self.inputs]
        made = [graph.outputs[i] for i in self.results]
        return {roots.get(v, v) for v in (*given, *made)}


def mutation_hazards(graph: Graph, active: set[Value], results: Iterable[int]) -> MutationHazards:
    """Looks at a functional graph; `results` are the positions of outputs that users hold."""
    roots = memories(graph)
    safe = {roots.get(v, v) for n in graph.nodes for v in _kept(n, active)}
    harmful = [i for i, v in enumerate(graph.inputs) if v not in safe]
    outputs: Sequence[Any] = graph.outputs
    return MutationHazards(
        harmful, [i for i in results if roots.get(outputs[i], outputs[i]) not in safe]
    )


def memories(graph: Graph) -> dict[Value, Value]:
    """For each view the value in whose memory it lies."""
    out: dict[Value, Value] = {}
    for node in graph.nodes:
        if is_view(node):
            base: Any = node.args[0]
            out.update(dict.fromkeys(node.outs, out.get(base, base)))
    return out


def _kept(node: Node, active: set[Value]) -> Iterable[Value]:
    """Values that eager keeps for the derivative of a node."""
    if not any(v in active for v in node.outs):
        return
    if node.rule is not None:
        used = {v for n in node.rule.nodes for v in n.inputs} | {*values_of(node.rule.outputs)}
        yield from (v for v, r in zip(node.args[2], node.rule.inputs, strict=False) if r in used)
        return
    op = resolve(node.target).op
    for k in table.kept(op.uid):
        needed = values_of(tuple(node.args[i] for i in k.slots))
        if not k.always and not any(v in active for v in needed):
            continue
        if k.kind == "input":
            yield from values_of(node.args[k.index])
        else:
            yield from node.outs if op.outputs[0].is_list else (node.outs[k.index],)
