"""Scalar expressions of the table: read from Python syntax, simplified as they are made.

Owner of the meaning of the syntax of pointwise bodies. Must not know C++ nor tensors.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping

from .._ir.errors import CompileError
from .._ir.scalars import Scalar, Scalars, walk
from ..ops.scalar import Primitive

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "bitwise_left_shift", ast.RShift: "bitwise_right_shift",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "True": True, "False": False}


class Graph(Scalars):
    """The scalars of an entry: "input" and "param" (value: name), "const", and primitives.

    Types are kinds: same | bool | real | complex.
    """

    def __init__(self, primitives: Mapping[str, Primitive]) -> None:
        super().__init__()
        self.primitives = primitives

    def input(self, name: str, kind: str = "same") -> Scalar:
        return self.make("input", kind, (), name)

    def param(self, name: str, kind: str) -> Scalar:
        return self.make("param", kind, (), name)

    def const(self, value: float | bool) -> Scalar:
        return self.make("const", "bool" if isinstance(value, bool) else "real", (), value)

    def call(self, op: str, *args: Scalar) -> Scalar:
        """Scalar of a primitive applied to nodes, simplified."""
        simple = _simplify(self, op, args)
        if simple is not None:
            return simple
        primitive = self.primitives[op]
        kind = primitive.kind
        if op in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not") and all(
            a.type == "bool" for a in args
        ):
            op, kind = op.replace("bitwise", "logical"), "bool"
        if kind == "same":
            carried = args[1:] if op == "where" else args
            kinds = {a.type for a in carried if a.op != "const"} - {"bool"}
            if "same" in kinds:
                kind = "same"
            elif "complex" in kinds:
                kind = "complex"
            elif carried and all(a.type == "bool" for a in carried):
                kind = "bool" if op == "where" else "same"
            else:
                kind = "real"
        return self.make(op, kind, args)


def _number(node: Scalar) -> float | None:
    if node.op == "const" and not isinstance(node.value, bool):
        return float(node.value)
    return None


def _simplify(g: Graph, op: str, args: tuple[Scalar, ...]) -> Scalar | None:
    """The simpler form of a call, or None. Rules hold for every type a body may run in."""
    values = [_number(a) for a in args]
    folded = _fold(op, args, values)
    if folded is not None:
        return g.const(folded)
    match op, args, values:
        case "neg", (x,), _ if x.op == "neg":
            return x.args[0]
        case "add", (a, _), (_, 0.0):
            return a
        case "add", (_, b), (0.0, _):
            return b
        case "add", (a, b), _ if b.op == "neg":
            return g.call("sub", a, b.args[0])
        case "add", (a, b), _ if a.op == "neg":
            return g.call("sub", b, a.args[0])
        case "sub", (a, _), (_, 0.0):
            return a
        case "sub", (_, b), (0.0, _):
            return g.call("neg", b)
        case "sub", (a, b), _ if b.op == "neg":
            return g.call("add", a, b.args[0])
        case "mul", _, (0.0, _) | (_, 0.0):
            return g.const(0)
        case "mul", (a, _), (_, 1.0):
            return a
        case "mul", (_, b), (1.0, _):
            return b
        case "mul", (a, _), (_, -1.0):
            return g.call("neg", a)
        case "mul", (_, b), (-1.0, _):
            return g.call("neg", b)
        case "mul", (a, b), (None, x) if x is not None:
            return g.call("mul", b, a)  # numbers first, so that equal products are one node
        case "mul", (a, b), (x, None) if x is not None and b.op == "mul" and b.args[0].is_const():
            return g.call("mul", g.call("mul", a, b.args[0]), b.args[1])
        case "mul", (a, b), _ if a.op == "neg":
            return g.call("neg", g.call("mul", a.args[0], b))
        case "mul", (a, b), _ if b.op == "neg":
            return g.call("neg", g.call("mul", a, b.args[0]))
        case "mul", (a, b), _ if b.op == "div" and b.args[0].is_const(1):
            return g.call("div", a, b.args[1])
        case "mul", (a, b), _ if b.op == "where" and _zero_or_one(b):
            c, t, f = b.args
            return g.call("where", c, g.call("mul", a, t), g.call("mul", a, f))
        case "div", (a, _), (_, 1.0):
            return a
        case "div", (_, _), (0.0, _):
            return g.const(0)
        case "pow", (a, _), (_, 1.0):
            return a
        case "pow", (a, _), (_, 2.0):
            return g.call("mul", a, a)
        case "conj" | "real", (x,), _ if x.type in ("real", "bool"):
            return x
        case "imag", (x,), _ if x.type in ("real", "bool"):
            return g.const(0)
        case "conj", (x,), _ if x.op == "conj":
            return x.args[0]
        case "where", (_, a, b), _ if a is b:
            return a
    return None


def _zero_or_one(where: Scalar) -> bool:
    return any(a.is_const(0) or (a.op == "where" and _zero_or_one(a)) for a in where.args[1:])


def _fold(op: str, args: tuple[Scalar, ...], values: list[float | None]) -> float | None:
    if any(v is None for v in values) or not values:
        return None
    raw = [a.value for a in args]
    try:
        match op, raw:
            case "add", [a, b]:
                return a + b
            case "sub", [a, b]:
                return a - b
            case "mul", [a, b]:
                return a * b
            case "div", [a, b] if b:
                return a / b
            case "neg", [a]:
                return -a
            case "sqrt", [a] if a >= 0:
                return math.sqrt(a)
            case "log", [a] if a > 0:
                return math.log(a)
            case "exp", [a]:
                return math.exp(a)
    except OverflowError:
        return None
    return None


class Reader:
    """Evaluates straight-line Python syntax to nodes; `names` maps variables to nodes."""

    def __init__(self, graph: Graph, names: dict[str, Scalar], file: str) -> None:
        self.graph, self.names, self.file = graph, names, file

    def fail(self, message: str, node: ast.AST) -> CompileError:
        return CompileError(message, self.file, node)

    def text(self, source: str) -> Scalar:
        """Scalar of an expression given as text."""
        return self.expr(ast.parse(source, mode="eval").body)

    def expr(self, e: ast.expr) -> Scalar:
        """Scalar of an expression."""
        call = self.graph.call
        match e:
            case ast.Constant(value=bool() | int() | float() as value):
                return self.graph.const(value)
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Name(id=name) if name in _CONSTANTS:
                return self.graph.const(_CONSTANTS[name])
            case ast.BinOp(left=a, op=op, right=b) if type(op) in _BINARY:
                return call(_BINARY[type(op)], self.expr(a), self.expr(b))
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return call("neg", self.expr(a))
            case ast.UnaryOp(op=ast.Invert(), operand=a):
                return call("bitwise_not", self.expr(a))
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return call("logical_not", self.expr(a))
            case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in _COMPARE:
                return call(_COMPARE[type(op)], self.expr(a), self.expr(b))
            case ast.BoolOp(op=op, values=values):
                name = "logical_and" if isinstance(op, ast.And) else "logical_or"
                out = self.expr(values[0])
                for v in values[1:]:
                    out = call(name, out, self.expr(v))
                return out
            case ast.IfExp(test=c, body=a, orelse=b):
                return call("where", self.expr(c), self.expr(a), self.expr(b))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="s"), attr=name), args=args, keywords=[]
            ):
                if name not in self.graph.primitives:
                    raise self.fail(f"unknown scalar function s.{name}", e)
                want = len(self.graph.primitives[name].args)
                if len(args) != want:
                    raise self.fail(f"s.{name} takes {want} arguments, got {len(args)}", e)
                return call(name, *(self.expr(a) for a in args))
        raise self.fail(f"not a scalar expression: {ast.unparse(e)}", e)

    def assign(self, stmt: ast.stmt) -> None:
        """Runs an assignment."""
        match stmt:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.names[name] = self.expr(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                self.names[name] = self.expr(value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if type(op) in _BINARY:
                self.names[name] = self.graph.call(
                    _BINARY[type(op)], self.names[name], self.expr(value)
                )
            case _:
                raise self.fail(f"not allowed in a pointwise body: {ast.unparse(stmt)}", stmt)


def operations(roots: Iterable[Scalar]) -> int:
    """How many primitives the roots apply, conjugation aside."""
    return sum(1 for n in walk(roots) if n.args and n.op not in ("conj", "real"))
