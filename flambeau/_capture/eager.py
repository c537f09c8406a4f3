"""The back ends that compile nothing: a captured graph run by calls of the table, and the same
after ahead-of-time autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._ir.graph import Graph
from flambeau._ir.graph_run import prepare


def run_eagerly(graph: Graph, example_inputs: Any = ()) -> Callable[..., tuple[Any, ...]]:
    """The back end 'eager': the captured graph, node by node."""
    return prepare(graph)


def run_ahead_of_time(graph: Graph, example_inputs: Any) -> Callable[..., tuple[Any, ...]]:
    """The back end 'aot_eager': functional forward and backward graphs of primitives."""
    from flambeau._aot import aot, callable_of

    wanted = [getattr(x, "requires_grad", False) for x in example_inputs]
    return callable_of(aot(graph, wanted))
