"""Scalar expressions inside of loops: what one element is computed from.

Nodes are hash-consed by a `Body`, so equal expressions are one object and are computed once. A
node's type is the C++ type it has in a register: half formats are `float` there, integers
`int64_t`. The operations are the primitives of flambeau/ops/scalar.py and the few below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import flambeau

from .._ir.symexpr import Expr
from ..ops.scalar import PRIMITIVES

#: dtype -> (C++ type in memory, C++ type in a register)
_TYPES = {
    "bool": ("bool", "bool"),
    "uint8": ("uint8_t", "int64_t"),
    "uint16": ("uint16_t", "int64_t"),
    "uint32": ("uint32_t", "int64_t"),
    "uint64": ("uint64_t", "uint64_t"),
    "int8": ("int8_t", "int64_t"),
    "int16": ("int16_t", "int64_t"),
    "int32": ("int32_t", "int64_t"),
    "int64": ("int64_t", "int64_t"),
    "float16": ("F16", "float"),
    "bfloat16": ("BF16", "float"),
    "float32": ("float", "float"),
    "float64": ("double", "double"),
    "complex64": ("C64", "C64"),
    "complex128": ("C128", "C128"),
}
MEMORY = {getattr(flambeau, name): types[0] for name, types in _TYPES.items()}
REGISTER = {getattr(flambeau, name): types[1] for name, types in _TYPES.items()}
REAL = {"C64": "float", "C128": "double"}
COMPLEX = {"float": "C64", "double": "C128"}


@dataclass(frozen=True, eq=False)
class Scalar:
    """One value.

    op       value                 meaning
    load     (buffer name, Expr)   element of a buffer at a linear index
    const    number                of the node's type
    size     Expr                  an integer that is known when the kernel is called
    index    Expr                  an integer that depends on loop variables
    result   name                  what a reduction of an earlier stage gave
    cast                           conversion between register types
    wrap     C++ type              a number reduced or rounded to what that memory type holds
    other    None                  a primitive of the table
    """

    op: str
    type: str
    args: tuple[Scalar, ...] = ()
    value: Any = None


@dataclass
class Body:
    """Makes nodes; equal ones are the same object."""

    _nodes: dict[tuple[Any, ...], Scalar] = field(default_factory=dict)

    def make(self, op: str, type: str, args: Iterable[Scalar] = (), value: Any = None) -> Scalar:
        args = tuple(args)
        tag = (value.__class__.__name__, repr(value)) if op == "const" else value
        key = (op, type, tuple(map(id, args)), tag)
        return self._nodes.setdefault(key, Scalar(op, type, args, value))

    def load(self, buffer: str, index: Expr, dtype: Any) -> Scalar:
        """The element of a buffer, in its register type."""
        return self.make("load", REGISTER[dtype], (), (buffer, index, MEMORY[dtype]))

    def const(self, value: Any, type: str) -> Scalar:
        return self.make("const", type, (), value)

    def cast(self, x: Scalar, type: str) -> Scalar:
        """x converted; a constant of another type stays a constant."""
        if x.type == type:
            return x
        if x.op == "const":
            return self.const(x.value, type)
        return self.make("cast", type, (x,))

    def stored_as(self, x: Scalar, dtype: Any) -> Scalar:
        """x as a later reader of a tensor of that dtype sees it."""
        x = self.cast(x, REGISTER[dtype])
        memory = MEMORY[dtype]
        narrow = memory in ("F16", "BF16") or (x.type == "int64_t" and memory != "int64_t")
        if x.op == "const" and x.type == "int64_t" and _holds(dtype, x.value):
            return x
        if not narrow or (x.op == "load" and x.value[2] == memory):
            return x
        return (
            x if x.op == "wrap" and x.value == memory else self.make("wrap", x.type, (x,), memory)
        )


def _holds(dtype: Any, number: Any) -> bool:
    limits = flambeau.iinfo(dtype)
    return bool(limits.min <= number <= limits.max)


def rewritten(body: Body, x: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
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


#: cost of what is sooner computed again for every row of a tensor than put into memory
REPEATED = 8


def cost(x: Scalar) -> int:
    """About how many operations computing x takes, loads aside."""
    return sum(PRIMITIVES[n.op].cost for n in walk([x]) if n.op in PRIMITIVES)


def guarded(x: Scalar) -> bool:
    """Its fast form holds for angles up to a limit alone."""
    return x.op in PRIMITIVES and PRIMITIVES[x.op].guarded
