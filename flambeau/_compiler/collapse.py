"""Dims that lie together in memory become one: one long loop in the place of several short ones.

Dims d and e, both kept or both reduced, become one where every index of the nest depends on them
as stride * (i_d * size_e + i_e) does. The order of points within a sweep is nobody's to rely on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

from .._ir.graph import dim
from .._ir.symexpr import Expr, expr
from . import indexing
from .nest import Accumulate, Nest, Program, Stage, Store
from .scalar import Body, walk


def collapse(program: Program, body: Body) -> Program:
    """The program with the dims of its nests merged as far as that goes."""
    steps = [_collapsed(s, body) if isinstance(s, Nest) else s for s in program.steps]
    return replace(program, steps=steps)


def _collapsed(nest: Nest, body: Body) -> Nest:
    found = _mergeable(nest)
    while found is not None:
        nest = _merged(nest, *found, body)
        found = _mergeable(nest)
    return nest


def _mergeable(nest: Nest) -> tuple[int, int] | None:
    """An outer and an inner dim that can become one."""
    dims = [d for d, n in enumerate(nest.domain) if n != 1]
    if len(dims) < 2:
        return None
    indices = set(_indices(nest))
    for d, e in permutations(dims, 2):
        if (d in nest.reduced) == (e in nest.reduced):
            if all(_together(i, d, e, nest) for i in indices):
                return d, e
    return None


def _indices(nest: Nest) -> Iterable[Expr]:
    for s in nest.statements:
        if isinstance(s, Store):
            yield s.index
    for n in walk(s.value for s in nest.statements):
        if n.op == "load":
            yield n.value[1]
        elif n.op == "index":
            yield n.value


def _together(index: Expr, d: int, e: int, nest: Nest) -> bool:
    outer, inner = (indexing.coefficient(index, f"i{k}") for k in (d, e))
    if outer is None or inner is None:
        return False
    return outer == inner * expr(nest.domain[e])


def _merged(nest: Nest, d: int, e: int, body: Body) -> Nest:
    zero = {f"i{d}": expr(0)}

    def changed(s: Store | Accumulate) -> Store | Accumulate:
        s = replace(s, value=body.reindexed(s.value, lambda index: index.replace(zero)))
        return replace(s, index=s.index.replace(zero)) if isinstance(s, Store) else s

    domain = list(nest.domain)
    domain[e] = dim(expr(domain[d]) * expr(domain[e]))
    domain[d] = 1
    stages = [Stage(g.kind, [changed(s) for s in g.statements]) for g in nest.stages]
    return replace(nest, domain=tuple(domain), stages=stages)
