"""What every graph must be, and what each stage allows. Every pass is held to `verify`.

captured    any entry, in-place forms too
functional  no node changes anything
primitive   besides, only entries of the kinds pointwise, view and structured
"""

from __future__ import annotations

import os
from typing import Any

import flambeau

from .graph import (
    CUSTOM,
    Graph,
    Node,
    ScalarType,
    TensorType,
    Value,
    show_node,
    show_type,
    values_of,
)
from .symbols import ShapeEnv
from .symexpr import Expr
from .symscalar import FloatExpr
from .targets import Entry, resolve, updated
from .types import Type

LEVELS = ("captured", "functional", "primitive")


class GraphError(AssertionError):
    """A pass made a graph that is none."""


def verify(graph: Graph, level: str = "captured") -> Graph:
    """The graph, when it is one of this level.

    Raises:
        GraphError: what is wrong, with the node as text.
    """
    if level not in LEVELS:
        raise ValueError(f"verify: expected a level of {', '.join(LEVELS)}, got {level!r}")
    defined: set[Value] = set()
    ids: set[int] = set()
    for v in graph.inputs:
        _define(v, defined, ids, graph.env, "inputs")
    for node in graph.nodes:
        text = show_node(node)
        _uses(node.args, defined, text)
        if node.target == CUSTOM:
            _custom(node, text)
            for v in node.outs:
                _define(v, defined, ids, graph.env, text)
            continue
        op = _target(node, level, text)
        _arguments(op, node, graph.env, text)
        _results(op, node, updated(op, node.args) if node.target.endswith(".new") else [], text)
        for v in node.outs:
            _define(v, defined, ids, graph.env, text)
    _uses(graph.outputs, defined, "return")
    if len(graph.attached) > len(graph.inputs):
        raise GraphError("graph: more tensors attached than there are inputs")
    return graph


def checked(graph: Graph, level: str) -> Graph:
    """The graph, verified where FLAMBEAU_VERIFY asks for it, as the tests do: what the passes make
    is right by construction, and verifying costs about as much as making it."""
    return verify(graph, level) if os.environ.get("FLAMBEAU_VERIFY") else graph


def _define(v: Value, defined: set[Value], ids: set[int], env: ShapeEnv, text: str) -> None:
    if v in defined or v.id in ids:
        raise GraphError(f"graph: {v} is defined twice: {text}")
    defined.add(v)
    ids.add(v.id)
    if isinstance(v.type, ScalarType):
        if v.type.name not in ("int", "float", "bool"):
            raise GraphError(f"graph: {v} has the unknown type {v.type.name}")
        return
    if len(v.type.shape) != len(v.type.strides):
        raise GraphError(f"graph: {v}: as many strides as dims, got {show_type(v.type)}: {text}")
    for d in (*v.type.shape, *v.type.strides):
        _known(d, env, text)


def _known(d: object, env: ShapeEnv, text: str) -> None:
    if isinstance(d, (Expr, FloatExpr)):
        unknown = d.symbols - env.symbols.keys()
        if unknown:
            raise GraphError(f"graph: no symbol {', '.join(sorted(unknown))}: {text}")
        if isinstance(d, Expr) and d.constant is not None:
            raise GraphError(f"graph: the constant {d} is written as an expression: {text}")
    elif not isinstance(d, int) or isinstance(d, bool):
        raise GraphError(f"graph: a dim is an int or an expression, got {d!r}: {text}")


def _uses(args: tuple[Any, ...], defined: set[Value], text: str) -> None:
    for v in values_of(args):
        if v not in defined:
            raise GraphError(f"graph: {v} is used before it is defined: {text}")


def _custom(node: Node, text: str) -> None:
    """See Note [Derivatives of their own]."""
    rule = node.rule
    if rule is None:
        raise GraphError(f"graph: a derivative of its own without a rule: {text}")
    made, wanted, given = node.args
    if [v.type for v in made] != [v.type for v in node.outs]:
        raise GraphError(f"graph: the results are copies of other tensors: {text}")
    if len(rule.inputs) != len(given) + len(made) or len(rule.outputs) != len(wanted):
        raise GraphError(f"graph: the rule is one of other values: {text}")
    defined = set(rule.inputs)
    for n in rule.nodes:
        _uses(n.args, defined, text)
        defined.update(n.outs)
    _uses(rule.outputs, defined, text)


def _target(node: Node, level: str, text: str) -> Entry:
    try:
        target = resolve(node.target)
    except KeyError:
        raise GraphError(f"graph: the table has no entry {node.target}: {text}") from None
    op: Entry = target.op
    if len(node.args) != len(op.params):
        raise GraphError(
            f"graph: {op.uid} has {len(op.params)} parameters, got {len(node.args)}: {text}"
        )
    changes = target.mutates or (target.form != "new" and updated(op, node.args))
    if level != "captured" and changes:
        raise GraphError(f"graph: {node.target} changes its argument: {text}")
    if level == "primitive" and op.kind == "composite":
        raise GraphError(f"graph: {node.target} is composed of others: {text}")
    return op


def _arguments(op: Entry, node: Node, env: ShapeEnv, text: str) -> None:
    for p, a in zip(op.params, node.args, strict=True):
        if not _fits(p.type, a):
            raise GraphError(f"graph: {op.uid}: {p.name!r} is {p.type}, got {a!r}: {text}")
        for part in a if isinstance(a, tuple) else (a,):
            if isinstance(part, (Expr, FloatExpr)):
                _known(part, env, text)


def _is_tensor(a: object) -> bool:
    return isinstance(a, Value) and isinstance(a.type, TensorType)


def _is_scalar(a: object, *names: str) -> bool:
    return isinstance(a, Value) and isinstance(a.type, ScalarType) and a.type.name in names


def _is_int(a: object) -> bool:
    plain = isinstance(a, (int, Expr)) and not isinstance(a, bool)
    return plain or _is_scalar(a, "int")


def _is_number(a: object) -> bool:
    if isinstance(a, (int, float, complex, Expr, FloatExpr)):
        return True
    return _is_scalar(a, "int", "float", "bool")


def _fits(t: Type, a: object) -> bool:
    if a is None:
        return t.optional
    if t.is_list:
        return isinstance(a, tuple) and all(_fits(t.element, x) for x in a)
    match t.base:
        case "Tensor":  # a number stands for the 0-d tensor that it is wrapped in
            return _is_tensor(a) or _is_number(a)
        case "int":
            return _is_int(a)
        case "float":
            return _is_number(a) and not isinstance(a, complex)
        case "bool":
            return isinstance(a, bool) or _is_scalar(a, "bool")
        case "str":
            return isinstance(a, str)
        case "Number":
            return _is_number(a)
        case "DType":
            return isinstance(a, flambeau.dtype)
        case "Device":
            return isinstance(a, flambeau.device)
        case "Layout":
            return isinstance(a, flambeau.layout)
        case "MemoryFormat":
            return isinstance(a, flambeau.memory_format)
    return False


def _results(op: Entry, node: Node, changed: list[int], text: str) -> None:
    of_type = {"int": ScalarType, "float": ScalarType, "bool": ScalarType, "Number": ScalarType}
    outputs = op.outputs
    if len(outputs) == 1 and outputs[0].is_list:
        wanted = [TensorType] * len(node.outs)
    elif op.returns.base == "None":
        wanted = []
    else:
        wanted = [of_type.get(t.base, TensorType) for t in outputs]  # type: ignore[misc]
    wanted += [TensorType] * len(changed)  # the new values follow the results
    if [type(v.type) for v in node.outs] != wanted:
        raise GraphError(f"graph: {op.uid} gives {op.returns}: {text}")
