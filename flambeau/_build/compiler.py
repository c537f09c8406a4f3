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
from .._ir.graph import Function
from .._ir.types import Param
from .._table import bodies, pointwise, reader
from .._table.bodies import Saving, Scope, Typed
from .._table.model import AUTOCAST, Op
from .._table.outline import entry_files
from .._table.pointwise import Plan


@dataclass
class Entry:
    """One operation, compiled."""

    op: Op
    body: Function | None = None
    vjp: Saving | None = None
    jvp: Typed | None = None
    jvp_of: dict[str, Typed] = field(default_factory=dict)  # where one tensor alone has a tangent
    batching: Typed | None = None
    plan: Plan | None = None  # kernels of a pointwise operation, by `pointwise.plan`

    @property
    def pointwise(self) -> Plan:
        """The plan of an entry that is known to be pointwise."""
        assert self.plan is not None
        return self.plan

    @property
    def is_primitive(self) -> bool:
        """Records its own derivative."""
        return bodies.is_primitive_of(self.op, self.body)


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
    scope = Scope(unit.lookup, lambda file: constants.get(file, {}))
    for op in ops:
        try:
            unit.entries.append(_entry(op, scope))
        except CompileError as error:
            unit.errors.append(error)
    return unit


def _entry(op: Op, scope: Scope) -> Entry:
    _check_options(op)
    plan = pointwise.plan(op) if op.kind == "pointwise" else None
    entry = Entry(op, bodies.body_of(op, scope, plan), plan=plan)
    rule = bodies.vjp_of(op, scope, plan)
    if rule is not None:
        entry.vjp = bodies.saving(op, rule)
    if plan is None:
        entry.jvp = bodies.jvp_of(op, scope)
        _refuse_useless_rules(entry)
    elif plan.jvp is not None:
        entry.jvp = bodies.jvp_of(op, scope, plan.jvp)
        made = {name: bodies.jvp_of(op, scope, of) for name, of in plan.jvp_of.items()}
        entry.jvp_of = {name: rule for name, rule in made.items() if rule is not None}
    entry.batching = bodies.batching_of(op, scope)
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
