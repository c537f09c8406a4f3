"""How a nest becomes tiles: its dims collapsed, the strategy, the sizes of a tile, the grid.

A kernel's tile is one-dimensional (`flat`), or has points of the kept dims along its first and
points of the reduced dims along its second dim. Of the reducing strategies, `rows` runs along the
memory of a row, whole where it fits into a tile; `columns` has many kept points side by side;
`split` cuts the reduced dims into pieces, as there are too few kept points to fill a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .._ir.graph import Dim
from .._ir.symexpr import Atom, Expr, expr, product
from . import indexing
from .nest import Nest, Store
from .scalar import walk

FLAT = 1024  # elements of a program that reduces nothing
WHOLE = 1 << 14  # elements of a row that is kept in registers
LOOPED = 2048  # elements of a longer row that are taken at once
COLUMNS = 64  # kept points side by side
FEW = 64  # programs that leave most of a GPU idle
PIECE = 2048  # reduced elements that are worth a program
FILL = 256  # programs that fill a GPU
GUESS = 1 << 10  # what an unknown size is taken for when speed is weighed
BIG = 2**31 - 1


@dataclass(frozen=True)
class Axis:
    """Collapsed dims that one dim of a tile runs over, the fastest last, and the tile's extent."""

    loops: tuple[tuple[str, Dim], ...]
    block: int = 1

    @property
    def total(self) -> Expr:
        return product(n for _, n in self.loops)

    @property
    def exact(self) -> bool:
        """Do tiles end where the data ends?"""
        n = self.total.constant
        return n is not None and n % self.block == 0


@dataclass(frozen=True)
class Plan:
    """A nest's tiles. `gone`: dims that became part of another, whose variables are zero."""

    strategy: str
    x: Axis
    r: Axis | None
    gone: frozenset[str]
    whole: bool  # the tile has all reduced points
    pieces: int  # parts of the reduced dims
    warps: int
    wide: bool  # indices may pass 2^31


def power(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(0, n - 1).bit_length()


def _weigh(n: Expr) -> int:
    return round(n.estimate(GUESS))


def expressions(nest: Nest) -> list[Expr]:
    """All integer expressions over the nest's variables."""
    out = [s.index for s in nest.statements if isinstance(s, Store)]
    for n in walk(s.value for s in nest.statements):
        if n.op == "load":
            out.append(n.value[1])
        elif n.op == "index":
            out.append(n.value)
    return out


def _collapsed(
    nest: Nest, dims: list[int], indices: list[Expr]
) -> tuple[list[tuple[str, Dim]], set[str]]:
    """Loops over the dims, those that lie together in every index as one; what became of none."""
    first = next((e for e in indices if any(f"i{d}" in e.symbols for d in dims)), expr(0))

    def stride(d: int) -> int:
        c = indexing.coefficient(first, f"i{d}")
        return 0 if c is None else _weigh(c)

    loops: list[tuple[str, Dim]] = []
    gone: set[str] = set()
    for d in sorted(dims, key=stride, reverse=True):
        name, size = f"i{d}", nest.domain[d]
        if loops and all(_together(e, loops[-1][0], name, size) for e in indices):
            gone.add(loops[-1][0])
            size = product((loops[-1][1], size))
            loops[-1] = (name, size)
        else:
            loops.append((name, size))
    return loops, gone


def _together(index: Expr, outer: str, inner: str, size: Dim) -> bool:
    """Does the outer variable count whole runs of the inner one?"""
    a, b = (indexing.coefficient(index, v) for v in (outer, inner))
    return a is not None and b is not None and a == b * expr(size)


def plan(nest: Nest) -> Plan:
    """The tiles of a nest."""
    indices = expressions(nest)
    met = frozenset[str]().union(*(e.symbols for e in indices))  # an expanded result's dims are not
    real = [
        d for d, n in enumerate(nest.domain) if n != 1 and (d in nest.reduced or f"i{d}" in met)
    ]
    kept, gone = _collapsed(nest, [d for d in real if d not in nest.reduced], indices)
    swept, more = _collapsed(nest, [d for d in real if d in nest.reduced], indices[::-1])
    all_gone = frozenset(gone | more)
    x, r = Axis(tuple(kept)), Axis(tuple(swept))
    if not nest.reduced:
        block = min(FLAT, power(x.total.constant or FLAT)) if not x.total.symbols else FLAT
        x = Axis(x.loops, block)
        return Plan("flat", x, None, all_gone, True, 1, 4, _wide(indices, x, r, all_gone))
    strategy = "rows" if not real or real[-1] in nest.reduced else "columns"
    x, r, whole = _tile(strategy, x, r)
    pieces = 1 if nest.local else _pieces(x, r)
    if pieces > 1:
        strategy, whole = "split", False
        r = Axis(r.loops, min(r.block, PIECE))
    warps = min(32, max(4, x.block * r.block // 512))
    wide = _wide(indices, x, r, all_gone) or (bool(nest.local) and not whole)
    return Plan(strategy, x, r, all_gone, whole, pieces, warps, wide)


def _tile(strategy: str, x: Axis, r: Axis) -> tuple[Axis, Axis, bool]:
    """Extents of a reducing tile, and whether it has all reduced points."""
    length = r.total.constant
    points = power(x.total.constant or 1) if not x.total.symbols else 1 << 30
    if strategy == "columns":
        wide = min(COLUMNS, points)
        whole = length is not None and length <= FLAT // wide
        block = power(length) if whole and length is not None else LOOPED // wide
        return Axis(x.loops, wide), Axis(r.loops, block), whole
    if length is not None and length <= WHOLE:
        block = power(length)
        return Axis(x.loops, min(points, max(1, FLAT // block))), Axis(r.loops, block), True
    return Axis(x.loops, 1), Axis(r.loops, LOOPED), False


def _pieces(x: Axis, r: Axis) -> int:
    """Parts into which the reduced dims are cut: 1 where the kept ones fill a GPU."""
    programs = -(-_weigh(x.total) // x.block)
    parts = _weigh(r.total) * x.block // PIECE
    if programs >= FEW or parts < 8:
        return 1
    return min(power(FILL // programs), power(parts))


def _wide(indices: list[Expr], x: Axis, r: Axis, gone: frozenset[str]) -> bool:
    """May an index, or the count of points, pass what 32 bits hold?"""
    top: dict[str, int] = dict.fromkeys(gone, 0)
    for axis in (x, r):
        total = axis.total.constant
        if total is None:
            return True
        padded = -(-total // axis.block) * axis.block
        if padded > BIG:
            return True
        rest = padded
        for k, (name, n) in enumerate(reversed(axis.loops)):
            size = expr(n).constant or 1
            top[name] = rest - 1 if k == len(axis.loops) - 1 else size - 1
            rest = -(-rest // size)
    return any(_beyond(e, top) for e in indices)


def _beyond(e: Expr, top: Mapping[str, int]) -> bool:
    reach = _reach(e, top)
    return reach is None or reach > BIG


def _reach(e: Expr, top: Mapping[str, int]) -> int | None:
    """A bound of what an expression and its parts come to; None where a size is not known."""
    total = 0
    for monomial, c in e.terms:
        term = abs(c)
        for atom, n in monomial:
            part = _reach_of(atom, top)
            if part is None:
                return None
            term *= part**n
        total += term
    return total


def _reach_of(a: Atom, top: Mapping[str, int]) -> int | None:
    if a.kind == "sym":
        return top.get(a.name)
    parts = [_reach(x, top) for x in a.args]
    return None if None in parts else max(p for p in parts if p is not None)
