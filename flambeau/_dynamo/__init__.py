"""PyTorch's older name of the compiler's public face, which programs still use.

Everything is `flambeau.compiler`'s, but for `config` (switches), `exc` (exceptions) and
`graph_break`, which has no newer name.
"""

from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.compiler import (
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    explain,
    is_compiling,
    list_backends,
    mark_dynamic,
    nested_compile_region,
    register_backend,
    reset,
    set_stance,
)
from flambeau.compiler._backends import lookup_backend
from flambeau.compiler._compile import mark_static, maybe_mark_dynamic
from flambeau.compiler._marks import errors_on_break
from flambeau.compiler._module import OptimizedModule
from flambeau.utils._contextlib import context_decorator

from . import backends, config, eval_frame, exc, testing, utils


def optimize(
    backend: Any = "inductor",
    *,
    nopython: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
) -> Any:
    """A decorator that compiles: the older form of `torch.compile`.

    Args:
        backend: its name, or a function.
        nopython: raise where a graph would end; `fullgraph` of `compile`.
        dynamic: sizes are variables from the start; None: once they change.
        disable: leave functions as they are.

    >>> torch._dynamo.optimize("eager")(lambda x: x + 1)(torch.ones(1))
    tensor([2.])
    """
    return lambda model: compile(
        model, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable
    )


def graph_break(msg: str = "") -> None:
    """Ends the graph where it is called; without effect where nothing is captured.

    Args:
        msg: for readers of the program.

    >>> @torch.compile(backend="eager")
    ... def f(x):
    ...     y = x + 1
    ...     torch._dynamo.graph_break()
    ...     return y * 2
    >>> f(torch.ones(2))
    tensor([4., 4.])
    """


class error_on_graph_break:  # noqa: N801  (PyTorch's name)
    """A block, or a decorator, inside compiled code: an end of the graph raises (True), or does not
    (False). Nothing happens where nothing is captured, or under `fullgraph=True`, which raises
    anyway.

    >>> @torch.compile(backend="eager")
    ... def f(x):
    ...     with torch._dynamo.error_on_graph_break(True):
    ...         return x + 1
    >>> f(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, error_on_graph_break: bool) -> None:
        self.on = self.before = bool(error_on_graph_break)

    def __enter__(self) -> None:
        self.before = errors_on_break(self.on)

    def __exit__(self, *exc: object) -> None:
        errors_on_break(self.before)

    def clone(self) -> error_on_graph_break:
        """Another context of the same meaning."""
        return error_on_graph_break(self.on)

    def __call__(self, function: Any) -> Any:
        return context_decorator(self, function)


graph_break = disable(graph_break, reason="it is there to end the graph")

__all__ = [
    "OptimizedModule",
    "backends",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "error_on_graph_break",
    "eval_frame",
    "exc",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "nested_compile_region",
    "register_backend",
    "optimize",
    "reset",
    "set_stance",
    "testing",
    "utils",
]


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Says that a tensor keeps its place in memory from call to call.

    Compiled code reads where its inputs are at each call, so it needs no such promise and is right
    with or without one.

    Args:
        t: the tensor.
        guard: for readers of the program.

    >>> torch._dynamo.mark_static_address(torch.ones(2))
    """
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address: expected a tensor, got {type(t).__name__}")
