"""The compiler's public face: `compile`, and what helps to understand and steer it.

Owns options, back ends by name and the forms in which things can be compiled (functions, modules,
decorators). Capture itself is loaded when something is compiled.
"""

from __future__ import annotations

from ._backends import list_backends, register_backend
from ._compile import (
    allow_in_graph,
    compile,
    disable,
    mark_dynamic,
    reset,
)
from ._explain import Explanation, explain
from ._marks import cudagraph_mark_step_begin, is_compiling, is_dynamo_compiling, is_exporting

__all__ = [
    "Explanation",
    "allow_in_graph",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "explain",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "mark_dynamic",
    "register_backend",
    "reset",
]
