"""Options of the native back end: names, defaults, and what cannot be asked of it.

Programs set defaults as attributes of this module (`config.trace.enabled = True` for dotted names).
An option that is unknown is refused, and so is a value that nothing implements.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

#: Loop nests over the same points become one; False: each operation has its own.
#: `layout_optimization`: convolutions that gain run with their channels last.
#: `shape_padding` (also `matmul_padding`): matrix products with sizes filled up to multiples of
#: eight are timed beside those as they are, and the faster form is taken and kept on disk.
#: `max_autotune`: combinations of these two are timed on the example inputs, and the fastest is
#: taken and kept on disk.
#: `fallback_random`: random numbers are eager's, which they always are.
#: `trace.enabled`: captured graphs and generated code are printed, as FLAMBEAU_LOGS does.
DEFAULTS: dict[str, bool] = {
    "epilogue_fusion": True,
    "fallback_random": False,
    "layout_optimization": True,
    "max_autotune": False,
    "shape_padding": False,
    "trace.enabled": False,
    "trace.graph_diagram": False,
    "triton.cudagraphs": False,
}
_REFUSED = {
    "trace.graph_diagram": "nothing draws graphs; trace.enabled prints them",
    "triton.cudagraphs": "there are no CUDA graphs on the CPU",
}
_OTHER_NAMES = {"matmul_padding": "shape_padding"}
_values = dict(DEFAULTS)


def value(name: str) -> bool:
    """The default in force of an option."""
    return _values[name]


def checked(options: Mapping[str, Any]) -> dict[str, bool]:
    """Options as they are known here; `-` may stand for `_`.

    Raises:
        RuntimeError: an unknown option, a value of another type, or one that nothing implements.
    """
    out: dict[str, bool] = {}
    for given, v in options.items():
        name = given.replace("-", "_")
        name = _OTHER_NAMES.get(name, name)
        if name not in DEFAULTS:
            raise RuntimeError(
                f"Unexpected optimization option {given}, known options are {sorted(DEFAULTS)}"
            )
        if type(v) is not bool:
            raise RuntimeError(f"compile: expected option {name} to be a bool, got {v!r}")
        if v and name in _REFUSED:
            raise RuntimeError(f"compile: option {name} cannot be True: {_REFUSED[name]}")
        out[name] = v
    return out


@contextmanager
def patch(
    name: str | dict[str, Any] | None = None, value: Any = None, **more: Any
) -> Iterator[None]:
    """Sets defaults, and sets them back at the end; a context manager and a decorator.

    >>> with torch._inductor.config.patch({"trace.enabled": True}):
    ...     torch._inductor.config.trace.enabled
    True
    """
    wanted = checked({**({name: value} if isinstance(name, str) else name or {}), **more})
    before = dict(_values)
    _values.update(wanted)
    try:
        yield
    finally:
        _values.update(before)


class _Group:
    """Options whose names begin alike, as attributes."""

    def __init__(self, prefix: str) -> None:
        object.__setattr__(self, "_prefix", prefix)

    def __getattr__(self, name: str) -> Any:
        return _get(self._prefix + name)

    def __setattr__(self, name: str, v: Any) -> None:
        _values.update(checked({self._prefix + name: v}))


def _get(name: str) -> Any:
    if name in _values:
        return _values[name]
    if any(n.startswith(f"{name}.") for n in _values):
        return _Group(f"{name}.")
    raise AttributeError(
        f"_inductor.config: there is no option {name!r}; known: {sorted(DEFAULTS)}"
    )


class _Options(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _get(name)

    def __setattr__(self, name: str, v: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, v)
        elif name in DEFAULTS:
            _values.update(checked({name: v}))
        else:
            _get(name)
            raise AttributeError(f"_inductor.config.{name} is a group of options")


sys.modules[__name__].__class__ = _Options
