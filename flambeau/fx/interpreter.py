"""`Interpreter` runs a graph node by node; `Transformer` makes another graph of it on the way.

A subclass overrides what a kind of node does (`call_function` and so on), or what all of them do
(`run_node`).
"""

from __future__ import annotations

from typing import Any

from ._symbolic_trace import Tracer
from .graph import Graph, attribute_of
from .graph_module import GraphModule
from .node import Node, map_arg
from .proxy import Proxy


class Interpreter:
    """Runs a module made of a graph.

    Args:
        module: it.
        garbage_collect_values: values are let go of after their last use.
        graph: run instead of the module's own.

    >>> class Counts(torch.fx.Interpreter):
    ...     calls = 0
    ...     def call_function(self, target, args, kwargs):
    ...         self.calls += 1
    ...         return super().call_function(target, args, kwargs)
    >>> counts = Counts(torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1))
    >>> counts.run(torch.zeros(2)), counts.calls
    (tensor([1., 1.]), 2)
    """

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.garbage_collect_values = garbage_collect_values
        self._dead: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.graph.nodes):
            last = [n for n in node.all_input_nodes if n not in seen]
            seen.update(last)
            self._dead[node] = last

    def run(self, *args: Any, initial_env: Any = None, enable_io_processing: bool = True) -> Any:
        """The result for these inputs.

        Args:
            args: inputs in order.
            initial_env: values of nodes that are not to be computed.
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            if node.op == "output":
                result = self.env[node]
                if self.garbage_collect_values:
                    self.env = {}
                return result
            if self.garbage_collect_values:
                for n in self._dead[node]:
                    self.env.pop(n, None)
        return None

    def run_node(self, n: Node) -> Any:
        """The value of a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        """The next input, or its default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        """What the module has at a path."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        """The result of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """The result of a module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: Any, kwargs: Any) -> Any:
        """What is returned."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What the module has at a path."""
        return attribute_of(self.module, target)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """The arguments of a node, with values for nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments with values for nodes."""
        return map_arg(args, lambda a: self.env[a])


class Transformer(Interpreter):
    """Makes another graph: what a kind of node does is what stands in its place.

    >>> class Sines(torch.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         target = torch.sin if target is torch.cos else target
    ...         return super().call_function(target, args, kwargs)
    >>> Sines(torch.fx.symbolic_trace(lambda x: torch.cos(x))).transform()(torch.zeros(1))
    tensor([0.])
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.tracer = Tracer()
        self.tracer.root = module
        self.new_graph = self.tracer.graph = Graph()

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        """The input anew."""
        return self.tracer.create_proxy("placeholder", target, args, kwargs)

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        """The read anew."""
        return self.tracer.create_proxy("get_attr", target, (), {})

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The call anew."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        """The call anew."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """The call anew."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        result = self.run()
        self.tracer.create_node("output", "output", (self.tracer.create_arg(result),), {})
        return GraphModule(self.module, self.new_graph)


__all__ = ["Interpreter", "Proxy", "Transformer"]
