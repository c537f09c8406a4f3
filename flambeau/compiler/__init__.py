"""The compiler's public face: `compile`, and what helps to understand and steer it.

Owns options, back ends by name and the forms in which things can be compiled (functions, modules,
decorators). Capture itself is loaded when something is compiled.
"""

from __future__ import annotations

from ._backends import (
    get_default_backend,
    list_backends,
    register_backend,
    set_default_backend,
)
from ._compile import (
    _disable_dynamo,
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    mark_dynamic,
    nested_compile_region,
    reset,
    substitute_in_graph,
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
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "mark_dynamic",
    "nested_compile_region",
    "register_backend",
    "reset",
    "set_default_backend",
    "set_stance",
    "substitute_in_graph",
]
