"""`Graph`: nodes in order, ways to change them, and the Python code that they stand for.

Invariant: a node's arguments come before it, which `lint` checks. Generated code is one function
`forward`, one line per node; what it names beyond Python's own is in `PythonCode.globals`.
"""

from __future__ import annotations

import builtins
import keyword
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import flambeau

from .node import OPS, Node, following, map_arg, named

_INFIX = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
    operator.floordiv: "//", operator.mod: "%", operator.pow: "**", operator.matmul: "@",
    operator.and_: "&", operator.or_: "|", operator.xor: "^", operator.lshift: "<<",
    operator.rshift: ">>", operator.lt: "<", operator.le: "<=", operator.eq: "==",
    operator.ne: "!=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip


@dataclass
class PythonCode:
    """Generated code: its text, and the names that it needs."""

    src: str
    globals: dict[str, Any] = field(default_factory=dict)


class _Nodes:
    """All nodes of a graph in order; `reversed` works too."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __iter__(self) -> Iterator[Node]:
        return following(self._graph._root)

    def __reversed__(self) -> Iterator[Node]:
        return reversed(list(self))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Graph:
    """A program as a list of calls.

    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(torch.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(torch.fx.GraphModule({}, graph).code.strip())
    def forward(self, x):
        relu = torch.relu(x)
        return relu
    """

    def __init__(self, owning_module: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert_before = self._root
        self._used: dict[str, int] = {}
        self.owning_module = owning_module
        self._codegen = CodeGen()

    @property
    def nodes(self) -> _Nodes:
        """The nodes in order."""
        return _Nodes(self)

    def output_node(self) -> Node:
        """The node that returns."""
        return next(n for n in reversed(list(self.nodes)) if n.op == "output")

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Nodes of a kind, and of a target where one is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # -- making ------------------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node where nodes are inserted: at the end, unless `inserting_before` says else.

        Raises:
            AssertionError: an unknown kind of node, or arguments from another graph.
        """
        if op not in OPS:
            raise AssertionError(f"create_node: expected op to be one of {OPS}, got {op!r}")
        node = Node(
            self, self._name(name or _wish(op, target)), op, target, args or (), kwargs or {}
        )
        foreign = [n for n in node.all_input_nodes if n.graph is not self]
        if foreign:
            raise AssertionError(f"create_node: {foreign[0]} is a node of another graph")
        node.type = type_expr
        self._insert_before.prepend(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or attribute of the module, such as "layer.weight"."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """A call of a module that belongs to the owning one."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """What the function returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda n: n) -> Node:
        """A copy of a node of any graph; `arg_transform` gives what its arguments are here."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node]) -> Any:
        """Copies of all nodes of a graph but its output; what that returns, in nodes of this one.

        Args:
            g: the other graph.
            val_map: which nodes stand for its nodes; those that are copied are added.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                return map_arg(node.args[0], lambda n: val_map[n])
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made, copies = Graph(), dict[Node, Node]()
        result = made.graph_copy(self, copies)
        for node in self.nodes:
            if node.op == "output":
                made.output(result).meta = dict(node.meta)
        return made

    def _name(self, wish: str) -> str:
        base = re.sub(r"[^0-9a-zA-Z_]+", "_", wish).strip() or "_"
        base = f"_{base}" if base[0].isdigit() else base
        taken = keyword.iskeyword(base) or hasattr(builtins, base) or base in ("self", "torch")
        count = self._used.get(base, 1 if taken else 0)
        name = base if count == 0 else f"{base}_{count}"
        while name in self._used and count:
            count += 1
            name = f"{base}_{count}"
        self._used[base] = count + 1
        self._used.setdefault(name, 1)
        return name

    # -- changing ----------------------------------------------------------------------------------

    @contextmanager
    def inserting_before(self, n: Node | None = None) -> Iterator[None]:
        """Inside, new nodes come before `n`; None: at the beginning."""
        at = self._root._next if n is None else n
        if at.graph is not self:
            raise AssertionError("inserting_before: the node is of another graph")
        before, self._insert_before = self._insert_before, at
        try:
            yield
        finally:
            self._insert_before = before

    def inserting_after(self, n: Node | None = None) -> Any:
        """Inside, new nodes come after `n`, in the order of their making; None: at the end."""
        return self.inserting_before(self._root if n is None else n._next)

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node out that nobody takes.

        Raises:
            RuntimeError: there are users.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase._erased:
            return
        to_erase._set_args((), {})
        to_erase._leave()
        to_erase._erased = True

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Takes out what nobody takes and what does nothing; whether there was any."""
        changed = False
        for node in reversed(self.nodes):
            impure = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Checks the graph.

        Raises:
            RuntimeError: a node takes what comes after it, is of another graph, has no or two
                names, or takes an attribute that the owning module lacks.
        """
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.op not in OPS:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for n in node.all_input_nodes:
                if n not in seen:
                    raise RuntimeError(
                        f"Argument '{n}' of Node '{node}' was used before it has been defined! "
                        "Please check that Nodes in the graph are topologically ordered"
                    )
                if node not in n.users:
                    raise RuntimeError(f"Node '{n}' does not know its user '{node}'")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                attribute_of(self.owning_module, node.target)
            seen.add(node)
            names.add(node.name)

    # -- text --------------------------------------------------------------------------------------

    def __str__(self) -> str:
        inputs = ", ".join(f"%{n.name}" for n in self.nodes if n.op == "placeholder")
        lines = [f"    {n.format_node()}" for n in self.nodes]
        return "\n".join((f"graph({inputs}):", *lines))

    def print_tabular(self) -> None:
        """Prints one row per node: kind, name, target, arguments."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        for n in self.nodes:
            target = n.target if isinstance(n.target, str) else f"<{named(n.target)}>"
            rows.append((n.op, n.name, target, str(n.args), str(n.kwargs)))
        widths = [max(len(r[k]) for r in rows) for k in range(5)]
        lines = [
            "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows
        ]
        print("\n".join((lines[0], "  ".join("-" * w for w in widths), *lines[1:])))

    def python_code(self, root_module: str = "self") -> PythonCode:
        """The function that the graph stands for."""
        return self._codegen.generate(self, root_module)

    def on_generate_code(self, make_transformer: Any) -> None:
        """Not provided: `CodeGen` is not replaced."""
        raise NotImplementedError("Graph.on_generate_code: code generation cannot be changed")


class _Names(dict[str, Any]):
    """What generated code needs, by names that are none of its variables."""

    taken: set[str]


class CodeGen:
    """Writes a graph as a function of Python."""

    def generate(self, graph: Graph, root: str) -> PythonCode:
        """The function, whose first parameter has the name `root`."""
        names = _Names({"torch": flambeau})
        names.taken = {n.name for n in graph.nodes}
        params, body = [root], []
        ends = _last_users(graph)
        for n in graph.nodes:
            if n.op == "placeholder":
                default = f" = {_text(n.args[0], names)}" if n.args else ""
                params.append(f"{n.target}{default}")
                plain = str(n.target).lstrip("*")
                if plain != n.name:
                    body.append(f"{n.name} = {plain}")
                continue
            line = _line(n, root, names)
            if n.op != "output" and ends.get(n):
                line += ";  " + " = ".join([*(d.name for d in ends[n]), "None"])
            where = n.meta.get("stack_trace")
            if where and (not body or f"# {where}" not in body[-6:]):
                body.append(f"# {where}")
            body.append(line)
        lines = "\n".join(f"    {b}" for b in body or ["pass"])
        return PythonCode(f"def forward({', '.join(params)}):\n{lines}\n", dict(names))


def _last_users(graph: Graph) -> dict[Node, list[Node]]:
    """For each node, what nobody takes after it."""
    seen: set[Node] = set()
    out: dict[Node, list[Node]] = {}
    for n in reversed(graph.nodes):
        for a in (
            (n, *n.all_input_nodes) if n.op not in ("placeholder", "output") else n.all_input_nodes
        ):
            if a not in seen:
                seen.add(a)
                out.setdefault(n, []).append(a)
    return {n: [d for d in dead if d is not n or n.users == {}] for n, dead in out.items()}


def _line(n: Node, root: str, names: _Names) -> str:
    if n.op == "output":
        return f"return {_text(n.args[0], names)}"
    if n.op == "get_attr":
        return f"{n.name} = {_reach(root, n.target)}"
    args = [_text(a, names) for a in n.args]
    keywords = [f"{k} = {_text(v, names)}" for k, v in n.kwargs.items()]
    given = ", ".join((*args, *keywords))
    if n.op == "call_module":
        return f"{n.name} = {_reach(root, n.target)}({given})"
    if n.op == "call_method":
        return f"{n.name} = {args[0]}.{n.target}({', '.join((*args[1:], *keywords))})"
    if n.target in _INFIX and len(args) == 2 and not keywords:
        return f"{n.name} = {args[0]} {_INFIX[n.target]} {args[1]}"
    if n.target is operator.getitem and len(args) == 2:
        return f"{n.name} = {args[0]}[{args[1]}]"
    if n.target is getattr and len(args) == 2 and isinstance(n.args[1], str):
        return f"{n.name} = {args[0]}.{n.args[1]}"
    return f"{n.name} = {_global(n.target, names)}({given})"


def _reach(root: str, path: str) -> str:
    """`self.layers.0` as an expression."""
    out = root
    for part in path.split("."):
        out = f"{out}.{part}" if part.isidentifier() else f'getattr({out}, "{part}")'
    return out


def _global(value: Any, names: _Names) -> str:
    """An expression for an object that the code needs."""
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and name.isidentifier():
        if getattr(builtins, name, None) is value:
            return name
        for path, home in _homes():
            first = path.split(".")[0]
            if first not in names.taken and getattr(home, name, None) is value:
                names.setdefault(first, home if "." not in path else flambeau)
                return f"{path}.{name}"
    wish = re.sub(r"\W", "_", name if isinstance(name, str) else type(value).__name__)
    wish = f"op_{wish}" if wish in names.taken else wish
    key, count = wish, 0
    while key in names.taken or names.get(key, value) is not value:
        count += 1
        key = f"{wish}_{count}"
    names[key] = value
    return key


def _homes() -> Iterable[tuple[str, Any]]:
    yield "torch", flambeau
    yield "torch.nn.functional", flambeau.nn.functional
    for name in ("linalg", "special", "fft"):
        yield f"torch.{name}", getattr(flambeau, name)
    yield "torch._C", flambeau._C
    yield "math", math
    yield "operator", operator


def _text(a: Any, names: _Names) -> str:
    """An argument as an expression."""
    if isinstance(a, Node):
        return a.name
    if isinstance(a, tuple) and not hasattr(a, "_fields"):
        return f"({', '.join(_text(x, names) for x in a)}{',' if len(a) == 1 else ''})"
    if type(a) is list:
        return f"[{', '.join(_text(x, names) for x in a)}]"
    if type(a) is dict:
        return "{" + ", ".join(f"{k!r}: {_text(v, names)}" for k, v in a.items()) + "}"
    if isinstance(a, slice):
        return f"slice({_text(a.start, names)}, {_text(a.stop, names)}, {_text(a.step, names)})"
    if a is None or a is ... or type(a) in (bool, int, str, bytes):
        return "..." if a is ... else repr(a)
    if type(a) in (float, complex):
        return repr(a) if math.isfinite(abs(a)) else f"{type(a).__name__}({str(a)!r})"
    if isinstance(a, (flambeau.dtype, flambeau.memory_format, flambeau.layout)):
        return str(a)
    if isinstance(a, flambeau.device):
        return f"torch.{a!r}"
    return _global(a, names)


def _wish(op: str, target: Any) -> str:
    """What a node would be called."""
    if op == "placeholder":
        return str(target).lstrip("*")
    if op == "call_function":
        name = getattr(target, "__name__", type(target).__name__)
    else:
        name = str(target).lstrip("*")
    return _snake(name.rpartition(".")[2] if op == "call_method" else name.replace(".", "_"))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().strip("_") or "_"


def attribute_of(module: Any, path: str) -> Any:
    """What is found at a path such as "layers.0.weight".

    Raises:
        RuntimeError: there is nothing.
    """
    at = module
    for part in path.split("."):
        if not hasattr(at, part):
            raise RuntimeError(f"{type(module).__name__} has no attribute {path!r}")
        at = getattr(at, part)
    return at
