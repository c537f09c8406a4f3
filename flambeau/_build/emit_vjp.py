"""C++ of a derivative: the rule function, the node that keeps what it needs, the recording.

For an operation `f` this makes `f_vjp` (cotangents of the wanted inputs), `struct FBackward` (a
node) and `f_record` (called when an input requires grad). Owns the slicing by wanted inputs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._ir.graph import Arg, Block, Node
from .._ir.types import Type
from .._table.bodies import Saved, Saving
from .._table.model import Op
from .compiler import Callees, Entry
from .cpp_types import cpp_value
from .emit_expr import ExprEmitter, is_optional, no_calls
from .emit_stmt import BodyEmitter, line_of

_UNPACK = {
    "tensor": "{0}_.unpack(*this)",
    "optional": "unpack_optional({0}_, *this)",
    "list": "unpack_list({0}_, *this)",
    "optional_list": "unpack_optional_list({0}_, *this)",
}
_FIELDS = {
    "tensor": "SavedTensor",
    "optional": "SavedTensor",
    "list": "SavedList",
    "optional_list": "SavedList",
}


def camel(uid: str) -> str:
    """`index_add_` as IndexAdd, as nodes are named."""
    return "".join(part[:1].upper() + part[1:] for part in uid.split("_"))


def node_type(op: Op) -> str:
    return f"{camel(op.uid)}{'Inplace' if op.mutates else ''}Backward"


class VjpEmitter(BodyEmitter):
    """Body of a rule: statements guarded by who needs them, `return` sliced."""

    def __init__(self, vjp: Saving, callees: Callees) -> None:
        super().__init__(vjp.function, callees)
        self.vjp = vjp

    def params(self) -> str:
        """Parameters of the C++ function: wanted inputs, cotangents, saved values."""
        parts = [f"const Needs<{len(self.vjp.differentiable)}>& need"]
        parts[0] = "[[maybe_unused]] " + parts[0]
        parts += [self.param(g.name, g.type) for g in self.vjp.grads]
        return ", ".join(parts + [self.param(s.name, s.type) for s in self.vjp.saved])

    def wanted(self, slots: frozenset[int]) -> str:
        """Test that any of the slots is wanted; "" when the test would always hold."""
        d = self.vjp.differentiable
        hit = [d.index(k) for k in sorted(slots) if k in d]
        if len(hit) == len(d) or not hit:
            return ""
        return " || ".join(f"need[{i}]" for i in hit)

    def block(self, block: Block) -> None:
        for s in self.reading.statements(block):
            test = self.wanted(self.vjp.uses.stmts.get(s, self.vjp.uses.all))
            self._before(s, guarded=bool(test))
            self.at(line_of(s))
            if not test:
                self.stmt(s)
                continue
            self.put(f"if ({test}) {{")
            self.depth += 1
            self.at(line_of(s))
            self.stmt(s)
            self.depth -= 1
            self.put("}")

    def _before(self, s: Node, guarded: bool) -> None:
        """Declarations that precede `s`; a guarded statement cannot declare for those after it."""
        if guarded and s in self.decl.here:
            self.decl.before.setdefault(s, []).extend(self.decl.here.pop(s))
        for name, t in self.decl.before.get(s, ()):
            if name != "_":
                self.put(f"{cpp_value(t)} {self.var(name)}{{}};")

    def _return(self, s: Node) -> None:
        given = self.reading.made_by(s.args[0], "core.tuple")
        if given is None:
            self.put(f"return flambeau::flatten({self.expr(s.args[0])});")
            return
        d, types = self.vjp.differentiable, given.out.type.items  # type: ignore[union-attr]
        parts = [self._slot(i, given.args[k], types[k]) for i, k in enumerate(d)]
        self.put(f"return flambeau::flatten({', '.join(parts)});")

    def _slot(self, i: int, a: Arg, t: Type) -> str:
        absent = f"Tensors(need[{i}].count)" if t.base == "Tensors" else "Tensor()"
        if a is None:
            return absent
        made = self.reading.made_by(a, "if")
        if made is not None and is_optional(a):
            then, other = (self._or_absent(b.outputs[0], absent) for b in made.blocks)
            value = f"({self.expr(made.args[0])} ? {then} : {other})"
        else:
            value = self._or_absent(a, absent)
        if len(self.vjp.differentiable) == 1:
            return value
        return f"need[{i}] ? {value} : {absent}"

    def _or_absent(self, a: Arg, absent: str) -> str:
        if a is None:
            return absent
        return f"{self.member(a)}.value_or({absent})" if is_optional(a) else self.expr(a)


def vjp_function(entry: Entry, callees: Callees, fused: Sequence[str] = ()) -> list[str]:
    """The rule as a C++ function; `fused` lines come first and may return."""
    assert entry.vjp is not None
    e = VjpEmitter(entry.vjp, callees)
    e.used |= {w for line in fused for w in re.findall(r"\w+", line)}
    body = e.body()
    head = f"static Tensors {entry.op.uid}_vjp({e.params()}) {{"
    return [head, *fused, *body, "}", "@restore"]


def forward_value(s: Saved) -> str:
    """What is saved, as an expression over the forward values."""
    e = ExprEmitter(no_calls)
    if s.source is None:
        return e.var(s.origin)
    *unwrap, read = s.source
    e.reading.makers.update({n.out: n for n in unwrap})
    value = e.node(read)
    if unwrap:
        return f"{e.var(s.origin)} ? {value} : {cpp_value(s.type)}{{}}"
    return value


def other_name(op: Op) -> tuple[str, ...]:
    """The node's name where certain parameters are not given, and these (`named_without=`)."""
    named = op.option("named_without", ())
    return tuple(map(str, named)) if isinstance(named, tuple) else ()


def node_struct(entry: Entry) -> list[str]:
    """The node: saved fields, `apply`, release."""
    op, vjp = entry.op, entry.vjp
    assert vjp is not None
    name = node_type(op)
    lines = [f"struct {name} final : Node {{"]
    for s in vjp.saved:
        field = _FIELDS.get(s.kind) or cpp_value(s.type)
        lines.append(f"  {field} {s.name}_{'{}' if not s.keeps_memory else ''};")
    lists = [k for k in vjp.differentiable if op.params[vjp.slots[k]].type.base != "Tensor"]
    lines += [f"  uint32_t count{k}_ = 0;" for k in lists]
    text = f'"{name}0"'
    if other := other_name(op):
        lines.append("  bool plain_{};")
        text = f'plain_ ? "{other[0]}0" : {text}'
    lines.append(f"  const char* name() const override {{ return {text}; }}")
    lines += ["  Tensors apply(Tensors&& grads) override {", *_apply(entry), "  }"]
    numbers = op.option("numbers_stay", ())
    resets = [
        f"reset_list({s.name}_);"
        if "list" in s.kind
        else f"{s.name}_.reset({'true' if s.name in numbers else ''});"
        for s in vjp.saved
        if s.keeps_memory
    ]
    if resets:
        lines.append(f"  void release_saved() override {{ {' '.join(resets)} }}")
    return [*lines, *_visit_saved(entry), "};"]


def _visit_saved(entry: Entry) -> list[str]:
    """What was saved as it is, by name, for `grad_fn._saved_NAME`.

    The first tensor of an operation that is a method goes by `self`, as in PyTorch.
    """
    op, vjp = entry.op, entry.vjp
    assert vjp is not None
    public = op.is_method and "" in op.namespaces
    visits = []
    for s in vjp.saved:
        if s.source is not None or s.kind == "shapes":
            continue
        how = "list" if "list" in s.kind else "tensor" if s.keeps_memory else "value"
        shown = "self" if public and s.origin == "input" else s.origin
        field = f"{s.name}_" if how != "value" else f"box({s.name}_)"
        visits.append(f'visitor.{how}("{shown}", {field});')
    if not visits:
        return []
    return [f"  void visit_saved(SavedVisitor& visitor) override {{ {' '.join(visits)} }}"]


def _apply(entry: Entry) -> list[str]:
    op, vjp = entry.op, entry.vjp
    assert vjp is not None
    lines = ["    if (none_defined(grads)) return Tensors(edges.size());"]
    parts, at = [], "0"
    for k in vjp.differentiable:
        if op.params[vjp.slots[k]].type.base == "Tensor":
            parts.append(f"need_of(*this, {at})")
            at += " + 1"
        else:
            parts.append(f"need_of(*this, {at}, count{k}_)")
            at += f" + count{k}_"
    at_text = ", ".join(_fold(p) for p in parts)
    lines.append(f"    Needs<{len(parts)}> need{{{{{at_text}}}}};")
    args = ["need"] + [_grad(op, vjp, g.index, g.type) for g in vjp.grads]
    for s in vjp.saved:
        if not s.keeps_memory:
            args.append(f"{s.name}_")
            continue
        value = _UNPACK[s.kind].format(s.name)
        hit = [vjp.differentiable.index(k) for k in sorted(s.slots) if k in vjp.differentiable]
        if hit and len(hit) < len(vjp.differentiable):
            test = " || ".join(f"need[{i}]" for i in hit)
            value = f"{test} ? {value} : {cpp_value(s.type)}()"
        args.append(value)
    lines.append(f"    return {op.uid}_vjp({', '.join(args)});")
    return lines


def _fold(text: str) -> str:
    """Sums of literals in `need_of(*this, 0 + 1 + 1)` added up."""
    head, _, rest = text.partition("*this, ")
    at, comma, tail = rest.rstrip(")").partition(", ")
    terms = at.split(" + ")
    number = sum(int(t) for t in terms if t.isdigit())
    names = [t for t in terms if not t.isdigit()]
    folded = " + ".join([str(number), *names] if number or not names else names)
    return f"{head}*this, {folded}{comma}{tail})"


def _grad(op: Op, vjp: Saving, i: int, t: Type) -> str:
    if op.outputs[i].base == "Tensors":
        return "grads"
    if t.optional:
        return f"optional_cotangent(grads[{i}])"
    return f"grads[{i}]" if len(op.outputs) == 1 else f"cotangent(*this, grads, {i})"


def results_of(op: Op) -> list[str]:
    """Names of the results in forward glue."""
    return ["result"] if len(op.outputs) == 1 else [f"result{i}" for i in range(len(op.outputs))]


def fill_node(entry: Entry, outputs: bool, overwritten: str = "") -> list[str]:
    """Statements that save for `node`: the outputs, or everything else.

    The input `overwritten` is about to be changed in place: it is saved as a copy.
    """
    op, vjp = entry.op, entry.vjp
    assert vjp is not None
    lines: list[str] = []
    for s in vjp.saved:
        source = forward_value(s)
        if (s.is_output or s.origin in results_of(op)) != outputs:
            continue
        if s.keeps_memory and s.origin in op.updates:
            # What the call itself has changed is not what the derivative reads.
            if when := op.option("updates_when"):
                [save] = _save(op, vjp, s, f"SavedTensor({source}, false)")
                lines.append(f"  if (!{when}) {save.strip()}")
            continue
        if not s.keeps_memory:
            made = f"shapes_of({source})" if s.kind == "shapes" else source
            lines.append(f"  node->{s.name}_ = {made};")
        elif s.is_output:
            lines += _save(op, vjp, s, f"SavedTensor({source}, true, node.get(), {s.place})")
        elif "list" in s.kind:
            lines += _save(op, vjp, s, f"save_list({source})")
        else:
            copied = s.kind == "tensor" and s.origin == overwritten
            value = f"copied({source})" if copied else source
            lines += _save(op, vjp, s, f"SavedTensor({value}, false)")
    return lines


def _save(op: Op, vjp: Saving, s: Saved, made: str) -> list[str]:
    """Keeps a tensor, but only when a cotangent that needs it will be wanted."""
    line = f"node->{s.name}_ = {made};"
    wanted = [k for k in sorted(s.slots) if k in vjp.differentiable]
    if not wanted:
        return []
    if len(wanted) == len(vjp.differentiable) or s.kind in ("list", "optional_list"):
        return [f"  {line}"]
    e = ExprEmitter(no_calls)
    test = " || ".join(f"needs_grad({e.var(op.params[vjp.slots[k]].name)})" for k in wanted)
    return [f"  if ({test}) {line}"]


def edges(entry: Entry) -> list[str]:
    """Statements that add the edges of `node` to the differentiable inputs."""
    op, vjp = entry.op, entry.vjp
    assert vjp is not None
    e = ExprEmitter(no_calls)
    lines = []
    for k in vjp.differentiable:
        p = op.params[vjp.slots[k]]
        lines.append(f"  node->add_next({e.var(p.name)});")
        if p.type.base != "Tensor":
            lines.append(f"  node->count{k}_ = count_of({e.var(p.name)});")
    return lines
