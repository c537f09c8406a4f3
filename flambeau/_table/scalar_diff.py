"""Symbolic differentiation of scalar graphs, backwards (cotangents) and forwards (tangents).

Follows PyTorch's convention for complex numbers: a cotangent passes through a holomorphic function
as `g * conj(f')`. Derivatives of primitives come from `flambeau/ops/scalar.py` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._ir.scalars import Scalar, walk
from ..ops.scalar import UNKNOWN, Primitive
from .scalar_expr import Graph, Reader


def _expression(g: Graph, source: str, node: Scalar, extra: Mapping[str, Scalar]) -> Scalar:
    """An expression of the table with a call's arguments for the formal ones."""
    primitive = g.primitives[node.op]
    names = dict(zip(primitive.args, node.args, strict=True))
    return Reader(g, {**names, "y": node, **extra}, "flambeau/ops/scalar.py").text(source)


def _reaches(roots: Sequence[Scalar], targets: Sequence[Scalar]) -> set[int]:
    """Nodes that depend on a target."""
    hit = {id(t) for t in targets}
    for n in walk(roots):
        if any(id(a) in hit for a in n.args):
            hit.add(id(n))
    return hit


def cotangents(
    g: Graph, outputs: Sequence[Scalar], seeds: Sequence[Scalar], inputs: Sequence[Scalar]
) -> list[Scalar | None]:
    """Cotangent of each input, from those of the outputs; None: no smooth path."""
    active = _reaches(outputs, inputs)
    total: dict[int, Scalar] = {}
    for out, seed in zip(outputs, seeds, strict=True):
        _accumulate(g, total, out, seed)
    for node in reversed(walk(outputs)):
        got = total.get(id(node))
        if got is None or not node.args or id(node) not in active:
            continue
        primitive = g.primitives[node.op]
        for i, arg in enumerate(node.args):
            if id(arg) not in active or arg.type == "bool":
                continue
            contribution = _pull(g, primitive, node, i, got)
            if contribution is not None and not contribution.is_const(0):
                if arg.type == "real" and contribution.type != "real":
                    contribution = g.call("real", contribution)
                _accumulate(g, total, arg, contribution)
    return [total.get(id(x)) for x in inputs]


def _pull(g: Graph, primitive: Primitive, node: Scalar, i: int, got: Scalar) -> Scalar | None:
    """What a cotangent of a node gives its argument i.

    A choice between a cotangent and 0 is made last: what the branch not taken would multiply it by
    may be infinite.
    """
    if got.op == "where" and any(a.is_const(0) for a in got.args[1:]):
        zero = g.const(0)
        parts = [
            zero if a.is_const(0) else _pull(g, primitive, node, i, a) or zero for a in got.args[1:]
        ]
        return g.call("where", got.args[0], *parts)
    explicit = primitive.vjp
    if explicit:
        source = explicit[i]
        return None if source is None else _expression(g, source, node, {"g": got})
    if node.op == "where":  # keeps infinities of the branch not taken out
        zero = g.const(0)
        taken = (got, zero) if i == 1 else (zero, got)
        return None if i == 0 else g.call("where", node.args[0], *taken)
    source = primitive.partials[i]
    if source is None:
        return None
    if source == UNKNOWN:
        return g.call("underivable", got)
    partial = _expression(g, source, node, {})
    if partial.is_const():
        return g.call("mul", got, partial)
    return g.call("mul", got, _conj(g, partial))


def _conj(g: Graph, x: Scalar) -> Scalar:
    """conj pushed down to where it costs least: products and quotients of real factors lose it."""
    if x.type in ("real", "bool"):
        return x
    if x.op in ("mul", "div", "neg", "add", "sub", "square"):
        return g.call(x.op, *(_conj(g, a) for a in x.args))
    if x.op == "where":
        return g.call("where", x.args[0], *(_conj(g, a) for a in x.args[1:]))
    return g.call("conj", x)


def _accumulate(g: Graph, total: dict[int, Scalar], node: Scalar, x: Scalar) -> None:
    have = total.get(id(node))
    total[id(node)] = x if have is None else g.call("add", have, x)


def tangents(
    g: Graph, outputs: Sequence[Scalar], given: Mapping[int, Scalar]
) -> list[Scalar | None]:
    """Tangents of the outputs; `given` maps id of an input node to its tangent."""
    of: dict[int, Scalar] = dict(given)
    for node in walk(outputs):
        if not node.args or id(node) in of:
            continue
        parts = [(i, of[id(a)]) for i, a in enumerate(node.args) if id(a) in of]
        if not parts:
            continue
        t = _push(g, node, parts)
        if t is not None and not t.is_const(0):
            of[id(node)] = t
    return [of.get(id(o)) for o in outputs]


def _push(g: Graph, node: Scalar, parts: list[tuple[int, Scalar]]) -> Scalar | None:
    primitive = g.primitives[node.op]
    if primitive.jvp:
        zero = g.const(0)
        have = dict(parts)
        extra = {"t": parts[0][1]}
        for i, name in enumerate(primitive.args):
            extra[f"{name}_t"] = have.get(i, zero)
        return _expression(g, primitive.jvp, node, extra)
    if node.op == "where":
        have = dict(parts)
        zero = g.const(0)
        return g.call("where", node.args[0], have.get(1, zero), have.get(2, zero))
    total: Scalar | None = None
    for i, t in parts:
        source = primitive.partials[i]
        if source is None:
            continue
        if source == UNKNOWN:
            term = g.call("underivable", t)
        else:
            term = g.call("mul", t, _expression(g, source, node, {}))
        total = term if total is None else g.call("add", total, term)
    return total
