"""The table at run time: the record of an entry (`Op`: kind, typed parameters, options) by its uid.

All files are read at the first question, for the names that their entries may have; a file is cut into its
entries when one of those names is asked for, and an entry parsed when it is.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache

from .._ir import targets
from . import added
from .fronts import Group, groups
from .model import Op
from .outline import entry_files, possible_names, text_of
from .reader import Draft, constants, drafts_of

_RENAMED = re.compile(r"\b(python_name|aliases)\s*=")
_NUMBER = re.compile(r"_\d+\Z")
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


class _File:
    """A file of the table; what is asked of it is made once."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._text = text_of(_ROOT, file)
        self.possible = possible_names(self._text)
        self._drafts: list[Draft] | None = None
        self._public: dict[str, list[Draft]] | None = None

    @property
    def drafts(self) -> list[Draft]:
        """Its entries."""
        if self._drafts is None:
            self._drafts = drafts_of(self._text, self._file)
            self._text = ""
        return self._drafts

    @property
    def public(self) -> dict[str, list[Draft]]:
        """Its entries by the names and aliases that programs call them by."""
        if self._public is None:
            out: dict[str, list[Draft]] = {}
            for d in self.drafts:
                for name in _public_names(d):
                    out.setdefault(name, []).append(d)
            self._public = out
        return self._public


def _public_names(d: Draft) -> list[str]:
    names = [d.name.removeprefix("functional_"), d.name]
    if _RENAMED.search(d.function.piece.head):
        options = d.function.options
        names.append(str(options.get("python_name", d.name)))
        aliases = options.get("aliases", ())
        names += [str(a).rpartition(".")[2] for a in aliases]  # type: ignore[attr-defined]
    return list(dict.fromkeys(names))


@cache
def _files() -> list[_File]:
    return [_File(file) for file in entry_files(_ROOT)]


@cache
def _files_of(name: str) -> list[_File]:
    """Those in which an entry may have that name, in order."""
    return [f for f in _files() if name in f.possible]


@cache
def _named(name: str) -> list[Draft]:
    """Entries of one name in C++."""
    return [d for f in _files_of(name) for d in f.drafts if d.name == name]


@cache
def _draft(uid: str) -> Draft | None:
    for name in (uid, _NUMBER.sub("", uid)):
        for d in _named(name):
            if d.uid == uid:
                return d
    return None


def known(uid: str) -> bool:
    """The table has an entry of that uid."""
    return _draft(uid) is not None


def record(uid: str) -> Op:
    """The record of an entry, or of an operator that a program added.

    Raises:
        KeyError: there is none.
    """
    if added.is_added(uid):
        return added.record(uid)
    found = _draft(uid)
    if found is None:
        raise KeyError(uid)
    return found.op


def entries() -> dict[str, Op]:
    """All entries by uid, parsed."""
    return {d.uid: d.op for f in _files() for d in f.drafts}


def overloads(name: str) -> list[Op]:
    """Entries of one name, as the front end looks them up."""
    return [d.op for d in _named(name)]


class _Named(Mapping[str, Op]):
    """The first entry of each C++ name, parsed when it is asked for."""

    def __getitem__(self, name: str) -> Op:
        found = _named(name)
        if not found:
            raise KeyError(name)
        return found[0].op

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(d.name for f in _files() for d in f.drafts))

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def _drafts_by(name: str) -> list[Draft]:
    """Entries of one name in Python."""
    here = {id(f) for n in (name, f"functional_{name}") for f in _files_of(n)}
    return [d for f in _files() if id(f) in here for d in f.public.get(name, ())]


@cache
def public(name: str) -> tuple[Group, ...]:
    """The functions and methods that have a name (or alias), with the signatures of their calls."""
    drafts = _drafts_by(name)
    if not drafts and name.endswith("_"):
        drafts = _drafts_by(name[:-1])
    found = groups([d.op for d in drafts], _Named())
    return tuple(
        g for g in found
        if name == g.name or name in g.alias_methods
        or any(a == name or a.endswith(f".{name}") for a in g.aliases)
    )  # fmt: skip


@cache
def file_constants(path: str) -> dict[str, ast.expr]:
    """Module-level constants of an entry's file."""
    return constants(_ROOT, path)


def _find(uid: str) -> Op | None:
    return record(uid) if known(uid) else None


targets.provide(_find)
