"""The backward of a functional graph: the table's derivative rules run over it in reverse.

The recorder of the forward graph goes on recording, so that what rules change in place is
functional too. Cotangents arrive in the broadcast shape and the computed type; they are made to
conform to what they belong to, as the engine of eager does it.
"""

from __future__ import annotations

from typing import Any

import flambeau

from .._ir.graph import Graph, Node, TensorType, Value, values_of
from .._ir.targets import resolve
from .._table.entries import record
from .._trace import geometry, table
from .._trace.dtypes import result_type
from .._trace.fake import Fake, of_type
from .._trace.functional import PrimitiveRecorder
from .._trace.interp import NUMBERS, Interpreter, wrapped
from .._trace.pointwise import computed_dtype, operands
from .._trace.record import is_inexact
from .._trace.session import default
from .functionalise import _argument, run_rule

_HALF = (flambeau.float16, flambeau.bfloat16)


def active_values(graph: Graph, requires_grad: list[bool]) -> set[Value]:
    """Values through which gradients flow to the inputs that want them."""
    active = {
        v
        for v, wanted in zip(graph.inputs, requires_grad, strict=True)
        if wanted and isinstance(v.type, TensorType)
    }
    for node in graph.nodes:
        if node.rule is not None:
            if any(v in active for v in node.args[1]):
                active.update(node.outs)
            continue
        op = resolve(node.target).op
        if not node.grad or not any(v in active for v in node.inputs):
            continue
        if table.vjp(op.uid) is None:
            if op.option("differentiable", True) and op.kind == "structured":
                _refuse(node)
            continue
        given = tuple(node.args[k] for k in table.differentiable(op.uid))
        if not any(v in active for v in values_of(given)):
            continue
        own = node.outs if op.outputs[0].is_list else node.outs[: len(op.outputs)]
        active.update(v for v in own if is_inexact(v.dtype))
    return active


def _refuse(node: Node) -> None:
    """An entry without rule is constant where no result can have a gradient."""
    if any(is_inexact(v.dtype) for v in node.outs):
        name = resolve(node.target).op.name
        kernel = resolve(node.target).op.option("kernel")
        if kernel != "nothing":
            raise NotImplementedError(f"derivative for {name} is not implemented ({node.where})")


def _dense(x: Fake) -> Fake:
    """A cotangent has memory for each of its elements, as an expanded result has not."""
    x.strides = geometry.empty_like_strides(x.shape, x.strides)
    return x


class Backward:
    """Cotangents by value, accumulated as nodes of the graph."""

    def __init__(self, recorder: PrimitiveRecorder, active: set[Value], again: bool) -> None:
        self.recorder, self.again = recorder, again
        self.active = active
        self.total: dict[Value, Fake] = {}
        self.fakes: dict[Value, Fake] = {}

    def fake(self, v: Value) -> Fake:
        """A fake of a value, whose memory is its own."""
        if v not in self.fakes:
            assert isinstance(v.type, TensorType)
            x = of_type(v.type, self.recorder.env)
            x.value, x.requires_grad = v, v in self.active
            self.fakes[v] = x
        return self.fakes[v]

    def call(self, name: str, *args: Any) -> Any:
        """A call of an entry; parameters left out take their defaults."""
        entry = record(name)
        rest = [default(name, p.name) for p in entry.params[len(args) :]]
        return self.recorder.call(entry, False, [*args, *rest])

    def conformed(self, g: Fake, v: Value) -> Fake:
        """The cotangent in the shape and the type of its value."""
        like = self.fake(v)
        g = table.sum_to(self.recorder.call, g, like.shape)
        if g.dtype.is_complex and not like.dtype.is_complex:
            g = self.call("real", g)
        if not geometry.same(g.shape, like.shape):
            g = self.call("expand", g, list(like.shape), False)
        return g if g.dtype is like.dtype else self.call("to", g, like.dtype)

    def accumulate(self, v: Value, g: Fake | None) -> None:
        if g is None or v not in self.active:
            return
        if g.only_number:
            g = self.call("full", [], g.number, g.dtype, None)
        g = self.conformed(g, v)
        have = self.total.get(v)
        self.total[v] = g if have is None else self.call("add", have, g, 1)

    def zeros(self, v: Value) -> Fake:
        return self.call("zeros", list(self.fake(v).shape), v.dtype, v.type.device)  # type: ignore[union-attr]

    def node(self, node: Node) -> None:
        """Adds the cotangents of what a node takes."""
        got = [self.total.get(v) for v in node.outs]
        wanted = [v for v in node.inputs if v in self.active]
        if not wanted or all(g is None for g in got) or not node.grad:
            return
        if node.rule is not None:
            self.custom(node, got)
            return
        op = resolve(node.target).op
        rule = table.vjp(op.uid)
        if rule is None:
            return
        where = node.where
        self.recorder.env.locate = lambda: where
        is_list = len(op.outputs) == 1 and op.outputs[0].is_list
        values = [self.value(p, node, got, is_list, rule.undefined) for p in rule.params]
        half = None
        if op.kind == "pointwise":
            values, half = self.widened(self.typed(node, values))
        with flambeau.set_grad_enabled(self.again):  # rules ask for it
            made = Interpreter(self.recorder.call).run(rule.function, values)
        if half is not None:
            made = [g if g is None else self.call("to", g, half) for g in made]
        for slot, g in zip(rule.slots, made, strict=True):
            arg = node.args[slot]
            if isinstance(arg, Value):
                self.accumulate(arg, g)
            elif isinstance(arg, tuple) and g is not None:
                for v, part in zip(arg, g, strict=True):
                    if isinstance(v, Value):
                        self.accumulate(v, part)

    def typed(self, node: Node, values: list[Any]) -> list[Any]:
        """Numbers in the place of tensors in the type that eager's kernel computes in: `1 - w` of a
        number would else have the default one."""
        if not any(isinstance(x, Fake) and x.only_number for x in values):
            return values
        op = resolve(node.target).op
        computed = computed_dtype(op, operands(op, [self.argument(a) for a in node.args]))
        computed = flambeau.float32 if computed in _HALF else computed

        def made(x: Fake) -> Fake:
            t: Fake = self.call("full", [], x.number, computed, None)
            t.number, t.typed = x.number, True  # rules may ask which number it is
            return t

        return [made(x) if isinstance(x, Fake) and x.only_number else x for x in values]

    def widened(self, values: list[Any]) -> tuple[list[Any], Any]:
        """Half formats as float32, and the one that the cotangents are rounded to, if any.

        Eager's kernel for the derivative of a pointwise entry rounds once, at its end.
        """
        given = [x for x in values if isinstance(x, Fake)]
        if not any(x.dtype in _HALF for x in given):
            return values, None
        common = result_type(*given)
        wide = [
            self.call("to", x, flambeau.float32)
            if isinstance(x, Fake) and x.dtype in _HALF and not x.wrapped
            else x
            for x in values
        ]
        return wide, common if common in _HALF else None

    def custom(self, node: Node, got: list[Fake | None]) -> None:
        """See Note [Derivatives of their own]."""
        assert node.rule is not None
        _, wanted, given = node.args
        cotangents = [g or self.zeros(v) for g, v in zip(got, node.outs, strict=True)]
        made = run_rule(self.recorder, node.rule, [*map(self.fake, given), *cotangents])
        self.recorder.grad = True
        for v, g in zip(wanted, made, strict=True):
            self.accumulate(v, g)

    def value(
        self, p: Any, node: Node, got: list[Fake | None], is_list: bool, undefined: bool
    ) -> Any:
        """What a parameter of a rule stands for at this node."""
        if p.kind == "input":
            given = self.argument(node.args[p.index])
            kind = resolve(node.target).op.params[p.index].type.base
            return wrapped(given) if kind == "Tensor" and isinstance(given, NUMBERS) else given
        if p.kind == "result":
            return [self.fake(v) for v in node.outs] if is_list else self.fake(node.outs[p.index])
        if is_list:
            return [g or self.zeros(v) for g, v in zip(got, node.outs, strict=True)]
        g = got[p.index]
        return g if g is not None or undefined else self.zeros(node.outs[p.index])

    def argument(self, a: Any) -> Any:
        if isinstance(a, Value):
            return self.fake(a)
        if isinstance(a, tuple):
            return [self.argument(x) for x in a]
        return _argument(self.recorder, a, {})


def differentiate(
    recorder: PrimitiveRecorder, active: set[Value], results: list[Value], again: bool = False
) -> tuple[list[int], dict[Value, Fake]]:
    """Extends the graph by its backward.

    Args:
        again: what is recorded will be differentiated.

    Returns:
        Which of the results have a cotangent (new inputs of the graph, in that order), and the
        cotangents of all active values.
    """
    backward = Backward(recorder, active, again)
    differentiable = [i for i, v in enumerate(results) if v in active]
    forward = list(recorder.graph.nodes)
    locate = recorder.env.locate
    recorder.grad = True
    for i in differentiable:
        v = results[i]
        assert isinstance(v.type, TensorType)
        cotangent = recorder.input(_dense(of_type(v.type, recorder.env)))
        cotangent.requires_grad = again
        backward.accumulate(v, cotangent)
    try:
        for node in reversed(forward):
            backward.node(node)
    finally:
        recorder.env.locate = locate
    return differentiable, backward.total
