"""`Proxy`: what stands for a value while a program is traced; what is done with it becomes nodes.

Owns also what makes those nodes (`TracerBase`) and answers questions that no graph can; what a
module is and how a program is followed is the business of `Tracer`.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .node import Node, map_arg

if TYPE_CHECKING:
    from .graph import Graph


class TraceError(ValueError):
    """The program asked for a value that only the run tells."""


class TracerBase:
    """What makes nodes of the calls of proxies, and appends them to `graph`."""

    graph: Graph

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """A node of the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """What stands for a node's value."""
        return Proxy(node, self)

    def create_arg(self, a: Any) -> Any:
        """A value of the program as an argument of a node."""
        if isinstance(a, (list, tuple)) and not hasattr(a, "_fields"):
            return type(a)(self.create_arg(x) for x in a)
        if isinstance(a, dict):
            return {k: self.create_arg(v) for k, v in a.items()}
        return nodes_of(a)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None,
        type_expr: Any = None, proxy_factory_fn: Any = None,
    ) -> Proxy:  # fmt: skip
        """A new node, and what stands for its value."""
        node = self.create_node(
            kind,
            target,
            self.create_arg(tuple(args)),
            self.create_arg(dict(kwargs)),
            name,
            type_expr,
        )
        return (proxy_factory_fn or self.proxy)(node)

    def to_bool(self, obj: Proxy) -> bool:
        """`bool(x)`, which no graph can give."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """`iter(x)`: known only where the program unpacks a fixed number."""
        frame: Any = sys._getframe(2)
        instructions = {i.offset: i for i in _instructions(frame.f_code)}
        at = instructions.get(frame.f_lasti)
        if at is not None and at.opname == "UNPACK_SEQUENCE":
            return iter([obj[k] for k in range(at.argval)])  # type: ignore[index]
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument."
        )

    def keys(self, obj: Proxy) -> Any:
        """`x.keys()`, for `**x`."""
        return Proxy.__getattr__(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Appends to a graph that is there: for graphs that a program writes by calling proxies.

    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"), torch.fx.proxy.GraphAppendingTracer(graph))
    >>> _ = graph.output((x * 2 + 1).node)
    >>> torch.fx.GraphModule({}, graph)(torch.ones(2))
    tensor([3., 3.])
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """A value of a program that is traced, or of a graph that a program writes.

    Args:
        node: the node that computes it.
        tracer: what makes nodes of what is done with it; by default it appends them to the graph.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Any:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return bool(self.tracer.to_bool(self))

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        """Not known while tracing, for `**`."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, function: Any, kinds: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        tracer = find((args, kwargs)).tracer
        method = _method_of_tensor(function)
        if method is not None:
            return tracer.create_proxy("call_method", method, args, kwargs)
        return tracer.create_proxy("call_function", function, args, kwargs)


class Attribute(Proxy):
    """`x.name`: a method that is about to be called, else a node of its own."""

    def __init__(self, root: Proxy, name: str) -> None:
        self.root, self.attr, self.tracer = root, name, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def find(a: Any) -> Proxy:
    """A proxy in arguments."""
    if isinstance(a, Proxy):
        return a
    items = a.values() if isinstance(a, dict) else a if isinstance(a, (list, tuple)) else ()
    for x in items:
        if has_proxy(x):
            return find(x)
    raise TraceError("no traced value among the arguments")


def has_proxy(a: Any) -> bool:
    """Whether a traced value is among arguments."""
    if isinstance(a, dict):
        return any(map(has_proxy, a.values()))
    if isinstance(a, slice):
        return any(map(has_proxy, (a.start, a.stop, a.step)))
    return any(map(has_proxy, a)) if isinstance(a, (list, tuple)) else isinstance(a, Proxy)


def _method_of_tensor(function: Any) -> str | None:
    import flambeau

    name = getattr(function, "__name__", None)
    own = getattr(flambeau.Tensor, name, None) if isinstance(name, str) else None
    return name if own is function else None


def _operator(name: str, function: Callable[..., Any], reflected: bool) -> None:
    def forward(self: Proxy, *args: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, *args), {})

    def backward(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    setattr(Proxy, f"__{name.strip('_')}__", forward)
    if reflected:
        setattr(Proxy, f"__r{name.strip('_')}__", backward)


for _name in ("add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift").split():
    _operator(_name, getattr(operator, _name), True)
for _name in "lt le eq ne gt ge neg pos invert getitem setitem".split():
    _operator(_name, getattr(operator, _name), False)
_operator("abs", abs, False)
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


def nodes_of(a: Any) -> Any:
    """Arguments with nodes in the place of proxies."""
    if isinstance(a, Proxy):
        return a.node
    if isinstance(a, tuple):
        items = [nodes_of(x) for x in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return [nodes_of(x) for x in a]
    if isinstance(a, dict):
        return {k: nodes_of(v) for k, v in a.items()}
    if isinstance(a, slice):
        return slice(nodes_of(a.start), nodes_of(a.stop), nodes_of(a.step))
    return map_arg(a, lambda n: n)


def _instructions(code: Any) -> Any:
    import dis

    return dis.get_instructions(code)
