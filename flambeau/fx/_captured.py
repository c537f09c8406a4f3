"""A captured graph as a `GraphModule`: what back ends of users are given.

The graph's values become nodes. A node's target is the public function or method that the program
could have called, with the arguments that differ from their defaults; what has no public name is an
`Operation`. Sizes that vary are nodes as well, read from the inputs. Invariant: running the module
is running the graph.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import _C
from flambeau._ir.graph import Graph as Captured
from flambeau._ir.graph import Node as Call
from flambeau._ir.graph import TensorType, Value
from flambeau._ir.graph_custom import custom_caller
from flambeau._ir.graph_regions import region_caller
from flambeau._ir.graph_run import _caller, prepare
from flambeau._ir.symexpr import Expr
from flambeau._ir.symscalar import FloatExpr
from flambeau._ir.targets import resolve
from flambeau._table.entries import overloads
from flambeau._trace.handwritten import FUNCTIONS
from flambeau._trace.tracing import trace

from .graph import Graph, _homes
from .graph_module import GraphModule
from .node import Node

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.USub: operator.neg,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "float": float, "sqrt": math.sqrt, "exp": math.exp, "log": math.log,
    "cos": math.cos, "sin": math.sin,
}  # fmt: skip


class Operation:
    """An entry of the table as a function of all its parameters; it gives its result, or several.

    Attributes:
        name: the entry's.
    """

    def __init__(self, node: Call) -> None:
        self.name = self.__name__ = node.target
        self.__module__ = "flambeau.fx"
        self._run = _caller(node, False)
        self._one = len(node.outs) == 1

    def __call__(self, *args: Any) -> Any:
        made = self._run(args)
        return made[0] if self._one else made

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


def as_module(graph: Captured, names: Sequence[str] = ()) -> GraphModule:
    """The module of a captured graph, or of one of primitives.

    Args:
        graph: its attached tensors become attributes.
        names: where the inputs were found in the program.
    """
    return _Conversion(graph, names).run()


def is_as_captured(module: GraphModule) -> bool:
    """Whether the module still is what `as_module` made, though a program may have changed it."""
    return module.graph.python_code("self") == module.__dict__["captured"]


def graph_of(module: Any, example_inputs: Sequence[Any]) -> Captured:
    """The compiler's graph of a module made by `as_module`, changes included; of a graph, itself.

    Raises:
        NotImplementedError: it was changed, and sizes vary.
    """
    if not isinstance(module, GraphModule):
        return module
    source = module.__dict__.get("ir")
    if source is not None and is_as_captured(module):
        return source
    if source is not None and source.env.symbols:
        raise NotImplementedError(
            "a graph that was changed is given to another back end, and its sizes vary; compile "
            "with dynamic=False, or return gm.forward"
        )
    return trace(module, example_inputs)


class _Conversion:
    def __init__(self, graph: Captured, names: Sequence[str]) -> None:
        self.source, self.names = graph, names
        self.graph = Graph()
        self.nodes: dict[Value, Node] = {}
        self.symbols: dict[str, Node] = {}
        self.made: dict[str, Any] = {}
        self.hints = graph.env.hints()
        self.inputs: list[Node] = []

    def run(self) -> GraphModule:
        source = self.source
        root: dict[str, Any] = {}
        given = len(source.inputs) - len(source.attached)
        for k, v in enumerate(source.inputs[:given]):
            name = self.names[k] if k < len(self.names) else f"arg{k}"
            plain = re.sub(r"[^0-9a-zA-Z]+", "_", name).strip("_")
            node = self.graph.placeholder(f"l_{plain}_")
            node.target = node.name
            self._define(v, node)
        for k, (v, x) in enumerate(zip(source.inputs[given:], source.attached, strict=True)):
            root[f"_tensor_constant{k}"] = x
            self._define(v, self.graph.get_attr(f"_tensor_constant{k}"))
        self.inputs = [self.nodes[v] for v in source.inputs]
        start = grad = flambeau.is_grad_enabled() or any(n.grad for n in source.nodes)
        for call in source.nodes:
            if call.grad != grad and call.target != "alias":
                grad = self._switch(call.grad)
            self._call(call)
        if grad != start:
            self._switch(start)
        self.graph.output(self._arg(source.outputs))
        made = GraphModule(root, self.graph)
        made.__dict__["ir"], made.__dict__["captured"] = source, self.graph.python_code("self")
        return made

    def _switch(self, on: bool) -> bool:
        self.graph.call_function(_C._set_grad_enabled, (on,))
        return on

    def _define(self, v: Value, node: Node) -> None:
        self.nodes[v] = node
        node.meta["type"] = v.type
        if isinstance(v.type, TensorType):
            node.meta["val"] = node.meta["example_value"] = self._example(v.type)

    def _example(self, t: TensorType) -> Any:
        """A tensor without data, of the sizes for which the graph was captured."""
        unknown = any(
            isinstance(n, Expr) and not n.symbols <= self.hints.keys()
            for n in (*t.shape, *t.strides)
        )
        if unknown:
            return None
        shape, strides = (
            [n if isinstance(n, int) else n.evaluate(self.hints) for n in dims]
            for dims in (t.shape, t.strides)
        )
        return flambeau.empty_strided(shape, strides, dtype=t.dtype, device="meta")

    # -- arguments ---------------------------------------------------------------------------------

    def _arg(self, a: Any) -> Any:
        if isinstance(a, Value):
            return self.nodes[a]
        if isinstance(a, tuple):
            return tuple(map(self._arg, a))
        if isinstance(a, (Expr, FloatExpr)):
            text = a.text if isinstance(a, Expr) else repr(a)
            return self._expression(ast.parse(text, mode="eval").body)
        return a

    def _symbol(self, name: str) -> Node:
        """The node that gives a symbol's value."""
        known = self.symbols.get(name)
        if known is None:
            source = self.source.env.symbols[name].origin
            if source is None:
                raise NotImplementedError(f"fx: the symbol {name} is known only inside the graph")
            x = self.inputs[source.input]
            match source.kind:
                case "value":
                    known = x
                case "offset":
                    known = self.graph.call_method("storage_offset", (x,))
                case _:
                    known = self.graph.call_method(source.kind, (x, source.dim))
            self.symbols[name] = known
        return known

    def _expression(self, e: ast.expr) -> Any:
        """An expression of symbols as nodes; each is computed once."""
        text = ast.unparse(e)
        if text not in self.made:
            self.made[text] = self._computed(e)
        return self.made[text]

    def _computed(self, e: ast.expr) -> Any:
        match e:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return self._symbol(name)
            case ast.UnaryOp(op, x):
                inner = self._expression(x)
                function = _OPERATORS[type(op)]
                if not isinstance(inner, Node):
                    return function(inner)
                return self.graph.call_function(function, (inner,))
            case ast.BinOp(a, op, b):
                both = (self._expression(a), self._expression(b))
                return self.graph.call_function(_OPERATORS[type(op)], both)
            case ast.Call(ast.Name(name), args):
                given = tuple(map(self._expression, args))
                return self.graph.call_function(_FUNCTIONS[name], given)
        raise NotImplementedError(f"fx: {ast.unparse(e)}")

    # -- calls -------------------------------------------------------------------------------------

    def _call(self, call: Call) -> None:
        args = self._arg(call.args)
        if call.rule is not None or call.is_region:
            node = self.graph.call_function(self._custom(call), args)
        elif call.target == "alias" and not call.grad:
            node = self.graph.call_method("detach", args[:1])
        else:
            node = self._operation(call, args)
        if call.where is not None:
            node.meta["stack_trace"] = str(call.where)
        if len(call.outs) == 1 and not self._spread(call):
            self._define(call.out, node)
            return
        for k, v in enumerate(call.outs):
            self._define(v, self.graph.call_function(operator.getitem, (node, k)))

    @staticmethod
    def _spread(call: Call) -> bool:
        if call.rule is not None or call.is_region:
            return True
        outputs = resolve(call.target).op.outputs
        return len(outputs) == 1 and bool(outputs[0].is_list)

    def _custom(self, call: Call) -> Callable[..., Any]:
        caller = region_caller if call.is_region else custom_caller
        function, symbols = caller(call, prepare), sorted(self.source.env.symbols)
        if symbols:
            what = call.target if call.is_region else "a derivative of the user's own"
            raise NotImplementedError(f"fx: {what} over sizes that vary")

        def custom_gradient(*args: Any) -> Any:
            return function(args, {})

        return custom_gradient

    def _operation(self, call: Call, args: tuple[Any, ...]) -> Node:
        target = resolve(call.target)
        op = target.op
        public = None if target.form == "new" or len(overloads(op.name)) > 1 else _public(op.name)
        named = {p.name: a for p, a in zip(op.params, args, strict=True) if p.kwonly}
        plain = [(p, a) for p, a in zip(op.params, args, strict=True) if not p.kwonly]
        while plain and _is_default(*plain[-1]):
            plain.pop()
        params = {p.name: p for p in op.params}
        if op.name in FUNCTIONS and len(plain) > 2:  # whose order is not the entry's
            named = {p.name: a for p, a in plain[1:]} | named
            del plain[1:]
        kwargs = {n: a for n, a in named.items() if not _is_default(params[n], a)}
        positional = tuple(a for _, a in plain)
        if target.form == "inplace":
            method = f"{op.name}_"
            if hasattr(flambeau.Tensor, method) and len(overloads(op.name)) == 1:
                return self.graph.call_method(method, positional, kwargs)
        elif public is not None:
            return self.graph.call_function(public, positional, kwargs)
        elif target.form == "" and hasattr(flambeau.Tensor, op.name) and _is_method(op):
            if len(overloads(op.name)) == 1:
                return self.graph.call_method(op.name, positional, kwargs)
        return self.graph.call_function(Operation(call), args)


def _is_default(p: Any, a: Any) -> bool:
    """Whether an argument is what the parameter has anyway."""
    if p.default is None:
        return False
    try:
        value = ast.literal_eval(p.default)
    except ValueError:
        return False
    if isinstance(value, list):
        value = tuple(value)
    return type(value) is type(a) and value == a


def _is_method(op: Any) -> bool:
    return bool(op.params) and op.params[0].name in ("self", "input")


def _public(name: str) -> Callable[..., Any] | None:
    """The function of `torch` or `torch.nn.functional` of that name."""
    if name.startswith("_"):
        return None
    for path, home in _homes():
        found = getattr(home, name, None)
        if path in ("torch", "torch.nn.functional") and type(found) is type(flambeau.relu):
            return found
    return None
