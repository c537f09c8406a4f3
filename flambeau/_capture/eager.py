"""A captured graph run by calls of the library, node by node: the back end 'eager'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import _C
from flambeau._ir.entries import resolve
from flambeau._ir.graph import Graph, Value
from flambeau._ir.symexpr import Expr
from flambeau._ir.symfloat import FloatExpr


def run_eagerly(graph: Graph, example_inputs: Any = ()) -> Callable[..., tuple[Any, ...]]:
    """A function of the graph's inputs that gives its outputs."""
    last = {v: n for n, node in enumerate(graph.nodes) for v in node.inputs}
    kept = {v for o in graph.outputs for v in _values(o)}
    steps = [
        (_callee(node.target), node, [v for v in dict.fromkeys(node.inputs) if last[v] == n and v not in kept])
        for n, node in enumerate(graph.nodes)
    ]

    def run(*inputs: Any) -> tuple[Any, ...]:
        values: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
        symbols = _symbols(graph, inputs)
        for call, node, dead in steps:
            args = [_concrete(a, values, symbols) for a in node.args]
            grad = _C.is_grad_enabled()
            if node.grad == grad:
                result = call(args)
            else:
                _C._set_grad_enabled(node.grad and grad)
                try:
                    result = call(args)
                finally:
                    _C._set_grad_enabled(grad)
            outs = node.outs
            if len(outs) == 1 and isinstance(result, (list, tuple)):
                result = result[0]
            if len(outs) == 1:
                values[outs[0]] = result
            elif outs:
                values.update(zip(outs, result, strict=True))
            for v in dead:
                values.pop(v, None)
        return tuple(_concrete(o, values, symbols) for o in graph.outputs)

    return run


def _values(arg: Any) -> list[Value]:
    if isinstance(arg, Value):
        return [arg]
    return [v for a in arg for v in _values(a)] if isinstance(arg, tuple) else []


def _symbols(graph: Graph, inputs: Any) -> dict[str, int]:
    out = {}
    for s in graph.env.symbols.values():
        if s.source is None:
            continue
        x = inputs[s.source.input]
        match s.source.kind:
            case "value":
                out[s.name] = x
            case "size":
                out[s.name] = x.shape[s.source.dim]
            case "stride":
                out[s.name] = x.stride(s.source.dim)
            case _:
                out[s.name] = x.storage_offset()
    return out


def _concrete(arg: Any, values: dict[Value, Any], symbols: dict[str, int]) -> Any:
    if isinstance(arg, Value):
        return values[arg]
    if isinstance(arg, tuple):
        return [_concrete(a, values, symbols) for a in arg]
    if isinstance(arg, (Expr, FloatExpr)):
        return arg.evaluate(symbols)
    return arg


def _callee(target: str) -> Callable[[list[Any]], Any]:
    """A call of an entry's form through the bindings, with all arguments in order."""
    form = resolve(target)
    op = form.op
    name = str(op.option("python_name", op.name)) + ("_" if form.form == "inplace" else "")
    keywords = [p.name for p in op.params if p.kwonly]
    positional = len(op.params) - len(keywords)
    function = _binding(op, name)

    def call(args: list[Any]) -> Any:
        named = {k: v for k, v in zip(keywords, args[positional:], strict=True) if v is not None}
        return function(*args[:positional], **named)

    return call


def _binding(op: Any, name: str) -> Callable[..., Any]:
    if op.is_method and hasattr(flambeau.Tensor, name):
        return getattr(flambeau.Tensor, name)  # type: ignore[no-any-return]
    spaces = [_C if not s else _C._namespaces.get(s) for s in op.namespaces]
    for space in (*spaces, _C, *_C._namespaces.values()):
        found = getattr(space, name, None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    raise NotImplementedError(f"eager: the entry {op.uid} has no binding")
