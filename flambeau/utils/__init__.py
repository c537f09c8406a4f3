"""Tools around the framework: data loading, checkpointing and other helpers.

Owns the namespace ``flambeau.utils`` only. Its sub-modules are loaded on first use, so that
importing the package stays cheap; nothing here may know what they contain.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        qualified = f"{__name__}.{name}"
        try:
            return importlib.import_module(qualified)
        except ModuleNotFoundError as error:
            if error.name != qualified:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
