"""`fx`: what programs say about graphs of modules before there is one.

Owns the list of functions that a tracer must not look into. Tracers and graphs themselves are not
built yet, so nothing reads the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["wrap"]

#: functions, or names in a module, that a tracer takes as one step
_wrapped: dict[tuple[str, str], Callable[..., Any] | None] = {}


def wrap(fn_or_name: Any) -> Any:
    """Note that a function is one step for whoever traces its module.

    Args:
        fn_or_name: a function, or the name of one in the calling module.

    Returns:
        what was given.

    >>> @torch.fx.wrap
    ... def double(x): return 2 * x
    >>> double(3)
    6
    """
    if callable(fn_or_name):
        _wrapped[fn_or_name.__module__, fn_or_name.__name__] = fn_or_name
    elif isinstance(fn_or_name, str):
        import sys

        caller = sys._getframe(1).f_globals.get("__name__", "")
        _wrapped[caller, fn_or_name] = None
    else:
        raise RuntimeError(
            f"fx.wrap: expected a function or its name, got {type(fn_or_name).__name__}"
        )
    return fn_or_name
