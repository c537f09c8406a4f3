"""Back ends that count what is compiled, for tests of programs.

Each runs the captured graph as it is. Must not know how graphs come to be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.compiler._backends import lookup_backend

__all__ = ["CompileCounter", "CompileCounterWithBackend"]


class CompileCounter:
    """A back end that counts graphs and their operations, and runs them as captured.

    Attributes:
        frame_count: graphs compiled.
        op_count: calls in them.

    >>> counter = torch._dynamo.testing.CompileCounter()
    >>> torch.compile(lambda x: x + 1, backend=counter)(torch.ones(1))
    tensor([2.])
    >>> counter.frame_count, counter.op_count
    (1, 1)
    """

    def __init__(self) -> None:
        self.frame_count = 0
        self.op_count: Any = 0
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        self.graphs.append(gm)
        return self._made(gm, example_inputs)

    def _made(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        return gm.forward

    def clear(self) -> None:
        """Start counting from 0."""
        self.frame_count, self.op_count = 0, 0
        self.graphs.clear()


class CompileCounterWithBackend(CompileCounter):
    """A counter whose graphs another back end compiles.

    Args:
        backend: its name.
    """

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.backend = backend

    def _made(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        return lookup_backend(self.backend)(gm, example_inputs)
