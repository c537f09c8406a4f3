"""The table at run time: the record of an entry (`Op`: kind, typed parameters, options) by its uid.

The files are read as the build reads them, once in a process; an entry is parsed when it is first
asked for.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from .._ir import targets
from .model import Op
from .reader import Draft, constants, outline

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


def _find(uid: str) -> Op | None:
    return record(uid) if known(uid) else None


targets.provide(_find)
