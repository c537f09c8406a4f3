"""Operators that programs add (`flambeau.library`) in a followed program.

One whose kernel stands for operations is followed, one with an autograd kernel is followed into
that, and what is left is a node: what the operator returns without data says its fake, and what it
computes its kernel says when the graph runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import _C
from flambeau._library.operators import OpOverload, OpOverloadPacket
from flambeau._library.schemas import Argument

from . import kinds, objects
from .builtin_calls import means
from .errors import Break, Raised
from .interpreter import Frame


def _wants_gradients(values: Sequence[Any]) -> bool:
    if not flambeau.is_grad_enabled():
        return False
    flat = [t for v in values for t in (v if isinstance(v, (list, tuple)) else (v,))]
    return any(kinds.is_tensor(t) and t.requires_grad for t in flat)


def _bound(op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    try:
        return op.bind(args, kwargs)
    except TypeError as e:
        raise Raised(e) from None


@means(OpOverload.__call__)
def call(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`op(*args)`"""
    op: OpOverload = args[0]
    objects.load_attr(f, op, "_identity")
    values = _bound(op, args[1:], kwargs)
    if _C.is_autocast_enabled("cpu"):
        autocast = objects.load_attr(f, op, "_autocast")
        if autocast is not None:
            return _cast(f, op, autocast, values)
    autograd = objects.load_attr(f, op, "_autograd")
    if autograd is not None and (not op._when_recording or _wants_gradients(values)):
        positional, named = op.spread(values)
        return f.call(autograd, list(positional), named)
    return _below(f, op, values)


def _cast(f: Frame, op: OpOverload, autocast: Any, values: Sequence[Any]) -> Any:
    """A kernel for autocast, which runs with autocast off."""
    positional, named = op.spread(values)
    _C.set_autocast_enabled("cpu", False)
    try:
        return f.call(autocast, list(positional), named)
    finally:
        _C.set_autocast_enabled("cpu", True)


@means(OpOverload.below_autograd)
def below_autograd(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`op.below_autograd(*values)`"""
    objects.load_attr(f, args[0], "_identity")
    return _below(f, args[0], args[1:])


# Note [Once]
# An operator without a derivative may stand in the backward of another: eager runs that without
# gradients, unless the gradients are to be differentiated, which is then refused. So a backward
# that is followed takes it as it is, and whoever differentiates the graph twice is refused there.


def _below(f: Frame, op: OpOverload, values: Sequence[Any]) -> Any:
    positional, named = op.spread(values)
    composite = objects.load_attr(f, op, "_composite")
    kernels = any(_C._op_has_kernel(op._uid, kind) for kind in ("CPU", "AnyDevice"))
    if composite is not None and not kernels:
        return f.call(composite, list(positional), named)
    if not kernels and _C._op_has_kernel(op._uid, "Composite"):
        raise Break(f"the operator {op._uid} is made of operations in C++, which are not followed")
    if not kernels:
        raise Break(f"the operator {op._uid} has no kernel for the CPU")
    objects.load_attr(f, op, "_fake")
    schema = op._schema
    own = [r for r in schema.returns if r.alias_info is None]
    if op._autograd is None and _C._op_has_kernel(op._uid, "Autograd"):
        raise Break(f"the derivative of the operator {op._uid} is not Python's")
    wants = _wants_gradients(values) and not f.interpreter.tensors.backwards  # see Note [Once]
    if wants and (own or not op._opaque):
        raise Break(
            f"the operator {op._uid} has no derivative, and an argument requires gradients; give "
            "it one with torch.library.register_autograd"
        )
    before = flambeau.is_grad_enabled()
    _C._set_grad_enabled(False)
    try:
        out = f.interpreter.vouched(op._call, list(positional), named)
    finally:
        _C._set_grad_enabled(before)
    if len(own) < len(schema.returns):
        found = [
            x if r.alias_info is None else _written(op, r, values)
            for x, r in zip(out if isinstance(out, tuple) else (out,), schema.returns, strict=True)
        ]
        return tuple(found) if isinstance(out, tuple) else found[0]
    of_list = len(own) == 1 and own[0].type.text == "Tensor[]"
    return f.shadow_state.create(list(out)) if of_list else out


def _written(op: OpOverload, result: Argument, values: Sequence[Any]) -> Any:
    """The argument that a result is."""
    for a, value in zip(op._schema.arguments, values, strict=True):
        if a.is_write and a.alias_info == result.alias_info and kinds.is_tensor(value):
            return value
    raise Break(f"the operator {op._uid} returns views of its arguments")


@means(OpOverloadPacket.__call__)
def call_packet(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`torch.ops.space.name(*args)`"""
    packet: OpOverloadPacket = args[0]
    objects.load_attr(f, packet, "_qualified_op_name")
    if packet._function is not None:
        return f.call(packet._function, args[1:], kwargs)
    names = packet.overloads()
    for name in names:
        getattr(packet, name)  # is there from now on, and is guarded when it is read
        overload = objects.load_attr(f, packet, name)
        try:
            return call(f, [overload, *args[1:]], kwargs)
        except Raised as raised:
            if name == names[-1] or not isinstance(raised.error, TypeError):
                raise
    raise Break(f"the operator {packet} has no overload")


@means(OpOverloadPacket.__getattr__)
def attribute(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`torch.ops.space.name.overload`"""
    try:
        return getattr(args[0], args[1])
    except AttributeError as e:
        raise Raised(e) from None
