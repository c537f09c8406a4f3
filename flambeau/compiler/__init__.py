"""The compiler's public face: `compile`, and what helps to understand and steer it.

Owns options, back ends by name and the forms in which things can be compiled (functions, modules,
decorators). Capture itself is loaded when something is compiled.
"""

from __future__ import annotations

from ._backends import list_backends, register_backend
from ._compile import (
    allow_in_graph,
    assume_constant_result,
    compile,
    _disable_dynamo,
    disable,
    mark_dynamic,
    nested_compile_region,
    reset,
)
from ._explain import Explanation, explain
from ._marks import cudagraph_mark_step_begin, is_compiling, is_dynamo_compiling, is_exporting
from ._stance import set_stance

__all__ = [
    "Explanation",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "explain",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "mark_dynamic",
    "nested_compile_region",
    "register_backend",
    "reset",
    "set_stance",
]
