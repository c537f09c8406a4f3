"""Text of a graph, and the graph of a text: `parse(show(g))` prints as `g` does.

    s0 = 8 in [2, inf) from input 0 size 0
    guard s0 >= 3  # model.py:12 in forward
    graph(%0: f32[s0, 128], %1: f32[128]):
      %2: f32[s0, 128] = add(%0, %1, 1)  # model.py:12 in forward
      return %2

Strides follow the shape in braces where they are not contiguous, a device other than the CPU after
an `@`, and `no_grad` precedes the target of a node that runs without recording. In arguments,
strings are quoted, a dtype is written as in types, and other objects of the library by their names.
A function is written alike. Nested blocks follow their nodes:

    def halve(%n.0: int) -> int:  # ops.py:3 in halve
      %1: bool = core.gt(%n.0, 1)  # 4
      %n.2: int = if(%1)  # 4
      then():
        %n.3: int = core.floordiv(%n.0, 2)  # 5
        yield %n.3
      else():
        yield %n.0
      return(%n.2)  # 6
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from typing import Any

import flambeau

from . import symexpr
from .graph import (
    CONTROL,
    ENDS,
    LABELS,
    Arg,
    Block,
    Dim,
    Function,
    Graph,
    Node,
    TensorType,
    Value,
    ValueType,
    constant_names,
    contiguous_strides,
    dtype_names,
)
from .graph import dim as dim_of
from .symbols import Guard, Origin, ShapeEnv, Symbol
from .symscalar import _FUNCTIONS, FloatExpr
from .types import Param, Type, parse_type
from .where import Where

_WHERE = re.compile(r"(.*):(\d+) in (.*)")
_SYMBOL = re.compile(
    r"(\w+) = (\?|-?\d+) in \[(\S+), (\S+)\](?: from input (\d+) (\w+)(?: (\d+))?)?"
)
_DEFINED = re.compile(r"%(?:([A-Za-z_]\w*)\.)?(\d+): (.*)", re.DOTALL)
_TENSOR = re.compile(r"(\w+)(\[[^\]]*\])(\{[^}]*\})?(?:@([\w:]+))?")
_HEAD = re.compile(r"def ([\w.]+)\((.*)\) -> (.*?):(?:  # (.*))?")
_LABEL = re.compile(rf"({'|'.join(x for pair in LABELS.values() for x in pair)})\((.*)\):")
_NESTED = re.compile(r"[\[\](){}]")
_VALUE = re.compile(r"%(?:[A-Za-z_]\w*\.)?(\d+)")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_WORDS = {"None": None, "True": True, "False": False}
_BARE = tuple(f"{name}(" for name in (*CONTROL, *ENDS))


def _where(text: str) -> Where | None:
    m = _WHERE.fullmatch(text.strip())
    return Where(m[1], int(m[2]), m[3]) if m else None


def parts(text: str) -> list[str]:
    """The text cut at its commas, those in brackets aside."""
    if not _NESTED.search(text):
        return [x for part in text.split(",") if (x := part.strip())]
    out, depth = [""], 0
    for c in text:
        depth += (c in "[{(") - (c in ")}]")
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return [x.strip() for x in out if x.strip()]


_types: list[Callable[[ast.expr, str], Type]] = [parse_type]


def more_types(parse: Callable[[ast.expr, str], Type]) -> None:
    """Types beyond the table's are read by `parse` from now on."""
    _types.append(parse)
    _type.cache_clear()


@lru_cache(1024)
def _type(text: str) -> Type:
    return _types[-1](ast.parse(text, mode="eval").body, "text")


def _bound(text: str) -> float:
    return float(text) if "inf" in text else int(text)


@cache
def _named() -> tuple[dict[str, Any], dict[str, Any]]:
    """Dtypes, and other constants, by their names."""
    dtypes = {name: d for d, name in dtype_names().items()}
    return dtypes, {name: x for x, name in constant_names().items()}


class _Parser:
    def __init__(self) -> None:
        self.values: dict[int, Value] = {}
        self.function = Function()
        self.dtypes, self.constants = _named()

    @cached_property
    def env(self) -> ShapeEnv:
        return ShapeEnv()

    def symbol(self, line: str) -> None:
        m = _SYMBOL.fullmatch(line)
        if m is None:
            raise ValueError("expected a symbol: NAME = HINT in [LOW, HIGH]")
        origin = Origin(int(m[5]), m[6], int(m[7] or 0)) if m[5] else None
        hint = None if m[2] == "?" else int(m[2])
        self.env.declare(Symbol(m[1], hint, _bound(m[3]), _bound(m[4]), origin))

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
        for part in parts(text):
            m = _DEFINED.fullmatch(part)
            if m is None:
                raise ValueError(f"expected a value with its type, got {part!r}")
            out.append(Value(int(m[2]), self.type(m[3]), m[1] or ""))
        self.values.update({v.id: v for v in out})
        return tuple(out)

    def type(self, text: str) -> ValueType:
        if text.partition("[")[0] not in self.dtypes or (m := _TENSOR.fullmatch(text)) is None:
            return _type(text)
        shape = self.dims(m[2][1:-1])
        strides = self.dims(m[3][1:-1]) if m[3] else contiguous_strides(shape)
        return TensorType(self.dtypes[m[1]], shape, strides, flambeau.device(m[4] or "cpu"))

    def args(self, text: str) -> tuple[Arg, ...]:
        plain = self.plain_args(text)
        if plain is not None:
            return plain
        # A value's `%` is no Python: outside of strings it becomes a name.
        parts = re.split(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", text)
        parts[::2] = [re.sub(r"%(?:[A-Za-z_]\w*\.)?(\d+)", r"value_\1", p) for p in parts[::2]]
        call = ast.parse(f"f({''.join(parts)})", mode="eval").body
        assert isinstance(call, ast.Call)
        return tuple(self.arg(a) for a in call.args)

    def plain_args(self, text: str) -> tuple[Arg, ...] | None:
        """Arguments that are values, whole numbers and words: most are; None: there are others."""
        out: list[Arg] = []
        for part in text.split(", ") if text else ():
            if m := _VALUE.fullmatch(part):
                out.append(self.values[int(m[1])])
            elif _INTEGER.fullmatch(part):
                out.append(int(part))
            elif part in _WORDS:
                out.append(_WORDS[part])
            else:
                return None
        return tuple(out)

    def node(self, line: str) -> Node:
        left, right = ("()", line) if line.startswith(_BARE) else line.split(" = ", 1)
        call, where = right, None
        if not right.endswith(")"):
            call, _, place = right.rpartition("  # ")
            if place.isdigit():
                where = Where(self.function.file, int(place), self.function.name)
            else:
                where = _where(place)
        head, _, args = call.partition("(")
        made = self.args(args.rpartition(")")[0])
        target = head.removeprefix("no_grad ")
        outs = self.defined("" if left == "()" else left)
        return Node(target, made, outs, where, target == head)

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
    _fill(p, graph, text)
    return graph


def parse_function(text: str) -> Function:
    """The function that `show` printed; defaults of parameters are not in the text.

    Raises:
        ValueError: the text is not such a one; says which line.
    """
    f = Function()
    _fill(_Parser(), f, text)
    return f


def _fill(p: _Parser, block: Block, text: str) -> None:
    open_: list[tuple[int, Block]] = [(-1, block)]  # blocks, and how far their heads are indented
    for number, line in enumerate(text.splitlines(), 1):
        try:
            indent = len(line) - len(line.lstrip())
            while len(open_) > 1 and indent <= open_[-1][0]:
                open_.pop()
            inner = _read(p, open_[-1][1], line.strip())
            if inner is not None:
                open_.append((indent, inner))
        except Exception as error:  # of whatever class: a damaged line fails anywhere below
            why = str(error) or type(error).__name__
            raise ValueError(f"graph text, line {number}: {line.strip()!r}: {why}") from error


def _read(p: _Parser, block: Block, line: str) -> Block | None:
    """Adds what a line says; the block that it opens, if it does."""
    if line.startswith(("%", "(", *_BARE)):
        block.nodes.append(p.node(line))
    elif line.startswith("guard "):
        p.guard(line)
    elif line.startswith("graph("):
        block.inputs = p.defined(line.removeprefix("graph(").removesuffix("):"))
    elif isinstance(block, Function) and (head := _HEAD.fullmatch(line)):
        p.function = block
        block.name, block.returns = head[1], _type(head[3])
        if where := _where(head[4] or ""):
            block.file, block.line = where.file, where.line
        block.inputs = p.defined(head[2])
        block.params = [Param(v.name, v.type) for v in block.inputs if isinstance(v.type, Type)]
    elif label := _LABEL.fullmatch(line):
        inner = Block(p.defined(label[2]))
        block.nodes[-1].blocks += (inner,)
        return inner
    elif line == "return" or line.startswith(("return ", "yield ")):
        block.outputs = p.args(line.removeprefix("return").removeprefix("yield"))
    elif " = " in line:
        p.symbol(line)
    elif line:
        raise ValueError("expected a node, a block, a symbol, a guard or what is returned")
    return None
