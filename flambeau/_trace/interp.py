"""Runs typed functions of the table over fakes, numbers and symbolic ints.

The front end has resolved overloads, filled in defaults and spelled out conversions, so this
decides nothing: it walks the IR that the build turns into C++. Calls of operations go to `call`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._ir import ir
from .._ir.symscalar import SymFloat, SymInt
from .._table.model import Op
from . import meanings
from .dtypes import wrapped_dtype
from .fake import Fake, new

Call = Callable[[Op, bool, list[Any]], Any]
NUMBERS = (bool, int, float, complex, SymInt, SymFloat)  # what may stand for a 0-d tensor

ERRORS = {
    "Runtime": RuntimeError,
    "Value": ValueError,
    "Type": TypeError,
    "Index": IndexError,
    "NotImplemented": NotImplementedError,
}
_ARITHMETIC = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


def wrapped(x: Any) -> Fake:
    """The 0-d tensor that a number is in a call."""
    if isinstance(x, Fake):
        return x
    if isinstance(x, int) and not -(2**63) <= x < 2**64:
        raise OverflowError("Overflow when unpacking long long: int too big to convert")
    return new((), wrapped_dtype(x), number=x)


class Interpreter:
    """One run of one function: its variables, and who is called."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.vars: dict[str, Any] = {}

    def run(self, f: ir.Function, args: Iterable[Any]) -> Any:
        """The function's result."""
        self.vars = dict(zip((p.name for p in f.params), args, strict=True))
        try:
            self.block(f.body)
        except _Return as result:
            return result.value
        return None

    # -- statements -----------------------------------------------------------------------------

    def block(self, block: list[ir.Stmt]) -> None:
        for s in block:
            _STATEMENTS[type(s)](self, s)

    def let(self, s: ir.Let) -> None:
        value = self.expr(s.value)
        self.vars[s.name] = list(value) if isinstance(value, list) else value

    def unpack(self, s: ir.Unpack) -> None:
        values = self.expr(s.value)
        if len(values) != len(s.names):
            raise ValueError(f"expected {len(s.names)} values, got {len(values)}")
        for name, value in zip(s.names, values, strict=True):
            if name:
                self.vars[name] = value

    def set_item(self, s: ir.SetItem) -> None:
        value = self.expr(s.value)
        xs = self.vars[s.target.attr]
        xs[_position(xs, self.expr(s.index))] = value

    def if_(self, s: ir.If) -> None:
        self.block(s.then if self.expr(s.test) else s.other)

    def for_(self, s: ir.For) -> None:
        for values in self.items(s.over, s.args):
            self.bind(s.targets, values)
            try:
                self.block(s.body)
            except _Continue:
                continue
            except _Break:
                return

    def while_(self, s: ir.While) -> None:
        while self.expr(s.test):
            try:
                self.block(s.body)
            except _Continue:
                continue
            except _Break:
                return

    def jump(self, s: ir.Jump) -> None:
        raise _Break if s.kind == "break" else _Continue

    def return_(self, s: ir.Return) -> None:
        raise _Return(None if s.value is None else self.expr(s.value))

    def check(self, s: ir.Check) -> None:
        if s.test is None or not self.expr(s.test):
            raise ERRORS[s.kind](self.expr(s.message))

    def do(self, s: ir.Do) -> None:
        self.expr(s.value)

    def items(self, over: str, args: Iterable[ir.Expr]) -> Iterator[tuple[Any, ...]]:
        values = [self.expr(a) for a in args]
        if over == "range":
            return ((i,) for i in range(*map(operator.index, values)))
        if over == "zip":
            return zip(*values, strict=False)
        if over == "enumerate":
            return iter(enumerate(values[0]))
        xs = list(values[0])
        return ((x,) for x in (reversed(xs) if over == "reversed" else xs))

    def bind(self, targets: tuple[str, ...], values: tuple[Any, ...]) -> None:
        if len(targets) > 1 and len(values) == 1:
            values = values[0]
        for name, value in zip(targets, values, strict=True):
            if name:
                self.vars[name] = value

    # -- expressions ----------------------------------------------------------------------------

    def expr(self, e: ir.Expr) -> Any:
        return _EXPRESSIONS[e.op](self, e)

    def many(self, es: Iterable[ir.Expr]) -> list[Any]:
        return [_EXPRESSIONS[e.op](self, e) for e in es]

    def const(self, e: ir.Expr) -> Any:
        return e.attr

    def var(self, e: ir.Expr) -> Any:
        return self.vars[e.attr]

    def call_(self, e: ir.Expr) -> Any:
        return self.call(e.attr.target, e.attr.inplace, self.many(e.args))

    def core(self, e: ir.Expr) -> Any:
        if e.attr in _CHANGES:
            xs = self.expr(e.args[0])
            return getattr(xs, e.attr)(*self.many(e.args[1:]))
        if e.attr in meanings.OPERATIONS:  # what stands for a call of other operations
            return meanings.OPERATIONS[e.attr](self.call, *self.many(e.args))
        return meanings.CORE[e.attr](*self.many(e.args))

    def binary(self, e: ir.Expr) -> Any:
        a, b = self.many(e.args)
        return _ARITHMETIC[e.attr](a, b)

    def compare(self, e: ir.Expr) -> Any:
        a, b = self.many(e.args)
        return bool(_ARITHMETIC[e.attr](a, b))

    def and_(self, e: ir.Expr) -> bool:
        return bool(self.expr(e.args[0]) and self.expr(e.args[1]))

    def or_(self, e: ir.Expr) -> bool:
        return bool(self.expr(e.args[0]) or self.expr(e.args[1]))

    def not_(self, e: ir.Expr) -> bool:
        return not self.expr(e.args[0])

    def neg(self, e: ir.Expr) -> Any:
        return -self.expr(e.args[0])

    def invert(self, e: ir.Expr) -> Any:
        return ~self.expr(e.args[0])

    def is_none(self, e: ir.Expr) -> bool:
        return self.expr(e.args[0]) is None

    def conditional(self, e: ir.Expr) -> Any:
        return self.expr(e.args[1] if self.expr(e.args[0]) else e.args[2])

    def list_(self, e: ir.Expr) -> list[Any]:
        return self.many(e.args)

    def tuple_(self, e: ir.Expr) -> tuple[Any, ...]:
        return tuple(self.many(e.args))

    def index(self, e: ir.Expr) -> Any:
        xs, i = self.many(e.args)
        return xs[_position(xs, i)]

    def item(self, e: ir.Expr) -> Any:
        return self.expr(e.args[0])[e.attr]

    def slice_(self, e: ir.Expr) -> Any:
        xs, *ends = self.many(e.args)
        first, last = (None if x is None else operator.index(x) for x in ends)
        return xs[first:last]

    def format(self, e: ir.Expr) -> str:
        return "".join(meanings.text(self.expr(a)) for a in e.args)

    def comprehension(self, e: ir.Expr) -> list[Any]:
        comp: ir.Comp = e.attr
        n = len(e.args) - 1 - int(comp.filtered)
        outer, out = self.vars, []
        for values in self.items(comp.over, e.args[:n]):
            self.vars = dict(outer)
            self.bind(comp.targets, values)
            if not comp.filtered or self.expr(e.args[n]):
                out.append(self.expr(e.args[-1]))
            self.vars = outer
        return out

    def cast(self, e: ir.Expr) -> Any:
        kind = e.attr
        if kind == "none":
            return None
        x = self.expr(e.args[0])
        if isinstance(kind, tuple):
            return [x] * kind[1]
        return _CASTS[kind](x)


def _position(xs: Any, i: Any) -> int:
    i = operator.index(i)
    if not -len(xs) <= i < len(xs):
        raise IndexError(f"list index {i} is out of range for {len(xs)} items")
    return i


def _to_float(x: Any) -> Any:
    if isinstance(x, SymInt):
        return SymFloat.of(x)
    return x if isinstance(x, SymFloat) else float(x.real if isinstance(x, complex) else x)


def _to_int(x: Any) -> Any:
    return x if isinstance(x, SymInt) else int(x.real if isinstance(x, complex) else x)


def _unwrap(x: Any) -> Any:
    if x is None:
        raise RuntimeError("a value that is None was taken for one that is not")
    return x


_CASTS: dict[str, Callable[[Any], Any]] = {
    "float": _to_float, "int": _to_int, "bool": lambda x: bool(x != 0), "number": lambda x: x,
    "wrap": wrapped, "some": lambda x: x, "unwrap": _unwrap, "opttensors": list,
}  # fmt: skip
_CHANGES = ("append", "extend", "insert", "pop")
_STATEMENTS: dict[type, Callable[..., None]] = {
    ir.Let: Interpreter.let, ir.Unpack: Interpreter.unpack, ir.SetItem: Interpreter.set_item,
    ir.If: Interpreter.if_, ir.For: Interpreter.for_, ir.While: Interpreter.while_,
    ir.Jump: Interpreter.jump, ir.Return: Interpreter.return_, ir.Check: Interpreter.check,
    ir.Do: Interpreter.do,
}  # fmt: skip
_EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "const": Interpreter.const, "var": Interpreter.var, "call": Interpreter.call_,
    "core": Interpreter.core, "bin": Interpreter.binary, "cmp": Interpreter.compare,
    "and": Interpreter.and_, "or": Interpreter.or_, "not": Interpreter.not_,
    "neg": Interpreter.neg, "invert": Interpreter.invert, "is_none": Interpreter.is_none,
    "if": Interpreter.conditional, "list": Interpreter.list_, "tuple": Interpreter.tuple_,
    "index": Interpreter.index, "item": Interpreter.item, "slice": Interpreter.slice_,
    "format": Interpreter.format, "comp": Interpreter.comprehension, "cast": Interpreter.cast,
}  # fmt: skip
