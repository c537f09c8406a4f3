"""Variables while a function is compiled: declared types, narrowing, definite assignment.

A variable has one declared type in a function. `Env` maps the names that certainly have a value
here to (declared, current) types; current is narrower than declared after a test for None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .types import Type

Binding = tuple[Type, Type]
Env = dict[str, Binding]


def stored_names(node: ast.AST) -> set[str]:
    """The names that something in a syntax tree assigns."""
    out: set[str] = set()
    todo = [node]
    while todo:
        n = todo.pop()
        if type(n) is ast.Name:
            if type(n.ctx) is ast.Store:
                out.add(n.id)
            continue
        for field in n._fields:
            value = getattr(n, field, None)
            if isinstance(value, ast.AST):
                todo.append(value)
            elif type(value) is list:
                todo += [x for x in value if isinstance(x, ast.AST)]
    return out


def narrowed(env: Env, facts: dict[str, Type]) -> Env:
    """`env` with what a test has shown."""
    if not facts:
        return dict(env)
    out = dict(env)
    for name, current in facts.items():
        if name in out:
            out[name] = (out[name][0], current)
    return out


def merge(a: Env | None, b: Env | None) -> Env | None:
    """What holds after two paths meet; None stands for a path that never arrives."""
    if a is None or b is None:
        return a if b is None else b
    out: Env = {}
    for name, (declared, current) in a.items():
        if name in b and b[name][0] == declared:
            out[name] = (declared, current if b[name][1] == current else declared)
    return out


def widened(env: Env, names: Iterable[str]) -> Env:
    """`env` at the head of a loop that assigns `names`: nothing is known of them any more."""
    out = dict(env)
    for name in names:
        if name in out:
            out[name] = (out[name][0], out[name][0])
    return out
