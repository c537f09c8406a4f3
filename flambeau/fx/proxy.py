"""`Proxy`: what stands for a value while a program is traced; what is done with it becomes nodes.

Knows the tracer only by `create_proxy` and the answers to questions that no graph can give.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .node import Node, map_arg


class TraceError(ValueError):
    """The program asked for a value that only the run tells."""


class Proxy:
    """A value of a program that is traced."""

    def __init__(self, node: Node, tracer: Any) -> None:
        self.node, self.tracer = node, tracer

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
