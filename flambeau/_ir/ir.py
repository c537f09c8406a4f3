"""The IR itself: typed expression nodes, statements, nested blocks, functions.

Invariant after the front end: every expression has its exact type, all conversions (int to float,
number to tensor, optional to value) are explicit nodes, calls are resolved to one operation with
all arguments in the order of its parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .types import Param, Type


@dataclass(eq=False)
class Expr:
    """One node: an operator, its operands, its type, and what is constant about it.

    op        attr                     meaning
    const     Python value             literal
    var       name                     read of a variable
    call      Callee                   operation of the table
    core      name                     intrinsic (see `intrinsics`)
    bin, cmp  operator text            arithmetic, comparison of plain values
    and or not neg if                  on plain values; `and`, `or`, `if` evaluate lazily
    list tuple                         literal
    index slice                        of a list or string; absent slice ends are const None
    item      position                 of a tuple
    comp      tuple of targets         list comprehension: iterables..., condition?, element
    format                             joins its operands as text
    cast      kind                     float, int, bool, number, wrap, some, unwrap, none, list
    is_none                            test of an optional
    """

    op: str
    args: tuple[Expr, ...]
    type: Type
    attr: Any = None
    line: int = 0

    def walk(self) -> Iterator[Expr]:
        yield self
        for a in self.args:
            yield from a.walk()


@dataclass(eq=False)
class Callee:
    """An operation called: its record (name, params, returns) and the form used."""

    target: Any
    inplace: bool = False

    @property
    def name(self) -> str:
        return self.target.name + ("_" if self.inplace else "")


@dataclass(eq=False)
class Comp:
    """What is constant about a comprehension: names bound per item, how, and a filter."""

    targets: tuple[str, ...]
    types: tuple[Type, ...]
    over: str  # list | range | zip | enumerate | reversed
    filtered: bool


@dataclass(eq=False)
class Stmt:
    line: int

    def blocks(self) -> tuple[list[Stmt], ...]:
        return ()

    def exprs(self) -> tuple[Expr, ...]:
        return ()


@dataclass(eq=False)
class Let(Stmt):
    """Assignment; `declared` is the type of the variable, which `value` already has."""

    name: str
    value: Expr
    declared: Type

    def exprs(self) -> tuple[Expr, ...]:
        return (self.value,)


@dataclass(eq=False)
class Unpack(Stmt):
    """Assignment of the items of a tuple, or of a list of exactly that many."""

    names: tuple[str, ...]  # "" where the item is not wanted
    types: tuple[Type, ...]
    value: Expr

    def exprs(self) -> tuple[Expr, ...]:
        return (self.value,)


@dataclass(eq=False)
class SetItem(Stmt):
    target: Expr  # a variable of list type
    index: Expr
    value: Expr

    def exprs(self) -> tuple[Expr, ...]:
        return (self.target, self.index, self.value)


@dataclass(eq=False)
class If(Stmt):
    test: Expr
    then: list[Stmt]
    other: list[Stmt]

    def blocks(self) -> tuple[list[Stmt], ...]:
        return self.then, self.other

    def exprs(self) -> tuple[Expr, ...]:
        return (self.test,)


@dataclass(eq=False)
class For(Stmt):
    """`over` is list (one iterable), range (start, stop, step), zip, enumerate or reversed."""

    targets: tuple[str, ...]
    types: tuple[Type, ...]
    over: str
    args: tuple[Expr, ...]
    body: list[Stmt]

    def blocks(self) -> tuple[list[Stmt], ...]:
        return (self.body,)

    def exprs(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(eq=False)
class While(Stmt):
    test: Expr
    body: list[Stmt]

    def blocks(self) -> tuple[list[Stmt], ...]:
        return (self.body,)

    def exprs(self) -> tuple[Expr, ...]:
        return (self.test,)


@dataclass(eq=False)
class Jump(Stmt):
    kind: str  # break | continue


@dataclass(eq=False)
class Return(Stmt):
    value: Expr | None

    def exprs(self) -> tuple[Expr, ...]:
        return (self.value,) if self.value else ()


@dataclass(eq=False)
class Check(Stmt):
    """Raises class `kind` with a message unless the test holds; no test: raises always."""

    kind: str
    test: Expr | None
    message: Expr

    def exprs(self) -> tuple[Expr, ...]:
        return (self.test, self.message) if self.test else (self.message,)


@dataclass(eq=False)
class Do(Stmt):
    """An expression for its effect."""

    value: Expr

    def exprs(self) -> tuple[Expr, ...]:
        return (self.value,)


@dataclass
class Function:
    """A compiled function."""

    name: str
    params: list[Param]
    returns: Type
    body: list[Stmt]
    file: str
    line: int
    reassigned: set[str] = field(default_factory=set)  # parameters that the body assigns


def statements(block: list[Stmt]) -> Iterator[Stmt]:
    """All statements, nested ones after their owner."""
    for s in block:
        yield s
        for inner in s.blocks():
            yield from statements(inner)


def terminates(block: list[Stmt]) -> bool:
    """Control never runs off the end of the block."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, (Return, Jump)) or (isinstance(last, Check) and last.test is None):
        return True
    if isinstance(last, While):
        forever = last.test.op == "const" and last.test.attr is True
        jumps = any(isinstance(s, Jump) and s.kind == "break" for s in statements(last.body))
        return forever and not jumps
    return isinstance(last, If) and terminates(last.then) and terminates(last.other)
