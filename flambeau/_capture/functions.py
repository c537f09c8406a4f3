"""`autograd.Function` in a followed program: forward is recorded as if no gradient were wanted,
backward into a graph of its own, and a node ties the two, see Note [Derivatives of their own].

Backward is followed when forward is, so it must compute from what it is given: one that changes
something of the program or draws random numbers ends the graph.
"""

from __future__ import annotations

from typing import Any

import flambeau
from flambeau import _C
from flambeau._ir.graph import CUSTOM, Block, Node, TensorType, Value, copied, values_of
from flambeau._ir.targets import resolve
from flambeau._trace.fake import Fake
from flambeau._trace.record import is_inexact

from . import kinds, objects
from .errors import Break, Raised
from .interpreter import Frame


class Context:
    """What a function is given as ctx. The program follows its methods."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()
        self.dirty: tuple[Any, ...] = ()
        self.without_gradient: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for backward."""
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Kept for jvp, which graphs have not."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Noted, and refused."""
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Noted."""
        self.without_gradient = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Cotangents always exist in graphs."""


def apply(f: Frame, cls: Any, setup: Any, args: Any) -> Any:
    """`cls.apply(*args)`"""
    asked = [kinds.is_tensor(a) and a.requires_grad for a in args]
    recorded = flambeau.is_grad_enabled() and any(asked)
    if recorded and not getattr(cls, "_backward_is_known", True):
        raise Break("a module with hooks on its gradients")
    context = f.shadow_state.create(Context(tuple(asked)))
    forward = objects.load_attr(f, cls, "forward")
    if setup is None:
        out = _quietly(f, forward, [context, *args])
    else:
        out = _quietly(f, forward, list(args))
        _quietly(f, objects.load_attr(f, cls, "setup_context"), [context, tuple(args), out])
    if context.dirty:
        raise Break(f"{cls.__qualname__} changes its inputs in place")
    if not recorded:
        return out
    outs = out if isinstance(out, tuple) else (out,)
    made = _with_derivative(f, cls, context, outs, args)
    return made if isinstance(out, tuple) else made[0]


def _quietly(f: Frame, function: Any, args: list[Any]) -> Any:
    """A call without gradients, as functions make them."""
    before = flambeau.is_grad_enabled()
    _C._set_grad_enabled(False)
    try:
        return f.call(function, args, {})
    finally:
        _C._set_grad_enabled(before)


def _with_derivative(f: Frame, cls: Any, context: Context, outs: Any, args: Any) -> tuple[Any, ...]:
    """The results of forward with the derivative that backward gives."""
    session, recorder = f.interpreter.tensors.session, f.interpreter.tensors.recorder
    plain = {id(t) for t in context.without_gradient}
    found = [x for x in outs if kinds.is_tensor(x) and is_inexact(x.dtype) and id(x) not in plain]
    own = list({id(x): x for x in found}.values())
    if not own:
        return tuple(outs)
    cotangents = {id(x): _cotangent(session, x) for x in own}
    nodes, grads = _backward(f, cls, context, outs, cotangents, len(args))
    wanted: list[Any] = []
    results: list[Any] = []
    for a, g in zip(args, grads, strict=True):
        if not (kinds.is_tensor(a) and a.requires_grad):
            continue
        if not (g is None or kinds.is_tensor(g)):
            raise Break(f"{cls.__qualname__}.backward gives {kinds.describe(g)}")
        wanted.append(a)
        results.append(None if g is None else recorder.read(session.fake(g)))
    tangents = tuple(recorder.read(session.fake(t)) for t in cotangents.values())
    rule = _rule(cls, nodes, tangents, tuple(results))
    given = rule.inputs[: len(rule.inputs) - len(tangents)]
    made = [session.fake(x) for x in own]
    copies = [Fake(x.dtype, x.shape, x.strides, x.device) for x in made]
    of_program = (tuple(map(recorder.read, (session.fake(x) for x in xs))) for xs in (own, wanted))
    types = tuple(x.type for x in copies)
    node = recorder.builder.add(CUSTOM, (*of_program, given), types, recorder.env.locate(), True)
    node.blocks = (copied(rule, recorder.builder.value),)
    for x, v in zip(copies, node.outs, strict=True):
        x.value = v
    shown: dict[int, Any] = {}
    for x, copy in zip(own, copies, strict=True):
        copy.requires_grad = True
        shown[id(x)] = session.shown(copy)
    return tuple(shown.get(id(x), x) for x in outs)


def _cotangent(session: Any, x: Any) -> Any:
    """A tensor that stands for the gradient of a result."""
    like = session.fake(x)
    made = Fake(like.dtype, like.shape, like.strides, like.device)
    made.value = session.recorder.builder.value(made.type)
    return session.shown(made)


def _backward(
    f: Frame, cls: Any, context: Context, outs: Any, cotangents: dict[int, Any], count: int
) -> tuple[list[Node], list[Any]]:
    """The nodes that backward records, taken out of the graph again, and its gradients."""
    tensors = f.interpreter.tensors
    nodes = tensors.graph.nodes
    start, before = len(nodes), f.shadow_state.changes()
    given = [cotangents[id(x)] if id(x) in cotangents else _nothing(f, x) for x in outs]
    name = "backward"
    if cls.vjp is not flambeau.autograd.Function.vjp:
        name = "vjp"
    tensors.backwards += 1
    try:
        out = f.call(objects.load_attr(f, cls, name), [context, *given], {})
    except Raised as raised:
        error = raised.error
        raise Break(f"{cls.__qualname__}.{name}: {type(error).__name__}: {error}") from None
    finally:
        tensors.backwards -= 1
    if f.shadow_state.changes() != before:
        raise Break(f"{cls.__qualname__}.{name} changes more than what it returns")
    grads = list(out) if isinstance(out, (tuple, list)) else [out]
    if any(g is not None for g in grads[count:]) or len(grads) < count:
        raise Break(f"{cls.__qualname__}.{name} gives {len(grads)} gradients for {count} inputs")
    taken = nodes[start:]
    del nodes[start:]
    return taken, grads[:count]


def _nothing(f: Frame, x: Any) -> Any:
    """What backward is given for a result that has no gradient."""
    if not kinds.is_tensor(x):
        return None
    return f.interpreter.direct(flambeau.zeros_like, x)


def _rule(
    cls: Any, nodes: list[Node], tangents: tuple[Value, ...], results: tuple[Any, ...]
) -> Block:
    """The block of a backward; what it takes from the program are its first inputs."""
    inside = {*tangents, *(v for n in nodes for v in n.outs)}
    free: dict[Value, None] = {}
    for n in nodes:
        target = None if n.rule is not None else resolve(n.target)
        if target is not None and target.draws:
            raise Break(f"{cls.__qualname__}.backward draws random numbers")
        changes = target is not None and target.mutates
        if changes and next(values_of(n.args)) not in inside - set(tangents):
            raise Break(f"{cls.__qualname__}.backward changes a tensor in place")
        free.update((v, None) for v in n.inputs if v not in inside)
    free.update((v, None) for v in values_of(results) if v not in inside)
    if not all(isinstance(v.type, TensorType) for v in free):
        raise Break(f"{cls.__qualname__}.backward takes a number that varies")
    return Block((*free, *tangents), nodes, results)
