"""Symbolic sizes for native code: programs of a stack machine, and the numbering of what they use.

The machine is csrc/runtime/formula.cpp; the numbering is that of csrc/runtime/geometry.h: the
symbols of an environment, then formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .enumerations import FloatOp, FormulaOp, OutputKind, Relation, SymbolKind
from .symbols import ShapeEnv
from .symexpr import Atom, Expr
from .symscalar import FloatExpr

#: what guards say
RELATIONS = {"==": Relation.Zero, "!=": Relation.NotZero, ">=": Relation.NotNegative}
_SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow"}

Steps = tuple[tuple[int, Any], ...]


def steps(e: Expr, places: dict[str, int]) -> Steps:
    """An integer expression; `places` numbers the symbols."""
    out: list[tuple[int, Any]] = [(FormulaOp.Push, 0)]
    for monomial, factor in e.terms:
        out.append((FormulaOp.Push, factor))
        for atom, power in monomial:
            for _ in range(power):
                out += [*_atom(atom, places), (FormulaOp.Mul, 0)]
        out.append((FormulaOp.Add, 0))
    return tuple(out)


def _atom(atom: Atom, places: dict[str, int]) -> list[tuple[int, Any]]:
    if atom.kind == "sym":
        return [(FormulaOp.Load, places[atom.name])]
    first, *others = atom.args
    out = list(steps(first, places))
    for other in others:
        out += [*steps(other, places), (FormulaOp[atom.kind], 0)]
    return out


class Numbers:
    """The numbers of a run: symbols of an environment, and formulas as they are asked for."""

    def __init__(self, env: ShapeEnv) -> None:
        self.env = env
        self.names = {name: i for i, name in enumerate(env.symbols)}
        self.formulas: dict[Expr, int] = {}

    def index(self, e: Expr) -> int:
        """Where the value of an expression is found.

        Raises:
            NotImplementedError: it depends on a symbol that no input shows.
        """
        for name in sorted(e.symbols):
            if self.env.symbols[name].origin is None:
                raise NotImplementedError(f"compile: the size {e} is known only inside the graph")
        for name, i in self.names.items():
            if e.text == name:
                return i
        return self.formulas.setdefault(e, len(self.names) + len(self.formulas))

    def dim(self, n: int | Expr) -> int | tuple[int]:
        """A size, stride or offset: an int, or a tuple of the index where it is found."""
        if isinstance(n, Expr):
            return n.constant if n.constant is not None else (self.index(n),)
        return n

    def geometry(
        self, dtype: Any, shape: Sequence[Any], strides: Sequence[Any], offset: Any = 0
    ) -> tuple[Any, ...]:
        """What the native `Geometry` is made of."""
        dims = (tuple(map(self.dim, x)) for x in (shape, strides))
        return (dtype, *dims, self.dim(offset))

    def floating(self, e: FloatExpr) -> Steps:
        """A floating-point expression over the numbers of a run."""
        out: list[tuple[int, Any]] = []
        for a in e.args:
            if isinstance(a, FloatExpr):
                out += self.floating(a)
            elif isinstance(a, Expr):
                out.append((FloatOp.Load, self.index(a)))
            else:
                out.append((FloatOp.Push, float(a)))
        out.append((FloatOp[_SIGNS.get(e.op, e.op)], 0))
        return tuple(out)

    def output(self, a: Any, tensor: Any) -> tuple[int, Any]:
        """A part of an output; `tensor(x)` gives the index of what is a tensor, else None."""
        index = tensor(a)
        if index is not None:
            return (OutputKind.TensorOf, index)
        if isinstance(a, Expr):
            if a.constant is None:
                return (OutputKind.Integer, self.index(a))
            return (OutputKind.Constant, a.constant)
        if isinstance(a, FloatExpr):
            return (OutputKind.Float, self.floating(a))
        if isinstance(a, tuple):
            return (OutputKind.Tuple, tuple(self.output(x, tensor) for x in a))
        return (OutputKind.Constant, a)

    def spec(self, conditions: bool = True) -> tuple[Any, ...]:
        """What the native `Sizes` is made of. To be taken last: it has all formulas."""
        symbols = []
        for s in self.env.symbols.values():
            if s.origin is None:
                symbols.append((SymbolKind.Unknown, 0, 0))
            else:
                symbols.append((SymbolKind[s.origin.kind], s.origin.input, s.origin.dim))
        formulas = tuple(steps(e, self.names) for e in self.formulas)
        return (tuple(symbols), formulas, self._conditions() if conditions else ())

    def _conditions(self) -> tuple[Any, ...]:
        known = {n for n, s in self.env.symbols.items() if s.origin is not None}
        return tuple(
            (steps(g.expr, self.names), RELATIONS[g.relation], str(g))
            for g in self.env.conditions()
            if g.expr.symbols <= known
        )
