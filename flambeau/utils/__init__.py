"""Tools around the framework: data loading, checkpointing and other helpers.

Owns the namespace ``flambeau.utils`` only. Its sub-modules are loaded on first use, so that
importing the package stays cheap; nothing here may know what they contain.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

#: where CMake finds the package: ``cmake -DCMAKE_PREFIX_PATH=...``
cmake_prefix_path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "share", "cmake")


def set_module(obj: Any, mod: str) -> None:
    """Say which module an object belongs to.

    Raises:
        TypeError: the name is no string.
    """
    if not isinstance(mod, str):
        raise TypeError(f"set_module: expected the name of a module, got {type(mod).__name__}")
    obj.__module__ = mod


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        qualified = f"{__name__}.{name}"
        try:
            return importlib.import_module(qualified)
        except ModuleNotFoundError as error:
            if error.name != qualified:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
