"""C++ of the loops of pointwise kernels, from scalar graphs.

Owns the spelling of a loop: which compute types it is made for, the types inside it, the guard
around sine and cosine. See Note [Compute types] in csrc/kernels/pointwise.h.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ..ops.scalar import PRIMITIVES
from .scalar_expr import Node, topological

#: index in Compute -> C++ type of the loop
COMPUTE = ("float", "double", "int64_t", "uint64_t", "bool", "C64", "C128")
_TRIG = ("sin", "cos", "tan", "sinc")
_CHUNK = 512  # elements looked at for large angles before they are computed
# Functions that csrc/kernels/vector_lanes.h has for 16 floats at a time. A call costs more than
# half of what they do, so loops in which all else is arithmetic are written in lanes as a whole.
_BY_LANES = {"exp", "tanh", "erf", "sigmoid", "sin", "cos", "tan"}
_LANE_ARITHMETIC = {"add", "sub", "mul", "div", "neg", "square", "reciprocal", "sqrt", "rsqrt"}
# What computes with truths as they lie in memory, eight times as many at once as integers.
_OF_TRUTHS = {
    f"{kind}_{name}" for kind in ("bitwise", "logical") for name in ("and", "or", "xor", "not")
} | {"eq", "ne"}
_SAME_KIND = {"angle", "abs", "real", "imag", "complex"}


@dataclass
class Kernel:
    """One generated kernel: outputs over inputs and number parameters."""

    name: str  # C++ identifier
    label: str  # in messages
    outputs: list[Node]
    inputs: list[str]
    params: list[str]
    conditions: frozenset[str] = frozenset()
    classes: str = "bifc"
    promote: str = "same"
    results: tuple[str, ...] = ()
    also: list[Node] = field(default_factory=list)
    #: see `exact` and `rounded` of PointwiseKernel in csrc/kernels/pointwise.h
    exact: frozenset[str] = frozenset()
    rounded: frozenset[str] = frozenset()

    @property
    def compute_types(self) -> list[bool]:
        """For each of COMPUTE: is the loop made?"""
        c, nodes = self.classes, topological(self.outputs)
        inexact = any(n.args and PRIMITIVES[n.op].inexact for n in nodes)
        whole = self.promote != "float" and not inexact and ("i" in c or "b" in c)
        signed = any(n.args and PRIMITIVES[n.op].signed for n in nodes)
        truths = {n.op for n in nodes if n.args} <= _OF_TRUTHS
        fl, cx = "f" in c, "c" in c
        return [
            fl,
            fl,
            whole,
            whole and "i" in c and signed,
            whole and "b" in c and truths,
            cx,
            cx,
        ]

    @property
    def cost(self) -> int:
        return sum(PRIMITIVES[n.op].cost for n in topological(self.outputs) if n.args)

    @property
    def divides(self) -> bool:
        return any(n.args and PRIMITIVES[n.op].divides for n in topological(self.outputs))

    @property
    def in_lanes(self) -> bool:
        """Is the loop of float written for vectors of it?"""
        nodes = topological(self.outputs)
        ops = {n.op for n in nodes if n.args}
        return (
            "f" in self.classes
            and not self.conditions
            and bool(ops & _BY_LANES)
            and ops <= _BY_LANES | _LANE_ARITHMETIC
            and all(n.kind in ("same", "real") for n in nodes)
            and all(self.result_kind(j) in ("Same", "Real") for j in range(len(self.outputs)))
        )

    @property
    def has_fixed(self) -> bool:
        """Is there a loop of float whose last input is one number per row?

        For arithmetic so cheap that spreading that number out first would take as long.
        """
        nodes = topological(self.outputs)
        return (
            "f" in self.classes
            and not self.conditions
            and (len(self.inputs), len(self.outputs)) == (2, 1)
            and len(_used(self, nodes)) == 2
            and {n.op for n in nodes if n.args} <= _LANE_ARITHMETIC
        )

    def result_kind(self, i: int) -> str:
        """Enumerator of Result for output i."""
        if self.results and self.results[i] != "same":
            return self.results[i].capitalize()
        kind = self.outputs[i].kind
        if kind == "bool":
            return "Bool"
        if kind == "complex":
            return "Complex"
        return (
            "Real" if kind == "real" and "c" in self.classes and self.promote != "real" else "Same"
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


def _joint(args: Sequence[Node], types: dict[str, str]) -> str:
    """Type to which the arguments of a call are lifted."""
    kinds = {a.kind for a in args if a.op != "const"}
    for kind in ("same", "complex", "real"):
        if kind in kinds:
            return types[kind]
    return types["same" if kinds else "real"]


class _Names:
    """What the values of a loop are called, and their types by kind."""

    def __init__(self, types: dict[str, str]) -> None:
        self.of: dict[int, str] = {}
        self.types = types

    def lifted(self, n: Node, to: str) -> str:
        lift = "lanes_of" if to == "Lanes" else f"lift<{to}>"
        if n.op == "const":
            return f"{lift}({_literal(n.value)})"
        name = self.of[id(n)]
        return name if self.types[n.kind] == to else f"{lift}({name})"


def _call(n: Node, names: _Names, exact: str) -> str:
    op = n.op
    suffix = f"<{exact}>" if op in _TRIG else ""
    if op == "where":
        c, a, b = n.args
        t = names.types[n.kind]
        return (
            f"s::where<{t}>({names.lifted(c, 'bool')}, {names.lifted(a, t)}, {names.lifted(b, t)})"
        )
    if op.startswith("logical_"):
        args = [names.lifted(a, "bool") for a in n.args]
    else:
        joint = "R" if op == "complex" else _joint(n.args, names.types)
        args = [names.lifted(a, joint) for a in n.args]
    return f"s::{op}{suffix}({', '.join(args)})"


def _statements(nodes: Sequence[Node], names: _Names, exact: str, prefix: str) -> list[str]:
    lines = []
    for n in nodes:
        if not n.args:
            continue
        name = names.of.get(id(n)) or f"{prefix}{len(names.of)}"
        value = _call(n, names, exact)
        names.of[id(n)] = name
        lines.append(f"const {names.types[n.kind]} {name} = {value};")
    return lines


def _input_names(
    k: Kernel, nodes: Sequence[Node], types: dict[str, str] = _TYPES, fixed: int | None = None
) -> tuple[_Names, dict[int, str]]:
    """Names of what a loop is given, and how each input is loaded; `fixed` does not advance."""
    names = _Names(types)
    loads = {}
    for n in nodes:
        if n.op == "input":
            i = k.inputs.index(str(n.value))
            names.of[id(n)] = f"x{i}"
            kind = types[n.kind]
            read = "lanes.read" if kind == "Lanes" else f"read<{kind}>"
            load = f"{read}(in{i}{'' if i == fixed else ' + i'})"
            loads[i] = f"const {kind} x{i} = {load};"
        elif n.op == "param":
            p = f"p{k.params.index(str(n.value))}"
            names.of[id(n)] = f"lanes_of({p})" if types is _LANES else p
    return names, loads


def loop(k: Kernel) -> list[str]:
    """The kernel as a class template with a static `run`."""
    nodes = topological(k.outputs)
    trig = [n.args[0] for n in nodes if n.op in _TRIG]
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
    if k.has_fixed:
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
    kinds = {n.value: n.kind for n in topological(k.outputs) if n.op == "param"}
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
        "Same": "T",
        "Real": "R",
        "Bool": "bool",
        "Complex": "C",
        "Int32": "int32_t",
        "Int64": "int64_t",
    }[kind]


def _used(k: Kernel, nodes: Sequence[Node]) -> set[int]:
    return {k.inputs.index(str(n.value)) for n in nodes if n.op == "input"}


def _body(k: Kernel, nodes: list[Node], exact: str, fixed: bool = False) -> list[str]:
    """Statements from pointers to stores; fixed: over n elements, the last input one number."""
    number = len(k.inputs) - 1 if fixed else None
    names, loads = _input_names(k, nodes, fixed=number)
    lines = _pointers(k, _used(k, nodes), outputs=True)
    first, last = ("0", "n") if fixed else ("from", "to")
    if number is not None:
        lines.append(f"    {loads.pop(number)}")
    elif k.in_lanes:
        lines += _lanes(k, nodes, exact)
    lines += ["#pragma GCC ivdep", f"    for (int64_t i = {first}; i < {last}; ++i) {{"]
    lines += [f"      {x}" for x in [*loads.values(), *_statements(nodes, names, exact, "t")]]
    for j, n in enumerate(k.outputs):
        lines.append(f"      write(out{j} + i, {names.lifted(n, _out_type(k, j))});")
    return [*lines, "    }"]


def _lanes(k: Kernel, nodes: list[Node], exact: str) -> list[str]:
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


def _guarded(k: Kernel, angles: Sequence[Node]) -> list[str]:
    """Chunks with an angle beyond the fast range go through the exact functions."""
    nodes = topological(angles)
    names, loads = _input_names(k, nodes)
    lines = _pointers(k, _used(k, nodes), outputs=False)
    body = [*loads.values(), *_statements(nodes, names, "true", "t")]
    tests = [f"s::beyond_trig({names.lifted(a, _TYPES[a.kind])})" for a in angles]
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
        *(['#include "kernels/vector_lanes.h"'] if any(k.in_lanes for k in kernels) else []),
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
            for t, made in zip(COMPUTE, k.compute_types, strict=True)
        ]
        lines.append(f"extern const LoopTable loops_{k.name};")
        fixed = f", by_rows<{k.name}::fixed>" if k.has_fixed else ""
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
        results = ", ".join(f"Result::{k.result_kind(j)}" for j in range(len(k.outputs)))
        lines += [
            f"const PointwiseKernel kernel_{k.name} = {{",
            f'    "{k.label}", {len(k.inputs)}, {len(k.outputs)}, {len(k.params)},',
            f"    Promote::{promote}, {bits}, {conditions}, {exact}, {rounded}, "
            f"{str(k.divides).lower()}, {min(k.cost, 9999)}, {{{results}}},",
            f"    FB_ISA_LIST(loops_{k.name})}};",
        ]
    return "\n".join([*lines, "", "}  // namespace flambeau::kernels", ""])
