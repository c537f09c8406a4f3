"""Fusion: nests that run over the same points become one, and what passed between them stays there.

A nest may join an earlier one when everything that it reads is written by then, and when what it
reads of the earlier nest's results it reads at the point where they are made. Buffers are written
once (the graph is functional), so moving a nest up breaks nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._ir import settings
from .._ir.graph import Dim
from .._ir.symexpr import Expr, expr
from .nest import Accumulate, Nest, Program, Stage, Step, Store, variable
from .scalar import Body, Scalar, cost, rewritten, walk

#: cost of what is sooner computed again in a later sweep of a row than kept and read back
AGAIN = 5


def fuse(program: Program, body: Body) -> Program:
    """The same program with nests merged and stores that nobody reads left out."""
    steps: list[Step] = []
    fusion = settings.current().fusion
    for step in program.steps:
        if not (fusion and isinstance(step, Nest) and _join(steps, step, body)):
            steps.append(step)
    program = _without_dead_stores(replace(program, steps=steps))
    joined = [_sums_together(s) if isinstance(s, Nest) else s for s in program.steps]
    return replace(program, steps=joined)


def _join(steps: list[Step], nest: Nest, body: Body) -> bool:
    """Merges the nest into the latest step that admits it."""
    reads = nest.reads
    for at in range(len(steps) - 1, -1, -1):
        step = steps[at]
        if isinstance(step, Nest) and (reads & (step.writes | step.reads)):
            merged = _merged(step, nest, body)
            if merged is not None:
                rest = steps[at + 1 :]
                del steps[at:]
                if not _join(steps, merged, body):  # it may bring two earlier ones together
                    steps.append(merged)
                steps += rest
                return True
        if step.writes & reads:
            return False  # what the nest needs is written here: it cannot go further up
    return False


def _merged(a: Nest, b: Nest, body: Body) -> Nest | None:
    if a.domain == b.domain:
        return _merged_equal(a, b, body)
    if a.reduced and not b.reduced:
        renamed = _as_rows(a, b, body)
        if renamed is not None:
            return _append(a, [Stage("row", renamed)], a.reduced, b, body)
    if not (a.reduced or b.reduced):
        refined = _refined(b, a.domain, body)
        if refined is not None:
            return _append(a, refined.stages, a.reduced, refined, body)
    return None


def _refined(b: Nest, domain: tuple[Dim, ...], body: Body) -> Nest | None:
    """A pointwise nest over a domain whose dims are those of its own, split.

    Each variable is a sum of the finer ones: indices stay affine.
    """
    names: dict[str, Expr] = {}
    fine = [k for k, n in enumerate(domain) if n != 1]
    for d, n in enumerate(b.domain):
        index, size = expr(0), expr(1)
        while fine and size != expr(n):
            k = fine.pop(0)
            index, size = index * expr(domain[k]) + variable(k), size * expr(domain[k])
        if size != expr(n):
            return None
        names[f"i{d}"] = index
    if fine:
        return None
    statements = [_renamed(s, names, body) for s in b.statements]
    return Nest(domain, b.reduced, [Stage("full", statements)], b.where)


def _merged_equal(a: Nest, b: Nest, body: Body) -> Nest | None:
    if a.reduced and b.reduced and a.reduced != b.reduced:
        return None
    reduced = a.reduced | b.reduced
    return _append(a, b.stages, reduced, b, body)


def _as_rows(a: Nest, b: Nest, body: Body) -> list[Store | Accumulate] | None:
    """Statements of a pointwise nest over the dims that `a` keeps, in a's variables."""
    kept = [d for d in range(len(a.domain)) if d not in a.reduced and a.domain[d] != 1]
    own = [d for d in range(len(b.domain)) if b.domain[d] != 1]
    if [a.domain[d] for d in kept] != [b.domain[d] for d in own]:
        return None
    names = {f"i{d}": variable(k) for d, k in zip(own, kept, strict=True)}
    return [_renamed(s, names, body) for s in b.statements]


def _renamed(s: Store | Accumulate, names: dict[str, Expr], body: Body) -> Store | Accumulate:
    value = body.reindexed(s.value, lambda index: index.replace(names))
    if isinstance(s, Accumulate):
        return replace(s, value=value)
    return replace(s, value=value, index=s.index.replace(names))


def _append(
    a: Nest, stages: list[Stage], reduced: frozenset[int], b: Nest, body: Body
) -> Nest | None:
    """a followed by b's stages, if b reads a's results where they are made."""
    made = {
        s.buffer: Made(s, stage.kind, at)
        for at, stage in enumerate(a.stages)
        for s in stage.statements
        if isinstance(s, Store)
    }
    out = [*a.stages]
    for stage in stages:
        kind = stage.kind if reduced else "full"
        for s in stage.statements:
            last = len(out) - 1
            joins = out[last].kind == kind and not _waits(s.value, out[last], made, last, body)
            value = _forwarded(s.value, made, kind, last if joins else None, body)
            if value is None:
                return None
            new = replace(s, value=value)
            if joins:
                out[last] = Stage(kind, [*out[last].statements, new])
            else:
                out.append(Stage(kind, [new]))
            if isinstance(new, Store):
                made[new.buffer] = Made(new, kind, len(out) - 1)
    where = [*a.where, *(w for w in b.where if w not in a.where)]
    return Nest(a.domain, reduced, out, where)


@dataclass(frozen=True)
class Made:
    """A store of the nest, the kind of its stage, and the number of that stage."""

    store: Store
    kind: str
    stage: int


def _waits(value: Scalar, stage: Stage, made: dict[str, Made], at: int, body: Body) -> bool:
    """Does the value need what a stage accumulates?"""
    names = {s.name for s in stage.statements if isinstance(s, Accumulate)}
    forwarded = _forwarded(value, made, stage.kind, at, body)
    return forwarded is None or any(
        n.op == "result" and n.value in names for n in walk([forwarded])
    )


def _forwarded(
    value: Scalar, made: dict[str, Made], kind: str, stage: int | None, body: Body
) -> Scalar | None:
    """The value with loads of what the nest itself makes replaced; None where that is not right.

    What its own stage makes is at hand; what an earlier sweep made is computed again if that is
    cheap, else read back.
    """
    possible = True

    def change(n: Scalar) -> Scalar | None:
        nonlocal possible
        if n.op != "load" or n.value[0] not in made:
            return None
        m = made[n.value[0]]
        if n.value[1] != m.store.index or (m.kind == "full" and kind == "row"):
            possible = False
            return n
        if m.kind == "full" and m.stage != stage and cost(m.store.value) > AGAIN:
            return n
        return body.cast(m.store.value, n.type)

    out = rewritten(body, value, change)
    return out if possible else None


def _without_dead_stores(program: Program) -> Program:
    """Stores into temporary buffers that nothing loads go, and nests that are left with nothing."""
    steps = program.steps
    while True:
        used = {name for name, b in program.buffers.items() if b.kind != "temporary"}
        for step in steps:
            used |= step.reads
        kept = [_stripped(step, used) if isinstance(step, Nest) else step for step in steps]
        kept = [s for s in kept if not isinstance(s, Nest) or s.stages]
        if kept == steps:
            live = used | {w for s in kept for w in s.writes}
            buffers = {n: b for n, b in program.buffers.items() if n in live}
            return replace(program, steps=kept, buffers=buffers)
        steps = kept


def _stripped(nest: Nest, used: set[str]) -> Nest:
    def needed(s: Store | Accumulate, results: set[str]) -> bool:
        return s.buffer in used if isinstance(s, Store) else s.name in results

    results = {n.value for n in walk(s.value for s in nest.statements) if n.op == "result"}
    stages = [
        Stage(stage.kind, [s for s in stage.statements if needed(s, results)])
        for stage in nest.stages
    ]
    stages = [s for s in stages if s.statements]
    same = [len(s.statements) for s in stages] == [len(s.statements) for s in nest.stages]
    return nest if same and len(stages) == len(nest.stages) else replace(nest, stages=stages)


def _sums_together(nest: Nest) -> Nest:
    """Sweeps that do nothing but add up join an earlier sum that they need not wait for."""
    out: list[Stage] = []
    for stage in nest.stages:
        only = all(isinstance(s, Accumulate) for s in stage.statements)
        sweeps = [k for k, s in enumerate(out) if only and _sums(stage, s)]
        at = next((k for k in sweeps if not _needs(stage, out[k:])), None)
        if at is None:
            out.append(stage)
        else:
            out[at] = Stage("full", [*out[at].statements, *stage.statements])
    return replace(nest, stages=out) if len(out) < len(nest.stages) else nest


def _sums(*stages: Stage) -> bool:
    """Sweeps that add up, all in one type: a loop of them is one of vectors."""
    found = [s for x in stages for s in x.statements if isinstance(s, Accumulate)]
    whole = all(x.kind == "full" for x in stages)
    return (
        whole
        and len({(s.combine, s.value.type) for s in found}) == 1
        and (found[0].combine == "add")
    )


def _needs(stage: Stage, others: list[Stage]) -> bool:
    """Whether a stage sees anything that these make."""
    made = {
        s.buffer if isinstance(s, Store) else s.name for other in others for s in other.statements
    }
    seen = walk(s.value for s in stage.statements)
    return any(
        (n.op == "load" and n.value[0] in made) or (n.op == "result" and n.value in made)
        for n in seen
    )
