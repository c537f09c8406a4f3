"""A program of the IR: functions that call each other, and the classes of their values.

Owns the record of both. A function's name has dots (`Net.forward`), so does that of a class;
`fn.NAME` is the target of a call. Knows no Python objects, so that it can be written to a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._ir.graph import Function
from .._ir.types import Param, Type


@dataclass
class Class:
    """A class whose values scripts handle.

    Attributes:
        name: with dots; also the base of its type.
        kind: `module`, `class`, `tuple` (a NamedTuple), `enum`, or `library`: a module of
            `flambeau.nn` that runs as it is.
        attributes: types by name; of a tuple in order.
        defaults: of a tuple: values of its last fields; of an enum: the members' values.
        methods: names of their functions.
        places: of a module: in which of its tables an attribute is kept (`_parameters` ...).
    """

    name: str
    kind: str
    attributes: dict[str, Type] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    @property
    def type(self) -> Type:
        return Type(self.name)


@dataclass
class Signature:
    """How a function is called."""

    name: str
    params: list[Param]
    returns: Type

    @property
    def uid(self) -> str:
        return f"fn.{self.name}"

    inplace = False
    changes = True  # it may: calls are never left out


@dataclass
class Unit:
    """Everything that a scripted object needs."""

    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
