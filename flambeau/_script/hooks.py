"""Hooks of modules: those that were registered before scripting, and which a script can have.

Owns the record and the refusals. How they are typed is `hooked`'s.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flambeau.nn import Module

from .._ir.errors import CompileError

#: the name of a module's own `forward`, where hooks stand around it
PLAIN = "_forward_without_hooks"


@dataclass(frozen=True)
class Hooks:
    """The hooks of a module, in the order in which they run."""

    before: tuple[types.FunctionType, ...] = ()
    after: tuple[types.FunctionType, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.before or self.after)

    def named(self) -> Mapping[str, types.FunctionType]:
        """Functions by the names of their methods."""
        out = {f"_forward_pre_hook_{i}": f for i, f in enumerate(self.before)}
        return out | {f"_forward_hook_{i}": f for i, f in enumerate(self.after)}


def hooks_of(m: Module) -> Hooks:
    """The hooks of a module.

    Raises:
        CompileError: one cannot be in a script.
    """
    state, name = vars(m), type(m).__name__
    for table in ("_backward_hooks", "_backward_pre_hooks"):
        if state.get(table):
            raise CompileError(
                f"{name} has backward hooks, which scripts do not run; remove them, or register "
                "hooks of its tensors", "",
            )  # fmt: skip
    for table in ("_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs"):
        if state.get(table):
            raise CompileError(f"{name} has a hook with_kwargs=True; in scripts hooks take the "
                               "arguments as a tuple", "")  # fmt: skip
    if state.get("_forward_hooks_always_called"):
        raise CompileError(f"{name} has a hook always_call=True; a script that raises runs no "
                           "more hooks", "")  # fmt: skip
    before, after = (
        tuple(_function(f, name) for f in (state.get(table) or {}).values())
        for table in ("_forward_pre_hooks", "_forward_hooks")
    )
    return Hooks(before, after)


def _function(f: Any, module: str) -> types.FunctionType:
    if isinstance(f, types.FunctionType) and f.__name__ != "<lambda>":
        return f
    kind = "a lambda" if isinstance(f, types.FunctionType) else f"a {type(f).__name__}"
    raise CompileError(f"{module} has {kind} as a hook; hooks of scripts are functions made by "
                       "def; write one, or trace the module", "")  # fmt: skip
