"""By how much a compiled entry may differ from eager: derived from the table, nothing is listed.

Entries that move, compare or count are exact. Pointwise entries are the same expression of the same
primitives, rounded once; the compiler may keep a product unrounded (fused multiply-add), and takes
vectorised forms of transcendental functions. Whatever adds up does so in another order.
"""

from __future__ import annotations

import flambeau
from flambeau._table.entries import record
from flambeau.ops.scalar import PRIMITIVES


def exact(uid: str) -> bool:
    """Whether an entry, compiled, gives the bits that eager gives."""
    op = record(uid)
    if op.kind == "view":
        return True
    primitive = PRIMITIVES.get(op.name)
    return op.kind == "pointwise" and primitive is not None and primitive.cost < 6


def tolerance(uid: str, dtype: object) -> float:
    """Relative to the largest entry of a result; 0 where the bits are the same."""
    d = dtype
    if exact(uid) or not (d.is_floating_point or d.is_complex):  # type: ignore[attr-defined]
        return 0.0
    steps = 8 if record(uid).kind == "pointwise" else 64
    return float(flambeau.finfo(d).eps) * steps
