"""Buffers that one nest alone writes and reads, row by row, become local arrays of the row."""

from __future__ import annotations

from dataclasses import replace

from .._ir.symexpr import Expr, expr
from .emit_cpp import strategy
from .nest import Accumulate, Nest, Program, Store, variable
from .scalar import Body, Scalar, rewritten

LIMIT = 1 << 14  # elements of a local array


def localise(program: Program, body: Body) -> Program:
    """The program with such buffers taken out of it."""
    outside: dict[str, int] = {}
    for step in program.steps:
        for name in step.reads | step.writes:
            outside[name] = outside.get(name, 0) + 1
    own = {n for n, b in program.buffers.items() if b.kind == "temporary" and outside.get(n) == 1}
    steps = [_localised(s, own, body) if isinstance(s, Nest) else s for s in program.steps]
    used = {name for s in steps for name in s.reads | s.writes}
    buffers = {n: b for n, b in program.buffers.items() if n in used or b.kind != "temporary"}
    return replace(program, steps=steps, buffers=buffers)


def _localised(nest: Nest, own: set[str], body: Body) -> Nest:
    if strategy(nest) != "rows":
        return nest
    place: Expr = expr(0)
    size = 1
    for d in sorted(nest.reduced, reverse=True):
        n = nest.domain[d]
        if not isinstance(n, int):
            return nest
        if n != 1:
            place = place + variable(d) * size
        size *= n
    kinds = {s.buffer: g.kind for g in nest.stages for s in g.statements if isinstance(s, Store)}
    mine = {b for b, kind in kinds.items() if b in own and kind == "full"}
    if not mine or size > LIMIT:
        return nest

    def change(n: Scalar) -> Scalar | None:
        if n.op == "load" and n.value[0] in mine:
            return body.make("load", n.type, (), ("l" + n.value[0][1:], place, n.value[2]))
        return None

    def changed(s: Store | Accumulate) -> Store | Accumulate:
        s = replace(s, value=rewritten(body, s.value, change))
        if isinstance(s, Store) and s.buffer in mine:
            return replace(s, buffer="l" + s.buffer[1:], index=place)
        return s

    stages = [replace(g, statements=[changed(s) for s in g.statements]) for g in nest.stages]
    made = replace(nest, stages=stages, local={"l" + b[1:]: size for b in mine})
    return made if strategy(made) == "rows" else nest  # which order is best may depend on buffers
