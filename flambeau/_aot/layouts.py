"""Convolutions with their channels last: the layout in which they need no reorder.

The pass walks a functional graph once. What enters a convolution that gains by it is brought to
channels-last; entries that compute element by element, or follow the layout of what they are given,
take what is there, and their shape rules say in which layout their results are: entries say which
they are (`convolves=`, `layout=`, see docs/design/ops.md). Every other entry
sees its arguments as eager lays them out: a copy back is put before it, and before the graph's
outputs. So random streams, views and all that the user sees do not change. Run on the joint graph:
forward, backward and what is saved between them agree.

Invariant: a value whose layout changes had one of the two formats that a copy can bring back, or is
a view, which can be taken again of its base.
Must not know how loops or kernels are made.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import flambeau

from .._ir import settings
from .._ir.graph import (
    CUSTOM,
    Graph,
    Node,
    TensorType,
    Value,
    contiguous_strides,
    values_of,
)  # fmt: skip
from .._ir.symbols import UnbackedError
from .._ir.symexpr import Expr, expr
from .._ir.symscalar import FloatExpr, SymFloat
from .._ir.targets import resolve
from .._ir.where import Where
from .._trace import geometry, table
from .._trace.fake import of_type, symbolic
from .._trace.record import fakes_of
from .passes import is_view

_COPY = "_to_copy"
_WORTH = 1 << 21  # multiplications; smaller convolutions are not worth a copy


def channels_last(graph: Graph) -> Graph:
    """The same function with convolutions in channels-last; the graph itself where none gains."""
    if not settings.current().layouts or not any(_gains(n, graph) for n in graph.nodes):
        return graph
    return _Layouts(graph).run()


def _gains(node: Node, graph: Graph) -> bool:
    """A convolution of images that the provider runs faster in that layout."""
    roles = _roles(node)
    if roles is None or not flambeau.backends.mkldnn.is_available():
        return False
    tensors = [v.type for v in (*node.inputs[:2], node.out)]
    images = all(
        isinstance(t, TensorType)
        and len(t.shape) == 4
        and t.dtype is flambeau.float32
        and t.device.type == "cpu"
        for t in tensors
    )
    if not images or node.args[-1] != 1:
        return False
    x, w, y = (roles[name] for name in ("input", "weight", "output"))
    try:
        batch, rows, columns, *taps = (
            graph.env.hint(expr(n)) for n in (y.shape[0], *y.shape[2:], *w.shape)
        )
    except UnbackedError:
        return False
    return batch * rows * columns * prod(taps) >= _WORTH and max(taps[:2]) >= 16


def _roles(node: Node) -> dict[str, Value] | None:
    """Input, weight and output of a convolution by these names, for each of its three maps."""
    maps = None if node.target == CUSTOM else resolve(node.target).op.option("convolves")
    return None if maps is None else dict(zip(maps, (*node.args[:2], node.out), strict=True))


class _Layouts:
    """The graph being rewritten. A value that exists in eager's layout is itself; `now` has the
    form in which it was computed."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.env = graph, graph.env
        self.nodes: list[Node] = []
        self.now: dict[Value, Value] = {}
        self.there = set(graph.inputs)
        self.views: dict[Value, Node] = {}  # of what has another layout now
        self.count = graph.next_id()

    def run(self) -> Graph:
        locate = self.env.locate
        try:
            for node in self.graph.nodes:
                self.env.locate = partial(getattr, node, "where")
                self.node(node)
            for v in values_of(self.graph.outputs):
                self.original(v, None)
        finally:
            self.env.locate = locate
        g = self.graph
        return Graph(g.inputs, self.nodes, g.outputs, g.env, g.attached)

    def node(self, node: Node) -> None:
        if is_layout(node) and is_last(self.present(node.inputs[0])):
            self.now[node.out] = self.present(node.inputs[0])  # copied where somebody needs it so
            return
        planes = []
        if _gains(node, self.graph):
            planes = [v for name, v in (_roles(node) or {}).items() if name != "weight"]
        if planes or self.follows(node):
            args = tuple(
                self.last(a, node) if a in planes or self.joins(a, node) else self.present(a)
                for a in node.args
            )
            if self.rerun(node, args):
                return
        for v in node.inputs:
            self.original(v, node)
        self.nodes.append(node)
        self.there.update(node.outs)

    def follows(self, node: Node) -> bool:
        """Some argument lies otherwise than in eager, and the entry does not mind."""
        if not any(v in self.now for v in node.inputs):
            return False
        target = resolve(node.target)
        if target.form == "inplace" or (target.form == "new" and not target.op.updates):
            return False
        return target.op.kind == "pointwise" or target.op.option("layout") is not None

    def joins(self, a: Any, node: Node) -> bool:
        """An operand of a pointwise entry that must not draw the result into its own layout."""
        if not isinstance(a, Value) or resolve(node.target).op.kind != "pointwise":
            return False
        types = a.type, node.outs[0].type
        return all(isinstance(t, TensorType) and len(t.shape) == 4 for t in types) and (
            types[0].shape == types[1].shape  # type: ignore[union-attr]
        )

    def rerun(self, node: Node, args: tuple[Any, ...]) -> bool:
        """The node over other layouts, unless a result could not be brought back."""
        target = resolve(node.target)
        made = fakes_of(table.evaluate(target.op, [*map(self.operand, args)], table.evaluate_call))
        outs: list[Value] = []
        for k, v in enumerate(node.outs):
            assert isinstance(v.type, TensorType)
            t = made[k].type if k < len(made) else v.type  # what is updated keeps its layout
            if _same(t, v.type):
                outs.append(v)
            elif t.dtype is not v.type.dtype or t.shape != v.type.shape:
                return False
            elif format_of(v.type) is None and not _keeps(node):
                return False
            else:
                outs.append(self.value(t))
        for v, new in zip(node.outs, outs, strict=True):
            if new is v:
                self.there.add(v)
            else:
                self.now[v] = new
                if _keeps(node):
                    self.views[v] = node
        self.nodes.append(Node(node.target, args, tuple(outs), node.where, node.grad))
        return True

    def operand(self, a: Any) -> Any:
        """An argument as the shape rules take it."""
        if isinstance(a, Value):
            return of_type(a.type, self.env) if isinstance(a.type, TensorType) else a
        if isinstance(a, tuple):
            return [self.operand(x) for x in a]
        if isinstance(a, FloatExpr):
            return SymFloat(a, self.env)
        return symbolic(a, self.env) if isinstance(a, Expr) else a

    def value(self, t: TensorType) -> Value:
        self.count += 1
        return Value(self.count - 1, t)

    def present(self, a: Any) -> Any:
        """An argument in the layout in which it was computed."""
        if isinstance(a, tuple):
            return tuple(map(self.present, a))
        return self.now.get(a, a) if isinstance(a, Value) else a

    def last(self, v: Value, node: Node) -> Value:
        """The value with its channels last."""
        here = self.now.get(v, v)
        assert isinstance(here.type, TensorType)
        fake = of_type(here.type, self.env)
        if fake.is_contiguous("channels_last"):
            return here
        fake.strides = geometry.format_strides(fake.shape, "channels_last")
        made = self.value(fake.type)
        self.copy(here, flambeau.channels_last, made, node)
        if format_of(v.type) is not None:  # type: ignore[arg-type]
            self.now[v] = made
        return made

    def original(self, v: Value, node: Node | None) -> None:
        """Sees to it that the value exists in eager's layout."""
        if v in self.there:
            return
        self.there.add(v)
        if v in self.views:
            for base in self.views[v].inputs:
                self.original(base, node)
            self.nodes.append(self.views[v])
        else:
            self.copy(self.now[v], format_of(v.type), v, node)  # type: ignore[arg-type]

    def copy(self, x: Value, format: Any, out: Value, node: Node | None) -> None:
        self.nodes.append(laid_out(x, format, out, node.where if node is not None else None))


def laid_out(x: Value, format: Any, out: Value, where: Where | None = None) -> Node:
    """A copy in another layout."""
    return Node(_COPY, (x, None, format, None), (out,), where)


def reads_layout(node: Node) -> bool:
    """A view that says something else of the same numbers in another layout."""
    return is_view(node) and not _keeps(node)


def is_last(v: Value) -> bool:
    """An image with its channels last."""
    return isinstance(v.type, TensorType) and format_of(v.type) is flambeau.channels_last


def is_layout(node: Node) -> bool:
    """A copy of an image with its channels last that is dense, or the other way round."""
    if node.target != _COPY or node.args[1] is not None or node.args[3] is not None:
        return False
    x, out = node.inputs[0], node.out
    dense = [v for v in (x, out) if isinstance(v.type, TensorType) and v.type.contiguous]
    return len(dense) == 1 and (is_last(x) or is_last(out))


def _keeps(node: Node) -> bool:
    """A view that says the same whatever the strides of its base."""
    return bool(resolve(node.target).op.option("layout") == "free")


def _same(a: TensorType, b: TensorType) -> bool:
    return a.dtype is b.dtype and a.shape == b.shape and a.strides == b.strides


def format_of(t: TensorType) -> Any:
    """The format whose strides the type has, or None."""
    if t.contiguous:
        return flambeau.contiguous_format
    if len(t.shape) != 4:
        return None
    batch, channels, rows, columns = t.shape
    b, r, c, x = contiguous_strides((batch, rows, columns, channels))
    if t.strides == (b, x, r, c):
        return flambeau.channels_last
    return None
