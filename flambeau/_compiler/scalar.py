"""Scalar expressions inside of loops: what one element is computed from.

A node's type is the C++ type it has in a register: half formats are `float` there, integers
`int64_t`. The operations are the primitives of flambeau/ops/scalar.py and the few below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import flambeau

from .._ir.scalars import Scalar, Scalars, rewritten, walk
from .._ir.symexpr import Expr, symbol
from ..ops.scalar import PRIMITIVES

__all__ = [
    "COMPLEX", "MEMORY", "REAL", "REGISTER", "REPEATED", "Body", "Scalar", "cost", "guarded",
    "places", "rewritten", "walk", "whole",
]  # fmt: skip

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
#: what eager's conversions of real numbers go through the processor's 32 bits for
_BY_INT32 = ("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t")


def whole(x: float, type: str) -> int:
    """A real number as a whole one of a C++ type, toward zero. What an int does not hold is its
    least number, as processors have it."""
    if type == "uint64_t":
        upper = 2**63 if x >= 2**63 else 0
        return (whole(x - upper, "int64_t") + upper) % 2**64
    least = -(2**31) if type == "int32_t" else -(2**63)
    return math.trunc(x) if least <= x < -least else least


class Body(Scalars):
    """The scalars of a loop.

    op       value                 meaning
    load     (buffer name, Expr)   element of a buffer at a linear index; args: Note [Places]
    const    number                of the node's type
    size     Expr                  an integer that is known when the kernel is called
    index    Expr                  an integer that depends on loop variables; args as of load
    result   name                  what a reduction of an earlier stage gave
    cast     C++ type or None      conversion between register types, of a real number by way of the
                                   type; see `whole` for what it cannot hold
    wrap     C++ type              a number reduced or rounded to what that memory type holds
    within   text                  an index (first arg) below a size (second arg) and not negative,
                                   or the error of that text and 0
    other    None                  a primitive of the table

    Note [Places]
    An index that is computed (of a gather) stands in index expressions as a symbol whose name
    begins with p. A node with such an expression has what the symbols stand for as arguments, in
    the order of `places`; so whoever changes the arguments of nodes changes these too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[str, Scalar] = {}

    def load(self, buffer: str, index: Expr, dtype: Any) -> Scalar:
        """The element of a buffer, in its register type."""
        args = [self._places[p] for p in places(index)]
        return self.make("load", REGISTER[dtype], args, (buffer, index, MEMORY[dtype]))

    def index(self, index: Expr) -> Scalar:
        """An index as a value."""
        return self.make("index", "int64_t", [self._places[p] for p in places(index)], index)

    def place(self, x: Scalar) -> Expr:
        """A computed index as a symbol, see Note [Places]."""
        name = next((p for p, known in self._places.items() if known is x), None)
        name = name or f"p{len(self._places)}"
        self._places[name] = x
        return symbol(name)

    def reindexed(self, x: Scalar, change: Callable[[Expr], Expr]) -> Scalar:
        """x with the index expressions of all nodes changed."""

        def changed(n: Scalar, args: Iterable[Scalar]) -> Scalar:
            if n.op == "load":
                buffer, index, memory = n.value
                return self.make("load", n.type, args, (buffer, change(index), memory))
            return self.make(n.op, n.type, args, change(n.value) if n.op == "index" else n.value)

        done: dict[int, Scalar] = {}
        for n in walk([x]):
            done[id(n)] = changed(n, [done[id(a)] for a in n.args])
        return done[id(x)]

    def const(self, value: Any, type: str) -> Scalar:
        return self.make("const", type, (), value)

    def cast(self, x: Scalar, type: str, by: str | None = None) -> Scalar:
        """x converted, a real number by way of a type; a constant stays a constant."""
        if x.type == type:
            return x
        if x.op == "const":
            whole_wanted = x.type in COMPLEX and type in ("int64_t", "uint64_t")
            return self.const(whole(x.value, by or type) if whole_wanted else x.value, type)
        return self.make("cast", type, (x,), by if x.type in COMPLEX else None)

    def stored_as(self, x: Scalar, dtype: Any) -> Scalar:
        """x as a later reader of a tensor of that dtype sees it."""
        memory = MEMORY[dtype]
        x = self.cast(x, REGISTER[dtype], "int32_t" if memory in _BY_INT32 else None)
        narrow = memory in ("F16", "BF16") or (x.type == "int64_t" and memory != "int64_t")
        if x.op == "const" and x.type == "int64_t" and _holds(dtype, x.value):
            return x
        if not narrow or (x.op == "load" and x.value[2] == memory):
            return x
        return (
            x if x.op == "wrap" and x.value == memory else self.make("wrap", x.type, (x,), memory)
        )


def places(index: Expr) -> list[str]:
    """The symbols of an index that stand for computed indices, see Note [Places]."""
    return sorted(s for s in index.symbols if s[0] == "p")


def _holds(dtype: Any, number: Any) -> bool:
    limits = flambeau.iinfo(dtype)
    return bool(limits.min <= number <= limits.max)


#: cost of what is sooner computed again for every row of a tensor than put into memory
REPEATED = 8


def cost(x: Scalar) -> int:
    """About how many operations computing x takes, loads aside."""
    return sum(PRIMITIVES[n.op].cost for n in walk([x]) if n.op in PRIMITIVES)


def guarded(x: Scalar) -> bool:
    """Its fast form holds for angles up to a limit alone."""
    return x.op in PRIMITIVES and PRIMITIVES[x.op].guarded
