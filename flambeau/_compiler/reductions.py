"""Reductions as stages of a nest: initial value, combination, and what follows for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._ir.graph import Node
from .._ir.symexpr import Expr, expr
from .._ir.targets import resolve
from .._trace import fake as fakes
from . import indexing
from .nest import Accumulate, Nest, Stage, Store, View
from .scalar import MEMORY, REGISTER, Scalar

if TYPE_CHECKING:
    from .lower import Lazy, Lowering

_WIDE = {"float": "double", "C64": "C128"}

Rule = Callable[["Lowering", Node, list[Any]], None]


def _dims(dim: Any, ndim: int, empty_is_all: bool = True) -> list[int]:
    if dim is None or (dim == () and empty_is_all):
        return list(range(ndim))
    dims = dim if isinstance(dim, tuple) else (dim,)
    return sorted(d % ndim if ndim else 0 for d in dims) if ndim else []


class _Reduction:
    """The nest of one reduction, being written."""

    def __init__(self, lowering: Lowering, node: Node, x: Lazy, dims: list[int]) -> None:
        self.lowering, self.node, self.x = lowering, node, x
        self.body = lowering.body
        self.shape, self.dims = x.shape, dims
        self.point = lowering.point(self.shape)
        self.stages: list[Stage] = []
        self.element = lowering.load(x, self.point)

    def accumulate(self, combine: str, initial: Any, value: Scalar) -> Scalar:
        """Sweeps the reduced dims; the result. Without any, a value is its own result."""
        if not self.dims:
            return value
        name = f"r{self.node.outs[0].id}_{len(self.stages)}"
        self.stages.append(Stage("full", [Accumulate(name, combine, initial, value)]))
        return self.body.make("result", value.type, (), name)

    def count(self) -> Scalar:
        n: Expr = expr(1)
        for d in self.dims:
            n = n * expr(self.shape[d])
        return self.body.make("size", "int64_t", (), n)

    def finish(self, values: list[Scalar]) -> None:
        """Stores one value for each result of the node."""
        statements = []
        kept = [i for d, i in enumerate(self.point) if d not in self.dims]
        for v, value in zip(self.node.outs, values, strict=True):
            b = self.lowering.buffer(v.type)  # type: ignore[arg-type]
            keepdim = len(b.shape) == len(self.shape)
            index = [expr(0) if d in self.dims else i for d, i in enumerate(self.point)]
            at = indexing.linear(index if keepdim else kept, b.strides, 0)
            stored = self.body.stored_as(value, b.dtype)
            statements.append(Store(b.name, at, stored, MEMORY[b.dtype]))
            fake = fakes.of_type(v.type, self.lowering.graph.env)  # type: ignore[arg-type]
            view = View(b.name, b.dtype, b.shape, b.strides, 0)
            self.lowering.values[v] = type(self.x)(fake, view)
        self.stages.append(Stage("row" if self.dims else "full", list(statements)))
        where = [str(self.node.where)] if self.node.where else []
        nest = Nest(self.shape, frozenset(self.dims), self.stages, where)
        self.lowering.program.steps.append(nest)


def _start(lowering: Lowering, node: Node, args: list[Any], dim: Any) -> _Reduction:
    x, all_dims = args[0], bool(resolve(node.target).op.option("all_dims"))
    return _Reduction(lowering, node, x, _dims(dim, len(x.shape), all_dims))


def _sum(lowering: Lowering, node: Node, args: list[Any]) -> None:
    r = _start(lowering, node, args, args[1])
    type_ = REGISTER[node.out.dtype]
    r.finish([r.accumulate("add", 0, r.body.cast(r.element, type_))])


def _product(lowering: Lowering, node: Node, args: list[Any]) -> None:
    names = [p.name for p in resolve(node.target).op.params]
    r = _start(lowering, node, args, args[names.index("dim")] if "dim" in names else None)
    kind = REGISTER[node.out.dtype]
    element = r.body.cast(r.element, kind)
    r.finish([r.accumulate("mul", 1, r.body.cast(element, _WIDE.get(kind, kind)))])


def _mean(lowering: Lowering, node: Node, args: list[Any]) -> None:
    r = _start(lowering, node, args, args[1])
    type_ = REGISTER[node.out.dtype]
    total = r.accumulate("add", 0, r.body.cast(r.element, type_))
    r.finish([r.body.make("div", type_, (total, r.body.cast(r.count(), type_)))])


def _extreme(combine: str) -> Rule:
    def rule(lowering: Lowering, node: Node, args: list[Any]) -> None:
        r = _start(lowering, node, args, args[1])
        worst = "lowest" if combine == "maximum" else "highest"
        r.finish([r.accumulate(combine, worst, r.element)])

    return rule


def _logical(combine: str) -> Rule:
    def rule(lowering: Lowering, node: Node, args: list[Any]) -> None:
        r = _start(lowering, node, args, args[1])
        start = combine == "logical_and"
        r.finish([r.accumulate(combine, start, r.body.cast(r.element, "bool"))])

    return rule


#: option `reduction` of an entry -> how it becomes stages
RULES: dict[str, Rule] = {
    "total": _sum,
    "product": _product,
    "average": _mean,
    "greatest": _extreme("maximum"),
    "least": _extreme("minimum"),
    "some": _logical("logical_or"),
    "every": _logical("logical_and"),
}
