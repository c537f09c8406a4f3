"""The whole way: functionalise, differentiate, clean, lay out, partition; checked on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._ir.graph import Arg, Graph, Value, renumbered
from .._ir.graph_verify import checked
from .._trace.functional import PrimitiveRecorder
from .again import Again, again, random_between, same_values
from .attention import fuse_attention
from .functionalise import functionalise
from .joint import active_values, differentiate
from .layouts import channels_last
from .metadata import Metadata
from .mutation_hazards import MutationHazards, mutation_hazards
from .padding import pad_products
from .partition import Parts, partition
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
    f = _functional(graph, requires_grad)
    meta = f.meta
    if not any(v in f.active for v in f.recorder.graph.outputs):
        functional = channels_last(clean(without_rules(f.recorder.graph)))
        functional.replaced = _replaced(functional, meta, f.given)
        return Compiled(renumbered(functional), None, meta, graph)
    joint, tangents = _joint(f, requires_grad)
    parts = _parted(f, joint, tangents, requires_grad, recompute)
    meta.saved, meta.sizes = len(parts.saved), parts.sizes
    checked(parts.forward, "primitive")
    checked(parts.backward, "primitive")
    parts.forward.replaced = _replaced(parts.forward, meta, f.given)
    return Compiled(renumbered(parts.forward), renumbered(parts.backward), meta, graph)


def aot_again(
    graph: Graph, requires_grad: list[bool], recompute: bool = True
) -> tuple[Again, Metadata, int]:
    """Backward of the function that `aot` makes of the same, for gradients that are differentiated
    again; what it leaves out; how many values forward saves.

    Raises:
        NotAgain: there is none.
    """
    f = _functional(graph, requires_grad)
    functional = f.recorder.graph
    before = functional.inputs, list(functional.nodes), functional.outputs
    compiled, tangents = _joint(f, requires_grad)
    saved = _parted(f, compiled, tangents, requires_grad, recompute).saved
    functional.inputs, functional.nodes, functional.outputs = before
    kept = saved if f.meta.linear else ()  # a derivative of the user's own is followed as it is
    places = same_values(kept, compiled, functional)
    active = [v for v in places if v in f.active and v not in functional.inputs]
    values = [*{places[v]: v for v in reversed(active)}.values()]  # the first of equal ones
    joint, tangents = _joint(f, requires_grad, values)
    places = {v: k for v, k in same_values(kept, compiled, joint).items()
              if v in values or v not in f.active}
    found = again(joint, f.meta, tangents, requires_grad, kept, places, values)
    return found, f.meta, len(saved)


@dataclass
class _Functional:
    """A functional graph under construction, cleaned, and what is known of it."""

    recorder: PrimitiveRecorder
    meta: Metadata
    given: Sequence[Arg]  # the outputs as functionalisation made them
    active: set[Value]  # values through which gradients flow
    hazards: MutationHazards


def _functional(graph: Graph, requires_grad: list[bool]) -> _Functional:
    checked(graph, "captured")
    recorder, meta = functionalise(graph, requires_grad)
    given = recorder.graph.outputs
    joint = eliminate_dead(recorder.graph)
    hazards = mutation_hazards(
        joint, active_values(joint, requires_grad), range(len(meta.mutated), meta.results)
    )
    cleaned, joint = clean(joint), recorder.graph
    joint.nodes, joint.outputs = cleaned.nodes, cleaned.outputs
    fuse_attention(recorder)
    pad_products(recorder)
    joint.nodes = clean(joint).nodes
    checked(joint, "primitive")
    meta.linear = all(n.rule is None for n in joint.nodes)
    active = active_values(joint, requires_grad)
    return _Functional(recorder, meta, given, active, hazards)


def _joint(
    f: _Functional, requires_grad: Sequence[bool], values: Sequence[Value] | None = None
) -> tuple[Graph, tuple[Value, ...]]:
    """The joint graph, results and then gradients, and its cotangents.

    Args:
        values: given where it will be differentiated again: rules choose what has derivatives, and
            derivatives of the user's own stay in it; values that have cotangents like results.
    """
    again = values is not None
    joint, meta = f.recorder.graph, f.meta
    inputs, results = joint.inputs, list(joint.outputs)
    meta.differentiable, total = differentiate(
        f.recorder, f.active, [*results, *(values or ())], again
    )
    tangents = f.recorder.graph.inputs[len(inputs) :]
    wanted: list[Value] = []
    meta.grads = []
    for i, v in enumerate(inputs):
        if requires_grad[i] and v in total:
            meta.grads.append(i)
            wanted.append(f.recorder.read(total[v]))
    joint.outputs = (*results, *wanted)
    checked(joint, "primitive")
    made = clean(joint) if again else channels_last(clean(without_rules(joint)))
    return checked(made, "primitive"), tangents


def _parted(
    f: _Functional,
    joint: Graph,
    tangents: tuple[Value, ...],
    requires_grad: list[bool],
    recompute: bool,
) -> Parts:
    """The joint graph in two."""
    changing = {joint.inputs[i] for i in f.meta.mutated} | f.hazards.values(joint)
    parts = partition(joint, f.meta.results, tangents, recompute, changing)
    drawn = random_between(joint, tangents, requires_grad, parts.saved, f.active)
    if drawn:
        parts = partition(joint, f.meta.results, tangents, recompute, changing, drawn)
    return parts


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
