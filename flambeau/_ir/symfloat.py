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

    def _evaluated(self) -> Any:
        """The value in Python's own arithmetic, for the integers that were seen."""
        return self.expr.evaluate({n: self.env.specialise_symbol(n) for n in self.expr.symbols})

    def __float__(self) -> float:
        return float(self._evaluated())

    def __bool__(self) -> bool:
        return float(self) != 0

    def __hash__(self) -> int:
        return hash(float(self))

    def __int__(self) -> int:
        return int(float(self))

    __trunc__ = __int__

    def __floor__(self) -> int:
        return math.floor(float(self))

    def __ceil__(self) -> int:
        return math.ceil(float(self))

    def __round__(self, digits: Any = None) -> Any:
        return round(float(self), digits)

    def __neg__(self) -> SymFloat:
        return cast(Any, self) * -1.0

    def __pos__(self) -> SymFloat:
        return self

    def __abs__(self) -> float:
        return abs(float(self))

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
    return relation(float(x), decided(other))


def decided(x: Any) -> Any:
    """A number of any sort as Python's own; symbols in it are taken as they were seen."""
    if isinstance(x, SymInt):
        return int(x)
    return float(x) if isinstance(x, SymFloat) else x


def _plain(x: Any) -> Any:
    if isinstance(x, (SymFloat, SymInt)):
        return x.expr
    return x if type(x) in (bool, int, float) and math.isfinite(x) else None


def _defined(op: str, a: Any, b: Any, env: ShapeEnv) -> bool:
    """Whether `a op b` is a float for all values of the symbols that pass the guards."""
    if op == "/":
        return _nonzero(b, env)
    if op == "**":
        small = isinstance(b, (int, float)) and abs(b) <= _LARGEST_POWER
        return small and isinstance(a, FloatExpr) and a.op == "float" and _positive(a.args[0], env)
    return True


def _nonzero(x: Any, env: ShapeEnv) -> bool:
    if isinstance(x, Expr):
        return env.decide("!=", x)
    if isinstance(x, FloatExpr):
        if x.op in ("*", "/"):
            return all(_nonzero(a, env) for a in x.args)
        return x.op == "exp" or (x.op in ("float", "sqrt", "**") and _nonzero(x.args[0], env))
    return x != 0


def _positive(x: Any, env: ShapeEnv) -> bool:
    return isinstance(x, Expr) and env.decide(">=", x - 1)


#: powers of more are computed for the size seen: they may pass the largest float
_LARGEST_POWER = 16


def _binary(name: str, op: str, function: Callable[[Any, Any], Any]) -> None:
    """An operator; what no float stands for in every run is computed for the sizes seen."""

    def apply(self: SymFloat, other: Any, swap: bool) -> Any:
        if not isinstance(other, (int, float, SymInt, SymFloat)):
            return NotImplemented
        a, b = (_plain(other), self.expr) if swap else (self.expr, _plain(other))
        if op in _FUNCTIONS and a is not None and b is not None and _defined(op, a, b, self.env):
            return SymFloat(FloatExpr(op, (a, b)), self.env)
        x, y = decided(self), decided(other)
        return function(y, x) if swap else function(x, y)

    setattr(SymFloat, f"__{name}__", lambda self, other: apply(self, other, False))
    setattr(SymFloat, f"__r{name}__", lambda self, other: apply(self, other, True))


for _name, _op, _function in (
    ("add", "+", operator.add),
    ("sub", "-", operator.sub),
    ("mul", "*", operator.mul),
    ("truediv", "/", operator.truediv),
    ("pow", "**", operator.pow),
    ("floordiv", "//", operator.floordiv),
    ("mod", "%", operator.mod),
    ("divmod", "divmod", divmod),
):
    _binary(_name, _op, _function)
