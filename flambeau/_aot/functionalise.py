"""Mutation and views out of a captured graph: the graph run over fakes at the primitive level.

What the rest of the world could see of them goes into the `Metadata`: which inputs change, which
outputs share memory with an input or with each other.
"""

from __future__ import annotations

from typing import Any

import flambeau

from .._ir.graph import Block, Graph, Node, TensorType, Value, copied, dim
from .._ir.symexpr import Expr
from .._ir.symscalar import FloatExpr, SymFloat
from .._ir.targets import resolve, updated
from .._trace.fake import Fake, of_type, plain, repeats, symbolic, views_of
from .._trace.functional import NotFunctional, PrimitiveRecorder
from .._trace.interp import NUMBERS, wrapped
from .._trace.record import fakes_of
from .metadata import Alias, Metadata


def functionalise(graph: Graph, requires_grad: list[bool]) -> tuple[PrimitiveRecorder, Metadata]:
    """The functional graph under construction, its results set, and what it leaves out."""
    recorder = PrimitiveRecorder(graph.env)
    locate = graph.env.locate
    values: dict[Value, Any] = {}
    inputs: list[Any] = []
    for v, wanted in zip(graph.inputs, requires_grad, strict=True):
        if isinstance(v.type, TensorType):
            x: Any = recorder.input(of_type(v.type, graph.env))
            x.requires_grad = wanted
        else:
            x = recorder.builder.input(v.type)
        values[v] = x
        inputs.append(x)
    try:
        for node in graph.nodes:
            _run(recorder, node, values)
    finally:
        graph.env.locate = locate
    recorder.grad = True
    recorder.graph.attached = graph.attached
    return recorder, _describe(recorder, graph, inputs, values)


def _run(recorder: PrimitiveRecorder, node: Node, values: dict[Value, Any]) -> None:
    where = node.where
    recorder.env.locate = lambda: where
    recorder.grad = node.grad
    if node.rule is not None:
        _custom(recorder, node, values)
        return
    target = resolve(node.target)
    args = [_argument(recorder, a, values) for a in node.args]
    for k, p in enumerate(target.op.params):  # a number may stand where a tensor is expected
        if p.type.base == "Tensor" and isinstance(args[k], NUMBERS):
            args[k] = wrapped(args[k])
    written: list[Any] = []  # what an entry changes besides giving results, as it is then
    with flambeau.set_grad_enabled(node.grad):  # composites ask for it
        if target.form == "new" and target.op.updates:
            for k in updated(target.op, args):
                args[k] = _copy(recorder, args[k])
                written.append(args[k])
            result = recorder.call(target.op, False, args)
        elif target.form == "new":
            result = recorder.mutate(target.op, [_copy(recorder, args[0]), *args[1:]])
        else:
            result = recorder.call(target.op, target.form == "inplace", args)
    results = [*fakes_of(result), *written]
    if node.outs and not results:
        results = [result]
    values.update(zip(node.outs, results, strict=True))


def _custom(recorder: PrimitiveRecorder, node: Node, values: dict[Value, Any]) -> None:
    """A derivative of its own, which the joint graph will follow."""
    made = [_argument(recorder, a, values) for a in node.args]
    results = [Fake(x.dtype, x.shape, x.strides, x.device) for x in made[0]]
    for r in results:
        r.requires_grad = True
    recorder.add(node.target, made, results)
    recorder.graph.nodes[-1].blocks = (copied(node.blocks[0], recorder.builder.value),)
    values.update(zip(node.outs, results, strict=True))


def run_rule(recorder: PrimitiveRecorder, rule: Block, inputs: list[Any]) -> list[Any]:
    """What a rule makes of tensors; None where it gives no cotangent."""
    values: dict[Value, Any] = dict(zip(rule.inputs, inputs, strict=True))
    for node in rule.nodes:
        _run(recorder, node, values)
    return [None if v is None else values[v] for v in rule.outputs]


def _copy(recorder: PrimitiveRecorder, x: Fake) -> Fake:
    made = Fake(x.dtype, x.shape, x.strides, x.device)
    made.value = recorder.read(x)
    return made


def _argument(recorder: PrimitiveRecorder, a: Any, values: dict[Value, Any]) -> Any:
    if isinstance(a, Value):
        return values[a]
    if isinstance(a, tuple):
        return [_argument(recorder, x, values) for x in a]
    if isinstance(a, Expr):
        return symbolic(a, recorder.env)
    return SymFloat(a, recorder.env) if isinstance(a, FloatExpr) else a


def _describe(
    recorder: PrimitiveRecorder, graph: Graph, inputs: list[Any], values: dict[Value, Any]
) -> Metadata:
    """Results of the functional graph, and how the outputs are made of them."""
    meta = Metadata()
    results: list[Fake] = []
    for i, x in enumerate(inputs):
        if isinstance(x, Fake) and x.memory.version:
            meta.mutated.append(i)
            if not x.memory.late:
                meta.at_once.add(i)
            results.append(x)
    tensors = [x for a in graph.outputs for x in fakes_of(_nested(a, values))]
    of_memory: dict[int, list[Fake]] = {}
    for x in tensors:
        of_memory.setdefault(id(x.memory), []).append(x)
    bases = {id(x.memory): i for i, x in enumerate(inputs) if isinstance(x, Fake)}
    if any(map(_history_apart, tensors)):
        raise NotFunctional("a detached view with a history of its own is a result")

    def place(x: Fake) -> int:
        for i, r in enumerate(results):
            if r is x and i >= len(meta.mutated):
                return i
        results.append(x)
        return len(results) - 1

    def output(a: Any) -> Any:
        if isinstance(a, tuple):
            return tuple(map(output, a))
        x = values[a] if isinstance(a, Value) else a
        if not isinstance(x, Fake):
            return x
        if id(x.memory) in bases:
            i = bases[id(x.memory)]
            return _alias(x, "input", i, inputs[i])
        if len({id(y) for y in of_memory[id(x.memory)]}) > 1:
            base = x.memory.base
            return _alias(x, "result", place(base), base)
        return Alias("result", place(x), True)

    meta.outputs = tuple(map(output, graph.outputs))
    meta.results = len(results)
    given = [x.memory.quiet for x in results[: len(meta.mutated)]]  # written back without history
    values_of_results = [recorder.read(x) for x in results]
    values_of_results[: len(given)] = [
        v if q is None else q for q, v in zip(given, values_of_results, strict=False)
    ]
    recorder.graph.outputs = tuple(values_of_results)
    return meta


def _history_apart(x: Fake) -> bool:
    """A view whose history is not that of the memory it lies in."""
    return x.requires_grad and not all(made.grad for _, made in views_of(x))


def _follows(x: Fake) -> bool:
    """Whether a view has the history of its base, even one that the base got after it was made.

    Raises:
        NotFunctional: it was made without gradients, of memory that was changed: eager makes it
            again, with them, when somebody looks.
    """
    for _, made in views_of(x):
        if not made.op.option("differentiable", True):
            return False
        if not made.grad:
            if x.memory.version:
                raise NotFunctional("a view made without gradients shows memory that has got some")
            return False
    return True


def _made_at_once(x: Fake, base: Fake) -> bool:
    """Whether one `as_strided` of the base has the derivative that a chain of views has.

    It follows places in memory. A chain tells elements of the base apart that have one place, and
    drops what an `as_strided` within it shows of memory that the view below does not.
    """
    if repeats(base):
        return False
    return not any(
        made.op.name == "as_strided" and made.below is not base for _, made in views_of(x)
    )


def _nested(a: Any, values: dict[Value, Any]) -> Any:
    if isinstance(a, tuple):
        return [_nested(x, values) for x in a]
    return values[a] if isinstance(a, Value) else a


def _alias(x: Fake, source: str, index: int, base: Fake) -> Alias:
    if x is base:
        return Alias(source, index, True)
    shape, strides = (tuple(map(plain, s)) for s in (x.shape, x.strides))
    offset = plain(x.offset - base.offset)
    wants = x.requires_grad or (base.requires_grad and _follows(x))
    if wants and not _made_at_once(x, base):
        raise NotFunctional("a result is a view whose gradients depend on how it was made")
    detached = base.requires_grad and not wants
    return Alias(source, index, False, x.dtype, shape, strides, dim(offset), detached)
