"""Descriptors: how every operation is called with boxed values, and its rules over them.

Owns the `OpDesc` of each operation.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence

from .._ir.graph import Node
from .._ir.types import Type
from .._table.bodies import Typed
from .._table.model import DIM_NAMES, Op
from .compiler import Callees, Entry
from .cpp_types import cpp_param, cpp_value
from .emit_op import cpp_name, needs_test
from .emit_stmt import BodyEmitter
from .emit_vjp import forward_value


def _unbox(op: Op, i: int) -> str:
    return f"unbox<{cpp_value(op.params[i].type)}>(args[{i}])"


def type_desc(t: Type) -> str:
    """The TypeDesc of a type."""
    base = t.base[0].upper() + t.base[1:]
    parts = [f"TypeBase::{base}", *(str(x).lower() for x in (t.optional, t.length, t.or_number))]
    while parts[-1] in ("false", "0"):
        parts.pop()
    return f"{{{', '.join(parts)}}}"


def param_table(op: Op) -> list[str]:
    """The ParamDesc array."""
    if not op.params:
        return []
    lines = [f"static constexpr ParamDesc {op.uid}_params[] = {{"]
    for p in op.params:
        default = "nullptr" if p.default is None else json.dumps(ast.unparse(p.default))
        kwonly = "true" if p.kwonly else "false"
        lines.append(f'    {{"{p.name}", {type_desc(p.type)}, {default}, {kwonly}}},')
    return [*lines, "};"]


def result_table(op: Op) -> list[str]:
    """The types of the results."""
    if op.returns.base == "None":
        return []
    types = ", ".join(map(type_desc, op.outputs))
    return [f"static constexpr TypeDesc {op.uid}_returns[] = {{{types}}};"]


def boxed_call(op: Op) -> list[str]:
    """The entry over boxed values, and its in-place form."""
    lines = _boxed_form(op, f"{op.uid}_boxed", op.name)
    return lines + (
        _boxed_form(op, f"{op.uid}_inplace_boxed", f"{op.name}_") if op.has_inplace else []
    )


def _boxed_form(op: Op, function: str, name: str) -> list[str]:
    given = ", ".join(f"unbox<{cpp_value(p.type)}>(*args[{i}])" for i, p in enumerate(op.params))
    call = f"ops::{name}({given})"
    returns = op.returns.base != "None"
    params = [
        "const OpDesc&",
        "const Value* const*" + (" args" if op.params else ""),
        "Value*" + (" results" if returns else ""),
    ]
    return [
        f"static void {function}({', '.join(params)}) {{",
        f"  put_results(results, {call});" if returns else f"  {call};",
        "}",
    ]


def _rule_head(op: Op, rule: str, given: str) -> str:
    params = ", ".join(
        f"[[maybe_unused]] const {t}& {name}"
        for t, name in (("Values", "args"), ("Tensors", given), ("Values", "results"))
    )
    params = f"const OpDesc&, {params}"
    if rule == "vjp":
        params += ", [[maybe_unused]] uint32_t wanted"
    return f"static Tensors {op.uid}_boxed_{rule}({params}) {{"


def boxed_vjp(entry: Entry) -> list[str]:
    """Rule over boxed values: cotangents of all tensor parameters, lists flattened."""
    op, vjp = entry.op, entry.vjp
    assert vjp is not None
    lines = [_rule_head(op, "vjp", "grads")]
    originals = {s.origin for s in vjp.saved} | {op.params[i].name for i in vjp.slots}
    for i, p in enumerate(op.params):
        if p.name in originals:
            lines.append(f"  [[maybe_unused]] const auto& {cpp_name(p.name)} = {_unbox(op, i)};")
    for s in vjp.saved:
        if s.origin.startswith("result") and s.origin not in {p.name for p in op.params}:
            i = int(s.origin[6:] or 0)
            line = f"  const auto& {s.origin} = unbox<{cpp_value(op.outputs[i])}>(results[{i}]);"
            if line not in lines:
                lines.append(line)
    needs = []
    for k in vjp.differentiable:
        p = op.params[vjp.slots[k]]
        count = "1" if p.type.base == "Tensor" else f"count_of({cpp_name(p.name)})"
        needs.append(f"Need{{bool(wanted >> {k} & 1), {count}}}")
    lines.append(f"  Needs<{len(needs)}> need{{{{{', '.join(needs)}}}}};")
    call = ["need"]
    for g in vjp.grads:
        if op.outputs[g.index].base == "Tensors":
            call.append("grads")
        elif g.type.optional:
            call.append(f"optional_cotangent(grads[{g.index}])")
        else:
            like = f"unbox<Tensor>(results[{g.index}])"
            call.append(f"cotangent_like(grads[{g.index}], {like})")
    call += [forward_value(s) for s in vjp.saved]
    lines.append(f"  Tensors found = {op.uid}_vjp({', '.join(call)});")
    if len(vjp.differentiable) == len(vjp.slots):
        return [*lines, "  return found;", "}"]
    return [*lines, *_spread(entry), "  return all;", "}"]


def _spread(entry: Entry) -> list[str]:
    """Undefined cotangents put in for parameters that have none."""
    op, vjp = entry.op, entry.vjp
    assert vjp is not None
    lines = ["  Tensors all;", "  auto next = found.begin();"]
    for k, i in enumerate(vjp.slots):
        p = op.params[i]
        count = "1" if p.type.base == "Tensor" else f"count_of({cpp_name(p.name)})"
        if k in vjp.differentiable:
            lines.append(f"  all.insert(all.end(), next, next + {count}), next += {count};")
        else:
            lines.append(f"  all.resize(all.size() + {count});")
    return [*lines, "  static_cast<void>(next);"]


class JvpEmitter(BodyEmitter):
    """Body of a jvp rule: returns tangents of all results."""

    def _return(self, s: Node) -> None:
        parts = self.returned(s) or [self.expr(s.args[0])]
        self.put(f"return flambeau::flatten({', '.join(parts)});")


def jvp_function(entry: Entry, callees: Callees) -> list[str]:
    """The jvp rules of an entry; the boxed form takes the one for the tangents that are given."""
    op, jvp = entry.op, entry.jvp
    assert jvp is not None
    lines, call = _jvp_form(op, jvp, f"{op.uid}_jvp", callees)
    boxed = [_rule_head(op, "jvp", "tangents")]
    tensors = [i for i, p in enumerate(op.params) if p.type.is_tensor]
    for i in tensors:
        rule = entry.jvp_of.get(op.params[i].name)
        if rule is None:
            continue
        name = f"{op.uid}_jvp_of_{op.params[i].name}"
        more, alone = _jvp_form(op, rule, name, callees)
        lines += more
        given = " && ".join(
            f"{'' if i == k else '!'}tangents[{_slot_at(op, k)}].defined()" for k in tensors
        )
        boxed.append(f"  if ({given}) return {alone};")
    return [*lines, *boxed, f"  return {call};", "}"]


def _jvp_form(op: Op, jvp: Typed, name: str, callees: Callees) -> tuple[list[str], str]:
    """A rule as a function, and the call of it with boxed values."""
    e = JvpEmitter(jvp.function, callees)
    params = ", ".join(
        f"[[maybe_unused]] {cpp_param(p.type)} {e.var(p.name)}" for p in jvp.function.params
    )
    lines = [f"static Tensors {name}({params}) {{", *e.body(), "}", "@restore"]
    args = []
    for m in jvp.params:
        if m.kind == "input":
            args.append(_unbox(op, m.index))
        elif m.kind == "tangent":
            slot = _slot_at(op, m.index)
            args.append(f"tangent_like(tangents[{slot}], {_unbox(op, m.index)})")
        else:
            args.append(f"unbox<{cpp_value(op.outputs[m.index])}>(results[{m.index}])")
    return lines, f"{name}({', '.join(args)})"


class BatchingEmitter(BodyEmitter):
    """Body of a batching rule: returns the results boxed."""

    def _return(self, s: Node) -> None:
        if parts := self.returned(s):
            self.put(f"return box_all({', '.join(parts)});")
        else:
            self.put(f"return box_results({self.expr(s.args[0])});")


def batching_function(entry: Entry, callees: Callees) -> list[str]:
    """A batching rule and its boxed form."""
    op, rule = entry.op, entry.batching
    assert rule is not None
    e = BatchingEmitter(rule.function, callees)
    params = ", ".join(
        f"[[maybe_unused]] {cpp_param(p.type)} {e.var(p.name)}" for p in rule.function.params
    )
    args = []
    for m in rule.params:
        if m.kind == "input":
            args.append(_unbox(op, m.index))
        elif m.kind == "batched":
            args.append(f"(batched >> {m.index} & 1)")
        else:
            args.append("batch")
    return [
        f"static Values {op.uid}_batched({params}) {{",
        *e.body(),
        "}",
        "@restore",
        f"static Values {op.uid}_boxed_batched(const OpDesc&, [[maybe_unused]] const Values& args, "
        "[[maybe_unused]] uint32_t batched, [[maybe_unused]] int64_t batch) {",
        f"  return {op.uid}_batched({', '.join(args)});",
        "}",
    ]


def _mask(positions: Sequence[int]) -> str:
    return f"{sum(1 << i for i in set(positions)):#x}"


def _batch_fields(op: Op) -> list[str]:
    """The derived batching rule."""
    names = [p.name for p in op.params]
    batchable = [names.index(n) for n in op.batchable]
    if not batchable:
        return []
    fields = [f".batchable = {_mask(batchable)}"]
    dims = [
        i for i, p in enumerate(op.params)
        if p.name in DIM_NAMES and p.type.base in ("int", "Ints")
    ]  # fmt: skip
    if dims:
        fields.append(f".dims = {_mask(dims)}")
    if op.option("all_dims"):
        fields.append(".all_dims = true")
    return fields


def _keep_fields(entry: Entry) -> list[str]:
    """Whose values, not only shapes, the vjp uses."""
    assert entry.vjp is not None
    op = entry.op
    names = [p.name for p in op.params]
    kept = [s.origin for s in entry.vjp.saved if s.keeps_memory]
    inputs = [names.index(n) for n in kept if n in names]
    results = [int(n[6:] or 0) for n in kept if n not in names]
    fields = []
    if inputs:
        fields.append(f".keeps = {_mask(inputs)}")
    if results:
        fields.append(f".keeps_results = {_mask(results)}")
    if op.updates:
        fields.append(f".updates = {_mask([names.index(n) for n in op.updates])}")
        if when := op.option("updates_when"):
            fields.append(f".updates_when = {names.index(str(when))}")
    return fields


def _slot_at(op: Op, index: int) -> int:
    """Position among the flattened tangents (a list must be the only tensor parameter before)."""
    return sum(p.type.base in ("Tensor",) for p in op.params[:index])


def linear_jvp(op: Op) -> list[str]:
    """The operation itself, on tangents."""
    args = []
    for i, p in enumerate(op.params):
        if p.type.base == "Tensor" and not p.type.optional:
            args.append(f"tangent_like(tangents[{_slot_at(op, i)}], {_unbox(op, i)})")
        else:
            args.append(_unbox(op, i))
    return [
        _rule_head(op, "jvp", "tangents"),
        f"  return flambeau::flatten(ops::{op.name}({', '.join(args)}));",
        "}",
    ]


def is_linear(op: Op) -> bool:
    return bool(op.option("linear")) and sum(p.type.base == "Tensor" for p in op.params) == 1


def descriptor(entry: Entry, callees: Callees) -> list[str]:
    """Everything boxed about an entry, ending in its OpDesc."""
    op = entry.op
    lines = [*param_table(op), *result_table(op), *boxed_call(op)]
    fields = [
        f'.name = "{op.name}"', f'.uid = "{op.uid}"',
        f".kind = OpKind::{kind_of(entry).capitalize()}",
        f".params = {op.uid + '_params' if op.params else '{}'}",
        f".returns = {'{}' if op.returns.base == 'None' else op.uid + '_returns'}",
        f".call = {op.uid}_boxed",
    ]  # fmt: skip
    if op.has_inplace:
        fields.append(f'.inplace_uid = "{op.inplace_uid}", .inplace = {op.uid}_inplace_boxed')
    if entry.vjp is not None:
        lines += boxed_vjp(entry)
        fields.append(f".vjp = {op.uid}_boxed_vjp")
    if entry.jvp is not None:
        lines += jvp_function(entry, callees)
        fields.append(f".jvp = {op.uid}_boxed_jvp")
    elif is_linear(op):
        lines += linear_jvp(op)
        fields.append(f".jvp = {op.uid}_boxed_jvp")
    if entry.batching is not None:
        lines += batching_function(entry, callees)
        fields.append(f".vmap = {op.uid}_boxed_batched")
    fields += _batch_fields(op)
    if entry.vjp is not None:
        fields += _keep_fields(entry)
    if op.mutates:
        fields.append(".mutates = true")
    if op.option("linear"):
        fields.append(".linear = true")
    if not needs_test(entry):
        fields.append(".differentiable = false")
    if op.option("autocast"):
        fields.append(f".autocast = Autocast::{str(op.option('autocast')).capitalize()}")
    return [*lines, f"const OpDesc desc::{op.uid} = {{", f"    {', '.join(fields)}}};"]


def kind_of(entry: Entry) -> str:
    """Kind as the interceptors must see it: a view made of views is a composite."""
    return entry.op.kind if entry.is_primitive else "composite"
