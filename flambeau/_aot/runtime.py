"""Functional graphs as the function that the user wrote: mutation, aliases, training.

The native `_CompiledFunction` (csrc/python/compiled_function.h) does it on each call; this file
describes to it what `Metadata` says. The graphs are run by whatever `back_end` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._ir.formula import Numbers
from .._ir.graph import Graph, TensorType
from .._ir.graph_run import prepare
from .._ir.native import Function
from .metadata import Alias
from .pipeline import Compiled

BackEnd = Callable[[Graph], Callable[..., Sequence[Any]]]


def callable_of(compiled: Compiled, back_end: BackEnd = prepare) -> Callable[..., Any]:
    """The function of the graph's inputs (but for attached ones), as the user wrote it.

    Gradients flow through it once: a backward of its backward raises RuntimeError.
    """
    backward = None if compiled.backward is None else back_end(compiled.backward)
    forward = back_end(compiled.forward)
    attached = compiled.forward.attached
    return described(compiled).made(forward, backward, compiled.captured, attached)


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
    )


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
    return (tuple(meta.differentiable), cotangents, tuple(meta.grads), sizes)
