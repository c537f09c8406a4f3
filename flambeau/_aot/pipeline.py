"""The whole way: functionalise, differentiate, clean, lay out, partition; checked on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._ir.graph import Arg, Graph, Value, renumbered
from .._ir.graph_verify import checked
from .attention import fuse_attention
from .functionalise import functionalise
from .joint import active_values, differentiate
from .layouts import channels_last
from .metadata import Metadata
from .mutation_hazards import mutation_hazards
from .padding import pad_products
from .partition import partition
from .passes import clean, eliminate_dead, without_rules


@dataclass
class Compiled:
    """Functional graphs of primitives, and how a function is made of them."""

    forward: Graph
    backward: Graph | None
    metadata: Metadata
    captured: Graph


def aot(graph: Graph, requires_grad: list[bool], recompute: bool = True) -> Compiled:
    """Forward and backward graphs of a captured graph.

    Args:
        graph: as captured; attached tensors are its last inputs.
        requires_grad: of each input, whether gradients flow to it.
        recompute: backward may compute cheap values again instead of having them saved.

    Returns:
        The forward graph (results, then what it saves), the backward graph (saved values, sizes,
        cotangents to gradients) or None where no result depends on an input that wants gradients,
        and the metadata.
    """
    checked(graph, "captured")
    recorder, meta = functionalise(graph, requires_grad)
    given = recorder.graph.outputs
    joint = eliminate_dead(recorder.graph)
    harmful = mutation_hazards(
        joint, active_values(joint, requires_grad), range(len(meta.mutated), meta.results)
    )
    cleaned, joint = clean(joint), recorder.graph
    joint.nodes, joint.outputs = cleaned.nodes, cleaned.outputs
    fuse_attention(recorder)
    pad_products(recorder)
    joint.nodes = clean(joint).nodes
    checked(joint, "primitive")
    results = list(joint.outputs)
    active = active_values(joint, requires_grad)
    if not any(v in active for v in results):
        functional = channels_last(clean(without_rules(joint)))
        functional.replaced = _replaced(functional, meta, given)
        return Compiled(renumbered(functional), None, meta, graph)
    inputs = joint.inputs
    meta.linear = all(n.rule is None for n in joint.nodes)
    meta.differentiable, total = differentiate(recorder, active, results)
    tangents = recorder.graph.inputs[len(inputs) :]
    wanted: list[Value] = []
    for i, v in enumerate(inputs):
        if requires_grad[i] and v in total:
            meta.grads.append(i)
            wanted.append(recorder.read(total[v]))
    joint.outputs = (*results, *wanted)
    checked(joint, "primitive")
    joint = channels_last(clean(without_rules(joint)))
    checked(joint, "primitive")
    changing = {inputs[i] for i in meta.mutated} | harmful.values(joint)
    parts = partition(joint, meta.results, tangents, recompute, changing)
    meta.saved, meta.sizes = len(parts.saved), parts.sizes
    checked(parts.forward, "primitive")
    checked(parts.backward, "primitive")
    parts.forward.replaced = _replaced(parts.forward, meta, given)
    return Compiled(renumbered(parts.forward), renumbered(parts.backward), meta, graph)


def _replaced(graph: Graph, meta: Metadata, given: Sequence[Arg]) -> tuple[tuple[int, int], ...]:
    """New values of inputs that may be computed in the memory of these, and the inputs.

    Not those with a history, which a copy records, nor those that the passes found elsewhere in
    the graph: they may have been there before the input changed.

    Args:
        graph: the forward graph.
        meta: what it leaves out.
        given: the outputs as functionalisation made them.
    """
    return tuple(
        (k, i)
        for k, i in enumerate(meta.mutated)
        if graph.outputs[k] is given[k] and k not in meta.differentiable and i in meta.at_once
    )
