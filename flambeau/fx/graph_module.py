"""`GraphModule`: a module whose `forward` is generated from a `Graph`.

Invariant: `code` and `forward` are those of the graph as of the last `recompile`, which setting
`graph` does; a program that changes the graph in place calls it.
"""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

import flambeau

from .graph import Graph, PythonCode, attribute_of

_numbers = itertools.count()


class GraphModule(flambeau.nn.Module):
    """A module made of a graph.

    Args:
        root: a module whose attributes the graph reads, or a dict from paths to what is there.
        graph: the program.
        class_name: the name of the class that is made for it.

    Raises:
        RuntimeError: the graph reads what `root` has not.

    >>> class Twice(torch.nn.Module):
    ...     def forward(self, x):
    ...         return torch.relu(x) + x * 2
    >>> traced = torch.fx.symbolic_trace(Twice())
    >>> for node in traced.graph.nodes:
    ...     if node.target is torch.relu:
    ...         node.target = torch.sigmoid
    >>> _ = traced.recompile()
    >>> traced(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each has a class of its own, since `forward` is the class's.
        own = next((c for c in cls.__mro__ if not c.__dict__.get("_is_generated")), cls)
        made = type(own.__name__, (own,), {"_is_generated": True})
        return super().__new__(made)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        for path in dict.fromkeys(
            n.target for n in graph.nodes if n.op in ("get_attr", "call_module")
        ):
            if isinstance(root, dict):
                if path not in root:
                    raise RuntimeError(f"GraphModule: the graph reads {path!r}, which root lacks")
                _put(self, path, root[path])
            else:
                _put(self, path, attribute_of(root, path))
        if isinstance(root, flambeau.nn.Module):
            self.training = root.training
        self.meta: dict[str, Any] = dict(getattr(root, "meta", {}))
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; setting it makes the code anew."""
        return self.__dict__["_graph"]

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"GraphModule.graph: expected a Graph, got {type(graph).__name__}")
        self.__dict__["_graph"] = graph
        graph.owning_module = self
        self.recompile()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "graph":
            GraphModule.graph.fset(self, value)  # type: ignore[attr-defined]
        else:
            super().__setattr__(name, value)

    @property
    def code(self) -> str:
        """The text of `forward`."""
        return self.__dict__["_code"]

    def recompile(self) -> PythonCode:
        """Makes `forward` of the graph as it is now."""
        made = self.graph.python_code("self")
        names = dict(made.globals)
        file = f"<eval_with_key>.{next(_numbers)}"
        linecache.cache[file] = (len(made.src), None, made.src.splitlines(True), file)
        exec(compile(made.src, file, "exec"), names)
        self.__dict__["_code"] = made.src
        self.__dict__.pop("forward", None)
        type(self).forward = names["forward"]  # type: ignore[method-assign]
        return made

    def print_readable(self, print_output: bool = True, **more: Any) -> str:
        """The code as a class, printed unless `print_output` is False; returns the text."""
        lines = "\n".join(f"    {line}" if line else "" for line in self.code.splitlines())
        text = f"class {type(self).__name__}(torch.nn.Module):\n{lines}\n"
        if print_output:
            print(text)
        return text

    def add_submodule(self, target: str, m: flambeau.nn.Module) -> bool:
        """Puts a module at a path; False where something else is in the way."""
        try:
            _put(self, target, m)
        except RuntimeError:
            return False
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes the module at a path away; False where there is none."""
        *parents, name = target.split(".")
        try:
            home = attribute_of(self, ".".join(parents)) if parents else self
        except RuntimeError:
            return False
        return home._modules.pop(name, None) is not None

    def delete_all_unused_submodules(self) -> None:
        """Takes away modules that the graph does not read."""
        used = {n.target for n in self.graph.nodes if n.op in ("call_module", "get_attr")}
        for path, _ in reversed(list(self.named_modules())):
            if path and not any(u == path or u.startswith(f"{path}.") for u in used):
                if not any(path.startswith(f"{u}.") for u in used):
                    self.delete_submodule(path)

    def __deepcopy__(self, memo: Any) -> GraphModule:
        root = flambeau.nn.Module()
        for name, value in self.__dict__.items():
            if name not in ("_graph", "_code", "forward"):
                root.__dict__[name] = copy.deepcopy(value, memo)
        return GraphModule(root, copy.deepcopy(self.graph), type(self).__name__)

    def __copy__(self) -> GraphModule:
        return GraphModule(self, copy.deepcopy(self.graph), type(self).__name__)

    def __reduce__(self) -> Any:
        raise TypeError("a GraphModule is not pickled; save its state_dict")

    def __str__(self) -> str:
        return f"{super().__repr__()}\n\n{self.code}"


def _put(module: flambeau.nn.Module, path: str, value: Any) -> None:
    """Sets an attribute, with modules in between."""
    *parents, name = path.split(".")
    at: Any = module
    for part in parents:
        inner = getattr(at, part, None)
        if inner is None:
            inner = flambeau.nn.Module()
            at.add_module(part, inner)
        if not isinstance(inner, flambeau.nn.Module):
            raise RuntimeError(f"{path!r}: {part} is no module")
        at = inner
    if isinstance(value, flambeau.Tensor) and not isinstance(value, flambeau.nn.Parameter):
        at.register_buffer(name, value)
    else:
        setattr(at, name, value)


__all__ = ["GraphModule"]
