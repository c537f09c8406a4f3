"""What the target of a node stands for: an entry of the table, and the form of it.

The IR knows no table. Whoever holds entries (`_table.entries`) provides a function that finds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from .types import Param, Type

_INPLACE = re.compile(r"^(.*)_(_\d+)?$")  # NAME_ or NAME__1 of NAME or NAME_1


class Entry(Protocol):
    """What a graph asks of an entry (`_table.model.Op` has more)."""

    name: str
    kind: str
    params: list[Param]
    returns: Type

    @property
    def uid(self) -> str: ...
    @property
    def outputs(self) -> tuple[Type, ...]: ...
    @property
    def mutates(self) -> bool: ...
    @property
    def updates(self) -> tuple[str, ...]: ...
    @property
    def has_inplace(self) -> bool: ...
    @property
    def inplace_uid(self) -> str: ...
    def option(self, name: str, default: Any = None) -> Any: ...


Find = Callable[[str], Any]
_providers: list[Find] = []


def provide(find: Find) -> None:
    """Adds a source of entries: `find(uid)` is the entry, or None."""
    _providers.append(find)


def _entry(uid: str) -> Any:
    if not _providers:
        raise RuntimeError("graph: no entries: import flambeau._table.entries first")
    return next((e for find in _providers if (e := find(uid)) is not None), None)


@dataclass(frozen=True)
class Target:
    """An entry and the form of it."""

    op: Any  # an Entry
    form: str = ""  # "" | "inplace": derived NAME_ | "new": changes copies of what it would change

    @property
    def mutates(self) -> bool:
        """It changes its first argument."""
        return self.form == "inplace" or (self.op.mutates and self.form != "new")

    @property
    def draws(self) -> bool:
        """It takes random numbers from a generator: such calls are never eliminated or merged."""
        return any(p.type.base == "Generator" for p in self.op.params)


def updated(op: Entry, args: Sequence[Any]) -> list[int]:
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
        KeyError: no provider has such an entry, or the entry has no such form.
    """
    op = _entry(target)
    if op is not None:
        return Target(op)
    name = target.removesuffix(".new")
    op = _entry(name) if name != target else None
    if op is not None and (op.mutates or op.updates):
        return Target(op, "new")
    op = _entry(_INPLACE.sub(r"\1\2", target))
    if op is not None and op.has_inplace and op.inplace_uid == target:
        return Target(op, "inplace")
    raise KeyError(target)
