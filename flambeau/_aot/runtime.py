"""Functional graphs as the function that the user wrote: mutation, aliases, training.

The native `_CompiledFunction` (csrc/python/compiled_function.h) does it on each call; this file
describes to it what `Metadata` says. The graphs are run by whatever `back_end` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from .._ir.formula import Numbers
from .._ir.graph import Graph, TensorType, show
from .._ir.graph_parse import parse
from .._ir.graph_run import prepare
from .._ir.graph_verify import checked
from .._ir.logs import enabled
from .._ir.native import Function, Makers, Recorded
from .metadata import Alias, Metadata
from .partial_backward import partial_backward
from .pipeline import Compiled

BackEnd = Callable[[Graph], Callable[..., Sequence[Any]]]


def _none(there: str) -> str:
    return "nothing was given that makes its second derivatives"


def callable_of(
    compiled: Compiled,
    run_forward: BackEnd = prepare,
    run_backward: BackEnd | None = None,
    recorded: Callable[[str], Recorded | str] = _none,
) -> Callable[..., Any]:
    """The function of the graph's inputs (but for attached ones), as the user wrote it.

    Args:
        run_forward: makes a function of the forward graph.
        run_backward: and of the backward graph; None: the same.
        recorded: see `native.Makers`.
    """
    run_backward = run_backward or run_forward
    backward = None if compiled.backward is None else run_backward(compiled.backward)
    forward = run_forward(compiled.forward)
    attached = compiled.forward.attached

    def part(function: Function, there: str, compile: bool) -> tuple[Any, ...]:
        return part_of(function, there, run_backward if compile else prepare)

    makers = Makers(part, recorded)
    return described(compiled).made(forward, backward, compiled.captured, makers, attached)


def described(compiled: Compiled) -> Function:
    """The description of that function."""
    meta, graph = compiled.metadata, compiled.forward
    numbers = Numbers(graph.env)
    aliases: list[Any] = []

    def tensor(a: Any) -> int | None:
        if not isinstance(a, Alias):
            return None
        shown = None
        if not a.whole:
            shown = numbers.geometry(a.dtype, a.shape, a.strides, a.offset)
        aliases.append((a.source == "input", a.index, shown))
        return len(aliases) - 1

    output = numbers.output(meta.outputs, tensor)
    backward = _backward(compiled, numbers)
    spec = numbers.spec(conditions=False)
    return Function(
        len(graph.inputs) - len(graph.attached),
        (spec, tuple(meta.mutated), meta.results, tuple(aliases), output),
        backward,
        tuple(k for k, a in enumerate(meta.outputs) if isinstance(a, Alias) and a.detached),
        _text(compiled),
        kept_inputs(graph, meta) if backward else (),
    )


def _text(compiled: Compiled) -> str | None:
    """The backward graph, from which `part_of` starts.

    Lines of the user's are in it only where code is printed: a plan is for all equal graphs.
    """
    graph, meta = compiled.backward, compiled.metadata
    if graph is None or not meta.linear:
        return None
    cotangents = graph.inputs[meta.saved + len(meta.sizes) :]
    if len(cotangents) == 1 and isinstance(t := cotangents[0].type, TensorType) and not t.shape:
        return None  # a loss has one cotangent, a number
    return text_of(graph)


def text_of(graph: Graph) -> str:
    """The text of a graph, with what is known of its sizes."""
    env = copy(graph.env)
    env.guards = env.history
    nodes = graph.nodes
    if not enabled("output_code"):
        nodes = [replace(n, where=None) for n in nodes]
        env.guards = [replace(g, where=None) for g in env.guards]
    return show(replace(graph, env=env, nodes=nodes))


def part_of(function: Function, there: str, back_end: Callable[[Graph], Any]) -> tuple[Any, ...]:
    """Backward for some of the cotangents, see `native.Part`."""
    assert function.backward is not None and function.whole is not None
    *_, sizes, _ = function.backward
    n = partial_backward(parse(function.whole), there, len(sizes))
    return back_end(checked(n.graph, "primitive")), n.saved, n.cotangents, n.grads


def kept_inputs(graph: Graph, meta: Metadata) -> tuple[int, ...]:
    """Inputs from which gradients that are differentiated again are made."""
    tensors = (i for i, v in enumerate(graph.inputs) if isinstance(v.type, TensorType))
    return tuple(i for i in tensors if i not in meta.mutated)


def _backward(compiled: Compiled, numbers: Numbers) -> tuple[Any, ...] | None:
    """What the backward graph takes and gives."""
    graph, meta = compiled.backward, compiled.metadata
    if graph is None:
        return None
    types = [v.type for v in graph.inputs[meta.saved + len(meta.sizes) :]]
    cotangents = tuple(
        numbers.geometry(t.dtype, t.shape, t.strides) for t in types if isinstance(t, TensorType)
    )
    sizes = tuple(numbers.names[n] for n in meta.sizes)
    return (tuple(meta.differentiable), cotangents, tuple(meta.grads), sizes, meta.saved)
