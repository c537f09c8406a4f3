"""The front end of the Python subset: what it infers, what it makes explicit, what it refuses."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass

import pytest

from flambeau._ir.errors import CompileError
from flambeau._ir.frontend import compile_function
from flambeau._ir.graph import Block, Function, Node, Value, show_arg
from flambeau._ir.reading import Reading
from flambeau._ir.types import Param, Type, parse_params, parse_type

OPS = """
def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor: ...
def sub(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def mul(input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
def neg(input: Tensor) -> Tensor: ...
def lt(input: Tensor, other: Tensor | Number) -> Tensor: ...
def sum(input: Tensor, dim: Ints | None = None, keepdim: bool = False) -> Tensor: ...
def max(input: Tensor) -> Tensor: ...
def cat(tensors: Tensors, dim: int = 0) -> Tensor: ...
def select(input: Tensor, dim: int, index: int) -> Tensor: ...
def slice(x: Tensor, dim: int, start: int | None, end: int | None, step: int = 1) -> Tensor: ...
def unsqueeze(input: Tensor, dim: int) -> Tensor: ...
def topk(input: Tensor, k: int) -> Tuple[Tensor, Tensor]: ...
def pad(input: Tensor, size: Ints2, value: float = 0) -> Tensor: ...
def scatter(input: Tensor, value: Tensor) -> Tensor: ...
def scatter(input: Tensor, value: Number) -> Tensor: ...
"""


@dataclass
class Operation:
    name: str
    params: list[Param]
    returns: Type
    has_inplace: bool = True

    @property
    def uid(self) -> str:
        return self.name

    @property
    def inplace_uid(self) -> str:
        return f"{self.name}_"


def operations() -> dict[str, list[Operation]]:
    out: dict[str, list[Operation]] = {}
    for node in ast.parse(OPS).body:
        assert isinstance(node, ast.FunctionDef) and node.returns is not None
        made = Operation(
            node.name, parse_params(node, "ops", True), parse_type(node.returns, "ops")
        )
        out.setdefault(node.name, []).append(made)
    return out


TABLE = operations()


def compiled(source: str) -> Function:
    node = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(node, ast.FunctionDef) and node.returns is not None
    params = parse_params(node, "test.py", typed=True)
    returns = parse_type(node.returns, "test.py")
    return compile_function(node, params, returns, "test.py", lambda name: TABLE.get(name, ()))


class Reader:
    """Text of a function with its operands in place, variables by name."""

    def __init__(self, f: Function) -> None:
        self.reading = Reading(f)
        self.text = self.block(f, 1)

    def arg(self, a: object) -> str:
        if isinstance(a, tuple):
            return f"({', '.join(map(self.arg, a))})"
        if not isinstance(a, Value):
            return show_arg(a)
        return a.name or self.node(self.reading.makers[a])

    def node(self, n: Node) -> str:
        text = f"{n.target}({', '.join(map(self.arg, n.args))})"
        for b in () if n.target == "loop" or n not in self.reading.makers.values() else n.blocks:
            names = "".join(f"{v.name or '_'}: " for v in b.inputs)
            text += f" {{{names}{', '.join(map(self.arg, b.outputs))}}}"
        return text

    def block(self, block: Block, depth: int) -> str:
        out = ""
        for s in self.reading.statements(block):
            left = ", ".join(f"{v.name or '_'}: {v.type}" for v in s.outs)
            out += "  " * depth + (f"{left} = " if left else "") + self.node(s) + "\n"
            for b in s.blocks:
                names = ", ".join(v.name or "_" for v in b.inputs)
                out += "  " * depth + f"({names}):\n" + self.block(b, depth + 1)
                if b.outputs:
                    out += "  " * depth + f"  yield {', '.join(map(self.arg, b.outputs))}\n"
        return out


def body(source: str) -> str:
    """The statements of a function as text."""
    return Reader(compiled(source)).text.rstrip("\n")


def expression(
    text: str, params: str = "x: Tensor, n: int, f: float", returns: str = "Tensor"
) -> str:
    return (
        body(f"def f({params}) -> {returns}:\n    return {text}\n")
        .removeprefix("  return(")
        .removesuffix(")")
    )


@pytest.mark.parametrize(
    ("text", "returns", "shown"),
    [
        ("x + 1", "Tensor", "add(x, core.wrap(core.number(1)), core.number(1))"),
        ("1 - x", "Tensor", "sub(core.wrap(core.number(1)), x)"),
        ("-x", "Tensor", "neg(x)"),
        ("x < n", "Tensor", "lt(x, core.wrap(core.number(n)))"),
        ("x.sum()", "Tensor", "sum(x, None, False)"),
        ("x.sum([0, n], keepdim=True)", "Tensor", "sum(x, core.list(0, n), True)"),
        ("max(x)", "Tensor", "max(x)"),
        ("max(n, 2)", "int", "core.max(n, 2)"),
        ("max(n, f)", "float", "core.max(core.float(n), f)"),
        ("n + f", "float", "core.add(core.float(n), f)"),
        ("n / 2", "float", "core.truediv(core.float(n), 2.0)"),
        ("n // 2 % 3", "int", "core.mod(core.floordiv(n, 2), 3)"),
        ("x.shape[-1]", "int", "core.getitem(core.shape(x), -1)"),
        ("x.shape[:-1] + [n]", "Ints",
         "core.concat_lists(core.getslice(core.shape(x), None, -1), core.list(n))"),
        ("[0] * n", "Ints", "core.repeat_list(core.list(0), n)"),
        ("x.shape[::-1]", "Ints", "core.reversed_list(core.shape(x))"),
        ("x[0]", "Tensor", "select(x, 0, 0)"),
        ("x[1:n]", "Tensor", "slice(x, 0, 1, n, 1)"),
        ("x[..., None]", "Tensor", "unsqueeze(x, -1)"),
        ("x[n, ..., 1:]", "Tensor", "slice(select(x, 0, n), -1, 1, None, 1)"),
        ("x[:, None]", "Tensor", "unsqueeze(x, 1)"),
        ("n in (1, 2)", "bool", "if(core.eq(n, 1)) {True} {core.eq(n, 2)}"),
        ("0 <= n < 3", "bool", "if(core.le(0, n)) {core.lt(n, 3)} {False}"),
        ("sum(d for d in x.shape)", "int", "core.sum(collect('list', (core.shape(x))) {d: d})"),
        ("all(d > 0 for d in x.shape)", "bool",
         "core.all(collect('list', (core.shape(x))) {d: core.gt(d, 0)})"),
        ("[i * d for i, d in enumerate(x.shape) if d > 1]", "Ints",
         "collect('enumerate', (core.shape(x))) {i: d: core.gt(d, 1)} {i: d: core.mul(i, d)}"),
        ("list(reversed(range(n)))", "Ints", "collect('range', (core.sub(n, 1), -1, -1)) {i: i}"),
        ("f'{n} of {x.shape}'", "str", "core.format(n, ' of ', core.shape(x))"),
        ("x.dtype == float32", "bool", "core.eq(core.dtype(x), core.float32())"),
        ("x.pad(3)", "Tensor", "pad(x, core.filled(3, 2), 0.0)"),
        ("cat([x, x])", "Tensor", "cat(core.list(x, x), 0)"),
        ("x.topk(n)", "Tuple[Tensor, Tensor]", "topk(x, n)"),
        ("x if n > 0 else -x", "Tensor", "if(core.gt(n, 0)) {x} {neg(x)}"),
        ("scatter(x, x)", "Tensor", "scatter(x, x)"),
        ("scatter(x, n)", "Tensor", "scatter(x, core.number(n))"),
        ("float('inf')", "float", "inf"),
        ("int(x)", "int", "core.int(core.item(x))"),
    ],
)  # fmt: skip
def test_expressions(text: str, returns: str, shown: str) -> None:
    assert expression(text, returns=returns) == shown


def test_none_test_narrows_in_each_branch() -> None:
    shown = body("""
        def f(x: Tensor, w: Tensor | None) -> Tensor:
            if w is not None and w.ndim > 0:
                return x * w
            return x if w is None else w
    """)
    assert shown == textwrap.indent(textwrap.dedent("""\
        if(if(core.not(core.is_none(w))) {core.gt(core.ndim(core.unwrap(w)), 0)} {False})
        ():
          return(mul(x, core.unwrap(w)))
        ():
        return(if(core.is_none(w)) {x} {core.unwrap(w)})"""), "  ")  # fmt: skip


def test_early_exit_and_check_narrow() -> None:
    shown = body("""
        def f(a: int | None, b: int | None) -> int:
            check(a is not None, "a")
            if b is None:
                return a
            return a + b
    """)
    assert "return(core.add(core.unwrap(a), core.unwrap(b)))" in shown


def test_assignment_narrows_and_loops_forget() -> None:
    shown = body("""
        def f(a: int | None) -> int:
            if a is None:
                a = 3
            return a + 1
    """)
    assert "a: int | None = core.same(3)" in shown
    assert "return(core.add(core.unwrap(a), 1))" in shown
    with pytest.raises(CompileError, match=r"operand may be None"):
        compiled("""
            def f(a: int | None) -> int:
                a = 3
                for i in range(2):
                    n = a + 1
                    a = None
                return 0
        """)


def test_statements() -> None:
    shown = body("""
        def f(x: Tensor, dims: Ints) -> Ints:
            out: Ints = []
            n, c = x.shape
            for i, d in enumerate(dims):
                if d < 0:
                    continue
                out.append(d * n)
            out[0], out[-1] = out[-1], out[0]
            out[0] += c
            while len(out) > 4:
                out.pop()
            values, _ = x.topk(n)
            x.add_(values)
            return out
    """)
    assert shown == textwrap.indent(textwrap.dedent("""\
        out: Ints = core.list()
        n: int, c: int = core.unpack(core.shape(x))
        loop('enumerate', (dims), ())
        (i, d):
          if(core.lt(d, 0))
          ():
            continue()
          ():
          core.append(out, core.mul(d, n))
        item0_9: int = core.getitem(out, -1)
        item1_9: int = core.getitem(out, 0)
        core.setitem(out, 0, item0_9)
        core.setitem(out, -1, item1_9)
        core.setitem(out, 0, core.add(core.getitem(out, 0), c))
        loop('while', (), ())
        ():
          yield core.gt(core.len(out), 4)
        ():
          _: int = core.pop(out)
        values: Tensor, _: Tensor = core.unpack(topk(x, n))
        _: Tensor = add_(x, values, core.number(1))
        return(out)"""), "  ")  # fmt: skip


ERRORS = [
    ("return y", "unknown name 'y'"),
    ("return x.foo()", "Tensor has no method 'foo'; no entry of the table has that name"),
    ("return foo(x)", "unknown operation 'foo'; no entry of the table has that name"),
    ("return x + m", "no add(Tensor, int | None)"),
    ("n = m + 1\n    return x", "operand may be None (int | None); test it with `is None`"),
    ("return x.sum(keep=True)", "has no parameter 'keep'"),
    ("return x.select(0)", "needs 'index'"),
    ("return x.select(0, 1, 2)", "takes 3 positional arguments, 4 given"),
    ("return x.select(0, 1.5)", "'index' is int, got float"),
    ("return n", "return: expected Tensor, got int"),
    ("return", "return: expected Tensor, got None"),
    ("if n:\n        return x\n    return x", "condition: expected bool, got int; write `!= 0`"),
    ("if m:\n        return x\n    return x",
     "condition: expected bool, got int | None; write `is not None`"),
    ("if x.shape:\n        return x\n    return x", "write `len(xs) > 0`"),
    ("if x < n:\n        return x\n    return x", "write `bool(x.item())`"),
    ("if n > 0:\n        y = x\n    return y",
     "'y' may have no value here; assign it on every path"),
    ("if n > 0:\n        return x", "a path ends without return of Tensor"),
    ("n = x\n    return x", "'n' is int, got Tensor; use another name"),
    ("xs = []\n    return x", "type of an empty list: write `xs: Ints = []` or alike"),
    ("w = None\n    return x", "type of None: write `w: Tensor | None = None` or alike"),
    ("a, b, c = x.topk(1)\n    return x", "3 names for 2 values"),
    ("a, b = n\n    return x", "cannot unpack int"),
    ("x.neg()\n    return x", "value of type Tensor is not used"),
    ("import os\n    return x", "Import is not part of the subset"),
    ("return lambda: x", "Lambda is not part of the subset"),
    ("for i in x:\n        pass\n    return x",
     "expected a list, got Tensor; loop over x.unbind()"),
    ("for i in range(3):\n        i = 2\n    return x",
     "'i' is a loop variable; it cannot be assigned"),
    ("break\n    return x", "break outside a loop"),
    ("return x\n    return x", "statement is never reached"),
    ("raise OSError('no')", "raise takes one of RuntimeError"),
    ("check(n > 0)\n    return x", "check takes a condition and a message"),
    ("return x if n is None else x", "n is int, never None"),
    ("return cat([x, n])", "list of Tensor and int; its items must have one type"),
    ("return s.exp(x)", "scalar functions stand in pointwise entries only"),
    ("return x.sum(*x.shape)", "star arguments are not part of the subset"),
    ("y: Foo = x\n    return x", "unknown type 'Foo'"),
    ("return x[0.5]", "index of a tensor: expected int, got float"),
    ("for i in range(0, 3, 0):\n        pass\n    return x", "the step of range is 0"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "message"), ERRORS, ids=[m for _, m in ERRORS])
def test_errors(source: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(f"def f(x: Tensor, n: int, m: int | None) -> Tensor:\n    {source}\n")
    assert message in str(caught.value)
    assert str(caught.value).startswith("test.py:")


def test_error_shows_line_and_caret() -> None:
    source = "def f(x: Tensor) -> Tensor:\n    return x.nope(1)\n"
    with pytest.raises(CompileError) as caught:
        compiled(source)
    assert caught.value.show(source.splitlines()) == (
        "test.py:2: error: Tensor has no method 'nope'; no entry of the table has that name\n"
        "      return x.nope(1)\n"
        "             ^^^^^^^^^"
    )
