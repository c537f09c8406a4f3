"""The back ends that come with the library: functions of a captured graph and example inputs.

They are put together from `_ir.graph_run` (calls of the table), `_aot` (forward and backward graphs
of primitives) and `_compiler` (native code).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._ir.graph import Graph
from flambeau._ir.graph_run import prepare


def run_eagerly(graph: Graph, example_inputs: Any = ()) -> Callable[..., tuple[Any, ...]]:
    """'eager': the captured graph, node by node."""
    return prepare(graph)


def run_ahead_of_time(graph: Graph, example_inputs: Any) -> Callable[..., tuple[Any, ...]]:
    """'aot_eager': functional forward and backward graphs of primitives, node by node."""
    from flambeau._aot import aot, callable_of

    return callable_of(aot(graph, _wanted(example_inputs)))


def run_compiled(
    graph: Graph, example_inputs: Any, mode: str | None = None, options: Any = None
) -> Callable[..., tuple[Any, ...]]:
    """'inductor': the same graphs in native code."""
    from flambeau._aot import aot, callable_of
    from flambeau._compiler.execute import back_end

    return callable_of(aot(graph, _wanted(example_inputs)), back_end)


def _wanted(example_inputs: Any) -> list[bool]:
    return [getattr(x, "requires_grad", False) for x in example_inputs]
