"""Pieces of C++ text that every strategy of emit_cpp.py writes: sizes, numbers, names of values."""

from __future__ import annotations

from typing import Any

from .._ir.graph import Dim
from .._ir.symexpr import Atom, expr
from .scalar import Scalar


def c_expr(e: Dim) -> str:
    """An integer expression in C; divisions round down where a number may be negative."""
    e = expr(e)
    if not e.terms:
        return "0"
    parts = []
    for monomial, c in e.terms:
        factors = [_atom(a) for a, n in monomial for _ in range(n)]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        text = " * ".join(factors)
        parts.append(("- " if c < 0 else "+ ") + text)
    return " ".join(parts).removeprefix("+ ")


def _atom(a: Atom) -> str:
    if a.kind == "sym":
        return a.name
    x, y = (f"({c_expr(arg)})" for arg in a.args[:2])
    if a.kind in ("div", "mod") and not all(_never_negative(arg) for arg in a.args):
        # C rounds towards zero, these expressions round down.
        off = f"({x} % {y} != 0 && (({x} < 0) != ({y} < 0)))"
        return f"({x} / {y} - {off})" if a.kind == "div" else f"({x} % {y} + {y} * {off})"
    match a.kind:
        case "div":
            return f"({x} / {y})"
        case "mod":
            return f"({x} % {y})"
    rest = a.args[2:]
    text = f"({x} {'<' if a.kind == 'min' else '>'} {y} ? {x} : {y})"
    for arg in rest:
        z = f"({c_expr(arg)})"
        text = f"({text} {'<' if a.kind == 'min' else '>'} {z} ? {text} : {z})"
    return text


def _never_negative(e: Dim) -> bool:
    # By form alone: symbols of sizes and of loops are not negative, differences may be, and so may
    # numbers: see Note [Names of symbols].
    found = expr(e)
    named = any(name[0] in "zn" for name in found.symbols)
    return not named and all(c >= 0 for _, c in found.terms)


def literal(value: Any, type: str) -> str:
    """A constant of a register type."""
    real = {"C64": "float", "C128": "double"}.get(type, type)
    if isinstance(value, complex):
        return f"{type}{{{literal(value.real, real)}, {literal(value.imag, real)}}}"
    if value in ("lowest", "highest"):
        return _extreme(value, type)
    if type == "bool":
        return "true" if value else "false"
    if type in ("int64_t", "uint64_t"):
        v = int(value)
        return f"{type}({v}ll)" if v > -(2**63) else "int64_t(-9223372036854775807ll - 1)"
    if value != value:
        text = '__builtin_nan("")'
    elif value in (float("inf"), float("-inf")):
        text = "-__builtin_inf()" if value < 0 else "__builtin_inf()"
    else:
        text = float(value).hex() if value else repr(float(value))
    number = f"{real}({text})"
    return f"{type}{{{number}, 0}}" if type != real else number


def _extreme(which: str, type: str) -> str:
    if type in ("float", "double"):
        return f"{type}({'-' if which == 'lowest' else ''}__builtin_inf())"
    if type == "bool":
        return "false" if which == "lowest" else "true"
    if type == "uint64_t":
        return "uint64_t(0)" if which == "lowest" else "~uint64_t(0)"
    big = "9223372036854775807ll"
    return f"int64_t(-{big} - 1)" if which == "lowest" else f"int64_t({big})"


class Scope:
    """Names of values that are computed; an inner scope sees those of the outer ones."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.names: dict[int, str] = {}
        self.lines: list[str] = []
        self.counter: list[int] = outer.counter if outer else [0]

    def find(self, n: Scalar) -> str | None:
        return self.names.get(id(n)) or (self.outer.find(n) if self.outer else None)

    def fresh(self) -> str:
        self.counter[0] += 1
        return f"t{self.counter[0]}"
