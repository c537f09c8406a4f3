"""Expressions of the language while the front end types them: what becomes nodes of a block.

Every expression has its exact type, all conversions (int to float, number to tensor, optional to
value) are explicit, calls are resolved to one operation with all arguments in the order of its
parameters. `placing` turns them into nodes; nothing outlives the front end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .types import Type


@dataclass(eq=False, slots=True)
class Expr:
    """One expression: an operator, its operands, its type, and what is constant about it.

    op        attr                     meaning
    const     Python value             literal
    placed    Value                    what stands in a block already
    read      name                     value of a variable
    call      Callee                   operation of the table
    core      name                     intrinsic (see `intrinsics`)
    and or if                          on plain values; evaluate lazily
    list tuple                         literal
    comp      Comp                     list comprehension: iterables..., condition?, element
    some none                          conversion to an optional
    """

    op: str
    args: tuple[Expr, ...]
    type: Type
    attr: Any = None
    line: int = 0

    @property
    def absent(self) -> bool:
        """It is None, whatever type it stands for."""
        return self.op == "none" or (self.op == "const" and self.attr is None)


@dataclass(eq=False, slots=True)
class Callee:
    """An operation called: its record (name, params, returns) and the form used."""

    target: Any
    inplace: bool = False

    @property
    def uid(self) -> str:
        uid: str = self.target.inplace_uid if self.inplace else self.target.uid
        return uid

    @property
    def changes(self) -> bool:
        """The name says that it changes its first argument."""
        return self.inplace or self.target.name.endswith("_")


@dataclass(eq=False)
class Comp:
    """What is constant about a comprehension: names bound per item, how, and a filter."""

    targets: tuple[str, ...]
    types: tuple[Type, ...]
    over: str  # list | range | zip | enumerate | reversed
    filtered: bool
