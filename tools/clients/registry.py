"""The registry of cases: a name, the package it is about, and a function that builds the program.

A case is a few lines that build a small random model (or take a function) and its inputs; all that
is done with it is the harness's. Invariant: a name is registered once, and building draws from the
global generator alone, so that both libraries draw the same numbers.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

#: relative size of the change of the weights by which the conditioning of a case is measured, in
#: float64 throughout, or with steps in float32
NUDGE = {False: 2.0**-40, True: 2.0**-24}
#: the directions of that change, as frequencies of a wave over the entries of each weight
WAVES = (0.9, 1.7, 2.6)


@dataclass
class Program:
    """What a case builds: a module or function, its inputs, and the loss of what it returns.

    Attributes:
        call: a module, or a function of tensors; floating tensors among its positional inputs are
            then what is trained.
        args, kwargs: its inputs.
        loss: a scalar of the outputs; by default `outputs.loss` or a fixed projection of them.
        outputs: what is compared of the outputs, where they are not tensors in containers.
        parameters: what is trained, where `call` is a function over modules.
    """

    call: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    loss: Callable[[Any], Any] | None = None
    outputs: Callable[[Any], Any] | None = None
    parameters: list[Any] | None = None


@dataclass(frozen=True)
class Case:
    """A registered case.

    Attributes:
        name: `package.name`.
        build: makes the program anew.
        dtype: the default dtype that it is built and run under.
        train, compiled: whether it is differentiated and trained, and compiled.
        quick: whether it is among those that `make test` runs.
    """

    package: str
    name: str
    build: Callable[[], Program]
    dtype: str = "float64"
    train: bool = True
    compiled: bool = True
    quick: bool = False


CASES: dict[str, Case] = {}


def case(package: str, name: str, **options: Any) -> Callable[[Callable[[], Program]], Any]:
    """Registers the decorated builder as `package.name`; options are the fields of `Case`."""

    def register(build: Callable[[], Program]) -> Callable[[], Program]:
        full = f"{package}.{name}"
        if full in CASES:
            raise ValueError(f"case: expected a new name, got {full} twice")
        CASES[full] = Case(package, full, build, **options)
        return build

    return register


def load(patterns: list[str] | None = None) -> Iterator[Case]:
    """All cases, or those whose names contain one of `patterns`, in the order of the files."""
    package = importlib.import_module("tools.clients.cases")
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
        importlib.import_module(f"{package.__name__}.{module.name}")
    for entry in CASES.values():
        if not patterns or any(pattern in entry.name for pattern in patterns):
            yield entry
