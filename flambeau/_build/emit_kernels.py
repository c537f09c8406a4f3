"""C++ of the loops of pointwise kernels, from scalar graphs.

Owns the spelling of a loop: which compute types it is made for, the types inside it, the guard
around sine and cosine. See Note [Compute types] in csrc/kernels/pointwise.h.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .._ir.scalars import Scalar, walk
from .._table.kernel import Kernel
from ..ops.scalar import PRIMITIVES

#: index in Compute -> C++ type of the loop
COMPUTE = ("float", "double", "int64_t", "uint64_t", "bool", "C64", "C128")
_CHUNK = 512  # elements looked at for large angles before they are computed


def _made(k: Kernel) -> list[bool]:
    """For each of COMPUTE: is the loop made?"""
    c, used = k.classes, k.primitives
    whole = k.promote != "float" and not any(p.inexact for p in used) and ("i" in c or "b" in c)
    signed = any(p.signed for p in used)
    bools = all(p.bools for p in used)
    fl, cx = "f" in c, "c" in c
    return [
        fl,
        fl,
        whole,
        whole and "i" in c and signed,
        whole and "b" in c and bools,
        cx,
        cx,
    ]


def _in_lanes(k: Kernel) -> bool:
    """Is the loop of float written for vectors of it?

    A call of a function that has such a form costs more than half of what the function does, so
    loops in which all else is arithmetic are written in lanes as a whole.
    """
    lanes = {p.lanes for p in k.primitives}
    return (
        "f" in k.classes
        and not k.conditions
        and "call" in lanes
        and "" not in lanes
        and all(n.type in ("same", "real") for n in walk(k.outputs))
        and all(k.result_kind(j) in ("same", "real") for j in range(len(k.outputs)))
    )


def _has_fixed(k: Kernel) -> bool:
    """Is there a loop of float whose last input is one number per row?

    For arithmetic so cheap that spreading that number out first would take as long.
    """
    return (
        "f" in k.classes
        and not k.conditions
        and (len(k.inputs), len(k.outputs)) == (2, 1)
        and len(_used(k, walk(k.outputs))) == 2
        and all(p.lanes == "plain" for p in k.primitives)
    )


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value == float("inf"):
        return "__builtin_inf()"
    if value == float("-inf"):
        return "-__builtin_inf()"
    if value != value:
        return '__builtin_nan("")'
    return repr(value)


_TYPES = {"same": "T", "real": "R", "bool": "bool", "complex": "C"}
_LANES = {"same": "Lanes", "real": "Lanes"}


def _joint(args: Sequence[Scalar], types: dict[str, str]) -> str:
    """Type to which the arguments of a call are lifted."""
    kinds = {a.type for a in args if a.op != "const"}
    for kind in ("same", "complex", "real"):
        if kind in kinds:
            return types[kind]
    return types["same" if kinds else "real"]


class _Names:
    """What the values of a loop are called, and their types by kind."""

    def __init__(self, types: dict[str, str]) -> None:
        self.of: dict[int, str] = {}
        self.types = types

    def lifted(self, n: Scalar, to: str) -> str:
        lift = "lanes_of" if to == "Lanes" else f"lift<{to}>"
        if n.op == "const":
            return f"{lift}({_literal(n.value)})"
        name = self.of[id(n)]
        return name if self.types[n.type] == to else f"{lift}({name})"


def _call(n: Scalar, names: _Names, exact: str) -> str:
    op = n.op
    suffix = f"<{exact}>" if PRIMITIVES[op].guarded else ""
    if op == "where":
        c, a, b = n.args
        t = names.types[n.type]
        return (
            f"s::where<{t}>({names.lifted(c, 'bool')}, {names.lifted(a, t)}, {names.lifted(b, t)})"
        )
    if op.startswith("logical_"):
        args = [names.lifted(a, "bool") for a in n.args]
    else:
        joint = "R" if op == "complex" else _joint(n.args, names.types)
        args = [names.lifted(a, joint) for a in n.args]
    return f"s::{op}{suffix}({', '.join(args)})"


def _statements(nodes: Sequence[Scalar], names: _Names, exact: str, prefix: str) -> list[str]:
    lines = []
    for n in nodes:
        if not n.args:
            continue
        name = names.of.get(id(n)) or f"{prefix}{len(names.of)}"
        value = _call(n, names, exact)
        names.of[id(n)] = name
        lines.append(f"const {names.types[n.type]} {name} = {value};")
    return lines


def _input_names(
    k: Kernel, nodes: Sequence[Scalar], types: dict[str, str] = _TYPES, fixed: int | None = None
) -> tuple[_Names, dict[int, str]]:
    """Names of what a loop is given, and how each input is loaded; `fixed` does not advance."""
    names = _Names(types)
    loads = {}
    for n in nodes:
        if n.op == "input":
            i = k.inputs.index(str(n.value))
            names.of[id(n)] = f"x{i}"
            kind = types[n.type]
            read = "lanes.read" if kind == "Lanes" else f"read<{kind}>"
            load = f"{read}(in{i}{'' if i == fixed else ' + i'})"
            loads[i] = f"const {kind} x{i} = {load};"
        elif n.op == "param":
            p = f"p{k.params.index(str(n.value))}"
            names.of[id(n)] = f"lanes_of({p})" if types is _LANES else p
    return names, loads


def loop(k: Kernel) -> list[str]:
    """The kernel as a class template with a static `run`."""
    nodes = walk(k.outputs)
    trig = [n.args[0] for n in nodes if n.args and PRIMITIVES[n.op].guarded]
    lines = [f"struct {k.name} {{"]
    lines += [
        "  template <class T, bool Exact>",
        "  FB_INLINE static void part(int64_t from, int64_t to, const void* const* in,",
        "                             void* const* out, [[maybe_unused]] const Param* params) {",
        *_body(k, nodes, "Exact"),
        "  }",
        "  template <class T>",
        "  static void run(int64_t n, const void* const* in, void* const* out,",
        "                  const Param* params) {",
    ]
    if not trig:
        lines.append("    part<T, false>(0, n, in, out, params);")
    else:
        lines += _guarded(k, trig)
    if _has_fixed(k):
        lines += [
            "  }",
            "  FB_INLINE static void fixed(int64_t n, const void* const* in, void* const* out,",
            "                              [[maybe_unused]] const Param* params) {",
            "    using T = float;",
            *_body(k, nodes, "false", fixed=True),
        ]
    return [*lines, "  }", "};"]


def _pointers(k: Kernel, used: set[int], outputs: bool) -> list[str]:
    lines = [
        "    using R [[maybe_unused]] = real_of<T>;",
        "    using C [[maybe_unused]] = complex_of<T>;",
    ]
    for i, name in enumerate(k.inputs):
        if i in used:
            t = "uint8_t" if name in k.conditions else "memory_of<T>"
            lines.append(f"    auto* in{i} = static_cast<const {t}*>(in[{i}]);")
    kinds = {n.value: n.type for n in walk(k.outputs) if n.op == "param"}
    for i, name in enumerate(k.params):
        t = _TYPES[kinds.get(name, "real")]
        lines.append(f"    [[maybe_unused]] const {t} p{i} = number<{t}>(params[{i}]);")
    if outputs:
        for j in range(len(k.outputs)):
            lines.append(f"    auto* out{j} = static_cast<{_out_type(k, j)}*>(out[{j}]);")
    return lines


def _out_type(k: Kernel, j: int) -> str:
    kind = k.result_kind(j)
    return {
        "same": "T",
        "real": "R",
        "bool": "bool",
        "complex": "C",
        "int32": "int32_t",
        "int64": "int64_t",
    }[kind]


def _used(k: Kernel, nodes: Sequence[Scalar]) -> set[int]:
    return {k.inputs.index(str(n.value)) for n in nodes if n.op == "input"}


def _body(k: Kernel, nodes: list[Scalar], exact: str, fixed: bool = False) -> list[str]:
    """Statements from pointers to stores; fixed: over n elements, the last input one number."""
    number = len(k.inputs) - 1 if fixed else None
    names, loads = _input_names(k, nodes, fixed=number)
    lines = _pointers(k, _used(k, nodes), outputs=True)
    first, last = ("0", "n") if fixed else ("from", "to")
    if number is not None:
        lines.append(f"    {loads.pop(number)}")
    elif _in_lanes(k):
        lines += _lanes(k, nodes, exact)
    lines += ["#pragma GCC ivdep", f"    for (int64_t i = {first}; i < {last}; ++i) {{"]
    lines += [f"      {x}" for x in [*loads.values(), *_statements(nodes, names, exact, "t")]]
    for j, n in enumerate(k.outputs):
        lines.append(f"      write(out{j} + i, {names.lifted(n, _out_type(k, j))});")
    return [*lines, "    }"]


def _lanes(k: Kernel, nodes: list[Scalar], exact: str) -> list[str]:
    names, loads = _input_names(k, nodes, _LANES)
    body = [*loads.values(), *_statements(nodes, names, exact, "t")]
    body += [
        f"lanes.write(out{j} + i, {names.lifted(n, 'Lanes')});" for j, n in enumerate(k.outputs)
    ]
    return [
        "#ifdef FB_LANES",
        f"    if constexpr (std::is_same_v<T, float> && !{exact}) {{",
        "      const auto step = [&](int64_t i, auto lanes) {",
        *(f"        {x}" for x in body),
        "      };",
        "      return by_lanes(from, to, step);",
        "    }",
        "#endif",
    ]


def _guarded(k: Kernel, angles: Sequence[Scalar]) -> list[str]:
    """Chunks with an angle beyond the fast range go through the exact functions."""
    nodes = walk(angles)
    names, loads = _input_names(k, nodes)
    lines = _pointers(k, _used(k, nodes), outputs=False)
    body = [*loads.values(), *_statements(nodes, names, "true", "t")]
    tests = [f"s::beyond_trig({names.lifted(a, _TYPES[a.type])})" for a in angles]
    return [
        *lines,
        f"    for (int64_t at = 0; at < n; at += {_CHUNK}) {{",
        f"      int64_t end = at + {_CHUNK} < n ? at + {_CHUNK} : n;",
        # An integer as wide as the angles, not a bool, or the loop would not be vectorised.
        "      typename FloatTraits<R>::Int wide = 0;",
        "      for (int64_t i = at; i < end; ++i) {",
        *(f"        {x}" for x in body),
        f"        wide |= {' | '.join(tests)} ? 1 : 0;",
        "      }",
        "      if (wide) part<T, true>(at, end, in, out, params);",
        "      else part<T, false>(at, end, in, out, params);",
        "    }",
    ]


def isa_source(kernels: Sequence[Kernel], name: str) -> str:
    """Text of a gen/*.isa.cpp: the loops of some kernels."""
    lines = [
        "// Generated from flambeau/ops by flambeau._build; do not edit.",
        '#include "kernels/loop_params.h"',
        *(['#include "kernels/vector_lanes.h"'] if any(_in_lanes(k) for k in kernels) else []),
        "",
        "namespace flambeau::kernels::FB_ISA {",
        "namespace {",
        "",
    ]
    for k in kernels:
        lines += [*loop(k), ""]
    lines += ["}  // namespace", ""]
    for k in kernels:
        entries = [
            f"{k.name}::run<{t}>" if made else "nullptr"
            for t, made in zip(COMPUTE, _made(k), strict=True)
        ]
        lines.append(f"extern const LoopTable loops_{k.name};")
        fixed = f", by_rows<{k.name}::fixed>" if _has_fixed(k) else ""
        lines.append(f"const LoopTable loops_{k.name} = {{{{{', '.join(entries)}}}{fixed}}};")
    return "\n".join([*lines, "", "}  // namespace flambeau::kernels::FB_ISA", ""])


def _bits(names: Sequence[str], chosen: Collection[str]) -> int:
    return sum(1 << i for i, name in enumerate(names) if name in chosen)


def table_source(kernels: Sequence[Kernel]) -> str:
    """Text of gen/pointwise_table.cpp: the entries of all kernels."""
    lines = [
        "// Generated from flambeau/ops by flambeau._build; do not edit.",
        '#include "kernels/pointwise.h"',
        "",
        "namespace flambeau::kernels {",
        "",
    ]
    for k in kernels:
        lines.append(f"extern const PointwiseKernel kernel_{k.name};")
        lines.append(f"FB_ISA_DECLARE(extern const LoopTable loops_{k.name};)")
    lines.append("")
    for k in kernels:
        bits = " | ".join(
            {"b": "kBools", "i": "kInts", "f": "kFloats", "c": "kComplexes"}[c] for c in k.classes
        )
        conditions, exact = _bits(k.inputs, k.conditions), _bits(k.inputs, k.exact)
        rounded = _bits(k.params, k.rounded)
        promote = {"same": "Same", "float": "Float", "first": "First"}[k.promote]
        results = ", ".join(
            f"Result::{k.result_kind(j).capitalize()}" for j in range(len(k.outputs))
        )
        lines += [
            f"const PointwiseKernel kernel_{k.name} = {{",
            f'    "{k.label}", {len(k.inputs)}, {len(k.outputs)}, {len(k.params)},',
            f"    Promote::{promote}, {bits}, {conditions}, {exact}, {rounded}, "
            f"{str(k.divides).lower()}, {min(k.cost, 9999)}, {{{results}}},",
            f"    FB_ISA_LIST(loops_{k.name})}};",
        ]
    return "\n".join([*lines, "", "}  // namespace flambeau::kernels", ""])
