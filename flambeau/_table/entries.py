"""The table at run time: the record of an entry (`Op`: kind, typed parameters, options) by its uid.

The files are read as the build reads them, once in a process; an entry is parsed when it is first
asked for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from .._ir import targets
from . import added
from .fronts import Group, groups
from .model import Op
from .reader import Draft, constants, outline

_RENAMED = re.compile(r"\b(python_name|aliases)\s*=")
_ROOT = Path(__file__).resolve().parents[2]


@cache
def _drafts() -> dict[str, Draft]:
    return {d.uid: d for d in outline(_ROOT)}


def known(uid: str) -> bool:
    """The table has an entry of that uid."""
    return uid in _drafts()


def record(uid: str) -> Op:
    """The record of an entry, or of an operator that a program added.

    Raises:
        KeyError: there is none.
    """
    if added.is_added(uid):
        return added.record(uid)
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


class _Named(Mapping[str, Op]):
    """The first entry of each C++ name, parsed when it is asked for."""

    def __getitem__(self, name: str) -> Op:
        return _by_name()[name][0].op

    def __iter__(self) -> Iterator[str]:
        return iter(_by_name())

    def __len__(self) -> int:
        return len(_by_name())


@cache
def _by_public_name() -> dict[str, list[Draft]]:
    out: dict[str, list[Draft]] = {}
    for d in _drafts().values():
        names = [d.name.removeprefix("functional_"), d.name]
        if _RENAMED.search(d.function.piece.head):
            options = d.function.options
            names.append(str(options.get("python_name", d.name)))
            aliases = options.get("aliases", ())
            names += [str(a).rpartition(".")[2] for a in aliases]  # type: ignore[attr-defined]
        for name in dict.fromkeys(names):
            out.setdefault(name, []).append(d)
    return out


@cache
def public(name: str) -> tuple[Group, ...]:
    """The functions and methods that have a name (or alias), with the signatures of their calls."""
    plain = name[:-1] if name.endswith("_") and name not in _by_public_name() else name
    drafts = _by_public_name().get(plain, ())
    found = groups([d.op for d in drafts], _Named())
    return tuple(
        g for g in found
        if name == g.name or name in g.alias_methods
        or any(a == name or a.endswith(f".{name}") for a in g.aliases)
    )  # fmt: skip


@cache
def file_constants(path: str) -> dict[str, ast.expr]:
    """Module-level constants of an entry's file."""
    return constants(_ROOT / path)


def _find(uid: str) -> Op | None:
    return record(uid) if known(uid) else None


targets.provide(_find)
