"""Typing of rules: what the names in a `@op.vjp`, `@op.jvp` or `@op.vmap` stand for, and what it
must return.

Parameter names choose what is saved: parameters of the operation by name, `result` or `result0`,
`result1`…, cotangents `g` or `g0`, `g1`…, tangents `NAME_t`. A batching rule takes parameters by
name, those that are batched with the batch in front, `NAME_b` (is it batched?) and `batch` (its
size).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .._ir.coerce import convert, cost
from .._ir.errors import CompileError
from .._ir.expr import Lookup
from .._ir.frontend import FunctionTyper
from .._ir.graph import Function
from .._ir.reading import Reading
from .._ir.typed import Expr
from .._ir.types import BOOL, INT, TENSOR, Param, Type
from .model import Op, Rule

_RESERVED = re.compile(r"(g|result)(\d*)$")


@dataclass
class RuleParam:
    """What one parameter of a rule stands for."""

    name: str
    kind: str  # grad | result | input | tangent | batched | batch
    index: int  # output number, or position among the op's parameters
    type: Type


def grad_type(t: Type) -> Type:
    """Type of the cotangent of a parameter of type `t`, as a rule returns it."""
    return Type("Tensors", True) if t.base in ("Tensors", "OptTensors") else TENSOR.or_none()


def _value_type(t: Type) -> Type:
    return Type("Tensors") if t.base in ("Tensors", "OptTensors") else TENSOR


def rule_param(op: Op, p: Param, undefined: bool, file: str, node: ast.AST) -> RuleParam:
    """Meaning of the rule's parameter `p`."""
    names = [q.name for q in op.params]
    if p.name in names:
        if _RESERVED.match(p.name):
            raise CompileError(
                f"{op.name}: its parameter {p.name!r} hides what {p.name!r} means in a rule; "
                "rename it", file, node,
            )  # fmt: skip
        i = names.index(p.name)
        return RuleParam(p.name, "input", i, op.params[i].type.plain())
    if p.name.endswith("_t") and p.name[:-2] in names:
        i = names.index(p.name[:-2])
        return RuleParam(p.name, "tangent", i, _value_type(op.params[i].type))
    match = _RESERVED.match(p.name)
    if match is None:
        raise CompileError(
            f"{op.name}: rule parameter {p.name!r} is no parameter of the operation, no result and "
            f"no cotangent; known are {', '.join([*names, 'result', 'g'])}", file, node,
        )  # fmt: skip
    i = int(match[2] or 0)
    if i >= len(op.outputs) or (match[2] and len(op.outputs) == 1):
        raise CompileError(f"{op.name} has {len(op.outputs)} results; no {p.name!r}", file, node)
    if match[2] == "" and len(op.outputs) > 1:
        raise CompileError(f"{op.name} has several results; write {p.name}0, {p.name}1", file, node)
    kind = "grad" if match[1] == "g" else "result"
    t = op.outputs[i].plain() if kind == "result" else _value_type(op.outputs[i])
    if kind == "grad" and undefined:
        t = t.or_none()
    return RuleParam(p.name, kind, i, t)


def batching_param(op: Op, p: Param, file: str, node: ast.AST) -> RuleParam:
    """Meaning of the parameter `p` of a batching rule."""
    names = [q.name for q in op.params]
    if p.name in names:
        i = names.index(p.name)
        return RuleParam(p.name, "input", i, op.params[i].type.plain())
    if p.name.endswith("_b") and p.name[:-2] in names:
        return RuleParam(p.name, "batched", names.index(p.name[:-2]), BOOL)
    if p.name == "batch":
        return RuleParam(p.name, "batch", 0, INT)
    known = ", ".join([*names, *(f"{q.name}_b" for q in op.tensor_params), "batch"])
    message = f"{op.name}: unknown parameter {p.name!r} of a batching rule; known are {known}"
    raise CompileError(message, file, node)


class RuleTyper(FunctionTyper):
    """Types a rule: `return` gives one value for each slot, or a call that gives them all."""

    slots: list[Type]

    def _stmt_return(self, node: ast.Return) -> None:
        if node.value is None:
            self.fail("a rule returns one value for each tensor parameter", node)
        value = self.expr(node.value)
        if len(self.slots) == 1 and value.op != "tuple":
            value = self.make(node, "tuple", (value,), Type("Tuple", items=(value.type,)))
        if value.op == "tuple":
            value = self._slots_of(node, value)
        else:
            self._check_slots(node, value)
        self.effect("return", node, self.out.place(value))

    def _check_slots(self, node: ast.Return, value: Expr) -> None:
        items = value.type.items
        fits = (
            value.type.base == "Tuple" and len(items) == len(self.slots) and not value.type.optional
        )
        if not fits or any(
            a.required() != b.required() for a, b in zip(items, self.slots, strict=False)
        ):
            want = ", ".join(map(str, self.slots))
            self.fail(f"return: expected ({want}), got {value.type}", node)

    def _slots_of(self, node: ast.Return, value: Expr) -> Expr:
        if len(value.args) != len(self.slots):
            self.fail(
                f"return: expected {len(self.slots)} values, one for each tensor parameter, "
                f"got {len(value.args)}", node,
            )  # fmt: skip
        items = []
        for i, (e, t) in enumerate(zip(value.args, self.slots, strict=True)):
            if cost(e, t) is None:
                self.fail(f"return: value {i}: expected {t}, got {e.type}", node)
            items.append(convert(e, t))
        return self.make(node, "tuple", items, Type("Tuple", items=tuple(e.type for e in items)))


def compile_rule(
    op: Op,
    rule: Rule,
    slots: Sequence[Type],
    lookup: Lookup,
    constants: Mapping[str, ast.expr],
    batching: bool = False,
) -> tuple[Function, list[RuleParam]]:
    """IR of a rule whose `return` fills `slots`, and what its parameters stand for."""
    undefined = bool(rule.options.get("undefined"))
    if batching:
        meanings = [batching_param(op, p, op.file, rule.node) for p in rule.params]
    else:
        meanings = [rule_param(op, p, undefined, op.file, rule.node) for p in rule.params]
    params = [Param(m.name, m.type) for m in meanings]
    returns = Type("Tuple", items=tuple(slots))
    typer = RuleTyper(rule.node, params, returns, op.file, lookup, constants)
    typer.slots = list(slots)
    # Cotangents are there anyway; other tensors would have to be saved for their device.
    grads = [p for p, m in zip(params, meanings, strict=True) if m.kind == "grad"]
    typer.place_by(grads or params)
    return typer.compile(), meanings


def never(f: Function, slot: int) -> bool:
    """The rule returns None for `slot` on every path: that parameter is not differentiable."""
    read = Reading(f)
    given = [read.made_by(n.args[0], "core.tuple") for n in f.walk() if n.target == "return"]
    return all(t is not None and t.args[slot] is None for t in given)
