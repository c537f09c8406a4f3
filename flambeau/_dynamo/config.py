"""Switches of the compiler, one per process; a program sets them as attributes of this module.

Owns their names, types and defaults: an attribute that is none of them is refused, and so is a
value that nothing implements. `patch` sets some for a while. Who obeys a switch reads it here.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: True: a frame whose graph a back end cannot compile runs in plain Python, which is logged
#: (FLAMBEAU_LOGS=graph_breaks) and nothing else. False: `exc.BackendCompilerFailed` is raised.
suppress_errors: bool = False

#: How often one function may be compiled under one `compile`, for inputs of another kind; calls
#: beyond it run in plain Python, with a warning (an error where `fullgraph=True`).
#: `cache_size_limit` is its older name.
recompile_limit: int = 8

#: True: `exc.FailOnRecompileLimitHit` is raised where that limit is reached.
fail_on_recompile_limit_hit: bool = False

#: True: `exc.RecompileError` is raised where a function would be compiled again.
error_on_recompile: bool = False

#: False: with `dynamic=None`, sizes and integers that vary are compiled anew, never made symbols.
automatic_dynamic_shapes: bool = True

#: False: `dynamic=None` means `dynamic=True`.
assume_static_by_default: bool = True

#: True: `Tensor.item()`, `tolist()`, `int(tensor)` and their like are in the graph, and what is
#: computed from such numbers too. The graph ends where a number decides what runs, or is a size.
#: `fullgraph=True` does it anyway; a size begins a second graph then, a decision is an error.
capture_scalar_outputs: bool = False

#: Operations whose result's shape depends on data, in a graph. True is refused: they end a graph.
capture_dynamic_output_shape_ops: bool = False

_OLDER_NAMES = {"cache_size_limit": "recompile_limit"}
_REFUSED = {
    "capture_dynamic_output_shape_ops": "operations whose result's shape depends on data end one",
}
_TYPES: dict[str, type] = {
    name: type(value) for name, value in list(globals().items()) if type(value) in (bool, int)
}


@contextmanager
def patch(
    name: str | dict[str, Any] | None = None, value: Any = None, **more: Any
) -> Iterator[None]:
    """Sets switches, and sets them back at the end; a context manager and a decorator.

    Args:
        name: a switch, whose `value` is the next argument; or a dict of several.
        more: switches by name.

    >>> with torch._dynamo.config.patch(recompile_limit=2):
    ...     torch._dynamo.config.cache_size_limit
    2
    >>> torch._dynamo.config.recompile_limit
    8
    """
    given = {name: value} if isinstance(name, str) else dict(name or {})
    module = sys.modules[__name__]
    wanted = {**given, **more}
    before = {n: getattr(module, n) for n in wanted}
    try:
        for n, v in wanted.items():
            setattr(module, n, v)
        yield
    finally:
        for n, v in before.items():
            setattr(module, n, v)


class _Switches(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name in _OLDER_NAMES:
            return getattr(self, _OLDER_NAMES[name])
        raise AttributeError(f"_dynamo.config: there is no switch {name!r}; known: {_known()}")

    def __setattr__(self, name: str, value: Any) -> None:
        name = _OLDER_NAMES.get(name, name)
        kind = _TYPES.get(name)
        if kind is None:
            if not name.startswith("__"):
                raise AttributeError(
                    f"_dynamo.config: there is no switch {name!r}; known: {_known()}"
                )
        elif type(value) is not kind:
            raise TypeError(
                f"_dynamo.config.{name}: expected {kind.__name__}, got {type(value).__name__}"
            )
        elif value and name in _REFUSED:
            raise NotImplementedError(
                f"_dynamo.config.{name}: expected False, got True; {_REFUSED[name]}, and what "
                "follows is captured as a graph of its own"
            )
        super().__setattr__(name, value)


def _known() -> str:
    return ", ".join(sorted({*_TYPES, *_OLDER_NAMES}))


sys.modules[__name__].__class__ = _Switches
