"""C++ of pointwise operations around their generated kernels.

The kernels and their fused derivatives come from `pointwise.plan`, calls of them from `emit_calls`;
here are the call path, the recording, and the in-place and out= forms. With gradients recorded
during backward the derivative runs as tensor operations, else as the fused kernel.
"""

from __future__ import annotations

from . import emit_calls
from .compiler import Callees, Entry
from .cpp_types import cpp_value
from .emit_op import (
    bind_results,
    cpp_args,
    cpp_name,
    cpp_params,
    derivative,
    dual_test,
    modes,
    needs_test,
    no_autocast,
    out_names,
    plus,
    profiled,
    rebase,
    record_before,
    recording,
)
from .emit_stmt import BodyEmitter
from .emit_vjp import node_type, results_of


def emit(entry: Entry, callees: Callees) -> list[str]:
    """All C++ of a pointwise operation."""
    op = entry.op
    lines = _selector(entry, callees)
    lines += derivative(entry, callees, _fused(entry))
    lines += ["", *_function(entry)]
    if op.has_inplace:
        lines += ["", *_inplace(entry)]
    if op.has_out:
        lines += ["", *_out(entry)]
    return lines


def _selector(entry: Entry, callees: Callees) -> list[str]:
    """The function that checks arguments and chooses the kernel, where the body has tests."""
    if entry.body is None:
        return []
    e = BodyEmitter(entry.body, callees)
    head = f"static int64_t {entry.op.uid}_variant({e.params()}) {{"
    return [head, *e.body(), "}", "@restore", ""]


def _fused(entry: Entry) -> list[str]:
    """The fused derivative, taken when nothing records or intercepts its operations."""
    vjp = entry.vjp
    if vjp is None:
        return []
    d = vjp.differentiable
    needed = [f"need[{d.index(k)}].wanted" if k in d else "false" for k in range(len(vjp.slots))]
    statements = emit_calls.backward(entry.pointwise, [g.name for g in vjp.grads], needed)
    if not statements:
        return []
    return ["  if (!modes.grad && !intercepted()) {", *("    " + s for s in statements), "  }"]


def _function(entry: Entry) -> list[str]:
    op = entry.op
    args = [cpp_name(p.name) for p in op.params]
    return [
        f"{cpp_value(op.returns)} {op.name}({cpp_params(op)}) {{",
        *profiled(op, op.name, "Plain"),
        modes(op),
        *bind_results(op, emit_calls.call(entry.pointwise, args)),
        *recording(entry),
        f"  return {'result' if len(op.outputs) == 1 else 'results'};",
        "}",
    ]


def _inplace(entry: Entry) -> list[str]:
    op = entry.op
    args = [cpp_name(p.name) for p in op.params]
    self = args[0]
    test = needs_test(entry) or "false"
    lines: list[str] = []
    if entry.vjp is not None:
        function = f"{op.uid}_record_inplace"
        lines += [*record_before(entry, function, overwritten=op.params[0].name), ""]
    lines += [
        f"Tensor {op.name}_({cpp_params(op)}) {{",
        *profiled(op, f"{op.name}_", "InPlace"),
        *no_autocast(op),
        "  if (intercepted()) [[unlikely]] {",
        *_by_copy(entry),
        "  }",
        f"  bool record = {test};",
        f'  check_inplace({self}, record, "{op.name}_");',
    ]
    if entry.vjp is not None:
        lines += [
            f"  Ref<{node_type(op)}> node;",
            f"  if (record) node = {op.uid}_record_inplace({cpp_args(op)});",
        ]
    lines.append(f"  {emit_calls.call_inplace(entry.pointwise, self, args)};")
    if entry.vjp is not None:
        lines += rebase(entry, self)
    else:
        dead = f'not_differentiable("{op.name}_")'
        lines.append(f"  if (record) rebase_history({self}, {dead});")
    return [*lines, f"  return {self};", "}"]


def _by_copy(entry: Entry) -> list[str]:
    """The functional form copied back; of a copy of what its derivative, if recorded, reads."""
    op = entry.op
    args = [cpp_name(p.name) for p in op.params]
    self, lines = args[0], []
    kept = [s.origin for s in entry.vjp.saved if s.keeps_memory] if entry.vjp else []
    if op.params[0].name in kept:
        lines.append(f"    const Tensor before = modes.grad ? copied({self}) : {self};")
        args[0] = "before"
    call = f"ops::{op.name}({', '.join(args)})"
    return [*lines, f'    return assign_inplace({self}, {call}, "{op.name}_");']


def _out(entry: Entry) -> list[str]:
    op = entry.op
    outs = out_names(op)
    args = [cpp_name(p.name) for p in op.params]
    ret = "out" if len(outs) == 1 else f"{{{', '.join(outs)}}}"
    params = plus(cpp_params(op), ", ".join(f"const Tensor& {o}" for o in outs))
    lines = [f"{cpp_value(op.returns)} {op.name}_out({params}) {{"]
    lines += [*profiled(op, f"{op.name}_out", "Out", outs), *no_autocast(op)]
    test = needs_test(entry) or "false"
    lines += [f'  check_out({o}, {test}, "{op.name}"{dual_test(op)});' for o in outs]
    named = list(zip(outs, results_of(op), strict=True))
    if op.option("out_exact"):
        lines += ["  NoGradGuard no_grad;", *bind_results(op, f"ops::{op.name}({cpp_args(op)})")]
        lines += [f"  check_out_dtype({o}, {r}.dtype());" for o, r in named]
        lines += [f'  assign_out({o}, {r}, "{op.name}");' for o, r in named]
        return [*lines, f"  return {ret};", "}"]
    lines.append("  if (intercepted()) [[unlikely]] {")
    lines += ["  " + x for x in bind_results(op, f"ops::{op.name}({cpp_args(op)})")]
    lines += [f'    assign_out({o}, {r}, "{op.name}");' for o, r in named]
    lines += [f"    return {ret};", "  }"]
    return [
        *lines,
        f"  {emit_calls.call_out(entry.pointwise, args, outs)};",
        f"  return {ret};",
        "}",
    ]
