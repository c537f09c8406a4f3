"""Index expressions: what a strided view of a dense tensor reads, how an index depends on loops.

All functions are exact: where an answer is not certain for every value of the symbols, it is None.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._ir.graph import Dim
from .._ir.symexpr import Expr, expr


def linear(index: Sequence[Expr], strides: Sequence[Dim], offset: Dim) -> Expr:
    """Position in memory of an element."""
    total = expr(offset)
    for i, s in zip(index, strides, strict=True):
        total = total + i * expr(s)
    return total


def broadcast(index: Sequence[Expr], shape: Sequence[Dim]) -> list[Expr]:
    """Index of the element that a tensor of `shape` has at a point of a larger shape."""
    own = index[len(index) - len(shape) :]
    return [expr(0) if n == 1 else i for i, n in zip(own, shape, strict=True)]


def through_view(
    index: Sequence[Expr], shape: Sequence[Dim], strides: Sequence[Dim], offset: Dim,
    base_shape: Sequence[Dim], base_strides: Sequence[Dim],
) -> list[Expr] | None:  # fmt: skip
    """Index into the base of a view's element, where it is affine; else None.

    The base is dense with the given strides; the view is (shape, strides, offset) over its memory.
    """
    dims = [j for j, n in enumerate(base_shape) if n != 1]
    dims.sort(key=lambda j: _size(base_strides[j]), reverse=True)
    parts: list[list[tuple[Dim, int, Dim]]] = [[] for _ in base_shape]  # (i, factor, extent)
    out = [expr(0)] * len(base_shape)
    for i, n, s in zip(index, shape, strides, strict=True):
        if n == 1 or s == 0:
            continue
        j, factor = _owner(s, dims, base_strides)
        if j is None:
            return None
        parts[j].append((i, factor, n))
        out[j] = out[j] + i * factor
    starts = _starts(offset, dims, base_strides)
    if starts is None:
        return None
    for j in dims:
        if not _within(parts[j], starts[j], base_shape[j]):
            return None
        out[j] = out[j] + starts[j]
    return out


def _size(s: Dim) -> float:
    """For sorting: symbolic strides by a value that is large for each symbol."""
    return s if isinstance(s, int) else s.estimate(1 << 20)


def _owner(s: Dim, dims: list[int], base: Sequence[Dim]) -> tuple[int | None, int]:
    for j in dims:
        b = base[j]
        if b == s:
            return j, 1
        if isinstance(s, int) and isinstance(b, int) and b and s % b == 0:
            return j, s // b
    return None, 0


def _starts(offset: Dim, dims: list[int], base: Sequence[Dim]) -> dict[int, int] | None:
    out = dict.fromkeys(dims, 0)
    if offset == 0:
        return out
    if not isinstance(offset, int):
        return None
    for j in dims:
        b = base[j]
        if isinstance(b, int) and b:
            out[j], offset = divmod(offset, b)
    return out if offset == 0 else None


def _within(parts: list[tuple[Dim, int, Dim]], start: int, size: Dim) -> bool:
    """Do the sums of factor * i + start stay below the dim's size?"""
    if len(parts) == 1 and start == 0 and parts[0][1] == 1 and parts[0][2] == size:
        return True
    if not isinstance(size, int) or any(not isinstance(n, int) for _, _, n in parts):
        return False
    return start + sum(f * (n - 1) for _, f, n in parts) < size  # type: ignore[operator]


def coefficient(index: Expr, variable: str) -> Expr | None:
    """Factor of a loop variable in an index that is affine in it; None where it is not."""
    out = expr(0)
    for monomial, c in index.terms:
        term = expr(c)
        found = False
        for atom, power in monomial:
            if atom.kind == "sym" and atom.name == variable:
                if power != 1:
                    return None
                found = True
                continue
            if atom.kind != "sym" and any(variable in a.symbols for a in atom.args):
                return None
            term = term * Expr({((atom, power),): 1})
        if found:
            out = out + term
    return out
