"""The table at run time: the record of an entry (`Op`: kind, typed parameters, options) by its uid.

The files are read as the build reads them, once in a process and when first asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .._build.model import Op
from .._build.table import constants, load

_ROOT = Path(__file__).resolve().parents[2]


@cache
def entries() -> dict[str, Op]:
    """All entries by uid."""
    return {op.uid: op for op in load(_ROOT)}


def record(uid: str) -> Op:
    """The record of an entry.

    Raises:
        KeyError: the table has no such entry.
    """
    return entries()[uid]


@dataclass(frozen=True)
class Target:
    """What a node's target stands for: an entry and the form of it."""

    op: Op
    form: str = ""  # "" | "inplace": derived NAME_ | "new": changes copies of what it would change

    @property
    def mutates(self) -> bool:
        """It changes its first argument."""
        return self.form == "inplace" or (self.op.mutates and self.form != "new")


def updated(op: Op, args: Sequence[Any]) -> list[int]:
    """Positions of the arguments that a call changes besides giving results."""
    given = {p.name: a for p, a in zip(op.params, args, strict=True)}
    when = op.option("updates_when")
    if when is not None and not given[str(when)]:
        return []
    return [i for i, p in enumerate(op.params) if p.name in op.updates and args[i] is not None]


@cache
def resolve(target: str) -> Target:
    """The entry and the form of a node's target.

    Raises:
        KeyError: the table has no such entry, or the entry has no such form.
    """
    if target in entries():
        return Target(record(target))
    name = target.removesuffix(".new")
    if name != target and name in entries() and (record(name).mutates or record(name).updates):
        return Target(record(name), "new")
    return Target(_inplace_forms()[target], "inplace")


@cache
def _inplace_forms() -> dict[str, Op]:
    return {op.inplace_uid: op for op in entries().values() if op.has_inplace}


@cache
def _by_name() -> dict[str, list[Op]]:
    out: dict[str, list[Op]] = {}
    for op in entries().values():
        out.setdefault(op.name, []).append(op)
    return out


def overloads(name: str) -> list[Op]:
    """Entries of one name, as the front end looks them up."""
    return _by_name().get(name, [])


@cache
def file_constants(path: str) -> dict[str, ast.expr]:
    """Module-level constants of an entry's file."""
    return constants(_ROOT / path)
