"""Scalar expressions: what one element is computed from, the same for the table and for loops.

Nodes are hash-consed by a `Scalars`, so equal expressions are one object and are computed once.
What an operation does and what types are called belongs to subclasses: the table's types are kinds
(`_table/scalar_expr.py`), those of compiled loops are C++'s (`_compiler/scalar.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Scalar:
    """One value: an operation, its type, its operands, and what is constant about it."""

    op: str
    type: str
    args: tuple[Scalar, ...] = ()
    value: Any = None

    def is_const(self, x: float | None = None) -> bool:
        """It is a literal number, of that value if one is given."""
        return self.op == "const" and (x is None or bool(self.value == x))


class Scalars:
    """Makes nodes; equal ones are the same object."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[Any, ...], Scalar] = {}

    def make(self, op: str, type: str, args: Iterable[Scalar] = (), value: Any = None) -> Scalar:
        args = tuple(args)
        tag = (value.__class__.__name__, repr(value)) if op == "const" else value
        key = (op, type, tuple(map(id, args)), tag)
        return self._nodes.setdefault(key, Scalar(op, type, args, value))


def rewritten(body: Scalars, x: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
    """x with every node for which `change` gives another replaced by that."""
    done: dict[int, Scalar] = {}

    def visit(n: Scalar) -> Scalar:
        if id(n) not in done:
            new = change(n)
            if new is None:
                new = body.make(n.op, n.type, map(visit, n.args), n.value) if n.args else n
            done[id(n)] = new
        return done[id(n)]

    return visit(x)


def walk(roots: Iterable[Scalar], known: Callable[[Scalar], object] | None = None) -> list[Scalar]:
    """All nodes below the roots, arguments first, but not what is known or what only that needs."""
    out: dict[int, Scalar] = {}

    def visit(n: Scalar) -> None:
        if id(n) in out or (known and known(n)):
            return
        for a in n.args:
            visit(a)
        out[id(n)] = n

    for r in roots:
        visit(r)
    return list(out.values())
