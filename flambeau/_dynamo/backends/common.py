"""`aot_autograd`: a back end of forward and backward graphs of primitives; `prepare` runs a graph,
`bindings` gives the values of its symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._capture.back_ends import aot_autograd
from flambeau._ir import graph_run
from flambeau._ir.graph_run import bindings


def prepare(graph: Any) -> Callable[..., tuple[Any, ...]]:
    """A function that runs a graph of the compiler's node by node; a `GraphModule`'s `forward`."""
    forward: Callable[..., tuple[Any, ...]] | None = getattr(graph, "forward", None)
    return graph_run.prepare(graph) if forward is None else forward


def make_boxed_func(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function as one of a list of its arguments, which it may empty once it has them.

    >>> torch._dynamo.backends.common.make_boxed_func(lambda x, y: x + y)([1, 2])
    3
    """

    def boxed(args: list[Any]) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


__all__ = ["aot_autograd", "bindings", "make_boxed_func", "prepare"]
