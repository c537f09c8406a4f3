"""Functional graphs as the function that the user wrote: mutation, aliases, training.

Forward and backward are one `autograd.Function`. The graphs are run by whatever `back_end` makes of
them; inputs that the function changes are changed here, and outputs that are views are made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import flambeau
from flambeau.autograd.function import refused

from .._ir.graph import Graph
from .._ir.graph_run import bindings, prepare
from .._ir.symexpr import Expr
from .._ir.symfloat import FloatExpr
from .metadata import Alias
from .pipeline import Compiled

BackEnd = Callable[[Graph], Callable[..., Sequence[Any]]]


def _value(a: Any, sizes: dict[str, int]) -> Any:
    return a.evaluate(sizes) if isinstance(a, (Expr, FloatExpr)) else a


def _function(compiled: Compiled, back_end: BackEnd) -> Any:
    """The autograd function of a forward and a backward graph."""
    meta = compiled.metadata
    assert compiled.backward is not None
    forward, backward = back_end(compiled.forward), back_end(compiled.backward)
    types = [v.type for v in compiled.backward.inputs[meta.saved + len(meta.sizes) :]]
    env = compiled.forward.env
    count = len(compiled.forward.inputs) - len(compiled.forward.attached)

    class Function(flambeau.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            outs = forward(*inputs[:count])
            results, saved = outs[: meta.results], outs[meta.results :]
            ctx.sizes = bindings(env, inputs) if meta.sizes else {}
            ctx.save_for_backward(*saved)
            ctx.mark_non_differentiable(
                *(r for i, r in enumerate(results) if i not in meta.differentiable)
            )
            ctx.set_materialize_grads(False)
            ctx.count = len(inputs)
            ctx.shapes = [tuple(results[i].shape) for i in meta.differentiable]
            return tuple(results)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            with flambeau.no_grad(), _without_autocast():
                out = Function.gradients(ctx, grads)
            if flambeau.is_grad_enabled():
                return refused(out, "a compiled function cannot be differentiated twice")
            return out

        @staticmethod
        def gradients(ctx: Any, grads: Sequence[Any]) -> tuple[Any, ...]:
            given = []
            for i, shape, t in zip(meta.differentiable, ctx.shapes, types, strict=True):
                g = grads[i]
                strides = tuple(_value(s, ctx.sizes) for s in t.strides)
                given.append(_laid_out(g, shape, strides, t.dtype))
            sizes = [ctx.sizes[n] for n in meta.sizes]
            made = backward(*ctx.saved_tensors, *sizes, *given)
            out: list[Any] = [None] * ctx.count
            for i, g in zip(meta.grads, made, strict=True):
                out[i] = g
            return tuple(out)

    return Function


@contextmanager
def _without_autocast() -> Iterator[None]:
    """The graphs hold their casts."""
    before = flambeau.is_autocast_enabled("cpu")
    if before:
        flambeau.set_autocast_enabled("cpu", False)
    try:
        yield
    finally:
        if before:
            flambeau.set_autocast_enabled("cpu", True)


def _laid_out(g: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> Any:
    """A cotangent with the geometry that backward was made for."""
    if g is None:
        return flambeau.empty_strided(shape, strides, dtype=dtype).zero_()
    if g.stride() == strides:
        return g
    return flambeau.empty_strided(shape, strides, dtype=dtype).copy_(g)


def callable_of(compiled: Compiled, back_end: BackEnd = prepare) -> Callable[..., Any]:
    """The function of the graph's inputs (but for attached ones), as the user wrote it.

    Gradients flow through it once: a backward of its backward raises RuntimeError.
    """
    meta = compiled.metadata
    graph = compiled.forward
    attached = graph.attached
    if compiled.backward is None:
        run = back_end(graph)
    else:
        apply = _function(compiled, back_end).apply
        run = lambda *inputs: apply(*inputs, *attached)  # noqa: E731

    def call(*inputs: Any) -> Any:
        given = (*inputs, *attached)
        if meta.mutated:
            _refuse_shared(given, meta.mutated)
        if compiled.backward is None:
            with flambeau.no_grad():
                results = run(*inputs)
        else:
            results = run(*inputs)
        sizes = bindings(graph.env, given) if graph.env.symbols else {}
        for i, new in zip(meta.mutated, results, strict=False):
            _assign(given[i], new)
        return tuple(_output(a, given, results, sizes) for a in meta.outputs)

    return call


def _refuse_shared(inputs: Sequence[Any], mutated: Sequence[int]) -> None:
    """The graphs were made for inputs in memories of their own."""
    places: dict[int, int] = {}
    for i, x in enumerate(inputs):
        if not isinstance(x, flambeau.Tensor) or not x.numel():
            continue
        j = places.setdefault(x.untyped_storage().data_ptr(), i)
        if j != i and (i in mutated or j in mutated):
            raise RuntimeError(
                f"inputs {j} and {i} share memory, and the function changes one of them in place; "
                "pass a clone of one"
            )


def _assign(x: Any, new: Any) -> None:
    """The new value of an input that the function changes."""
    if new.requires_grad:
        x.copy_(new)
        return
    with flambeau.no_grad():
        x.copy_(new)


def _output(a: Any, inputs: Sequence[Any], results: Sequence[Any], sizes: dict[str, int]) -> Any:
    if isinstance(a, tuple):
        return tuple(_output(x, inputs, results, sizes) for x in a)
    if not isinstance(a, Alias):
        return _value(a, sizes)
    base = inputs[a.index] if a.source == "input" else results[a.index]
    if a.whole:
        return base
    shape = tuple(_value(n, sizes) for n in a.shape)
    strides = tuple(_value(n, sizes) for n in a.strides)
    return base.as_strided(shape, strides, base.storage_offset() + _value(a.offset, sizes))
