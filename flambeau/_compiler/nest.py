"""Loop nests: the unit that becomes one native loop, and programs made of them.

A nest runs over a domain, one variable `i0, i1, ...` for each dim. Without reduced dims it stores
at every point. With reduced dims, its stages run one after another for each point of the dims that
are kept: a `full` stage runs over the reduced dims and stores or accumulates; a `row` stage runs
once and sees what was accumulated before. Later stages may read, at the same point, what earlier
ones stored. Invariant: all indices are expressions over the variables of the domain and symbols.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .._ir.graph import Dim, Node
from .._ir.symexpr import Expr, symbol
from .scalar import Scalar, walk


def variable(i: int) -> Expr:
    """The loop variable of dim i."""
    return symbol(f"i{i}")


@dataclass(eq=False)
class Buffer:
    """Memory of a tensor: `size` elements, laid out by `strides`."""

    name: str
    dtype: Any
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    kind: str = "temporary"  # input | output | temporary

    def lies_as(self, other: Buffer | View) -> bool:
        """Whether both are of one type, and have their elements at the same places."""
        of_one = self.dtype is other.dtype and self.shape == other.shape
        pairs = zip(self.shape, self.strides, other.strides, strict=False)
        return of_one and all(n == 1 or s == t for n, s, t in pairs)


@dataclass(frozen=True)
class Store:
    """buffer[index] = value"""

    buffer: str
    index: Expr
    value: Scalar
    memory: str  # C++ type in memory


@dataclass(frozen=True)
class Accumulate:
    """name = combine(name, value), from the initial value on."""

    name: str
    combine: str  # a primitive of two arguments
    initial: Any
    value: Scalar


@dataclass
class Stage:
    """Statements that run at every point (`full`) or once for the kept dims (`row`)."""

    kind: str
    statements: list[Store | Accumulate]


@dataclass
class Nest:
    """Loops over `domain`; `reduced` are positions of dims that the stages of kind `full` sweep.

    Stages are not changed once a nest has them: what it reads and writes is found once.
    """

    domain: tuple[Dim, ...]
    reduced: frozenset[int]
    stages: list[Stage]
    where: list[str] = field(default_factory=list)  # the user's lines
    local: dict[str, int] = field(default_factory=dict)  # arrays of a row: name -> elements

    @property
    def statements(self) -> list[Store | Accumulate]:
        return [s for stage in self.stages for s in stage.statements]

    @cached_property
    def reads(self) -> set[str]:
        """Names of buffers that are loaded from."""
        nodes = walk(s.value for s in self.statements)
        return {n.value[0] for n in nodes if n.op == "load"}

    @cached_property
    def writes(self) -> set[str]:
        return {s.buffer for s in self.statements if isinstance(s, Store)}

    @cached_property
    def checks(self) -> list[str]:
        """Texts of the errors that the nest may raise, each once."""
        nodes = walk(s.value for s in self.statements)
        return [*dict.fromkeys(n.value for n in nodes if n.op == "within")]


@dataclass
class Call:
    """A call of an eager operation: arguments are buffers (with a view each) and plain values.

    One in its `own` memory changes its first argument, and has no outs.
    """

    node: Node
    args: tuple[Any, ...]  # View, plain value, or tuple of these
    outs: tuple[str, ...]
    own: bool = False

    @property
    def reads(self) -> set[str]:
        return {v.buffer for v in views_of(self.args)}

    @property
    def writes(self) -> set[str]:
        return {self.args[0].buffer} if self.own else set(self.outs)


@dataclass(frozen=True)
class View:
    """A tensor over a buffer."""

    buffer: str
    dtype: Any
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim


def views_of(x: Any) -> list[View]:
    """All views in an argument or a tuple of them."""
    if isinstance(x, View):
        return [x]
    return [v for y in x for v in views_of(y)] if isinstance(x, tuple) else []


Step = Nest | Call


@dataclass
class Program:
    """Steps over buffers, in order."""

    buffers: dict[str, Buffer]
    steps: list[Step]
    inputs: list[str | None]  # buffer of each tensor input of the graph; None for numbers
    outputs: list[Any]  # View, or a plain value
    symbols: list[str]
