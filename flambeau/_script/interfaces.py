"""Interfaces: what a module must have to stand where one is declared.

Owns the comparison of methods, at scripting and when an attribute gets another module, and the
signatures of methods that have no body in the unit. Knows nothing of typing.
"""

from __future__ import annotations

from typing import Any

from .._ir.types import Type
from .unit import Class, Signature, Unit


class Invoked(Signature):
    """A method of an interface: the object says what runs."""

    @property
    def uid(self) -> str:
        return f"core.invoke_{self.name}"


class Native(Signature):
    """A method of a class of C++ (`torch.classes`): an operator."""

    @property
    def uid(self) -> str:
        return self.name


def is_interface(cls: type) -> bool:
    """A class that was declared by `jit.interface`, not one derived from it."""
    return vars(cls).get("_script_interface") is cls


def unlike(unit: Unit, given: Class, of: Unit, wanted: Class) -> str:
    """Why the modules of a class are not of an interface; nothing where they are."""
    for n, name in wanted.methods.items():
        asked = of.functions[name]
        found = unit.functions.get(given.methods.get(n, ""))
        if found is None:
            return f"{_short(given)} has no method {n!r}, which {_short(wanted)} has"
        a, b = _shape(found), _shape(asked)
        if a != b:
            return f"{_short(given)}.{n} is {_text(a)}, and {_text(b)} in {_short(wanted)}"
    return ""


def _shape(f: Any) -> tuple[list[tuple[str, Type]], Type]:
    return [(p.name, p.type.plain()) for p in f.params[1:]], f.returns.plain()


def _text(shape: tuple[list[tuple[str, Type]], Type]) -> str:
    return f"({', '.join(f'{n}: {t}' for n, t in shape[0])}) -> {shape[1]}"


def _short(c: Class) -> str:
    return c.name.rpartition(".")[2]
