"""What an entry says, as typed IR: its body, its rules, what its derivative saves, whether it is a
primitive.

One place for the build, which reads a whole table, and for trace and the compiler, which ask for
entries by uid when they meet them (`_trace.table`). A `Scope` says what names mean. Must not import
what needs the built library.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .._ir.errors import CompileError
from .._ir.expr import Lookup
from .._ir.frontend import compile_function
from .._ir.graph import Function, Node
from .._ir.types import INT, Type, parse_params
from .facts import SlotUses, body_returns, is_measured, makes_alias, take_metadata, tensor_slots
from .model import Op, Rule
from .pointwise import Plan
from .rules import RuleParam, compile_rule, grad_type, never


class Scope(NamedTuple):
    """What the names of a table mean."""

    lookup: Lookup  # entries of a name
    constants: Callable[[str], Mapping[str, ast.expr]]  # of a file


@dataclass
class Typed:
    """A rule: its function, and what the parameters of that stand for."""

    function: Function
    params: list[RuleParam]


@dataclass
class Vjp(Typed):
    """A derivative rule."""

    slots: list[int]  # positions of the tensor parameters, each of which has a cotangent
    undefined: bool  # it takes None for cotangents that are not there

    @cached_property
    def differentiable(self) -> list[int]:
        """Those slots (numbers) whose cotangent is not always None."""
        return [k for k in range(len(self.slots)) if not never(self.function, k)]


@dataclass
class Saved:
    """What is kept for a derivative."""

    name: str
    kind: str  # tensor | optional | list | optional_list | shapes (of a list) | value
    type: Type
    source: list[Node] | None  # reads metadata of forward values; None: the value `origin`
    origin: str  # the forward value: a parameter or result, result0…
    is_output: bool = False
    place: int = 0  # of the forward value among the results or parameters
    slots: frozenset[int] = frozenset()  # cotangents that need it

    @property
    def keeps_memory(self) -> bool:
        return self.kind not in ("value", "shapes")


@dataclass
class Saving(Vjp):
    """A derivative rule over what it saves: its function takes that and the cotangents."""

    saved: list[Saved]  # in the order of the function's parameters
    uses: SlotUses

    @property
    def grads(self) -> list[RuleParam]:
        """The parameters that are cotangents."""
        return [p for p in self.params if p.kind == "grad"]


def is_primitive_of(op: Op, body: Function | None) -> bool:
    """Neither a composite nor a view that is made of other views: it has its own derivative."""
    if op.kind == "view" and body is not None:
        return makes_alias(body)
    return op.kind != "composite"


def body_of(op: Op, scope: Scope, plan: Plan | None = None) -> Function | None:
    """The body of an entry; of a pointwise one, which has a plan, its checks."""
    node = op.node if plan is None else plan.selector
    if node is None:
        return None
    returns = body_returns(op) if plan is None else INT
    placed = plan is None
    constants = scope.constants(op.file)
    return compile_function(node, op.params, returns, op.file, scope.lookup, constants, placed)


def vjp_of(op: Op, scope: Scope, plan: Plan | None = None) -> Vjp | None:
    """The derivative rule of a primitive; None where it has none."""
    rule = op.rules.get("vjp")
    if plan is not None:
        rule = None if plan.composite_vjp is None else _derived(op, plan.composite_vjp)
    if rule is None:
        return None
    slots = tensor_slots(op)
    wanted = [grad_type(op.params[i].type) for i in slots]
    made = compile_rule(op, rule, wanted, scope.lookup, scope.constants(op.file))
    return Vjp(*made, slots, bool(rule.options.get("undefined")))


def jvp_of(op: Op, scope: Scope, derived: ast.FunctionDef | None = None) -> Typed | None:
    """The rule of forward mode, the entry's own or one that a plan derived."""
    rule = op.rules.get("jvp") if derived is None else _derived(op, derived)
    if rule is None:
        return None
    slots = [t.plain() for t in op.outputs]
    slots = [t if t.base == "Tensors" else t.or_none() for t in slots]
    return Typed(*compile_rule(op, rule, slots, scope.lookup, scope.constants(op.file)))


def batching_of(op: Op, scope: Scope) -> Typed | None:
    """The rule of `vmap`; None where there is none."""
    rule = op.rules.get("vmap")
    if rule is None:
        return None
    slots, constants = [t.plain() for t in op.outputs], scope.constants(op.file)
    return Typed(*compile_rule(op, rule, slots, scope.lookup, constants, batching=True))


def decomposed(op: Op, scope: Scope) -> Function | None:
    """What an entry is, written out; None where no rule says so."""
    rule = op.rules.get("decompose")
    if rule is None:
        return None
    constants = scope.constants(op.file)
    return compile_function(
        rule.node, op.params, op.returns, op.file, scope.lookup, constants, placed=True
    )


def _derived(op: Op, node: ast.FunctionDef) -> Rule:
    return Rule(parse_params(node, op.file, typed=False), node)


def saving(op: Op, rule: Vjp) -> Saving:
    """The rule with what it saves: metadata in the place of tensors that serve for no more.

    The rule's function is changed to take them.
    """
    f = rule.function
    taken: dict[str, dict[str, list[Node]]] = {}
    for p in rule.params:
        if p.kind in ("input", "result") and p.type.base == "Tensor":
            found = take_metadata(f, p.name)
            if found is not None:
                taken[p.name] = found
    uses = SlotUses(f, len(rule.slots))
    saved: list[Saved] = []
    for p in rule.params:
        if p.kind not in ("input", "result"):
            continue
        if p.kind == "input" and op.mutates and p.index == 0 and p.name not in taken:
            raise CompileError(
                f"{op.name} changes {p.name!r}; its rule may use the shape and dtype of it alone",
                op.file, op.rules["vjp"].node,
            )  # fmt: skip
        place = (p.kind == "result", p.index)
        if p.name not in taken:
            slots = uses.vars.get(p.name, frozenset())
            saved.append(Saved(p.name, _kind(p, f), p.type, None, p.name, *place, slots))
            continue
        for name, source in taken[p.name].items():
            t = source[-1].out.type
            assert isinstance(t, Type)
            slots = uses.vars.get(name, frozenset())
            saved.append(Saved(name, "value", t, source, p.name, *place, slots))
    saved = [s for s in saved if s.slots]
    return Saving(f, rule.params, rule.slots, rule.undefined, saved, uses)


def _kind(p: RuleParam, f: Function) -> str:
    t = p.type
    if t.base == "Tensors" and is_measured(f, p.name):
        return "shapes"
    if t.base == "Tensor":
        return "optional" if t.optional else "tensor"
    return {"Tensors": "list", "OptTensors": "optional_list"}.get(t.base, "value")
