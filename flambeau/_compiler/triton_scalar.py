"""Scalar nodes as expressions of Triton's language, with the meaning that they have in C++.

A rule is a template, by primitive and by type: `{0}` is the first argument's text, `{T}` the dtype.
The device functions that templates name are in `triton_math`, or libdevice's. A primitive without a
rule is refused: `unsupported` lists them, and lowering leaves operations that need them to a call.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..ops.scalar import PRIMITIVES
from . import triton_math
from .scalar import Scalar

#: register type -> Triton's dtype
DTYPE = {
    "bool": "tl.int1",
    "int64_t": "tl.int64",
    "uint64_t": "tl.uint64",
    "float": "tl.float32",
    "double": "tl.float64",
}
#: C++ type in memory -> (Triton's dtype, the letters of a pointer in a signature)
IN_MEMORY = {
    "bool": ("tl.int1", "i1"),
    "uint8_t": ("tl.uint8", "u8"),
    "uint16_t": ("tl.uint16", "u16"),
    "uint32_t": ("tl.uint32", "u32"),
    "uint64_t": ("tl.uint64", "u64"),
    "int8_t": ("tl.int8", "i8"),
    "int16_t": ("tl.int16", "i16"),
    "int32_t": ("tl.int32", "i32"),
    "int64_t": ("tl.int64", "i64"),
    "F16": ("tl.float16", "fp16"),
    "BF16": ("tl.bfloat16", "bf16"),
    "float": ("tl.float32", "fp32"),
    "double": ("tl.float64", "fp64"),
}
KINDS = {
    "bool": ("bool",),
    "int64_t": ("int", "whole"),
    "uint64_t": ("uint", "whole"),
    "float": ("float", "real"),
    "double": ("double", "real"),
}

#: primitives that are operators of the language, which give a plain number the other side's type
_OPERATORS = frozenset("add sub mul eq ne lt le gt ge where bitwise_and bitwise_or".split())
_SAME = {"": "{0}"}
_NEVER = "{0} != {0}"  # of what is no NaN


def _library(names: str) -> dict[str, dict[str, str]]:
    """Functions that libdevice has under the same name."""
    arity = {n: len(PRIMITIVES[n].args) for n in names.split()}
    return {
        n: {"real": f"libdevice.{n}({', '.join(f'{{{i}}}' for i in range(k))})"}
        for n, k in arity.items()
    }


def _own(names: str, *kinds: str) -> dict[str, dict[str, str]]:
    """Device functions; those of other types than floating ones have the kind in their names."""
    out = {}
    for n in names.split():
        args = ", ".join(f"{{{i}}}" for i in range(len(PRIMITIVES[n].args)))
        out[n] = {k: f"s_{n}{'' if k == 'real' else '_' + k}({args})" for k in kinds}
    return out


def _rare(**names: str) -> dict[str, dict[str, str]]:
    """Functions that are computed in double, as eager computes them."""
    return {
        n: {
            "float": f"libdevice.{f}({{0}}.to(tl.float64)).to({{T}})",
            "double": f"libdevice.{f}({{0}})",
        }
        for n, f in names.items()
    }


#: primitive -> kind of type, or "" for all -> template
RULES: dict[str, dict[str, str]] = {
    "add": {"bool": "{0} | {1}", "": "{0} + {1}"},
    "sub": {"bool": "{0} ^ {1}", "": "{0} - {1}"},
    "mul": {"bool": "{0} & {1}", "": "{0} * {1}"},
    "div": {"float": "tl.div_rn({0}, {1})", "double": "{0} / {1}"},
    "neg": {"bool": "{0}", "whole": "0 - {0}", "real": "{0} * -1.0"},  # Triton's -x is 0 - x
    "reciprocal": {"float": "tl.div_rn(1.0, {0})", "double": "1.0 / {0}"},
    "square": {"bool": "{0}", "": "{0} * {0}"},
    "trunc_divide": {
        "float": "libdevice.trunc(tl.div_rn({0}, {1}))",
        "double": "libdevice.trunc({0} / {1})",
        "int": "s_trunc_divide_int({0}, {1})",
        "uint": "s_trunc_divide_uint({0}, {1})",
    },
    "maximum": {
        "bool": "{0} | {1}",
        "whole": "tl.maximum({0}, {1})",
        "real": "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    },
    "minimum": {
        "bool": "{0} & {1}",
        "whole": "tl.minimum({0}, {1})",
        "real": "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    },
    "fmax": {"": "tl.where(({0} >= {1}) | ({1} != {1}), {0}, {1})"},
    "fmin": {"": "tl.where(({0} <= {1}) | ({1} != {1}), {0}, {1})"},
    "heaviside": {
        "bool": "{0} | {1}",
        "whole": "tl.where({0} == 0, {1}, ({0} > 0).to({T}))",
        "real": "tl.where({0} == 0, {1}, tl.where({0} != {0}, {0}, ({0} > 0).to({T})))",
    },
    "ldexp": {"real": "{0} * libdevice.exp2({1})"},
    "eq": {"": "{0} == {1}"},
    "ne": {"": "{0} != {1}"},
    "lt": {"": "{0} < {1}"},
    "le": {"": "{0} <= {1}"},
    "gt": {"": "{0} > {1}"},
    "ge": {"": "{0} >= {1}"},
    "logical_and": {"bool": "{0} & {1}"},
    "logical_or": {"bool": "{0} | {1}"},
    "logical_xor": {"bool": "{0} ^ {1}"},
    "logical_not": {"bool": "~{0}"},
    "bitwise_and": {"bool": "{0} & {1}", "whole": "{0} & {1}"},
    "bitwise_or": {"bool": "{0} | {1}", "whole": "{0} | {1}"},
    "bitwise_xor": {"bool": "{0} ^ {1}", "whole": "{0} ^ {1}"},
    "bitwise_not": {"bool": "~{0}", "int": "~{0}", "uint": f"{{0}} ^ {2**64 - 1}"},
    "isnan": {"": "{0} != {0}"},
    "isinf": {"real": 'tl.abs({0}) == float("inf")', "": _NEVER},
    "isfinite": {"real": 'tl.abs({0}) < float("inf")', "": "{0} == {0}"},
    "signbit": {
        "float": "{0}.to(tl.int32, bitcast=True) < 0",
        "double": "{0}.to(tl.int64, bitcast=True) < 0",
        "int": "{0} < 0",
        "": _NEVER,
    },
    "where": {"": "tl.where({0}, {1}, {2})"},
    "abs": {"real": "tl.abs({0})", "int": "tl.abs({0})", "": "{0}"},
    "sign": {"bool": "{0}", "": "({0} > 0).to({T}) - ({0} < 0).to({T})"},
    "floor": {"real": "tl.floor({0})", "": "{0}"},
    "ceil": {"real": "tl.ceil({0})", "": "{0}"},
    "trunc": {"real": "libdevice.trunc({0})", "": "{0}"},
    "round": {"real": "libdevice.rint({0})", "": "{0}"},
    "conj": _SAME,
    "real": _SAME,
    "imag": {"": "tl.full([], 0, {T})"},
    "sqrt": {"float": "tl.sqrt_rn({0})", "double": "tl.sqrt({0})"},
    "rsqrt": {"float": "tl.div_rn(1.0, tl.sqrt_rn({0}))", "double": "1.0 / tl.sqrt({0})"},
    "sigmoid": {
        "float": "tl.div_rn(1.0, 1.0 + libdevice.exp({0} * -1.0))",
        "double": "1.0 / (1.0 + libdevice.exp({0} * -1.0))",
    },
    "inf": {"real": 'tl.full([], float("inf"), {T})'},
    "nan": {"real": 'tl.full([], float("nan"), {T})'},
    **_own("sinc angle logsigmoid logaddexp logaddexp2 xlogy xlog1py entr ndtr", "real"),
    "hypot": {"float": "s_hypot({0}, {1})", "double": "libdevice.hypot({0}, {1})"},
    "gcd": {"whole": "s_gcd({0}, {1})"},
    "lcm": {"whole": "s_lcm({0}, {1})"},
    "bitwise_left_shift": {"whole": "s_bitwise_left_shift({0}, {1})"},
    **_own("bitwise_right_shift", "int", "uint"),
    "floor_divide": {
        "real": "s_floor_divide({0}, {1})",
        "int": "s_floor_divide_int({0}, {1})",
        "uint": "s_trunc_divide_uint({0}, {1})",
    },
    "remainder": {
        "real": "s_remainder({0}, {1})",
        "int": "s_remainder_int({0}, {1})",
        "uint": "s_fmod_uint({0}, {1})",
    },
    "fmod": {
        "real": "libdevice.fmod({0}, {1})",
        "int": "s_fmod_int({0}, {1})",
        "uint": "s_fmod_uint({0}, {1})",
    },
    "pow": {
        "real": "libdevice.pow({0}, {1})",
        "int": "s_pow_int({0}, {1})",
        "uint": "s_pow_uint({0}, {1})",
    },
    **_library("copysign atan2 nextafter exp exp2 expm1 log log2 log10 log1p"),
    **_library("sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc"),
    **_rare(
        lgamma="lgamma", erfinv="erfinv", erfcx="erfcx", ndtri="normcdfinv", i0="cyl_bessel_i0",
        i1="cyl_bessel_i1", modified_bessel_i0="cyl_bessel_i0", modified_bessel_i1="cyl_bessel_i1",
        bessel_j0="j0", bessel_j1="j1", bessel_y0="y0", bessel_y1="y1",
    ),
}  # fmt: skip
RULES["sgn"] = RULES["sign"]

#: combination of a reduction -> kind of type -> template over a tile; and the value that changes
#: nothing, with which what is beyond the data is filled
REDUCTIONS: dict[str, tuple[Any, dict[str, str]]] = {
    "add": (0, dict.fromkeys(("whole", "real"), "tl.sum({0}, 1, keep_dims=True)")),
    "mul": (1, {"whole": "r_mul({0})", "real": "r_mul({0})"}),
    "maximum": (
        "lowest",
        {"whole": "tl.max({0}, 1, keep_dims=True)", "real": "r_maximum({0})",
         "bool": "tl.max({0}.to(tl.int32), 1, keep_dims=True) != 0"},
    ),
    "minimum": (
        "highest",
        {"whole": "tl.min({0}, 1, keep_dims=True)", "real": "r_minimum({0})",
         "bool": "tl.min({0}.to(tl.int32), 1, keep_dims=True) != 0"},
    ),
    "logical_or": (False, {"bool": "tl.max({0}.to(tl.int32), 1, keep_dims=True) != 0"}),
    "logical_and": (True, {"bool": "tl.min({0}.to(tl.int32), 1, keep_dims=True) != 0"}),
}  # fmt: skip


class Refused(RuntimeError):
    """A nest that Triton's language cannot say; the operation is to be called instead."""


@cache
def _functions() -> dict[str, str]:
    """Name -> text of the device functions."""
    text = inspect.getsource(triton_math)
    found = (f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef))
    return {f.name: ast.get_source_segment(text, f) or "" for f in found}


def functions(text: str) -> list[str]:
    """Names of the device functions that a text calls, those first that others call."""
    out: dict[str, None] = {}

    def visit(body: str) -> None:
        for name in re.findall(r"\b(?:[sr]_\w+|times)\b", body):
            if name in _functions() and name not in out:
                visit(_functions()[name].partition("\n")[2])
                out[name] = None

    visit(text)
    return list(out)


def function_text(name: str) -> str:
    return f"@triton.jit\n{_functions()[name]}"


def rule(op: str, type: str) -> str | None:
    """The template of a primitive for arguments of a register type."""
    return chosen(RULES.get(op, {}), type)


def chosen(templates: dict[str, str], type: str) -> str | None:
    """The template for a register type: the most particular one."""
    kinds = KINDS.get(type)
    return next((templates[k] for k in (*kinds, "") if k in templates), None) if kinds else None


def unsupported() -> frozenset[str]:
    """Primitives that have a rule for no type.

    >>> from flambeau._compiler.triton_scalar import unsupported
    >>> "digamma" in unsupported(), "erf" in unsupported()
    (True, False)
    """
    return frozenset(p for p in PRIMITIVES if not any(rule(p, t) for t in DTYPE))


def literal(value: Any, type: str) -> str:
    """A constant as Python text; of itself it has no type."""
    if value in ("lowest", "highest"):
        return _extreme(value, type)
    if type == "bool":
        return str(bool(value))
    if type in ("int64_t", "uint64_t"):
        return str(int(value) % 2**64 if type == "uint64_t" else int(value))
    value = float(value)
    return repr(value) if abs(value) < float("inf") else f'float("{value}")'


def _extreme(which: str, type: str) -> str:
    low = which == "lowest"
    match type:
        case "bool":
            return str(not low)
        case "int64_t":
            return str(-(2**63) if low else 2**63 - 1)
        case "uint64_t":
            return str(0 if low else 2**64 - 1)
    return 'float("-inf")' if low else 'float("inf")'


def constant(value: Any, type: str) -> str:
    """A constant as a value of its type."""
    return f"tl.full([], {literal(value, type)}, {dtype(type)})"


def dtype(type: str) -> str:
    if type not in DTYPE:
        raise Refused(
            f"triton: expected real or whole numbers, got {type}; complex ones are called"
        )
    return DTYPE[type]


def literals(n: Scalar) -> set[int]:
    """Positions of arguments that may be plain numbers, as another gives them their type."""
    typed = range(1, 3) if n.op == "where" else range(len(n.args))
    given = {i for i in typed if n.args[i].op == "const"}
    if n.op not in _OPERATORS or len(given) == len(typed) or n.args[typed[0]].type == "bool":
        return set()
    return given


def expression(n: Scalar, args: Sequence[str]) -> str:
    """The text of a primitive, conversion or wrap whose arguments have these names."""
    dtype(n.type)
    source = n.args[0].type
    if n.op == "cast" and n.value == "int32_t":
        return f"{args[0]}.to(tl.int32).to({DTYPE[n.type]})"
    if n.op == "cast":
        return f"{args[0]} != 0" if n.type == "bool" else f"{args[0]}.to({DTYPE[n.type]})"
    if n.op == "wrap":
        return f"{args[0]}.to({IN_MEMORY[n.value][0]}).to({DTYPE[n.type]})"
    text = rule(n.op, n.args[1].type if n.op == "where" else source)
    if text is None:
        raise Refused(f"triton: {n.op} of {source} has no equal in Triton's language; it is called")
    return text.format(*args, T=DTYPE[n.type])


def stored(x: str, register: str, memory: str) -> str:
    """The text of a value as memory of a type takes it."""
    if memory not in IN_MEMORY:
        raise Refused(
            f"triton: expected real or whole numbers, got {memory}; complex ones are called"
        )
    wanted = IN_MEMORY[memory][0]
    if memory in ("F16", "BF16") and register != "float":
        x = f"{x}.to(tl.float32)"  # by way of float, as eager rounds
    if memory == "bool" and register != "bool":
        return f"{x} != 0"
    return x if wanted == DTYPE.get(register) else f"{x}.to({wanted})"
