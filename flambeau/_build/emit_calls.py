"""Calls of pointwise kernels as C++, and the files of their loops.

Owns which kernel of a plan is called: by the number of the variant, or by what a derivative needs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from .._table.kernel import Kernel
from .._table.model import Op
from .._table.pointwise import Plan, Variant, paths
from .emit_expr import CPP_KEYWORDS
from .emit_kernels import isa_source, table_source

_PER_FILE = 24  # kernels in one generated source


def _kernel(plan: Plan, args: Sequence[str]) -> str:
    base = f"kernels::kernel_{plan.variants[0].kernel.name}"
    if plan.selector is None:
        return base
    index = f"{plan.op.uid}_variant({', '.join(args)})"
    if len(plan.variants) == 1:
        return f"({index}, {base})"
    names = ", ".join(f"&kernels::kernel_{v.kernel.name}" for v in plan.variants)
    return f"*std::array{{{names}}}[{index}]"


def _inputs(names: Iterable[str]) -> str:
    return "{" + ", ".join(f"&{n}" for n in names) + "}"


def _params(plan: Plan, kernel: Kernel) -> str:
    return "{" + ", ".join(_param_value(plan.op, p) for p in kernel.params) + "}"


def call(plan: Plan, args: Sequence[str]) -> str:
    """Expression of the results (a tuple of several)."""
    k = plan.variants[0].kernel
    n = len(k.outputs)
    inputs, params = _inputs(map(_cpp, k.inputs)), _params(plan, k)
    if n == 1:
        return f"kernels::pointwise_call({_kernel(plan, args)}, {inputs}, {params})"
    return (
        f"kernels::pointwise_tuple({_kernel(plan, args)}, {inputs}, {params}, "
        f"std::make_index_sequence<{n}>())"
    )


def call_inplace(plan: Plan, self_name: str, args: Sequence[str]) -> str:
    """Expression that writes the result into the first parameter."""
    k = plan.variants[0].kernel
    inputs, params = _inputs(map(_cpp, k.inputs)), _params(plan, k)
    return f"kernels::pointwise_inplace({_kernel(plan, args)}, {self_name}, {inputs}, {params})"


def call_out(plan: Plan, args: Sequence[str], outs: Sequence[str]) -> str:
    """Expression that writes the results into `outs`."""
    k = plan.variants[0].kernel
    inputs, params = _inputs(map(_cpp, k.inputs)), _params(plan, k)
    targets = _inputs(outs)
    return f"kernels::pointwise_out({_kernel(plan, args)}, {inputs}, {params}, {targets})"


def backward(plan: Plan, grads: Sequence[str], needed: Sequence[str]) -> list[str]:
    """Statements that return the fused cotangents when a kernel serves what is needed.

    They see the rule's variables. What they do not return, the rule over operations computes.
    """
    if len(plan.variants) != 1 or len(grads) != 1:
        return _select_backward(plan, needed)
    return _backward_of(plan, plan.variants[0], needed)


def _cpp(name: str) -> str:
    return name + "_" if name in CPP_KEYWORDS else name


def _param_value(op: Op, name: str) -> str:
    p = next(p for p in op.params if p.name == name)
    value = _cpp(name)
    if p.type.optional:
        return f"kernels::Param({value}.value_or(0))"
    return f"kernels::Param({value})"


def _backward_of(plan: Plan, v: Variant, needed: Sequence[str]) -> list[str]:
    lines: list[str] = []
    active = [i for i, c in enumerate(v.cotangents) if c is not None]
    every = sorted({i for u in plan.variants for i, c in enumerate(u.cotangents) if c is not None})
    for slots, kernel in sorted(v.backward.items(), key=lambda item: -len(item[0])):
        test = " && ".join(needed[i] if i in slots else f"!{needed[i]}" for i in active)
        call = (
            f"kernels::pointwise_many(kernels::kernel_{kernel.name}, "
            f"{_inputs(map(_cpp, kernel.inputs))}, {_params(plan, kernel)}, cotangents);"
        )
        values = [f"cotangents[{slots.index(i)}]" if i in slots else "Tensor()" for i in every]
        lines += [
            f"if ({test}) {{",
            f"  Tensor cotangents[{len(slots)}];",
            f"  {call}",
            f"  return flatten({', '.join(values)});",
            "}",
        ]
    return lines


def _select_backward(plan: Plan, needed: Sequence[str]) -> list[str]:
    """The same for several variants: the one that the forward call took."""
    if plan.selector is None or not any(v.backward for v in plan.variants):
        return []
    tests = _variant_tests(plan.op)
    lines: list[str] = []
    for v, test in zip(plan.variants, tests, strict=True):
        inner = _backward_of(plan, v, needed)
        if inner and test is not None:
            lines += [f"if ({test}) {{", *("  " + x for x in inner), "}"]
    return lines


def _variant_tests(op: Op) -> list[str | None]:
    """C++ tests of each path, where they are comparisons of a string or plain flags."""
    return [_cpp_tests(path) for path in paths(op)]


def _cpp_tests(path: Sequence[tuple[ast.expr, bool]]) -> str | None:
    parts = []
    for test, taken in path:
        match test:
            case ast.Name(id=name):
                text = _cpp(name)
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Eq()], comparators=[ast.Constant(value=str(value))]
            ):
                text = f'{_cpp(name)} == "{value}"'
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]
            ):
                text = f"!{_cpp(name)}.has_value()"
            case ast.BoolOp(op=ast.And(), values=[
                ast.Call(func=ast.Name(id="is_wrapped"), args=[ast.Name(id=name)]),
                ast.Compare(ops=[ast.Eq()], comparators=[ast.Constant(value=int() as value)]),
            ]):  # fmt: skip
                text = f"({_cpp(name)}.is_wrapped_number() && {_cpp(name)}.item().equal({value}))"
            case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
                text = f"!{_cpp(name)}"
            case _:
                return None
        parts.append(text if taken else f"!({text})")
    return " && ".join(parts) or "true"


def files(plans: Sequence[Plan]) -> dict[str, str]:
    """Generated files of all kernels: name -> text."""
    kernels: dict[str, list[Kernel]] = {}
    for p in plans:
        kernels.setdefault(p.op.family, []).extend(p.kernels)
    every = [k for ks in kernels.values() for k in ks]
    out = {"pointwise_table.cpp": table_source(every)}
    for family, ks in kernels.items():
        for i in range(0, len(ks), _PER_FILE):
            name = f"loops_{family}{'' if i == 0 else f'_{i // _PER_FILE + 1}'}.isa.cpp"
            out[name] = isa_source(ks[i : i + _PER_FILE], name)
    return out
