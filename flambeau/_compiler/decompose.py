"""Fused operations written out: entries with a `decompose` rule become what the rule says.

Eager has one kernel for them; written out, they fuse with their neighbours.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .._ir.graph import Function, Graph, Node, Value, map_values
from .._ir.symbols import ShapeEnv
from .._ir.symexpr import Expr
from .._ir.symscalar import FloatExpr, SymFloat
from .._ir.targets import resolve, updated
from .._table.bodies import decomposed
from .._table.entries import record
from .._table.model import Op
from .._trace import fake as fakes
from .._trace.functional import PrimitiveRecorder
from .._trace.interp import Interpreter
from .._trace.table import SCOPE, evaluate, evaluate_call


@cache
def rule(uid: str) -> Function | None:
    """The rule of an entry, or None."""
    return decomposed(record(uid), SCOPE)


class _Writer(PrimitiveRecorder):
    """Records what rules say, and what the entries that they call are written out as.

    A rule that calls its own entry means the kernel.
    """

    def __init__(self, env: ShapeEnv, slower: bool) -> None:
        super().__init__(env)
        self.slower = slower
        self.active: list[str] = []

    def rule(self, op: Op) -> Function | None:
        return rule(op.uid) if op.written_out or self.slower else None

    def call(self, op: Op, inplace: bool, args: list[Any]) -> Any:
        f = None if inplace or op.uid in self.active else self.rule(op)
        if f is None or not all(n != 0 for a in args[:1] for n in getattr(a, "shape", ())):
            return super().call(op, inplace, args)
        likes = evaluate(op, args, evaluate_call)
        made = self.written(op, f, args)
        if not isinstance(likes, (tuple, list)):
            return self.conform(made, likes)
        return [self.conform(x, like) for x, like in zip(made, likes, strict=True)]

    def written(self, op: Op, f: Function, args: list[Any]) -> Any:
        first = len(self.graph.nodes)
        self.active.append(op.uid)
        made = Interpreter(self.call).run(f, args)
        self.active.pop()
        for node in self.graph.nodes[first:]:
            node.outside = node.outside or str(op.rules["decompose"].options.get("outside", ""))
        return made


def decompose(graph: Graph, slower: bool = False) -> Graph:
    """The same function; every node that has a rule is written out.

    Args:
        slower: also where the kernel is faster.
    """
    recorder = _Writer(graph.env, slower)
    recorder.grad = False
    values: dict[Value, Any] = {}
    for v in graph.inputs:
        values[v] = recorder.builder.input(v.type)
    for node in graph.nodes:
        target = resolve(node.target)
        written = None if target.form == "inplace" else recorder.rule(target.op)
        if written is not None and _has_elements(node):
            _write_out(recorder, node, target.op, written, values)
        else:
            args = map_values(node.args, lambda v: values[v])
            types = tuple(v.type for v in node.outs)
            new = recorder.builder.add(node.target, args, types, node.where, node.grad)
            values.update(zip(node.outs, new.outs, strict=True))
    out = recorder.graph
    out.outputs = map_values(graph.outputs, lambda v: values[v])
    out.attached = graph.attached
    return out


def _has_elements(node: Node) -> bool:
    """The first operand may have elements: reductions of nothing are the kernels' business."""
    return all(n != 0 for v in node.inputs[:1] for n in getattr(v.type, "shape", ()))


def _write_out(
    recorder: _Writer, node: Node, op: Op, f: Function, values: dict[Value, Any]
) -> None:
    def operand(a: Any) -> Any:
        if isinstance(a, Value):
            made = fakes.of_type(a.type, recorder.env)  # type: ignore[arg-type]
            made.value = values[a]
            return made
        if isinstance(a, tuple):
            return [operand(x) for x in a]
        if isinstance(a, FloatExpr):
            return SymFloat(a, recorder.env)
        return fakes.symbolic(a, recorder.env) if isinstance(a, Expr) else a

    first = len(recorder.graph.nodes)
    operands = [operand(a) for a in node.args]
    result = recorder.written(op, f, operands)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    results += [operands[i] for i in updated(op, node.args)]  # what the rule changed in place
    for made in recorder.graph.nodes[first:]:
        made.where = node.where
    for v, r in zip(node.outs, results, strict=True):
        # In the layout that the kernel gives: what was compiled for the result relies on it.
        like = fakes.of_type(v.type, recorder.env)  # type: ignore[arg-type]
        values[v] = recorder.read(recorder.conform(r, like))
