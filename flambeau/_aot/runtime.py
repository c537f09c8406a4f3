"""Functional graphs as the function that the user wrote: mutation, aliases, training.

The native `_CompiledFunction` (csrc/python/compiled_function.h) does it on each call; this file
describes to it what `Metadata` says. The graphs are run by whatever `back_end` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau import _C, Tensor

from .._ir.formula import Numbers
from .._ir.graph import Graph, TensorType
from .._ir.graph_run import prepare
from .metadata import Alias
from .pipeline import Compiled

BackEnd = Callable[[Graph], Callable[..., Sequence[Any]]]


def callable_of(compiled: Compiled, back_end: BackEnd = prepare) -> Callable[..., Any]:
    """The function of the graph's inputs (but for attached ones), as the user wrote it.

    Gradients flow through it once: a backward of its backward raises RuntimeError.
    """
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
    backward = _backward(compiled, back_end, numbers)
    made: Callable[..., tuple[Any, ...]] = _C._CompiledFunction((
        _apart(back_end(graph)), len(graph.inputs) - len(graph.attached), graph.attached,
        numbers.spec(conditions=False), tuple(meta.mutated), meta.results, tuple(aliases), output,
        backward, _as_written(compiled) if meta.mutated else None,
    ))  # fmt: skip
    apart = {k for k, a in enumerate(meta.outputs) if isinstance(a, Alias) and a.detached}
    if not apart:
        return made
    return lambda *inputs: tuple(
        x.detach() if k in apart else x for k, x in enumerate(made(*inputs))
    )


def _as_written(compiled: Compiled) -> Callable[..., Any]:
    """For inputs that share memory while one changes: the captured graph, node by node."""
    made: list[Callable[..., Any]] = []

    def call(*inputs: Any) -> Any:
        if not made:
            made.append(prepare(compiled.captured))
        return made[0](*inputs)

    return call


def _apart(run: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
    """The function with results that are no views: one that is made without gradients may not be
    changed in place with them, which users of the result may do."""
    if isinstance(run, _C._Program):
        return run
    return lambda *inputs: tuple(
        x.detach() if isinstance(x, Tensor) and x._is_view() else x for x in run(*inputs)
    )


def _backward(compiled: Compiled, back_end: BackEnd, numbers: Numbers) -> tuple[Any, ...] | None:
    """The backward graph, and what it takes and gives."""
    graph, meta = compiled.backward, compiled.metadata
    if graph is None:
        return None
    types = [v.type for v in graph.inputs[meta.saved + len(meta.sizes) :]]
    cotangents = tuple(
        numbers.geometry(t.dtype, t.shape, t.strides) for t in types if isinstance(t, TensorType)
    )
    sizes = tuple(numbers.names[n] for n in meta.sizes)
    return (back_end(graph), tuple(meta.differentiable), cotangents, tuple(meta.grads), sizes)
