"""The table run over fakes: what entries say, compiled on first use, and their results.

`evaluate` gives what a call of an entry gives, as fakes, and raises what it raises. Who records
what is not decided here: nested calls go to the function that is handed in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from .._ir.graph import Function
from .._ir.graph_verify import checked
from .._ir.targets import resolve
from .._table.added import Added
from .._table.bodies import Scope, Vjp, body_of, is_primitive_of, saving, vjp_of
from .._table.entries import file_constants, overloads, record
from .._table.model import Op
from .._table.pointwise import Plan
from . import geometry, meanings, pointwise, unbacked
from .dtypes import can_cast
from .fake import Fake
from .interp import Call, Interpreter
from .meanings import CORE

#: what gives the results of added operators; `added.py` puts it here
ADDED: list[Callable[[Added, list[Any]], Any]] = []

#: what the names of the table mean
SCOPE = Scope(overloads, file_constants)


def _plan(op: Op) -> Plan | None:
    return pointwise.plan(op.uid) if op.kind == "pointwise" else None


@cache
def body(uid: str) -> Function | None:
    """The body of an entry; of a pointwise one, its checks."""
    op = record(uid)
    made = None if isinstance(op, Added) else body_of(op, SCOPE, _plan(op))
    return None if made is None else checked(made, "table")


@cache
def vjp(uid: str) -> Vjp | None:
    """The derivative rule of a primitive; None where it has none."""
    op = record(uid)
    rule = vjp_of(op, SCOPE, _plan(op))
    if rule is not None:
        checked(rule.function, "table")
    return rule


@cache
def differentiable(uid: str) -> tuple[int, ...]:
    """Positions of the parameters that an entry's rule gives a cotangent to."""
    rule = vjp(uid)
    return () if rule is None else tuple(rule.slots[k] for k in rule.differentiable)


@dataclass(frozen=True)
class Kept:
    """A tensor that eager keeps for a derivative: always, or if one of `slots` requires grad."""

    kind: str  # "input" | "result"
    index: int
    slots: tuple[int, ...]
    always: bool


@cache
def kept(uid: str) -> tuple[Kept, ...]:
    """What eager keeps of a call."""
    op = record(uid)
    rule = vjp_of(op, SCOPE, _plan(op))
    if rule is None:
        return ()
    possible = rule.differentiable
    out: list[Kept] = []
    for s in saving(op, rule).saved:
        serves = [k for k in sorted(s.slots) if k in possible]
        single = s.kind in ("tensor", "optional")
        always = s.is_output or not single or len(serves) == len(possible)
        if serves and s.keeps_memory:
            kind = "result" if s.is_output else "input"
            out.append(Kept(kind, s.place, tuple(rule.slots[k] for k in serves), always))
    return tuple(out)


@cache
def is_primitive(uid: str) -> bool:
    """Neither a composite nor a view that is made of other views."""
    op = record(uid)
    return is_primitive_of(op, body(uid) if op.kind == "view" else None)


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
