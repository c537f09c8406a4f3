"""C++ of one operation: shape rule or body, the public function, its in-place and out= forms.

Owns the call path: modes first, then the kernel, then recording. See docs/design/ops.md.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .._ir.types import Param, Type
from .._table.facts import body_returns
from .._table.model import Op
from .compiler import Callees, Entry
from .cpp_types import cpp_param, cpp_value
from .emit_expr import ExprEmitter, constant, named_constant, no_calls
from .emit_stmt import BodyEmitter
from .emit_vjp import (
    edges,
    fill_node,
    node_struct,
    node_type,
    other_name,
    results_of,
    vjp_function,
)

_NAMES = ExprEmitter(no_calls)


def cpp_name(name: str) -> str:
    return _NAMES.var(name)


def cpp_params(op: Op) -> str:
    return ", ".join(f"{cpp_param(p.type)} {cpp_name(p.name)}" for p in op.params)


def cpp_args(op: Op) -> str:
    return ", ".join(cpp_name(p.name) for p in op.params)


def default_text(p: Param) -> str:
    """C++ of a parameter's default."""
    assert p.default is not None
    if isinstance(p.default, ast.Name):
        return named_constant(p.default.id)
    value = ast.literal_eval(p.default)
    if p.type.is_list and value is not None:
        items = value if isinstance(value, (tuple, list)) else (value,) * (p.type.length or 1)
        texts = ", ".join(constant(v, p.type.element) for v in items)
        return f"{cpp_value(p.type.required())}{{{texts}}}"
    if p.type.base == "Number" and value is not None:
        return f"Scalar({constant(value, Type(type(value).__name__))})"
    return constant(value, p.type)


def declaration_params(op: Op) -> str:
    """Parameters with defaults; C++ allows them only behind the last required one."""
    last = max((i for i, p in enumerate(op.params) if p.required), default=-1)
    parts = []
    for i, p in enumerate(op.params):
        default = f" = {default_text(p)}" if not p.required and i > last else ""
        parts.append(f"{cpp_param(p.type)} {cpp_name(p.name)}{default}")
    return ", ".join(parts)


def declarations(op: Op) -> list[str]:
    """Lines of gen/ops.h."""
    ret = cpp_value(op.returns)
    lines = [f"{ret} {op.name}({declaration_params(op)});"]
    if op.has_inplace:
        lines.append(f"Tensor {op.name}_({declaration_params(op)});")
    if op.has_out:
        outs = ", ".join(f"const Tensor& {o}" for o in out_names(op))
        lines.append(f"{ret} {op.name}_out({plus(cpp_params(op), outs)});")
    return lines


def out_names(op: Op) -> list[str]:
    return ["out"] if len(op.outputs) == 1 else [f"out{i}" for i in range(len(op.outputs))]


def plus(a: str, b: str) -> str:
    return f"{a}, {b}" if a and b else a or b


def kernel_declaration(op: Op) -> str | None:
    """Line of gen/kernels.h: what the kernel file must define."""
    kernel = op.option("kernel", op.name)
    if op.kind != "structured" or kernel == "nothing":
        return None
    if op.option("dynamic"):
        return f"{cpp_value(op.returns)} {kernel}({cpp_params(op)});"
    if op.option("inplace_kernel") or op.mutated_lists:
        return f"void {kernel}({cpp_params(op)});"
    outs = ", ".join(f"Tensor& {n}" for n in results_of(op))
    return f"void {kernel}({plus(outs, cpp_params(op))});"


def needs_test(entry: Entry) -> str:
    """Does any differentiable input require grad? "" when none can."""
    op = entry.op
    if entry.vjp is not None:
        slots = [entry.vjp.slots[k] for k in entry.vjp.differentiable]
    elif op.option("differentiable", True):
        slots = [
            i for i, p in enumerate(op.params) if p.type.base in ("Tensor", "Tensors", "OptTensors")
        ]
    else:
        slots = []
    return " || ".join(f"needs_grad({cpp_name(op.params[i].name)})" for i in slots)


def _rule_function(entry: Entry, callees: Callees, suffix: str) -> list[str]:
    """The body of the entry as a static function (shape rule, geometry of a view)."""
    assert entry.body is not None
    e = BodyEmitter(entry.body, callees)
    ret = cpp_value(body_returns(entry.op))
    return [f"static {ret} {entry.op.uid}_{suffix}({e.params()}) {{", *e.body(), "}", "@restore"]


def composite(entry: Entry, callees: Callees) -> list[str]:
    """An entry that is made of other operations: the compiled body is the operation."""
    op = entry.op
    assert entry.body is not None
    e = BodyEmitter(entry.body, callees)
    head = [
        f"{cpp_value(op.returns)} {op.name}({e.params()}) {{",
        *profiled(op, op.name, "Plain", names=e.param_names()),
    ]
    if op.option("autocast"):
        head.append(f"  if (autocast_enabled()) [[unlikely]] return {boxed(op)};")
    return [*head, *e.body(), "}", "@restore"]


def derivative(entry: Entry, callees: Callees, fused: Sequence[str] = ()) -> list[str]:
    """Rule function, node and recording of a primitive with a vjp."""
    if entry.vjp is None:
        return []
    lines = [*vjp_function(entry, callees, fused), "", *node_struct(entry), ""]
    return [*lines, *record(entry)]


def result_params(op: Op) -> str:
    return ", ".join(f"{cpp_param(t)} {n}" for n, t in zip(results_of(op), op.outputs, strict=True))


def record(entry: Entry) -> list[str]:
    """`f_record`: makes the node, saves, links."""
    op = entry.op
    node = node_type(op)
    if op.mutates:
        return record_before(entry, f"{op.uid}_record")
    results = results_of(op)
    history = results[0] if len(results) == 1 else f"Tensors{{{', '.join(results)}}}"
    params = plus(result_params(op), _unused(op))
    return [
        f"[[gnu::noinline]] static void {op.uid}_record({params}) {{",
        f"  auto node = new_node<{node}>();",
        *edges(entry),
        f"  set_history({history}, node);",
        *fill_node(entry, outputs=False),
        *fill_node(entry, outputs=True),
        *named_without(op),
        "}",
    ]


def named_without(op: Op) -> list[str]:
    """Notes in the node that the call gave none of the parameters that make its usual name."""
    names = other_name(op)[1:]
    return [f"  node->plain_ = {' && '.join(f'!{n}' for n in names)};"] if names else []


def record_before(entry: Entry, function: str, overwritten: str = "") -> list[str]:
    """Makes the node of an in-place change and saves what the change may destroy."""
    op = entry.op
    node = node_type(op)
    return [
        f"[[gnu::noinline]] static Ref<{node}> {function}({_unused(op)}) {{",
        f"  auto node = new_node<{node}>();",
        *edges(entry),
        *fill_node(entry, outputs=False, overwritten=overwritten),
        "  return node;",
        "}",
    ]


def rebase(entry: Entry, self: str) -> list[str]:
    """After an in-place change under `record`: history of self, and the saved result."""
    saved = fill_node(entry, outputs=True)
    if not saved:
        return [f"  if (record) rebase_history({self}, node);"]
    lines = ["  if (record) {", f"    const Tensor& result = {self};"]
    lines.append(f"    rebase_history({self}, node);")
    return [*lines, *("  " + s for s in saved), "  }"]


def _unused(op: Op) -> str:
    return ", ".join(f"[[maybe_unused]] {cpp_param(p.type)} {cpp_name(p.name)}" for p in op.params)


def _tensors(op: Op, but: Sequence[str] = ()) -> list[str]:
    """C++ names of the parameters that are tensors or lists of them."""
    return [cpp_name(p.name) for p in op.tensor_params if p.name not in but]


def runs_kernel(op: Op, written: Sequence[str]) -> str:
    """C++ test that the kernel is called, see Note [Meta tensors].

    The option `cpu_params` names parameters that may stay on the CPU, whatever the others do;
    `unread` those of which only shape and dtype count.
    """
    loose = [str(n) for n in op.option("cpu_params", ())]
    unread = [str(n) for n in op.option("unread", ())]
    strict = [f"std::tie({', '.join(written)})", *_tensors(op, [*loose, *unread])]
    test = f"runs_kernel({', '.join(strict)})"
    return f"{test} && kept_on_cpu({', '.join(map(cpp_name, loose))})" if loose else test


def boxed(op: Op) -> str:
    return f"call_boxed<{cpp_value(op.returns)}>({plus(f'desc::{op.uid}', cpp_args(op))})"


def modes(op: Op) -> str:
    test = "modes.active" if op.option("autocast") else "intercepted()"
    return f"  if ({test}) [[unlikely]] return {boxed(op)};"


def profiled(
    op: Op, name: str, form: str, outs: Sequence[str] = (), names: Sequence[str] | None = None
) -> list[str]:
    """First lines of a function of `op`: its event in a profile, see Note [Events of operations].

    Composites that nobody can name, and those that make no tensors, have none. `names` are those of
    the parameters, where the function gives them others.
    """
    names = [cpp_name(p.name) for p in op.params] if names is None else names
    hidden = not op.namespaces and (not op.is_method or op.name.startswith("_"))
    makes = any(t.base in ("Tensor", "Tensors", "OptTensors") for t in op.outputs)
    if op.kind == "composite" and (hidden or not makes):
        return []
    places = ", ".join(f"&{name}" for name in names)
    given = f"const void* const given_[] = {{{places}}};"
    event = f"profiler::OperationEvent event_(desc::{op.uid}, profiler::Form::{form}, given_)"
    return [
        "  if (profiler::on()) [[unlikely]] {",
        f"    {given if op.params else 'const void* const* given_ = nullptr;'}",
        f"    if ({event}; event_.outside())",
        f"      return ops::{name}({', '.join([*names, *outs])});",
        "  }",
    ]


def no_autocast(op: Op) -> list[str]:
    """First line of in-place and out= forms: autocast leaves them alone."""
    return ["  NoAutocastGuard no_autocast;"] if op.option("autocast") else []


def recording(entry: Entry) -> list[str]:
    test = needs_test(entry)
    if not test:
        return []
    op = entry.op
    results = results_of(op)
    if entry.vjp is None:
        history = results[0] if len(results) == 1 else f"Tensors{{{', '.join(results)}}}"
        # Linked to the inputs, so that a derivative asked of them is refused, not left out. Whole
        # numbers and truth values have no history.
        if all(t.base == "Tensor" and not t.optional for t in op.outputs):
            smooth = " || ".join(f"is_inexact({r}.dtype())" for r in results)
            test = f"({test}) && ({smooth})"
        return [
            f"  if ({test}) [[unlikely]] {{",
            f'    auto node = not_differentiable("{op.name}");',
            *(f"    node->add_next({name});" for name in _tensors(op)),
            f"    set_history({history}, node);",
            "  }",
        ]
    return [f"  if ({test}) {op.uid}_record({plus(', '.join(results), cpp_args(op))});"]


def bind_results(op: Op, value: str) -> list[str]:
    names = results_of(op)
    if len(names) == 1:
        return [f"  {cpp_value(op.outputs[0])} {names[0]} = {value};"]
    lines = [f"  auto results = {value};"]
    refs = [f"  [[maybe_unused]] auto& {n} = std::get<{i}>(results);" for i, n in enumerate(names)]
    return lines + refs


def _tensor_results(op: Op) -> bool:
    return all(t.base in ("Tensor", "Tensors") for t in op.outputs)


def structured(entry: Entry, callees: Callees) -> list[str]:
    """Shape rule, kernel, recording."""
    op = entry.op
    kernel = f"kernels::{op.option('kernel', op.name)}"
    lines = _rule_function(entry, callees, "shape")
    lines += ["", *derivative(entry, callees)] if entry.vjp else []
    head = f"{cpp_value(op.returns)} {op.name}({cpp_params(op)}) {{"
    rule = f"{op.uid}_shape({cpp_args(op)})"
    if op.mutated_lists:
        return [*lines, "", head, *_list_mutation(op, kernel, rule), "}"]
    if op.option("inplace_kernel"):
        return [*lines, "", head, *_mutation(entry, kernel, rule), "}"]
    body = [*profiled(op, op.name, "Plain"), modes(op)]
    if op.option("dynamic"):
        operands = ", ".join([f'"{op.name}"', *_tensors(op)])
        body += [f"  {rule};", f"  refuse_meta({operands});"]
        body += bind_results(op, f"{kernel}({cpp_args(op)})")
    else:
        body += bind_results(op, rule)
        body += _updates(op)
        if op.option("kernel") != "nothing":
            body.append(f"  if ({runs_kernel(op, results_of(op))})")
            body.append(f"    {kernel}({plus(', '.join(results_of(op)), cpp_args(op))});")
        else:
            body.append("  if (asked.fills_new_memory) [[unlikely]] fill_new_memory(result);")
    if _tensor_results(op):
        body += recording(entry)
    body.append(f"  return {'result' if len(op.outputs) == 1 else 'results'};")
    return [*lines, "", head, *body, "}", *forms(entry, kernel, rule)]


def dual_test(op: Op) -> str:
    """Last argument of check_out: is an input of an out= form dual?"""
    tensors = " || ".join(f"any_dual({cpp_name(p.name)})" for p in op.tensor_params)
    return f", intercepted() && ({tensors})" if tensors else ""


def _updates(op: Op) -> list[str]:
    """Tells who watches changes of the tensors that the kernel changes besides."""
    if not op.updates:
        return []
    when = op.option("updates_when")
    test = f" && {when}" if when else ""
    names = ", ".join(map(cpp_name, op.updates))
    return [f'  if (modes.watch{test}) [[unlikely]] before_updates({{{names}}}, "{op.name}");']


def _list_mutation(op: Op, kernel: str, rule: str) -> list[str]:
    """Lists of tensors changed in place, unrecorded: tensors that need a derivative are refused."""
    lines = [*profiled(op, op.name, "Plain"), modes(op)]
    lines += [f'  check_inplace({cpp_name(n)}, "{op.name}");' for n in op.mutated_lists]
    lines += [f"  {rule};", f"  if ({runs_kernel(op, ())}) {kernel}({cpp_args(op)});"]
    return lines + [f"  bump_versions({cpp_name(n)});" for n in op.mutated_lists]


def _mutation(entry: Entry, kernel: str, rule: str) -> list[str]:
    op = entry.op
    self = cpp_name(op.params[0].name)
    test = needs_test(entry) or "false"
    lines = [*profiled(op, op.name, "Plain"), modes(op), f"  bool record = {test};"]
    # Writing the same everywhere may write a place twice.
    overlap = ", /*overlap=*/true" if op.option("idempotent") else ""
    if source := op.option("nothing_from_itself"):
        lines.insert(0, f"  if ({self}.is_same({source})) return {self};")
    lines.append(f'  check_inplace({self}, record, "{op.name}"{overlap});')
    lines.append(f"  {rule};")
    if entry.vjp is not None:
        lines.append(f"  Ref<{node_type(op)}> node;")
        lines.append(f"  if (record) node = {op.uid}_record({cpp_args(op)});")
    lines.append(f"  if ({runs_kernel(op, [self])}) {kernel}({cpp_args(op)});")
    lines.append(f"  {self}.bump_version();")
    if entry.vjp is None:
        lines.append(f'  if (record) rebase_history({self}, not_differentiable("{op.name}"));')
    else:
        lines += rebase(entry, self)
    return [*lines, f"  return {self};"]


def forms(entry: Entry, kernel: str, rule: str) -> list[str]:
    """In-place and out= forms of a structured operation."""
    op = entry.op
    lines: list[str] = []
    if op.has_inplace:
        lines += ["", *inplace_by_copy(entry, _in_own_memory(entry, kernel, rule))]
    if op.has_out:
        lines += ["", *_out_form(entry, kernel, rule)]
    return lines


def _in_own_memory(entry: Entry, kernel: str, rule: str) -> list[str]:
    """Statements that run the kernel with `out` being the input itself, where nobody can tell.

    The option `own_memory` says that the kernel begins with a copy of its input, unless that is
    `out`, and that it checks its arguments before it writes.
    """
    op = entry.op
    if not op.option("own_memory"):
        return []
    self, *others = _tensors(op)
    alone = [f"!{x}.shares_storage({self})" for x in others]
    quiet = [f"!({test})"] if (test := needs_test(entry)) else []
    return [
        f"  if ({' && '.join(['!intercepted()', *quiet, *alone])}) {{",
        f'    check_inplace({self}, false, "{op.name}_");',
        f"    {rule};",
        f"    Tensor out = {self};",
        f"    if ({runs_kernel(op, [self])}) {kernel}({plus('out', cpp_args(op))});",
        f"    {self}.bump_version();",
        f"    return {self};",
        "  }",
    ]


def inplace_by_copy(entry: Entry, shortcut: Sequence[str] = ()) -> list[str]:
    """NAME_ as the functional form copied back; of a copy of what its derivative needs."""
    op = entry.op
    self = cpp_name(op.params[0].name)
    args = [cpp_name(p.name) for p in op.params]
    head = f"Tensor {op.name}_({cpp_params(op)}) {{"
    lines = [head, *profiled(op, f"{op.name}_", "InPlace"), *no_autocast(op), *shortcut]
    kept = [s.origin for s in entry.vjp.saved if s.keeps_memory] if entry.vjp else None
    if (kept is None or op.params[0].name in kept) and (test := needs_test(entry)):
        lines.append(f"  const Tensor before = {test} ? copied({self}) : {self};")
        args[0] = "before"
    call = f"{op.name}({', '.join(args)})"
    return [*lines, f'  return assign_inplace({self}, {call}, "{op.name}_");', "}"]


def _out_form(entry: Entry, kernel: str, rule: str) -> list[str]:
    op = entry.op
    outs, results = out_names(op), results_of(op)
    ret = "out" if len(outs) == 1 else f"{{{', '.join(outs)}}}"
    out_params = ", ".join(f"const Tensor& {o}" for o in outs)
    head = f"{cpp_value(op.returns)} {op.name}_out({plus(cpp_params(op), out_params)}) {{"
    test = needs_test(entry) or "false"
    lines = [head, *profiled(op, f"{op.name}_out", "Out", outs), *no_autocast(op)]
    lines += [f'  check_out({o}, {test}, "{op.name}"{dual_test(op)});' for o in outs]
    lines += _properties_of_out(op, outs[0])
    lines.append("  NoGradGuard no_grad;")
    simple = op.option("dynamic") or op.option("kernel") == "nothing"
    exact = _exact(op, outs, results)
    if simple or op.kind == "composite" or not entry.is_primitive:
        lines += bind_results(op, f"{op.name}({cpp_args(op)})")
        lines += exact
        lines += _apart(op, outs, results)
        lines += _all_assignable(op, outs, results)
    else:
        lines.append("  if (intercepted()) [[unlikely]] {")
        lines += ["  " + x for x in bind_results(op, f"{op.name}({cpp_args(op)})")]
        lines += [
            f'    assign_out({o}, {r}, "{op.name}");' for o, r in zip(outs, results, strict=True)
        ]
        lines += [f"    return {ret};", "  }", *bind_results(op, rule)]
        lines += exact
        lines += _apart(op, outs, results)
        lines += _all_assignable(op, outs, results)
        aliases = _inputs_overlap(op)
        for o, r in zip(outs, results, strict=True):
            lines.append(f"  if (writes_directly({o}, {r}){aliases.format(o)}) {r} = {o};")
        lines.append(f"  if ({runs_kernel(op, results)})")
        lines.append(f"    {kernel}({plus(', '.join(results), cpp_args(op))});")
    if op.option("out_any_dtype"):
        pairs = zip(outs, results, strict=True)
        lines += [f"  {r} = ops::to({r}, {o}.dtype());" for o, r in pairs]
    if op.option("out_any_shape"):
        lines += [f"  {r} = in_shape_of({o}, {r});" for o, r in zip(outs, results, strict=True)]
    told = "" if op.option("out_told", bool(op.tensor_params)) else ", false"
    pairs = zip(outs, results, strict=True)
    lines += [f'  assign_out({o}, {r}, "{op.name}"{told});' for o, r in pairs]
    return [*lines, f"  return {ret};", "}"]


def _exact(op: Op, outs: list[str], results: list[str]) -> list[str]:
    """Outputs have the dtypes of the results, unless the entry says that results are cast."""
    if op.option("out_casts"):
        return []
    also = "".join(f", DType::{d}" for d in op.option("out_also", ()))
    return [
        f"  check_out_dtype({o}, {r}.dtype(){also});" for o, r in zip(outs, results, strict=True)
    ]


def _apart(op: Op, outs: list[str], results: list[str]) -> list[str]:
    """Where inputs are read at other places than results are written, they share no memory."""
    if not op.option("out_apart"):
        return []
    return [
        f'  check_apart({o}, {r}.sizes(), {cpp_name(p.name)}, "{op.name}");'
        for o, r in zip(outs, results, strict=True)
        for p in op.tensor_params
    ]


def _all_assignable(op: Op, outs: list[str], results: list[str]) -> list[str]:
    """Of several results none is written unless all can be."""
    if len(outs) == 1:
        return []
    pairs = zip(outs, results, strict=True)
    return [f'  check_assignable({o}, {r}, "{op.name}");' for o, r in pairs]


def _properties_of_out(op: Op, out: str) -> list[str]:
    """What is not told a device or dtype makes its result as it is to be: factories, and sums."""
    if op.tensor_params and not op.option("out_cast"):
        return []
    given = {"Device": "device", "DType": "dtype"}
    return [
        f"  if (!{p.name}) {p.name} = {out}.{given[p.type.base]}();"
        for p in op.params
        if p.type.base in given and p.type.optional
    ]


def _inputs_overlap(op: Op) -> str:
    """Test, to be formatted with the output, that no tensor input may share its memory."""
    parts = []
    for p in op.params:
        if p.type.base in ("Tensor", "Tensors", "OptTensors"):
            parts.append(f" && !may_overlap({{0}}, {cpp_name(p.name)})")
    return "".join(parts)


def view(entry: Entry, callees: Callees) -> list[str]:
    """A primitive view: geometry, view tracking, recording."""
    op = entry.op
    self = cpp_name(op.params[0].name)
    lines = _rule_function(entry, callees, "view")
    lines += ["", *derivative(entry, callees)] if entry.vjp else []
    body = [
        *profiled(op, op.name, "Plain"),
        modes(op),
        f"  Tensor result = {op.uid}_view({cpp_args(op)});",
        *([] if op.option("unrelated") else [f"  mark_view(result, {self});"]),
        *recording(entry),
        "  return result;",
    ]
    return [*lines, "", f"Tensor {op.name}({cpp_params(op)}) {{", *body, "}"]


def emit(entry: Entry, callees: Callees) -> list[str]:
    """All C++ of an entry."""
    op = entry.op
    if op.kind == "composite" or not entry.is_primitive:
        lines = composite(entry, callees)
        lines += ["", *inplace_by_copy(entry)] if op.has_inplace else []
        return [*lines, "", *_out_form(entry, "", "")] if op.has_out else lines
    if op.kind == "view":
        return view(entry, callees)
    return structured(entry, callees)
