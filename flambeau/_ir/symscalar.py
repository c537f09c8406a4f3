"""Numbers that stand for sizes: `SymInt` for integers, `SymFloat` for what is computed of them.

Arithmetic of integers gives expressions, and a comparison is answered by the environment, which
keeps what was answered as a guard. A `SymFloat` is a tree of operations in Python's own arithmetic,
such as `1 / (n - 1)`, evaluated anew in every run. It proves nothing: a comparison specialises all
integers in it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from .symexpr import Expr, expr, maximum, minimum

if TYPE_CHECKING:
    from .symbols import ShapeEnv


def only_run(n: Any) -> bool:
    """Whether a size depends on a symbol without a hint, which only the run tells."""
    if not isinstance(n, SymInt):
        return False
    return any(n.env.symbols[s].hint is None for s in n.expr.symbols)


class SymInt:
    """An integer that is an expression. Not an int: what needs one specialises, with a guard."""

    __slots__ = ("env", "expr")

    def __init__(self, e: Expr, env: ShapeEnv) -> None:
        self.expr, self.env = e, env

    def __repr__(self) -> str:
        return self.expr.text

    @property
    def hint(self) -> int:
        return self.env.hint(self.expr)

    def __index__(self) -> int:
        return self.env.specialise(self.expr)

    __int__ = __trunc__ = __index__

    def __float__(self) -> float:
        return float(self.env.specialise(self.expr))

    def __hash__(self) -> int:
        return hash(self.env.specialise(self.expr))

    def __bool__(self) -> bool:
        return self.env.decide("!=", self.expr)

    def __neg__(self) -> SymInt | int:
        return self.env.wrap(-self.expr)

    def __pos__(self) -> SymInt:
        return self

    __floor__ = __ceil__ = __pos__

    def __round__(self, digits: Any = None) -> Any:
        if digits is None or operator.index(digits) >= 0:
            return self
        return round(int(self), digits)

    def __invert__(self) -> SymInt | int:
        return self.env.wrap(-self.expr - 1)

    def __abs__(self) -> SymInt | int:
        return self if self >= 0 else -self

    def __eq__(self, other: object) -> bool:
        return self._related("==", other, lambda a, b: a - b)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: Any) -> bool:
        return self._related(">=", other, lambda a, b: a - b, math.ceil)

    def __le__(self, other: Any) -> bool:
        return self._related(">=", other, lambda a, b: b - a, math.floor)

    def __gt__(self, other: Any) -> bool:
        return self._related(">=", other, lambda a, b: a - b - 1, math.floor)

    def __lt__(self, other: Any) -> bool:
        return self._related(">=", other, lambda a, b: b - a - 1, math.ceil)

    def _related(
        self,
        relation: str,
        other: Any,
        make: Callable[[Expr, Expr], Expr],
        to_integer: Callable[[float], int] | None = None,
    ) -> Any:
        """A comparison; with a float, by the integer that `to_integer` makes of it."""
        if isinstance(other, float):
            if math.isnan(other) or (to_integer is None and not other.is_integer()):
                return False
            if math.isinf(other):  # beyond all integers, as 2 is beyond 0
                return self.env.decide(relation, make(expr(0), expr(2 if other > 0 else -2)))
            other = int(other) if to_integer is None else to_integer(other)
        b = as_expr(other)
        if b is None:
            return NotImplemented
        if _is_huge(other):
            return self.env.decide(relation, make(expr(int(self)), b))
        return self.env.decide(relation, make(self.expr, b))

    def __pow__(self, n: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(int(self), _decided(n), _decided(modulus))
        if isinstance(n, float):
            return _float(self) ** n
        if not isinstance(n, (int, SymInt)):
            return NotImplemented
        n = int(n)
        return self.env.wrap(self.expr**n) if 0 <= n <= _LARGEST_INT_POWER else int(self) ** n

    def __rpow__(self, other: Any) -> Any:
        return other ** int(self) if isinstance(other, (int, float)) else NotImplemented

    def __lshift__(self, n: Any) -> Any:
        if not isinstance(n, (int, SymInt)):
            return NotImplemented
        n = int(n)
        return self * 2**n if 0 <= n < 63 else int(self) << n

    def __rshift__(self, n: Any) -> Any:
        if not isinstance(n, (int, SymInt)):
            return NotImplemented
        n = int(n)
        return self // 2**n if 0 <= n < 63 else int(self) >> n

    def __divmod__(self, other: Any) -> Any:
        if not isinstance(other, (int, float, SymInt)):
            return NotImplemented
        x: Any = self
        return x // other, x % other

    def __rdivmod__(self, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        x: Any = self
        return other // x, other % x

    def __truediv__(self, other: Any) -> Any:
        return _float(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / _float(self)


#: numbers that no native integer holds have no part in guards and formulas
HUGE = 2**62


def _is_huge(x: Any) -> bool:
    return isinstance(x, int) and abs(x) >= HUGE


#: powers of more are computed for the size seen: as polynomials they pass any native integer
_LARGEST_INT_POWER = 8


def _float(x: SymInt) -> Any:
    return SymFloat.of(x)


def _decided(x: Any) -> Any:
    return int(x) if isinstance(x, SymInt) else x


def as_expr(x: Any) -> Expr | None:
    """The expression of an integer of either sort; None for anything else."""
    if isinstance(x, SymInt):
        return x.env.simplify(x.expr)
    return expr(int(x)) if isinstance(x, int) else None


def _int_binary(name: str, operation: Callable[[Expr, Expr], Expr], divides: bool) -> None:
    def forward(self: SymInt, other: Any, swap: bool = False) -> Any:
        b = as_expr(other)
        if b is None:
            if isinstance(other, float):
                return getattr(_float(self), f"__{'r' if swap else ''}{name}__")(other)
            return NotImplemented
        mine = expr(int(self)) if _is_huge(other) else self.expr
        x, y = (b, mine) if swap else (mine, b)
        if divides and not self.env.decide("!=", y):
            raise ZeroDivisionError("integer division or modulo by zero")
        return self.env.wrap(operation(x, y))

    setattr(SymInt, f"__{name}__", forward)
    setattr(SymInt, f"__r{name}__", lambda self, other: forward(self, other, swap=True))


for _name, _operation, _divides in (
    ("add", Expr.__add__, False),
    ("sub", Expr.__sub__, False),
    ("mul", Expr.__mul__, False),
    ("floordiv", Expr.__floordiv__, True),
    ("mod", Expr.__mod__, True),
):
    _int_binary(_name, _operation, _divides)


def sym_min(*args: SymInt | int) -> SymInt | int:
    """The least, without deciding which it is."""
    return _pick(minimum, min, args)


def sym_max(*args: SymInt | int) -> SymInt | int:
    """The greatest, without deciding which it is."""
    return _pick(maximum, max, args)


def _pick(symbolic: Callable[..., Expr], plain: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    env = next((a.env for a in args if isinstance(a, SymInt)), None)
    if env is None:
        return plain(*args)
    kept: list[Expr] = []
    for a in args:
        e = as_expr(a)
        assert e is not None
        for i, other in enumerate(kept):
            below = env.proves(">=", other - e)
            if below is not None:
                kept[i] = e if below == (symbolic is minimum) else other
                break
        else:
            kept.append(e)
    return env.wrap(symbolic(*kept))


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


class SymBool:
    """The type of truth values that depend on symbolic integers. There are none: a comparison
    decides at once, and the graph holds for what it was."""

    def __init__(self, node: Any = None) -> None:
        raise TypeError("SymBool: comparisons of sizes give bool here; there is nothing to make")


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
