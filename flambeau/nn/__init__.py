"""Neural networks: modules, their parameters, initialisers and helpers.

Owns the namespace `flambeau.nn`. Invariant: everything public of `nn.modules` is found here too.
`functional` is the stateless layer below; it never imports modules. What few use loads late.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import functional as functional
from . import init as init
from . import parameter as parameter
from .modules import *  # noqa: F403
from .modules import __all__ as _modules_all
from .parameter import (
    Buffer as Buffer,
)
from .parameter import (
    Parameter as Parameter,
)
from .parameter import (
    UninitializedBuffer as UninitializedBuffer,
)
from .parameter import (
    UninitializedParameter as UninitializedParameter,
)

_LATE = ("attention", "common_types", "grad", "parallel", "utils")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Collect `device`, `dtype` and `memory_format` for a factory function.

    Args:
        kwargs: may hold the three names, and under "factory_kwargs" a dictionary of them.

    Raises:
        TypeError: for another name, or for one that is given in both places.
    """
    if kwargs is None:
        return {}
    plain = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - plain - {"factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    collected = dict(kwargs.get("factory_kwargs", {}))
    twice = collected.keys() & kwargs.keys() & plain
    if twice:
        raise TypeError(f"kwargs given both directly and in factory_kwargs: {sorted(twice)}")
    collected.update((name, kwargs[name]) for name in plain & kwargs.keys())
    return collected


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "DataParallel":
        return importlib.import_module(f"{__name__}.parallel").DataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules_all, "attention", "grad", "utils"})
