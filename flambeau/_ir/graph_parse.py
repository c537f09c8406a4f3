"""Text of a graph, and the graph of a text: `parse(show(g))` prints as `g` does.

    s0 = 8 in [2, inf) from input 0 size 0
    guard s0 >= 3  # model.py:12 in forward
    graph(%0: f32[s0, 128], %1: f32[128]):
      %2: f32[s0, 128] = add(%0, %1, 1)  # model.py:12 in forward
      return %2

Strides follow the shape in braces where they are not contiguous, a device other than the CPU after
an `@`, and `no_grad` precedes the target of a node that runs without recording. The graph of a
derivative of the user's own follows its node, each line after `backward`; it is not read back. In
arguments, strings are quoted, a dtype is written as in types, and other objects of the library by
their names.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any

import flambeau

from . import symexpr
from .graph import (
    Arg,
    Dim,
    Graph,
    Node,
    ScalarType,
    TensorType,
    Value,
    ValueType,
    constant_names,
    contiguous_strides,
    dtype_names,
)
from .graph import dim as dim_of
from .symbols import Guard, ShapeEnv, Source, Symbol
from .symscalar import _FUNCTIONS, FloatExpr
from .where import Where

_WHERE = re.compile(r"(.*):(\d+) in (.*)")
_SYMBOL = re.compile(
    r"(\w+) = (\?|-?\d+) in \[(\S+), (\S+)\](?: from input (\d+) (\w+)(?: (\d+))?)?"
)
_DEFINED = re.compile(r"%(\d+): (\w+)(\[[^\]]*\])?(\{[^}]*\})?(?:@([\w:]+))?(?:, |$)")


def _where(text: str) -> Where | None:
    m = _WHERE.fullmatch(text.strip())
    return Where(m[1], int(m[2]), m[3]) if m else None


def _bound(text: str) -> float:
    return float(text) if "inf" in text else int(text)


class _Parser:
    def __init__(self) -> None:
        self.env = ShapeEnv()
        self.values: dict[int, Value] = {}
        self.dtypes = {name: d for d, name in dtype_names().items()}
        self.constants = {name: x for x, name in constant_names().items()}

    def symbol(self, line: str) -> None:
        m = _SYMBOL.fullmatch(line)
        if m is None:
            raise ValueError("expected a symbol: NAME = HINT in [LOW, HIGH]")
        source = Source(int(m[5]), m[6], int(m[7] or 0)) if m[5] else None
        hint = None if m[2] == "?" else int(m[2])
        self.env.declare(Symbol(m[1], hint, _bound(m[3]), _bound(m[4]), source))

    def guard(self, line: str) -> None:
        text, _, where = line.removeprefix("guard ").partition("  # ")
        left, relation, _ = text.rsplit(" ", 2)
        guard = Guard(relation, symexpr.parse(left), _where(where))
        self.env.guards.append(guard)
        self.env.learn(guard)

    def dims(self, text: str) -> tuple[Dim, ...]:
        items = ast.parse(f"[{text}]", mode="eval").body
        assert isinstance(items, ast.List)
        return tuple(dim_of(symexpr.from_ast(x)) for x in items.elts)

    def defined(self, text: str) -> tuple[Value, ...]:
        """Values of the left side of a node, or of the inputs."""
        out: list[Value] = []
        end = 0
        while end < len(text):
            m = _DEFINED.match(text, end)
            if m is None:
                raise ValueError(f"expected a value with its type, got {text[end:]!r}")
            end = m.end()
            if m[3] is None:
                t: ValueType = ScalarType(m[2])
            else:
                shape = self.dims(m[3][1:-1])
                strides = self.dims(m[4][1:-1]) if m[4] else contiguous_strides(shape)
                t = TensorType(self.dtypes[m[2]], shape, strides, flambeau.device(m[5] or "cpu"))
            out.append(Value(int(m[1]), t))
        self.values.update({v.id: v for v in out})
        return tuple(out)

    def args(self, text: str) -> tuple[Arg, ...]:
        # A value's `%` is no Python: outside of strings it becomes a name.
        parts = re.split(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", text)
        parts[::2] = [re.sub(r"%(\d+)", r"value_\1", p) for p in parts[::2]]
        call = ast.parse(f"f({''.join(parts)})", mode="eval").body
        assert isinstance(call, ast.Call)
        return tuple(self.arg(a) for a in call.args)

    def arg(self, node: ast.expr) -> Arg:
        match node:
            case ast.Name(id=name) if name.startswith("value_"):
                return self.values[int(name.removeprefix("value_"))]
            case ast.Name(id="inf" | "nan" as name):
                return float(name)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
                return -math.inf
            case ast.Name(id=name) if name in self.dtypes:
                return self.dtypes[name]
            case ast.Name(id=name) if name in self.constants:
                return self.constants[name]
            case ast.Tuple(elts=items):
                return tuple(self.arg(x) for x in items)
            case ast.Call(func=ast.Name(id="device"), args=[ast.Constant(value=str(name))]):
                return flambeau.device(name)
            case ast.Call(func=ast.Name(id="number"), args=[x]):
                return _float_expr(x)
            case ast.Call(func=ast.Name(id="complex"), args=parts):
                return complex(*(self.arg(x) for x in parts))
        try:
            return ast.literal_eval(node)
        except ValueError:
            return symexpr.from_ast(node)


_FLOAT_OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**",
}  # fmt: skip


def _float_expr(node: ast.expr) -> Any:
    """Inverse of `repr` of a FloatExpr; what is no float operation is an integer expression."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[x]) if name in _FUNCTIONS:
            return FloatExpr(name, (_float_expr(x),))
        case ast.BinOp(left=x, op=op, right=y) if type(op) in _FLOAT_OPERATORS:
            parts = _float_expr(x), _float_expr(y)
            if any(isinstance(p, (float, FloatExpr)) for p in parts) or isinstance(op, ast.Div):
                return FloatExpr(_FLOAT_OPERATORS[type(op)], parts)
    try:
        return ast.literal_eval(node)
    except ValueError:
        return symexpr.from_ast(node)


def parse(text: str) -> Graph:
    """The graph that `show` printed.

    Raises:
        ValueError: the text is not such a one; says which line.
    """
    p = _Parser()
    graph = Graph(env=p.env)
    for number, line in enumerate(text.splitlines(), 1):
        try:
            _read(p, graph, line.strip())
        except Exception as error:  # of whatever class: a damaged line fails anywhere below
            why = str(error) or type(error).__name__
            raise ValueError(f"graph text, line {number}: {line.strip()!r}: {why}") from error
    return graph


def _read(p: _Parser, graph: Graph, line: str) -> None:
    """Adds what a line says."""
    if line.startswith("guard "):
        p.guard(line)
    elif line.startswith("backward "):
        raise ValueError("a derivative of the user's own cannot be read back")
    elif line.startswith("graph("):
        graph.inputs = p.defined(line.removeprefix("graph(").removesuffix("):"))
    elif line == "return" or line.startswith("return "):
        graph.outputs = p.args(line.removeprefix("return"))
    elif " = " in line and not line.startswith(("%", "(")):
        p.symbol(line)
    elif line:
        graph.nodes.append(_node(p, line))


def _node(p: _Parser, line: str) -> Node:
    left, _, right = line.partition(" = ")
    call, where = right, None
    if not right.endswith(")"):
        call, _, place = right.rpartition("  # ")
        where = _where(place)
    head, _, args = call.partition("(")
    made = p.args(args.rpartition(")")[0])
    target = head.removeprefix("no_grad ")
    outs = p.defined("" if left == "()" else left)
    return Node(target, made, outs, where, target == head)
