"""The table at run time: the record of an entry (`Op`: kind, typed parameters, options) by its uid.

The files are read as the build reads them, once in a process; an entry is parsed when it is first
asked for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .._build.model import Op
from .._build.table import Draft, constants, outline

_INPLACE = re.compile(r"^(.*)_(_\d+)?$")  # NAME_ or NAME__1 of NAME or NAME_1
_ROOT = Path(__file__).resolve().parents[2]


@cache
def _drafts() -> dict[str, Draft]:
    return {d.uid: d for d in outline(_ROOT)}


def known(uid: str) -> bool:
    """The table has an entry of that uid."""
    return uid in _drafts()


def record(uid: str) -> Op:
    """The record of an entry.

    Raises:
        KeyError: the table has no such entry.
    """
    return _drafts()[uid].op


def entries() -> dict[str, Op]:
    """All entries by uid, parsed."""
    return {uid: d.op for uid, d in _drafts().items()}


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
    if known(target):
        return Target(record(target))
    name = target.removesuffix(".new")
    if name != target and known(name) and (record(name).mutates or record(name).updates):
        return Target(record(name), "new")
    plain = _INPLACE.sub(r"\1\2", target)
    if known(plain) and record(plain).has_inplace and record(plain).inplace_uid == target:
        return Target(record(plain), "inplace")
    raise KeyError(target)


@cache
def _by_name() -> dict[str, list[Draft]]:
    out: dict[str, list[Draft]] = {}
    for d in _drafts().values():
        out.setdefault(d.name, []).append(d)
    return out


def overloads(name: str) -> list[Op]:
    """Entries of one name, as the front end looks them up."""
    return [d.op for d in _by_name().get(name, ())]


@cache
def file_constants(path: str) -> dict[str, ast.expr]:
    """Module-level constants of an entry's file."""
    return constants(_ROOT / path)
