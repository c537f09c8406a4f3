"""Calls: arguments bound to parameters, overloads chosen, the refusal worded.

Works on anything with `name`, `params` and `returns`: operations of the table, intrinsics.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from .coerce import convert, cost
from .errors import CompileError
from .typed import Expr
from .types import Param

Default = Callable[[Param, ast.expr], Expr]


def signature(target: Any) -> str:
    """Signature as text, for messages."""
    parts: list[str] = []
    for p in target.params:
        if p.kwonly and "*" not in parts:
            parts.append("*")
        default = ""
        if isinstance(p.default, ast.Constant):
            default = f" = {p.default.value!r}"
        elif p.default is not None:
            default = f" = {ast.unparse(p.default)}"
        parts.append(f"{p.name}: {p.type}{default}")
    return f"{target.name}({', '.join(parts)}) -> {target.returns}"


def bind(target: Any, args: Sequence[Expr], kwargs: dict[str, Expr]) -> list[Expr | None] | str:
    """Arguments in the order of parameters (None: default), or why they do not fit."""
    positional = [p for p in target.params if not p.kwonly]
    if len(args) > len(positional):
        return f"takes {len(positional)} positional arguments, {len(args)} given"
    bound: dict[str, Expr] = {p.name: a for p, a in zip(positional, args, strict=False)}
    names = {p.name for p in target.params}
    for name, value in kwargs.items():
        if name not in names:
            return f"has no parameter {name!r}"
        if name in bound:
            return f"got two values for {name!r}"
        bound[name] = value
    for p in target.params:
        if p.name not in bound and p.required:
            return f"needs {p.name!r}"
    return [bound.get(p.name) for p in target.params]


def _total_cost(target: Any, bound: list[Expr | None], wrap: bool) -> int | str:
    total = 0
    for p, a in zip(target.params, bound, strict=True):
        if a is None:
            continue
        c = cost(a, p.type, wrap)
        if c is None:
            return f"{p.name!r} is {p.type}, got {a.type}"
        total += c
    return total


def resolve(
    candidates: Sequence[Any],
    args: Sequence[Expr],
    kwargs: dict[str, Expr],
    default: Default,
    file: str,
    node: ast.AST,
    wrap: bool = False,
) -> tuple[Any, tuple[Expr, ...]]:
    """The cheapest candidate and its arguments, complete and converted."""
    best: tuple[int, Any, list[Expr | None]] | None = None
    refusals: list[str] = []
    for target in candidates:
        bound = bind(target, args, kwargs)
        if isinstance(bound, str):
            refusals.append(f"{signature(target)}: {bound}")
            continue
        total = _total_cost(target, bound, wrap)
        if isinstance(total, str):
            refusals.append(f"{signature(target)}: {total}")
        elif best is None or total < best[0]:
            best = total, target, bound
    if best is None:
        given = [str(a.type) for a in args] + [f"{k}={v.type}" for k, v in kwargs.items()]
        name = candidates[0].name
        text = "\n    ".join(refusals)
        raise CompileError(f"no {name}({', '.join(given)}):\n    {text}", file, node)
    _, target, bound = best
    full = [
        convert(a if a is not None else default(p, p.default), p.type)
        for p, a in zip(target.params, bound, strict=True)
    ]
    return target, tuple(full)
