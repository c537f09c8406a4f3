"""PyTorch's older name of the compiler's public face, which programs still use.

Everything is `flambeau.compiler`'s, but for `config` (switches) and `exc` (exceptions).
"""

from __future__ import annotations

from flambeau.compiler import (
    allow_in_graph,
    disable,
    explain,
    is_compiling,
    list_backends,
    mark_dynamic,
    register_backend,
    reset,
)
from flambeau.compiler._module import OptimizedModule

from . import backends, config, exc

__all__ = [
    "OptimizedModule",
    "backends",
    "allow_in_graph",
    "config",
    "disable",
    "exc",
    "explain",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "register_backend",
    "reset",
]
