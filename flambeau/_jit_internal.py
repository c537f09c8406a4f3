"""Marks of scripts under the name by which older programs import them; scripting is off."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from flambeau.jit import (
    _overload,
    _overload_method,
    annotate,
    export,
    ignore,
    is_scripting,
    is_tracing,
    unused,
)
from flambeau.jit.annotations import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
)

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Final",
    "_overload",
    "_overload_method",
    "annotate",
    "export",
    "ignore",
    "is_scripting",
    "is_tracing",
    "unused",
]

_F = TypeVar("_F")


def _copy_to_script_wrapper(fn: _F) -> _F:
    """Mark a method that scripts copy: returns it."""
    return fn


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Any,
    if_false: Any,
    module_name: str,
    func_name: str,
) -> Any:
    """A function that is `if_true` or `if_false`, as one argument of it says."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        given = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return if_true(*args, **kwargs) if given else if_false(*args, **kwargs)

    chosen.__name__, chosen.__doc__ = func_name, if_true.__doc__ or if_false.__doc__
    return chosen
