"""The table at run time: the record of an entry (`Op`: kind, typed parameters, options) by its uid.

A family's file is parsed when one of its entries is first asked for; which file that is, is known
from importing the table. Derived in-place forms share the record of their entry.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from .._build.model import Op
from .._build.table import entry_files, parse_file
from ..ops._lang import TABLE, Entry

_ROOT = Path(__file__).resolve().parents[2]


@cache
def entries() -> dict[str, Entry]:
    """All entries as Python functions, by uid."""
    for path in entry_files(_ROOT):
        importlib.import_module(f"flambeau.ops.{path.stem}")
    return {e.uid: e for overloads in TABLE.values() for e in overloads}


@cache
def _family(path: Path) -> dict[str, Op]:
    ops = parse_file(path, _ROOT)
    count: dict[str, int] = {}
    for op in ops:
        op.overload = count.get(op.name, 0)
        count[op.name] = op.overload + 1
    return {op.uid: op for op in ops}


@cache
def record(uid: str) -> Op:
    """The record of an entry.

    Raises:
        KeyError: the table has no such entry.
    """
    entry = entries()[uid]
    return _family(Path(entry.body.__code__.co_filename))[uid]


@cache
def resolve(target: str) -> tuple[Op, bool]:
    """The record of a node's target, and whether the target is its derived in-place form."""
    if target in entries():
        return record(target), False
    plain = plain_form(target)
    if plain not in entries() or not record(plain).has_inplace:
        raise KeyError(target)
    return record(plain), True


def inplace_form(uid: str) -> str:
    """Target of the in-place form of an entry: `add_1` is `add__1`."""
    name, number = _parts(uid)
    return f"{name}_{number}"


def plain_form(target: str) -> str:
    """The inverse of `inplace_form`."""
    name, number = _parts(target)
    return f"{name.removesuffix('_')}{number}"


def _parts(uid: str) -> tuple[str, str]:
    head, _, tail = uid.rpartition("_")
    return (head, f"_{tail}") if head and tail.isdigit() else (uid, "")
