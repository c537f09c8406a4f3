"""Fakes: what is known of a tensor before it has data.

A `Fake` has dtype, device and geometry, over ints and symbolic ints, the memory it lies in (shared
with its views) and the value of the graph that stands for it. It knows no operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import flambeau

from .._ir.graph import Dim as GraphDim
from .._ir.graph import TensorType, Value, dim
from .._ir.symbols import ShapeEnv
from .._ir.symscalar import SymInt
from . import geometry
from .geometry import Dim, Shape


@dataclass(eq=False)
class Memory:
    """What views share: the tensor that owns it, how often it was written to, and, while all that
    happened without gradients, the value that it holds. See Note [Views at traced places]."""

    base: Fake
    version: int = 0
    late: bool = False  # a value was written to it that had been computed before other things
    quiet: Any = None
    stands_for: Any = None
    outside: bool = False  # it came as an input
    start: Callable[[], int] | None = None  # where an input begins in its storage, see below


# Note [Where inputs begin]
# Offsets of fakes count from the first element of the tensor that owns the memory, so that an input
# that begins elsewhere in its storage in a later call, as batches cut by slices do, finds the same
# graph. Whoever asks for a place in the storage asks `start`, and later calls are to find the same.


@dataclass(eq=False)
class View:
    """How a view was made: the entry, its arguments (the tensor below first), recorded or not."""

    op: Any
    args: list[Any]
    grad: bool

    @property
    def below(self) -> Fake:
        return self.args[0]


@dataclass(eq=False)
class Fake:
    """A tensor without data."""

    dtype: Any
    shape: Shape
    strides: Shape
    device: Any
    offset: Dim = 0
    number: Any = None  # the number that a 0-d tensor stands for
    typed: bool = False  # such a one counts in promotion as any tensor of its dtype does
    memory: Memory = field(default=None, repr=False)  # type: ignore[assignment]
    value: Value | None = field(default=None, repr=False)
    requires_grad: bool = False
    view_of: View | None = field(default=None, repr=False)
    seen: int = 0  # version of the memory that `value` has

    def __post_init__(self) -> None:
        self.shape, self.strides = tuple(self.shape), tuple(self.strides)
        if self.memory is None:
            self.memory = Memory(self)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def wrapped(self) -> bool:
        """It stands for a Python number, and counts in promotion as one does."""
        return self.number is not None and not self.typed

    @property
    def only_number(self) -> bool:
        """No node computes it: where a tensor is needed, one is to be made of the number."""
        return self.wrapped and self.value is None

    def numel(self) -> Dim:
        return geometry.prod(self.shape)

    def place(self) -> Dim:
        """The offset in the storage, see Note [Where inputs begin]."""
        start = self.memory.start
        return self.offset if start is None else self.offset + start()

    def is_contiguous(self, memory_format: str = "contiguous_format") -> bool:
        return geometry.is_contiguous(self.shape, self.strides, memory_format)

    @property
    def type(self) -> TensorType:
        """The type of the value in a graph."""
        return TensorType(
            self.dtype, tuple(map(plain, self.shape)), tuple(map(plain, self.strides)), self.device
        )


def plain(n: Dim) -> GraphDim:
    """A symbolic int as what stands in graphs."""
    return dim(n.env.simplify(n.expr)) if isinstance(n, SymInt) else n


def symbolic(n: GraphDim, env: ShapeEnv) -> Dim:
    """What stands in graphs as a symbolic int."""
    return n if isinstance(n, int) else env.wrap(n)


def of_type(t: TensorType, env: ShapeEnv) -> Fake:
    """A fake of a graph's type."""
    shape = tuple(symbolic(n, env) for n in t.shape)
    strides = tuple(symbolic(n, env) for n in t.strides)
    return Fake(t.dtype, shape, strides, t.device)


def new(
    shape: Any, dtype: Any, device: Any = None, strides: Shape | None = None, number: Any = None
) -> Fake:
    """A fresh tensor; dense and row-major without strides."""
    shape = tuple(shape)
    for n in shape:
        if not n >= 0:
            raise RuntimeError(
                f"empty: expected non-negative sizes, got negative dimension {n} in "
                f"[{', '.join(map(str, shape))}]"
            )
    strides = geometry.contiguous_strides(shape) if strides is None else strides
    return Fake(dtype, shape, strides, device or flambeau.device("cpu"), number=number)


def views_of(x: Fake) -> list[tuple[Fake, View]]:
    """A view and how it was made, the view that it is one of, and so on."""
    out = []
    while x.view_of is not None:
        out.append((x, x.view_of))
        x = x.view_of.below
    return out


def repeats(x: Fake) -> bool:
    """Whether an element may have two places in a view; sizes that vary: if it came by windows."""
    pairs = zip(x.strides, x.shape, strict=True)
    dims = [(s, n) for s, n in pairs if not isinstance(n, int) or n != 1]
    if any(isinstance(s, int) and s == 0 for s, _ in dims):
        return True
    if not all(isinstance(s, int) and isinstance(n, int) for s, n in dims):
        windows = ("unfold", "as_strided", "expand")
        return any(made.op.name in windows for _, made in views_of(x))
    reach = 0
    for s, n in sorted(dims):
        if s <= reach:
            return True
        reach += (n - 1) * s
    return False
