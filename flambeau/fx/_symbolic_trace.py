"""`Tracer` and `symbolic_trace`: a module's code is run on proxies, and what it does is recorded.

Modules of the library are leaves: calls of them are nodes. Whatever a program decides while it is
traced is decided for good; asking a proxy for its value raises `TraceError`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import flambeau
from flambeau._ir.own import own_module

from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .proxy import Proxy, TracerBase, has_proxy

_wrapped: list[tuple[dict[str, Any], str]] = []


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Makes calls of a function nodes instead of following it; also a decorator.

    Args:
        fn_or_name: a function, or the name of one in the module that calls `wrap`.

    Raises:
        RuntimeError: the name is none of that module.
    """
    frame = sys._getframe(1)
    if not isinstance(fn_or_name, str) and not callable(fn_or_name):
        raise RuntimeError(
            f"fx.wrap: expected a function or its name, got {type(fn_or_name).__name__}"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped.append((frame.f_globals, name))
    return fn_or_name


class Tracer(TracerBase):
    """Records a module's `forward`, or a function.

    A subclass may decide what is a leaf (`is_leaf_module`) and what nodes are made (`create_node`).
    """

    proxy_buffer_attributes = False

    def __init__(self, autowrap_modules: Any = (), autowrap_functions: Any = ()) -> None:
        self.functions = tuple(autowrap_functions)
        self.graph = Graph()
        self.root: Any = None

    # -- what subclasses may change ----------------------------------------------------------------

    def is_leaf_module(self, m: flambeau.nn.Module, module_qualified_name: str) -> bool:
        """Whether a call of a module is one node: so for those of `flambeau.nn`."""
        home = own_module(type(m).__module__) or ""
        return home.split(".")[0] == "nn" and not isinstance(m, flambeau.nn.Sequential)

    def call_module(
        self, m: flambeau.nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """A call of a module in the program."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def create_arg(self, a: Any) -> Any:
        """A value of the program as an argument of a node."""
        if isinstance(a, flambeau.Tensor) and not isinstance(a, Proxy):
            return self._attribute(a)
        return super().create_arg(a)

    # -- tracing -----------------------------------------------------------------------------------

    def path_of_module(self, mod: flambeau.nn.Module) -> str:
        """The path of a module below the root.

        Raises:
            NameError: it is not below the root.
        """
        for path, m in self.root.named_modules():
            if m is mod:
                return path
        raise NameError("module is not installed as a submodule")

    def _attribute(self, t: flambeau.Tensor) -> Node:
        """A tensor that the program brings along, as a read of an attribute."""
        tensors = (*self.root.named_parameters(), *self.root.named_buffers())
        for path, known in tensors:
            if known is t:
                return self.create_node("get_attr", path, (), {})
        constants = self.__dict__.setdefault("_constants", {})
        for path, known in constants.items():
            if known is t:
                return self.create_node("get_attr", path, (), {})
        path = f"_tensor_constant{len(constants)}"
        constants[path] = t
        setattr(self.root, path, t)
        return self.create_node("get_attr", path, (), {})

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's `forward`, or of a function.

        Args:
            root: the module or function.
            concrete_args: values of arguments that are to be constants.
        """
        given = concrete_args or {}
        module = isinstance(root, flambeau.nn.Module)
        self.root = root if module else flambeau.nn.Module()
        function = root.forward if module else root
        self.graph = Graph()
        args, kwargs = self._arguments(function, given)
        with _recorded(self):
            result = function(*args, **kwargs)
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _arguments(self, function: Any, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for p in inspect.signature(function).parameters.values():
            if p.name in given:
                value = given[p.name]
            elif p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                continue
            else:
                default = () if p.default is p.empty else (p.default,)
                value = self.create_proxy("placeholder", p.name, default, {})
            if p.kind is p.KEYWORD_ONLY:
                kwargs[p.name] = value
            else:
                args.append(value)
        return args, kwargs


@contextmanager
def _recorded(tracer: Tracer) -> Iterator[None]:
    """Inside, calls of modules and of wrapped functions go to the tracer."""
    call = flambeau.nn.Module.__call__

    def called(m: Any, *args: Any, **kwargs: Any) -> Any:
        if not has_proxy((args, kwargs)):
            return call(m, *args, **kwargs)
        return tracer.call_module(m, lambda *a, **k: call(m, *a, **k), args, kwargs)

    def recorder(function: Any) -> Any:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if has_proxy((args, kwargs)):
                return tracer.create_proxy("call_function", function, args, kwargs)
            return function(*args, **kwargs)

        return recorded

    missing: Any = object()
    before = []
    flambeau.nn.Module.__call__ = called  # type: ignore[method-assign, assignment]
    try:
        for namespace, name in _wrapped:
            builtin = namespace.get("__builtins__", {})
            builtin = builtin if isinstance(builtin, dict) else builtin.__dict__
            found = namespace.get(name, builtin.get(name))
            before.append((namespace, name, namespace.get(name, missing)))
            namespace[name] = recorder(found)
        yield
    finally:
        flambeau.nn.Module.__call__ = call  # type: ignore[method-assign]
        for namespace, name, value in reversed(before):
            if value is missing:
                del namespace[name]
            else:
                namespace[name] = value


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """The graph of a module or function, as a module.

    Args:
        root: the module or function, without control flow that depends on its inputs.
        concrete_args: values of arguments that are to be constants.

    Raises:
        TraceError: the program asked for a value that only the run tells.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> traced = torch.fx.symbolic_trace(model)
    >>> [(n.op, n.name) for n in traced.graph.nodes]
    [('placeholder', 'input_1'), ('call_module', '_0'), ('call_module', '_1'), ('output', 'output')]
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, flambeau.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
