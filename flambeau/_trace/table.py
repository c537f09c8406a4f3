"""The table run over fakes: entries compiled to typed IR on first use, and their results.

`evaluate` gives what a call of an entry gives, as fakes, and raises what it raises. Who records
what is not decided here: nested calls go to the function that is handed in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from .._ir.frontend import compile_function
from .._ir.graph import Function
from .._ir.graph_verify import checked
from .._ir.targets import resolve
from .._ir.types import INT, parse_params
from .._table.added import Added
from .._table.entries import file_constants, overloads, record
from .._table.facts import (
    SlotUses,
    body_returns,
    is_measured,
    is_metadata,
    makes_alias,
    tensor_slots,
)
from .._table.model import Op, Rule
from .._table.rules import RuleParam, compile_rule, grad_type, never
from . import geometry, meanings, pointwise, unbacked
from .dtypes import can_cast
from .fake import Fake
from .interp import Call, Interpreter
from .meanings import CORE

#: what gives the results of added operators; `added.py` puts it here
ADDED: list[Callable[[Added, list[Any]], Any]] = []


@cache
def body(uid: str) -> Function | None:
    """Typed IR of an entry's body; of a pointwise entry, its checks."""
    op = record(uid)
    if isinstance(op, Added):
        return None
    pointed = op.kind == "pointwise"
    node = pointwise.plan(uid).selector if pointed else op.node
    if node is None:
        return None
    returns = INT if pointed else body_returns(op)
    constants = file_constants(op.file)
    placed = not pointed
    made = compile_function(node, op.params, returns, op.file, overloads, constants, placed)
    return checked(made, "table")


@dataclass
class VjpRule:
    """A derivative rule: its function, what its parameters stand for, the slots it fills."""

    function: Function
    params: list[RuleParam]
    slots: list[int]  # positions of the tensor parameters
    undefined: bool


@cache
def vjp(uid: str) -> VjpRule | None:
    """The rule of a primitive; None where it has none."""
    op = record(uid)
    rule = op.rules.get("vjp")
    if op.kind == "pointwise":
        node = pointwise.plan(uid).composite_vjp
        if node is None:
            return None
        rule = Rule(parse_params(node, op.file, typed=False), node)
    if rule is None:
        return None
    slots = tensor_slots(op)
    wanted = [grad_type(op.params[i].type) for i in slots]
    function, params = compile_rule(op, rule, wanted, overloads, file_constants(op.file))
    return VjpRule(checked(function, "table"), params, slots, bool(rule.options.get("undefined")))


@cache
def differentiable(uid: str) -> tuple[int, ...]:
    """Positions of the parameters that an entry's rule gives a cotangent to."""
    rule = vjp(uid)
    if rule is None:
        return ()
    return tuple(p for k, p in enumerate(rule.slots) if not never(rule.function, k))


@dataclass(frozen=True)
class Kept:
    """A tensor that eager keeps for a derivative: always, or if one of `slots` requires grad."""

    kind: str  # "input" | "result"
    index: int
    slots: tuple[int, ...]
    always: bool


@cache
def kept(uid: str) -> tuple[Kept, ...]:
    """What eager keeps of a call, as the build emits it (see `_build.compiler.make_vjp`)."""
    rule = vjp(uid)
    if rule is None:
        return ()
    uses = SlotUses(rule.function, len(rule.slots))
    possible = [k for k, p in enumerate(rule.slots) if p in differentiable(uid)]
    out: list[Kept] = []
    for p in rule.params:
        of_tensors = p.type.base in ("Tensor", "Tensors", "OptTensors")
        if p.kind not in ("input", "result") or not of_tensors:
            continue
        if p.type.base == "Tensor" and is_metadata(rule.function, p.name):
            continue
        if p.type.base == "Tensors" and is_measured(rule.function, p.name):
            continue
        serves = [k for k in sorted(uses.vars.get(p.name, ())) if k in possible]
        slots = tuple(rule.slots[k] for k in serves)
        always = p.kind == "result" or p.type.base != "Tensor" or len(serves) == len(possible)
        if slots:
            out.append(Kept(p.kind, p.index, slots, always))
    return tuple(out)


@cache
def is_primitive(uid: str) -> bool:
    """Neither a composite nor a view that is made of other views."""
    op = record(uid)
    if op.kind == "view":
        function = body(uid)
        return function is not None and makes_alias(function)
    return op.kind != "composite"


@cache
def chooses_attention(uid: str) -> bool:
    """What an entry's body calls depends on the implementations of attention that are allowed."""
    names = (n.id for n in ast.walk(record(uid).node) if isinstance(n, ast.Name))
    return "attention_place" in names


@cache
def draws(target: str) -> bool:
    """Whether a node's target takes random numbers, in what its body calls too."""
    found = resolve(target)
    if found.draws:
        return True
    function = body(found.op.uid) if found.op.kind == "composite" else None
    return function is not None and any(draws(n.target) for n in function.walk() if n.is_call)


def evaluate(op: Op, args: list[Any], call: Call) -> Any:
    """Results of the plain form of an entry."""
    if isinstance(op, Added):
        return ADDED[0](op, args)
    function = body(op.uid)
    if op.kind == "pointwise":
        if function is not None:
            Interpreter(call).run(function, pointwise.with_tensors(op, args))
        made = pointwise.results(op, pointwise.operands(op, args))
        return made[0] if len(made) == 1 else tuple(made)
    assert function is not None
    if op.kind == "structured":
        made = Interpreter(evaluate_call).run(function, args)
        if op.option("dynamic"):
            return unbacked.results(op, args)
        if op.option("inplace_kernel"):
            return args[0]
        return made
    return Interpreter(call).run(function, args)


def evaluate_call(op: Op, inplace: bool, args: list[Any]) -> Any:
    """A call that nobody records."""
    if not inplace:
        return evaluate(op, args, evaluate_call)
    fits(op, args[0], evaluate(op, args, evaluate_call))
    return args[0]


def fits(op: Op, target: Fake, result: Fake) -> None:
    """Refuses an in-place form whose result the tensor cannot hold."""
    if not can_cast(result.dtype, target.dtype):
        names = [CORE["scalar_type_name"](x.dtype) for x in (result, target)]
        raise RuntimeError(
            f"result type {names[0]} can't be cast to the desired output type {names[1]}"
        )
    if not geometry.same(result.shape, target.shape):
        raise RuntimeError(
            f"output with shape {meanings.text(target.shape)} doesn't match the broadcast shape "
            f"{meanings.text(result.shape)}"
        )


def sum_to(call: Call, x: Fake, shape: Any) -> Any:
    """Sums over the dims that broadcasting from `shape` would have added or repeated."""
    if geometry.same(x.shape, shape):
        return x
    lead = x.ndim - len(shape)
    dims = [d for d in range(x.ndim) if d < lead or (shape[d - lead] == 1 and x.shape[d] != 1)]
    y = call(record("sum"), False, [x, dims, True, None]) if dims else x
    return call(record("view"), False, [y, list(shape)]) if lead > 0 else y


meanings.OPERATIONS["sum_to"] = sum_to
