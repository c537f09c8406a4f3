"""A graph of primitives as a program of loop nests and calls.

Values are lazy: a pointwise result is a function from an index to a scalar, a view another index
into what it views; memory is given to what must have it (results, arguments of calls, what several
nodes read, and `hoist`) and each such value becomes a nest of its own. `fuse` merges nests later.
Lowering decides nothing about speed beyond that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._ir.graph import Arg, Dim, Graph, Node, TensorType, Value, dim, values_of
from .._ir.symexpr import Expr, expr, product, symbol
from .._ir.symscalar import FloatExpr, SymFloat
from .._ir.targets import Target, resolve
from .._ir.types import Type
from .._trace import fake as fakes
from .._trace import table
from .._trace.interp import wrapped
from . import indexing, inline, languages, movement, reductions
from .nest import Buffer, Call, Nest, Program, Stage, Store, View, variable
from .scalar import MEMORY, REPEATED, Body, Scalar, cost

_ROWS = 8  # of a larger tensor, from which on `hoist` is worth a buffer

Index = Sequence[Expr]
NUMBERS = (Expr, FloatExpr, int, float, complex, str)
#: operation of a FloatExpr -> primitive
FLOAT_OPS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow"}
FLOAT_OPS |= {name: name for name in ("sqrt", "exp", "log", "cos", "sin")}
#: kind of rule (`Op.looped`) -> name of the rule -> how it is lowered
RULES: dict[str, Mapping[str, movement.Rule]] = {
    "element": movement.ELEMENTS,
    "join": movement.JOINS,
    "reduction": reductions.RULES,
}


@dataclass(eq=False)
class Lazy:
    """A tensor during lowering: its fake, and where its elements come from.

    In memory: `view` tells where. Else `at(index)` computes an element, and `layout` is what it
    gets when it is put into memory, if that is not the fake's. `parts`: it was put together of
    these along a dim; `zero`: all its elements are.
    """

    fake: fakes.Fake
    view: View | None = None
    at: Callable[[Index], Scalar] | None = None
    layout: TensorType | None = None
    parts: tuple[int, list[tuple[int, int, Lazy]]] | None = None  # dim; start, stop, tensor
    zero: bool = False

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(map(fakes.plain, self.fake.shape))


class Lowering:
    """One graph on its way; `program` grows."""

    def __init__(self, graph: Graph, language: languages.Language | None = None) -> None:
        self.graph = graph
        self.language = language or languages.of("cpu")
        self.body = Body()
        self.values: dict[Value, Any] = {}
        self.uses = {v: len(nodes) for v, nodes in graph.uses().items()}
        views = [n for n in graph.nodes if resolve(n.target).op.kind == "view"]
        self.viewing = {v: n for n in views for v in n.outs}
        self.seen = set(values_of(graph.outputs))  # these have the strides that eager gives them
        symbols = list(graph.env.symbols)
        self.program = Program({}, [], [], [], symbols)

    # Values ---------------------------------------------------------------------------------

    def element(self, x: Any, index: Index) -> Scalar:
        """Element of an operand at a point of the result's shape."""
        if isinstance(x, Lazy):
            return self.load(x, indexing.broadcast(index, list(map(self.size, x.shape))))
        if isinstance(x, Expr):
            return self.body.make("size", "int64_t", (), x)
        if isinstance(x, FloatExpr):
            return self.float_number(x)
        kind = "bool" if isinstance(x, bool) else "int64_t" if isinstance(x, int) else "double"
        return self.body.const(x, "C128" if isinstance(x, complex) else kind)

    def size(self, n: Dim) -> Dim:
        """1 where that is known of an expression: such a dim is broadcast."""
        return n if isinstance(n, int) or not self.graph.env.proves("==", n - 1) else 1

    def float_number(self, x: FloatExpr) -> Scalar:
        """A number made of sizes, computed in double as Python does."""
        args = [self.body.cast(self.element(a, ()), "double") for a in x.args]
        return args[0] if x.op == "float" else self.body.make(FLOAT_OPS[x.op], "double", args)

    def within(self, index: Scalar, size: Dim, text: str) -> Expr:
        """A computed index, which is checked."""
        limit = self.element(size, ())
        return self.body.place(self.body.make("within", "int64_t", (index, limit), text))

    def load(self, x: Lazy, index: Index) -> Scalar:
        if x.view is not None:
            at = indexing.linear(index, x.view.strides, x.view.offset)
            return self.body.load(x.view.buffer, at, x.fake.dtype)
        assert x.at is not None
        return x.at(index)

    def buffer(self, t: TensorType, kind: str = "temporary") -> Buffer:
        b = Buffer(f"b{len(self.program.buffers)}", t.dtype, t.shape, t.strides, kind)
        self.program.buffers[b.name] = b
        return b

    def realise(self, x: Lazy, where: Any = None) -> View:
        """The tensor in memory; made so if it is not, results of the graph in eager's layout."""
        if x.view is None:
            if x.layout is not None:
                x.fake = fakes.of_type(x.layout, self.graph.env)
            t = x.fake.type
            b = self.buffer(t)
            index = self.point(t.shape)
            value = self.load(x, index)
            store = Store(b.name, indexing.linear(index, b.strides, 0), value, MEMORY[b.dtype])
            places = [str(where)] if where else []
            self.program.steps.append(Nest(t.shape, frozenset(), [Stage("full", [store])], places))
            x.view = View(b.name, b.dtype, t.shape, t.strides, 0)
        return x.view

    def hoist(self, x: Lazy, into: TensorType, where: Any) -> None:
        """Puts into memory what would be computed again for every row of a larger tensor, as the
        statistics of a batch norm whose channels lie last would. What does not change along a row
        the C++ compiler takes out of the loop."""
        if x.view is not None or x.parts is not None or x.zero:
            return
        sizes = [1] * (len(into.shape) - len(x.shape)) + [self.size(n) for n in x.shape]
        dims = [d for d, n in enumerate(into.strides) if n == 1 and into.shape[d] != 1]
        if not dims or sizes[dims[0]] == 1:
            return
        times = product(n for n, own in zip(into.shape, sizes, strict=True) if own == 1)
        if times.constant is not None and times.constant < _ROWS:
            return
        if cost(self.load(x, self.point(x.shape))) > REPEATED:
            self.realise(x, where)

    @staticmethod
    def point(shape: Sequence[Any]) -> list[Expr]:
        """The index of the running point of a nest over `shape`."""
        return [expr(0) if n == 1 else variable(i) for i, n in enumerate(shape)]

    # Nodes ----------------------------------------------------------------------------------

    def run(self) -> Program:
        for v in self.graph.inputs:
            self.values[v] = self.take(v)
        for node in self.graph.nodes:
            self.lower(node)
        self.program.outputs = [self.result(a) for a in self.graph.outputs]
        return self.program

    def take(self, v: Value) -> Any:
        if isinstance(v.type, Type):
            self.program.inputs.append(None)
            return self.number(len(self.program.inputs) - 1)
        b = self.buffer(v.type, "input")
        self.program.inputs.append(b.name)
        fake = fakes.of_type(v.type, self.graph.env)
        return Lazy(fake, View(b.name, b.dtype, b.shape, b.strides, 0))

    def number(self, position: int) -> Expr:
        """The symbol that an input of the graph gives the value of."""
        for name, s in self.graph.env.symbols.items():
            if s.origin is not None and (s.origin.kind, s.origin.input) == ("value", position):
                return symbol(name)
        raise NotImplementedError("compile: a number that is no size as an input of a graph")

    def define(self, v: Value, fake: fakes.Fake, made: View | Callable[[Index], Scalar]) -> None:
        """What a value of the graph stands for: memory, or a function of the index."""
        self.values[v] = Lazy(fake, made) if isinstance(made, View) else Lazy(fake, at=made)

    def add_nest(self, nest: Nest) -> None:
        self.program.steps.append(nest)

    def result(self, a: Arg) -> Any:
        """An output: in the layout that eager gives it, which is what the user sees."""
        x = self.laid_out(a)
        if isinstance(x, Lazy):
            assert isinstance(a, Value) and isinstance(a.type, TensorType)
            view = replace(self.realise(x), strides=a.type.strides)  # of dims of size 1 as well
            if self.program.buffers[view.buffer].kind == "temporary":
                self.program.buffers[view.buffer].kind = "output"
            return view
        return x

    def value(self, a: Arg) -> Any:
        if isinstance(a, Value):
            return self.values[a]
        return tuple(map(self.value, a)) if isinstance(a, tuple) else a

    def lower(self, node: Node) -> None:
        target = resolve(node.target)
        op = target.op
        if op.option("kernel") == "nothing" and not self.seen.union(self.uses).intersection(
            node.outs
        ):
            return  # memory that nobody uses
        args = [self.value(a) for a in node.args]
        if self.empty(node) or self.unsayable(node, op, args):
            self.call(node, args)
        elif rule := self.loops(target):
            if rule(self, node, args):
                self.call(node, args)
        elif target.form:
            self.call(node, args)
        elif node.target == "add" and movement.join_parts(self, node, args):
            pass
        elif op.kind == "pointwise" and self.plain_pointwise(args):
            if not self.pointwise(node, op, args):
                self.call(node, args)
        elif op.kind == "view":
            self.view(node, op, args)
        else:
            self.call(node, args)
        for v in node.outs:
            x = self.values[v]
            if not isinstance(x, Lazy):
                continue
            if v in self.seen and isinstance(v.type, TensorType):
                x.layout = v.type
            if x.zero:
                continue
            if x.view is None and self.uses.get(v, 0) > 1:
                self.realise(x, node.where)

    @staticmethod
    def loops(target: Target) -> movement.Rule | None:
        """The rule that the entry's option names, see `Op.looped`."""
        if target.mutates or target.op.looped is None:
            return None
        kind, rule = target.op.looped
        return RULES[kind][rule]

    def is_used(self, v: Value) -> bool:
        """A node or the result of the graph needs it."""
        return v in self.seen or self.uses.get(v, 0) > 0

    @staticmethod
    def empty(node: Node) -> bool:
        """A tensor without elements is involved: left to the kernels, which know that case."""
        tensors = [v.type for v in (*node.inputs, *node.outs) if isinstance(v.type, TensorType)]
        viewed = resolve(node.target).op.kind == "view"
        return not viewed and any(n == 0 for t in tensors for n in t.shape)

    def unsayable(self, node: Node, op: Any, args: Sequence[Any]) -> bool:
        """Is it beyond the language? Views are not computed, so they never are."""
        language = self.language
        if op.kind == "view" or (language.complex and not language.refused):
            return False
        tensors = [v.type for v in (*node.inputs, *node.outs) if isinstance(v.type, TensorType)]
        if not language.complex and any(t.dtype.is_complex for t in tensors):
            return True
        if op.kind != "pointwise" or not self.plain_pointwise(args):
            return False
        kernel = inline.kernel_of(op, self.fakes_of(args))
        return not language.refused.isdisjoint(inline.primitives(kernel))

    def plain_pointwise(self, args: Sequence[Any]) -> bool:
        """Every operand is a tensor or a number that can stand in a loop."""
        return all(isinstance(a, (Lazy, *NUMBERS)) or a is None for a in args)

    def fakes_of(self, args: Any) -> Any:
        if isinstance(args, Lazy):
            return args.fake
        if isinstance(args, (tuple, list)):
            return [self.fakes_of(a) for a in args]
        if isinstance(args, FloatExpr):
            return SymFloat(args, self.graph.env)
        return fakes.symbolic(args, self.graph.env) if isinstance(args, Expr) else args

    def pointwise(self, node: Node, op: Any, args: list[Any]) -> bool:
        """False where no loop can hold it."""
        kernel = inline.kernel_of(op, self.fakes_of(args))
        given = dict(zip((p.name for p in op.params), args, strict=True))
        operands = [given[name] for name in kernel.inputs]
        types = [wrapped(self.fakes_of(x)) for x in operands]
        if not inline.possible(op, kernel, types, given):
            return False
        numbers = [given[name] for name in kernel.params]
        for x in operands:
            if isinstance(x, Lazy) and isinstance(node.outs[0].type, TensorType):
                self.hoist(x, node.outs[0].type, node.where)

        def result(k: int, dtype: Any) -> Callable[[Index], Scalar]:
            def at(index: Index) -> Scalar:
                elements = [self.element(x, index) for x in operands]
                params = [self.element(x, ()) for x in numbers]
                value = inline.apply(self.body, op, kernel, types, elements, params)[k]
                return self.body.stored_as(value, dtype)

            return at

        for k, v in enumerate(node.outs):
            assert isinstance(v.type, TensorType)
            fake = fakes.of_type(v.type, self.graph.env)
            self.values[v] = Lazy(fake, at=result(k, fake.dtype))
        return True

    def in_memory(self, v: Value) -> Lazy:
        """A tensor where eager has it: a view in the memory of its base, with what lies between
        its elements."""
        maker, x = self.viewing.get(v), self.values[v]
        if maker is None:
            if x.view is None and isinstance(v.type, TensorType):
                x.layout = v.type
            self.realise(x)
        elif isinstance(maker.args[0], Value):
            args = [self.in_memory(maker.args[0]), *map(self.value, maker.args[1:])]
            self.view(maker, resolve(maker.target).op, args)
        return self.values[v]

    def view(self, node: Node, op: Any, args: list[Any]) -> None:
        if op.name == "as_strided" and isinstance(node.args[0], Value):
            args = [self.in_memory(node.args[0]), *args[1:]]
        try:
            made = table.evaluate(op, self.fakes_of(args), table.evaluate_call)
        except RuntimeError:  # its base does not lie as in eager, which has this view
            args = [self.laid_out(node.args[0]), *args[1:]]
            made = table.evaluate(op, self.fakes_of(args), table.evaluate_call)
        base = next(a for a in args if isinstance(a, Lazy))
        several = made if isinstance(made, (tuple, list)) else [made]
        if any(fake.dtype is not base.fake.dtype for fake in several):
            self.call(node, args)  # loops see memory as one type alone
            return
        blind = base.view is None and any(self.through(base, x) is None for x in several)
        if blind or (base.view is None and self.reorders(node, base, several)):
            if isinstance(node.args[0], Value):  # in eager's layout, which the views inherit
                base.layout = node.args[0].type  # type: ignore[assignment]
            self.realise(base, node.where)
            made = table.evaluate(op, self.fakes_of(args), table.evaluate_call)
            several = made if isinstance(made, (tuple, list)) else [made]
        for v, fake in zip(node.outs, several, strict=True):
            self.values[v] = self.viewed(base, fake)
            self.values[v].zero = base.zero

    def reorders(self, node: Node, base: Lazy, views: Sequence[fakes.Fake]) -> bool:
        """Whether a view that will be in memory has all elements of what it views: the base is then
        put there as it is, which is one sweep, and every other view of it costs nothing."""
        if len(views) > 1 or self.uses.get(node.out, 0) < 2 or base.zero or base.parts is not None:
            return False
        a, b = (list(map(self.size, map(fakes.plain, x.shape))) for x in (base.fake, *views))
        return bool(product(a) == product(b))

    def through(self, base: Lazy, fake: fakes.Fake) -> movement.At | None:
        """Where elements of a view are in its base, if indices alone tell."""
        shape = tuple(map(fakes.plain, fake.shape))
        strides = tuple(map(fakes.plain, fake.strides))
        offset, b = fakes.plain(fake.offset), base.fake.type

        def inner(index: Index) -> list[Expr] | None:
            return indexing.through_view(index, shape, strides, offset, b.shape, b.strides)

        if inner(self.point(shape)) is None:
            return None
        return lambda index: self.load(base, inner(index) or [])

    def viewed(self, base: Lazy, fake: fakes.Fake) -> Lazy:
        if base.view is None:
            at = self.through(base, fake)
            assert at is not None
            return Lazy(_detached(fake), at=at)
        shape = tuple(map(fakes.plain, fake.shape))
        strides = tuple(map(fakes.plain, fake.strides))
        offset = expr(fakes.plain(fake.offset)) - expr(fakes.plain(base.fake.offset))
        start = dim(expr(base.view.offset) + offset)
        return Lazy(fake, View(base.view.buffer, fake.dtype, shape, strides, start))

    def call(self, node: Node, args: list[Any]) -> None:
        """An operation that runs as it does eagerly."""
        given = tuple(self.argument(self.laid_out(a)) for a in node.args)
        outs = []
        for v in node.outs:
            assert isinstance(v.type, TensorType)
            b = self.buffer(v.type)
            outs.append(b.name)
            fake = fakes.of_type(v.type, self.graph.env)
            self.values[v] = Lazy(fake, View(b.name, b.dtype, b.shape, b.strides, 0))
        self.program.steps.append(Call(node, given, tuple(outs)))

    def laid_out(self, a: Arg) -> Any:
        """An argument in the layout it has in the graph: kernels follow it, in the order of random
        numbers and in the layout of their results."""
        if isinstance(a, tuple):
            return tuple(map(self.laid_out, a))
        x = self.value(a)
        if isinstance(a, Value) and isinstance(x, Lazy) and isinstance(a.type, TensorType):
            if x.view is None:
                x.layout = a.type
            elif not _same_layout(x.view, a.type):
                fake = fakes.of_type(a.type, self.graph.env)
                return Lazy(fake, at=lambda index: self.load(x, index))
        return x

    def argument(self, a: Any) -> Any:
        if isinstance(a, Lazy):
            return self.realise(a)
        return tuple(map(self.argument, a)) if isinstance(a, tuple) else a


def _same_layout(view: View, t: TensorType) -> bool:
    pairs = zip(t.shape, view.strides, t.strides, strict=True)
    return all(n == 1 or a == b for n, a, b in pairs)


def _detached(fake: fakes.Fake) -> fakes.Fake:
    """A dense tensor of the same type: what a computed view is to its own views."""
    return fakes.new(fake.shape, fake.dtype, fake.device)


def lower(graph: Graph) -> Program:
    """The program of a graph of primitives."""
    return Lowering(graph).run()
