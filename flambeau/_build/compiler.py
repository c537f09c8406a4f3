"""The table compiled: every entry with the IR of its body and rules, names resolved.

Owns name lookup over the whole table. Pure but for reading the files; emitters take a `Unit`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from .._ir.errors import CompileError
from .._ir.frontend import compile_function
from .._ir.graph import Function, Node
from .._ir.types import INT, Param, Type, parse_params
from .._table import pointwise, reader
from .._table.facts import (
    SlotUses,
    body_returns,
    is_measured,
    makes_alias,
    take_metadata,
    tensor_slots,
)
from .._table.model import AUTOCAST, Op, Rule
from .._table.outline import entry_files
from .._table.pointwise import Plan
from .._table.rules import RuleParam, compile_rule, grad_type, never


@dataclass
class Saved:
    """What a node keeps for the derivative, in the order of the rule function's parameters."""

    name: str
    kind: str  # tensor | optional | list | optional_list | shapes (of a list) | value
    type: Type
    source: list[Node] | None  # reads metadata of forward values; None: the value `origin`
    origin: str  # the forward value: a parameter or result, result0…
    is_output: bool = False
    output_nr: int = 0
    slots: frozenset[int] = frozenset()  # cotangents that need it

    @property
    def keeps_memory(self) -> bool:
        return self.kind not in ("value", "shapes")


@dataclass
class Vjp:
    """A derivative rule ready for emission."""

    function: Function
    grads: list[RuleParam]
    saved: list[Saved]
    uses: SlotUses
    slots: list[int]  # positions among op.params of all tensor parameters
    differentiable: list[int]  # those slots (numbers) whose cotangent is not always None
    undefined: bool


@dataclass
class Jvp:
    function: Function
    params: list[RuleParam]


@dataclass
class Batching:
    """A `@op.vmap` rule ready for emission."""

    function: Function
    params: list[RuleParam]


@dataclass
class Entry:
    """One operation, compiled."""

    op: Op
    body: Function | None = None
    vjp: Vjp | None = None
    jvp: Jvp | None = None
    jvp_of: dict[str, Jvp] = field(default_factory=dict)  # where one tensor alone has a tangent
    batching: Batching | None = None
    plan: Plan | None = None  # kernels of a pointwise operation, by `pointwise.plan`

    @property
    def pointwise(self) -> Plan:
        """The plan of an entry that is known to be pointwise."""
        assert self.plan is not None
        return self.plan

    @property
    def is_primitive(self) -> bool:
        """Records its own derivative (a view made of other views does not)."""
        if self.op.kind == "view" and self.body is not None:
            return makes_alias(self.body)
        return self.op.kind != "composite"


class Called(NamedTuple):
    """An operation called: its C++ name; if that has overloads, the types that choose one."""

    name: str
    params: list[Param] | None


Callees = Callable[[str], Called]


@dataclass
class Unit:
    """The compiled table and what went wrong."""

    ops: list[Op]  # all, also those with errors
    entries: list[Entry]
    by_name: dict[str, list[Op]]
    errors: list[CompileError] = field(default_factory=list)

    def lookup(self, name: str) -> Sequence[Op]:
        return self.by_name.get(name, ())

    @cached_property
    def _forms(self) -> dict[str, tuple[Op, str]]:
        forms = {op.inplace_uid: (op, f"{op.name}_") for op in self.ops if op.has_inplace}
        return forms | {op.uid: (op, op.name) for op in self.ops}

    def callees(self, target: str) -> Called:
        """What the target of a node is in C++."""
        op, name = self._forms[target]
        return Called(name, op.params if len(self.by_name.get(name, ())) > 1 else None)


def load(root: Path) -> Unit:
    """Reads and compiles the whole table; errors are collected, not raised."""
    errors: list[CompileError] = []
    ops = reader.load(root, errors)
    constants = {file: reader.constants(root, file) for file in entry_files(root)}
    unit = compile_table(ops, constants)
    unit.errors[:0] = errors
    return unit


def compile_table(ops: Sequence[Op], constants: dict[str, dict[str, ast.expr]]) -> Unit:
    by_name: dict[str, list[Op]] = {}
    for op in ops:
        by_name.setdefault(op.name, []).append(op)
    unit = Unit(list(ops), [], by_name)
    for op in ops:
        try:
            unit.entries.append(_entry(op, unit, constants.get(op.file, {})))
        except CompileError as error:
            unit.errors.append(error)
    return unit


def _entry(op: Op, unit: Unit, constants: dict[str, ast.expr]) -> Entry:
    _check_options(op)
    entry = Entry(op)
    if op.kind == "pointwise":
        plan = entry.plan = pointwise.plan(op)
        if plan.selector is not None:
            entry.body = compile_function(
                plan.selector, op.params, INT, op.file, unit.lookup, constants
            )
        if plan.composite_vjp is not None:
            rule = _derived_rule(op, plan.composite_vjp)
            entry.vjp = _vjp(op, rule, unit, constants)
        if plan.jvp is not None:
            entry.jvp = _jvp(op, _derived_rule(op, plan.jvp), unit, constants)
            for name, rule_of in plan.jvp_of.items():
                entry.jvp_of[name] = _jvp(op, _derived_rule(op, rule_of), unit, constants)
    else:
        entry.body = compile_function(
            op.node, op.params, body_returns(op), op.file, unit.lookup, constants, placed=True
        )
        if "vjp" in op.rules:
            entry.vjp = _vjp(op, op.rules["vjp"], unit, constants)
        if "jvp" in op.rules:
            entry.jvp = _jvp(op, op.rules["jvp"], unit, constants)
        _refuse_useless_rules(entry)
    if "vmap" in op.rules:
        slots = [t.plain() for t in op.outputs]
        f, meanings = compile_rule(
            op, op.rules["vmap"], slots, unit.lookup, constants, batching=True
        )
        entry.batching = Batching(f, meanings)
    return entry


def _check_options(op: Op) -> None:
    tensors, params = {p.name for p in op.tensor_params}, {p.name for p in op.params}
    for option, given, known in (
        ("batch", op.batchable, tensors),
        ("conditions", op.option("conditions", ()), tensors),
        ("exact", op.option("exact", ()), tensors),
        ("result_for", op.option("result_for", ()), tensors),
        ("rounded", op.option("rounded", ()), params),
        ("old_orders", " ".join(op.option("old_orders", ())).split(), params),
    ):
        strange = ", ".join(repr(n) for n in given if n not in known)
        if strange:
            kind = "tensor" if known is tensors else "parameter"
            raise CompileError(f"{op.name}: {option}= names no {kind}: {strange}", op.file, op.node)
    autocast = op.option("autocast")
    if autocast is not None and autocast not in AUTOCAST:
        message = f"{op.name}: autocast= is one of {', '.join(AUTOCAST)}, got {autocast!r}"
        raise CompileError(message, op.file, op.node)


def _refuse_useless_rules(entry: Entry) -> None:
    if entry.is_primitive:
        return
    for kind in ("vjp", "jvp", "vmap"):
        if kind in entry.op.rules:
            raise CompileError(
                f"{entry.op.name}: made of other operations, whose derivatives it has; "
                f"@{entry.op.name}.{kind} would never be used",
                entry.op.file, entry.op.rules[kind].node,
            )  # fmt: skip


def _derived_rule(op: Op, node: ast.FunctionDef) -> Rule:
    return Rule(parse_params(node, op.file, typed=False), node)


def _vjp(op: Op, rule: Rule, unit: Unit, constants: dict[str, ast.expr]) -> Vjp:
    slots = tensor_slots(op)
    f, meanings = compile_rule(
        op, rule, [grad_type(op.params[i].type) for i in slots], unit.lookup, constants
    )
    return make_vjp(op, f, meanings, bool(rule.options.get("undefined")))


def make_vjp(op: Op, f: Function, meanings: list[RuleParam], undefined: bool) -> Vjp:
    """The rule with what it saves: tensors used for metadata alone are replaced by the metadata."""
    slots = tensor_slots(op)
    taken: dict[str, dict[str, list[Node]]] = {}
    for m in meanings:
        if m.kind in ("input", "result") and m.type.base == "Tensor":
            found = take_metadata(f, m.name)
            if found is not None:
                taken[m.name] = found
    uses = SlotUses(f, len(slots))
    saved: list[Saved] = []
    for m in meanings:
        if m.kind not in ("input", "result"):
            continue
        if m.kind == "input" and op.mutates and m.index == 0 and m.name not in taken:
            raise CompileError(
                f"{op.name} changes {m.name!r}; its rule may use the shape and dtype of it alone",
                op.file, op.rules["vjp"].node,
            )  # fmt: skip
        if m.name in taken:
            for name, source in taken[m.name].items():
                t = source[-1].out.type
                assert isinstance(t, Type)
                saved.append(
                    Saved(name, "value", t, source, m.name, slots=uses.vars.get(name, frozenset()))
                )
            continue
        saved.append(
            Saved(
                m.name, _saved_kind(m, f), m.type, None, m.name, m.kind == "result", m.index,
                uses.vars.get(m.name, frozenset()),
            )
        )  # fmt: skip
    saved = [s for s in saved if s.slots]
    differentiable = [k for k in range(len(slots)) if not never(f, k)]
    grads = [m for m in meanings if m.kind == "grad"]
    return Vjp(f, grads, saved, uses, slots, differentiable, undefined)


def _saved_kind(m: RuleParam, f: Function) -> str:
    t = m.type
    if t.base == "Tensors" and is_measured(f, m.name):
        return "shapes"
    if t.base == "Tensor":
        return "optional" if t.optional else "tensor"
    return {"Tensors": "list", "OptTensors": "optional_list"}.get(t.base, "value")


def _jvp(op: Op, rule: Rule, unit: Unit, constants: dict[str, ast.expr]) -> Jvp:
    slots = [t.plain() for t in op.outputs]
    slots = [t if t.base == "Tensors" else t.or_none() for t in slots]
    f, meanings = compile_rule(op, rule, slots, unit.lookup, constants)
    return Jvp(f, meanings)
