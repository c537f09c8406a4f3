"""Floating-point numbers made of symbolic integers, such as `1 / (n - 1)`.

A `SymFloat` is a tree of operations in Python's own arithmetic, evaluated anew in every run. It
proves nothing: a comparison specialises all integers in it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

from .symbols import ShapeEnv, SymInt
from .symexpr import Expr

_FUNCTIONS: dict[str, Callable[..., float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "float": float,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "cos": math.cos,
    "sin": math.sin,
}


class FloatExpr:
    """An operation on numbers: floats, integer expressions and others of its kind."""

    __slots__ = ("args", "op")

    def __init__(self, op: str, args: tuple[Any, ...]) -> None:
        self.op, self.args = op, args

    def evaluate(self, values: Mapping[str, int]) -> float:
        """The value where the symbols have these values."""
        plain = [a if isinstance(a, (int, float)) else a.evaluate(values) for a in self.args]
        return _FUNCTIONS[self.op](*plain)

    def exprs(self) -> list[Expr]:
        """The integer expressions in it."""
        out: list[Expr] = []
        for a in self.args:
            out += a.exprs() if isinstance(a, FloatExpr) else [a] if isinstance(a, Expr) else []
        return out

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset().union(*(e.symbols for e in self.exprs()))

    def __repr__(self) -> str:
        parts = [a.text if isinstance(a, Expr) else repr(a) for a in self.args]
        if self.op.isidentifier():
            return f"{self.op}({', '.join(parts)})"
        wrapped = [
            f"({p})" if isinstance(a, Expr) else p for p, a in zip(parts, self.args, strict=True)
        ]
        return f"({f' {self.op} '.join(wrapped)})"

    def __hash__(self) -> int:
        return hash((self.op, self.args))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloatExpr) and repr(self) == repr(other)


class SymFloat:
    """A float that depends on symbolic integers."""

    __slots__ = ("env", "expr")

    def __init__(self, e: FloatExpr, env: ShapeEnv) -> None:
        self.expr, self.env = e, env

    @staticmethod
    def of(x: SymInt) -> SymFloat:
        return SymFloat(FloatExpr("float", (x.expr,)), x.env)

    def __repr__(self) -> str:
        return repr(self.expr)

    def apply(self, function: str) -> SymFloat:
        """A function of one number: sqrt, exp, log, cos, sin."""
        return SymFloat(FloatExpr(function, (self.expr,)), self.env)

    def __float__(self) -> float:
        return self.expr.evaluate({n: self.env.specialise_symbol(n) for n in self.expr.symbols})

    def __bool__(self) -> bool:
        return float(self) != 0

    def __hash__(self) -> int:
        return hash(float(self))

    def __neg__(self) -> SymFloat:
        return cast(Any, self) * -1.0

    def __eq__(self, other: object) -> bool:
        return _compared(self, other, operator.eq)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return _compared(self, other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return _compared(self, other, operator.le)

    def __gt__(self, other: Any) -> bool:
        return _compared(self, other, operator.gt)

    def __ge__(self, other: Any) -> bool:
        return _compared(self, other, operator.ge)


def _compared(x: SymFloat, other: Any, relation: Callable[[Any, Any], bool]) -> Any:
    if not isinstance(other, (int, float, SymInt, SymFloat)):
        return NotImplemented
    return relation(float(x), float(other) if not isinstance(other, int) else other)


def _plain(x: Any) -> Any:
    if isinstance(x, (SymFloat, SymInt)):
        return x.expr
    return x if isinstance(x, (int, float)) else None


def _binary(name: str, op: str) -> None:
    def forward(self: SymFloat, other: Any, swap: bool = False) -> Any:
        b = _plain(other)
        if b is None:
            return NotImplemented
        return SymFloat(FloatExpr(op, (b, self.expr) if swap else (self.expr, b)), self.env)

    setattr(SymFloat, f"__{name}__", forward)
    setattr(SymFloat, f"__r{name}__", lambda self, other: forward(self, other, swap=True))


for _name, _op in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("pow", "**")):
    _binary(_name, _op)
