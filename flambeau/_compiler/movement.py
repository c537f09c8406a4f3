"""Operations that move, convert or make elements, as lazies and nests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from .._ir.graph import Dim, Node, TensorType, dim
from .._ir.symexpr import Expr, expr
from .._ir.targets import resolve
from .._trace import fake as fakes
from . import indexing
from .nest import Nest, Stage, Store, View
from .scalar import MEMORY, REGISTER, REPEATED, Scalar, cost

if TYPE_CHECKING:
    from .lower import Lowering

Index = Sequence[Expr]
At = Callable[[Index], Scalar]
#: where a part of a result begins, its shape, its elements
Piece = tuple[Sequence[Expr], Sequence[Dim], At]
#: True where the rule could not be applied: the operation is called as eager does it
Rule = Callable[["Lowering", Node, list[Any]], bool | None]


def _define(lowering: Lowering, node: Node, at: At) -> None:
    """The node's result is computed by `at`, in the result's dtype."""
    fake = fakes.of_type(node.out.type, lowering.graph.env)  # type: ignore[arg-type]
    lowering.define(node.out, fake, lambda index: lowering.body.stored_as(at(index), fake.dtype))


def _copy(lowering: Lowering, node: Node, args: list[Any]) -> bool:
    x = args[0]
    if getattr(x, "view", None) is not None and _turns(x.view, node.out.type):
        return True  # in a loop every sweep would read across the lines of memory
    _define(lowering, node, lambda index: lowering.element(x, index))
    return False


def _turns(view: View, into: Any) -> bool:
    """Whether neighbours in memory lie far apart afterwards: the kernel moves them tile by tile."""
    dense = [
        {d for d, n in enumerate(t.strides) if n == 1 and t.shape[d] != 1} for t in (view, into)
    ]
    return all(dense) and not dense[0] & dense[1]


def _copied_into(lowering: Lowering, node: Node, args: list[Any]) -> None:
    src = args[1]
    _define(lowering, node, lambda index: lowering.element(src, index))


def _filled(position: int) -> Rule:
    def rule(lowering: Lowering, node: Node, args: list[Any]) -> None:
        value = args[position] if position >= 0 else 0
        _define(lowering, node, lambda index: lowering.element(value, ()))

    return rule


def _arange(lowering: Lowering, node: Node, args: list[Any]) -> bool | None:
    params = resolve(node.target).op.params
    numbers = {p.name: a for p, a in zip(params, args, strict=True) if p.type.base == "Number"}
    start, step, given = numbers.get("start", 0), numbers.get("step", 1), numbers.values()
    if not all(isinstance(x, (int, Expr)) for x in given) or REGISTER[node.out.dtype] != "int64_t":
        return True

    def at(index: Index) -> Scalar:
        place = expr(start) + index[0] * expr(step)
        return lowering.body.index(place)

    _define(lowering, node, at)
    return None


def _flip(lowering: Lowering, node: Node, args: list[Any]) -> None:
    x, ndim = args[0], len(args[0].shape)
    dims = {d % ndim for d in args[1]} if ndim else set()

    def at(index: Index) -> Scalar:
        moved = [
            expr(n) - 1 - i if d in dims and n != 1 else i
            for d, (i, n) in enumerate(zip(index, x.shape, strict=True))
        ]
        return lowering.load(x, moved)

    _define(lowering, node, at)


def _triangle(keep: str) -> Rule:
    def rule(lowering: Lowering, node: Node, args: list[Any]) -> None:
        x, body = args[0], lowering.body

        def at(index: Index) -> Scalar:
            value = lowering.load(x, index)
            gap = body.index(index[-1] - index[-2] - expr(args[1]))
            inside = body.make(keep, "bool", (gap, body.const(0, "int64_t")))
            zero = body.const(0, value.type)
            return body.make("where", value.type, (inside, value, zero))

        _define(lowering, node, at)

    return rule


def _gathered(lowering: Lowering, node: Node, args: list[Any]) -> bool:
    """The place along one dim is that of the index at the same point."""
    x, along, index = args[:3]
    if not x.shape or not lowering.language.checks:
        return True
    d = along % len(x.shape)

    def at(point: Index) -> Scalar:
        place = _checked(lowering, node, lowering.load(index, point), x, d)
        return lowering.load(x, [*point[:d], place, *point[d + 1 :]])

    _picked(lowering, node, x, at)
    return False


def _selected(lowering: Lowering, node: Node, args: list[Any]) -> bool:
    """The dims of the index stand for one dim of the input, the first if none is named."""
    names = [p.name for p in resolve(node.target).op.params]
    x, *_ = args
    index = next(a for a in args[1:] if hasattr(a, "shape"))
    along = args[names.index("dim")] if "dim" in names else 0
    k = len(index.shape)
    if len(node.out.shape) != len(x.shape) - 1 + k:
        return True
    if not x.shape or not lowering.language.checks:
        return True
    d = along % len(x.shape)

    def at(point: Index) -> Scalar:
        place = _checked(lowering, node, lowering.load(index, point[d : d + k]), x, d)
        return lowering.load(x, [*point[:d], place, *point[d + k :]])

    _picked(lowering, node, x, at)
    return False


def _checked(lowering: Lowering, node: Node, index: Scalar, x: Any, d: int) -> Expr:
    text = node.outside or str(resolve(node.target).op.option("outside"))
    return lowering.within(index, x.shape[d], text.replace("{dim}", str(d)))


def _picked(lowering: Lowering, node: Node, x: Any, at: At) -> None:
    """Elements of x, which is put into memory first where they are costly."""
    if x.view is None and cost(lowering.load(x, lowering.point(x.shape))) > REPEATED:
        lowering.realise(x, node.where)
    _define(lowering, node, at)


def _zeros(lowering: Lowering, node: Node, args: list[Any]) -> None:
    _filled(-1)(lowering, node, args)
    lowering.values[node.out].zero = True


def _cat(lowering: Lowering, node: Node, args: list[Any]) -> None:
    tensors = [x for x in args[0] if x.shape != (0,)]
    ndim = len(node.out.shape)
    _put_together(lowering, node, args[1] % ndim if ndim else 0, tensors)


def _put_together(lowering: Lowering, node: Node, dim: int, tensors: Sequence[Any]) -> None:
    """Each operand is written into its part of the result by a nest of its own."""
    start: Expr = expr(0)
    parts: list[Any] = []
    pieces: list[Piece] = []
    for x in tensors:
        starts = [start if d == dim else expr(0) for d in range(len(x.shape))]
        pieces.append((starts, x.shape, partial(lowering.load, x)))
        parts.append((start.constant, (start + expr(x.shape[dim])).constant, x))
        start = start + expr(x.shape[dim])
    _pieces(lowering, node, pieces)
    fixed = all(stop is not None and x.fake.dtype is node.out.dtype for _, stop, x in parts)
    lowering.values[node.out].parts = (dim, parts) if fixed else None


def _pieces(lowering: Lowering, node: Node, pieces: Sequence[Piece]) -> None:
    """The result is written piece by piece."""
    t = node.out.type
    assert isinstance(t, TensorType)
    b = lowering.buffer(t)
    for starts, shape, at in pieces:
        index = lowering.point(shape)
        value = lowering.body.stored_as(at(index), t.dtype)
        place = [i + start for i, start in zip(index, starts, strict=True)]
        store = Store(b.name, indexing.linear(place, b.strides, 0), value, MEMORY[t.dtype])
        where = [str(node.where)] if node.where else []
        lowering.add_nest(Nest(tuple(shape), frozenset(), [Stage("full", [store])], where))
    fake = fakes.of_type(t, lowering.graph.env)
    lowering.define(node.out, fake, View(b.name, b.dtype, b.shape, b.strides, 0))


def _padded(lowering: Lowering, node: Node, args: list[Any]) -> bool:
    """What is around the input, dim by dim, then the input itself."""
    x, pads, value = args
    if not all(isinstance(n, int) for n in pads):
        return True
    ndim = len(x.shape)
    both = [(pads[2 * d], pads[2 * d + 1]) if 2 * d < len(pads) else (0, 0) for d in range(ndim)]
    both.reverse()
    starts = [expr(max(b, 0)) for b, _ in both]
    skipped = [max(-b, 0) for b, _ in both]
    inner: list[Any] = [
        dim(expr(n) + min(b, 0) + min(a, 0)) for n, (b, a) in zip(x.shape, both, strict=True)
    ]
    if any(isinstance(n, int) and n <= 0 for n in inner):
        return True

    def filled(index: Index) -> Scalar:
        return lowering.element(value, ())

    def moved(index: Index) -> Scalar:
        return lowering.load(x, [i + n for i, n in zip(index, skipped, strict=True)])

    pieces: list[Piece] = [(starts, inner, moved)]
    for d, (b, a) in enumerate(both):
        for size, first in ((b, expr(0)), (a, starts[d] + expr(inner[d]))):
            if size > 0:
                corner = [*starts[:d], first, *[expr(0)] * (ndim - d - 1)]
                pieces.append((corner, [*inner[:d], size, *node.out.shape[d + 1 :]], filled))
    _pieces(lowering, node, pieces)
    return False


def _rolled(lowering: Lowering, node: Node, args: list[Any]) -> bool:
    """Along each dim that is rolled two pieces change places."""
    x, shifts, dims = args
    by = dict.fromkeys(range(len(x.shape)), 0)
    for shift, d in zip(shifts, dims or (), strict=False):
        by[d % len(x.shape)] += shift
    if not dims or not all(isinstance(n, int) for n in shifts):
        return True
    halves: list[list[tuple[Any, Any, Any]]] = []  # where it goes, how much, where it comes from
    for d, n in enumerate(x.shape):
        rest = expr(abs(by[d])) % expr(n)
        k = dim(rest if by[d] > 0 or rest.constant == 0 else n - rest)
        halves.append([(k, dim(n - expr(k)), 0), (0, k, n - expr(k))] if k != 0 else [(0, n, 0)])
    pieces: list[Piece] = []
    for chosen in product(*halves):

        def at(index: Index, chosen: Any = chosen) -> Scalar:
            return lowering.load(x, [i + c[2] for i, c in zip(index, chosen, strict=True)])

        pieces.append(([expr(c[0]) for c in chosen], [c[1] for c in chosen], at))
    _pieces(lowering, node, pieces)
    return False


def join_parts(lowering: Lowering, node: Node, args: list[Any]) -> bool:
    """A sum of tensors that are zero but for parts that do not overlap is put together of those.

    So arrives the gradient of what was split: a sum of as many tensors as there were parts.
    """
    a, b, factor = args
    known = [x for x in (getattr(a, "parts", None), getattr(b, "parts", None)) if x is not None]
    if len(known) < 2 or factor != 1 or a.shape != b.shape:
        return False
    if known[0][0] != known[1][0] or {a.fake.dtype, b.fake.dtype} != {node.out.dtype}:
        return False
    dim, size = known[0][0], a.shape[known[0][0]]
    pieces = sorted((p for _, ps in known for p in ps if not p[2].zero), key=lambda p: p[0])
    tensors, at = [], 0
    for start, stop, x in pieces:
        if start < at:
            return False
        if start > at:
            tensors.append(_gap(lowering, a, dim, start - at))
        tensors.append(x)
        at = stop
    if at < size:
        tensors.append(_gap(lowering, a, dim, size - at))
    _put_together(lowering, node, dim, tensors)
    return True


def _gap(lowering: Lowering, like: Any, dim: int, size: int) -> Any:
    """Zeros of so many places along a dim."""
    shape = [size if d == dim else n for d, n in enumerate(like.fake.shape)]
    fake = fakes.new(shape, like.fake.dtype, like.fake.device)
    zero = lowering.body.const(0, REGISTER[fake.dtype])
    return type(like)(fake, at=lambda index: zero, zero=True)


#: option `element` or `join` of an entry -> how it is lowered
ELEMENTS: dict[str, Rule] = {
    "copied": _copy,
    "taken": _copied_into,
    "given": _filled(1),
    "zero": _zeros,
    "counted": _arange,
    "mirrored": _flip,
    "below": _triangle("le"),
    "above": _triangle("ge"),
    "gathered": _gathered,
    "selected": _selected,
}
JOINS: dict[str, Rule] = {"along": _cat, "around": _padded, "rolled": _rolled}
