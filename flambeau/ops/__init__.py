"""The table of operations: every operation is written here once, as a typed Python function.

The build compiles these files to C++ without importing them; at run time only the compiler stack
and the tests import them. To programs, `torch.ops` is where operators are found by the name of
their library: `torch.ops.NAMESPACE.NAME`.
"""

from __future__ import annotations

import importlib.util
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'flambeau.ops' has no attribute {name!r}")
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:  # a file of the table
        return importlib.import_module(f"{__name__}.{name}")
    from .._library.operators import registry

    value = globals()[name] = getattr(registry(), name)
    return value
