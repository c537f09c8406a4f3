"""How nodes are written as Python: templates, operators, and small makers of syntax trees.

Owns the closed table of what `core.NAME` becomes. Knows nothing of functions or locals.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from .._ir.graph import Arg, Node, Value, values_of
from .._ir.types import Param, Type
from . import signatures

Tree = TypeVar("Tree", bound=ast.AST)
#: `core.NAME` as Python, `_0` ... its arguments; names with a dot are helpers of `runtime`
TEMPLATES = {
    "add": "_0 + _1", "sub": "_0 - _1", "mul": "_0 * _1", "truediv": "_0 / _1",
    "floordiv": "_0 // _1", "mod": "_0 % _1", "pow": "_0 ** _1", "and_": "_0 & _1",
    "or_": "_0 | _1", "xor": "_0 ^ _1", "lshift": "_0 << _1", "rshift": "_0 >> _1",
    "eq": "_0 == _1", "ne": "_0 != _1", "lt": "_0 < _1", "le": "_0 <= _1", "gt": "_0 > _1",
    "ge": "_0 >= _1", "not": "not _0", "neg": "-_0", "invert": "~_0", "is_none": "_0 is None",
    "is_": "_0 is _1", "is_not": "_0 is not _1", "in_": "_0 in _1", "part": "_0[_1]",
    "getitem": "_0[_1]", "lookup": "_0[_1]", "same": "_0", "unwrap": "_0", "number": "_0",
    "wrap": "_0", "opttensors": "_0", "filled": "[_0] * _1", "float": "float(_0)",
    "int": "int(_0)", "bool": "bool(_0)", "complex": "complex(_0)", "truth_of": "bool(_0)",
    "bool_of": "bool(_0)", "str": "str(_0)", "len": "len(_0)", "list_of": "list(_0)",
    "dict_of": "dict(_0)", "concat_lists": "_0 + _1", "repeat_list": "_0 * _1",
    "number_add": "_0 + _1", "number_sub": "_0 - _1", "number_mul": "_0 * _1",
    "number_div": "_0 / _1", "reversed_list": "_0[::-1]", "count_from": "range(_0, _0 + _1)",
    "min_of": "min(_0)", "max_of": "max(_0)", "tolist": "_0.tolist()", "wait": "_0.wait()",
    "future_done": "_0.done()", "enum_value": "_0.value", "uninitialized": "None",
    "ellipsis": "...", "attr_shape": "list(_0.shape)",
}  # fmt: skip
#: `core.NAME` that calls a function of that name with all arguments
CALLS = {
    "int_of": "int", "float_of": "float", "complex_of": "complex", "min": "min", "max": "max",
    "print": "print", "abs": "abs", "all": "all", "any": "any", "sum": "sum", "round": "round",
    "divmod": "divmod", "chr": "chr", "ord": "ord", "hex": "hex", "oct": "oct", "bin": "bin",
    "hash": "hash", "id": "id", "slice": "slice",
}  # fmt: skip
AUGMENTED = {
    "add_": ast.Add, "sub_": ast.Sub, "mul_": ast.Mult, "div_": ast.Div,
    "floor_divide_": ast.FloorDiv, "remainder_": ast.Mod, "pow_": ast.Pow,
    "bitwise_and_": ast.BitAnd, "bitwise_or_": ast.BitOr, "bitwise_xor_": ast.BitXor,
    "bitwise_left_shift_": ast.LShift, "bitwise_right_shift_": ast.RShift,
}  # fmt: skip
RESERVED = {
    *keyword.kwlist, *keyword.softkwlist, *CALLS.values(), "bool", "str", "len", "list", "dict",
    "range", "zip", "enumerate", "reversed", "sorted", "getattr", "isinstance", "torch",
}  # fmt: skip


@cache
def template(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class _Put(ast.NodeTransformer):
    def __init__(self, args: Sequence[ast.expr]) -> None:
        self.args = args

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id[0] == "_" and node.id[1:].isdigit():
            return self.args[int(node.id[1:])]
        return node


def unplaced(tree: Tree) -> Tree:
    """A tree made of a text of ours, which gets its lines from the program."""
    for node in ast.walk(tree):
        for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
            node.__dict__.pop(name, None)
    return tree


def filled(text: str, args: Sequence[ast.expr]) -> ast.expr:
    copied = unplaced(ast.parse(text, mode="eval").body)
    return _Put(args).visit(copied)


def read_of(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def call_of(function: ast.expr, args: Sequence[ast.expr], **named: ast.expr) -> ast.Call:
    return ast.Call(function, list(args), [ast.keyword(k, v) for k, v in named.items()])


def same_default(p: Param, a: Arg) -> bool:
    if p.default is None or isinstance(a, Value) or not isinstance(p.default, ast.Constant):
        if not (isinstance(p.default, ast.UnaryOp) and isinstance(a, (int, float))):
            return False
        try:
            return bool(ast.literal_eval(p.default) == a)
        except ValueError:
            return False
    value = p.default.value
    return type(value) is type(a) and value == a


CONTROL = ("if", "loop", "collect", "with", "return", "raise", "break", "continue")
METHODS = {
    *signatures.table(signatures.LIST, "core."), *signatures.table(signatures.DICT, "core."),
    *signatures.table(signatures.TEXT, "core."),
} - {"format"}  # fmt: skip
ATTRIBUTES = {
    *signatures.table(signatures.TENSOR_ATTRIBUTES, ""),
    *signatures.table(signatures.DEVICE_ATTRIBUTES, ""),
    *signatures.table(signatures.DTYPE_ATTRIBUTES, ""), "real", "imag", "value", "name",
}  # fmt: skip


OPERATORS: dict[str, Any] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "div": ast.Div, "matmul": ast.MatMult,
    "pow": ast.Pow, "remainder": ast.Mod, "floor_divide": ast.FloorDiv, "neg": ast.USub,
    "eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE,
    "bitwise_and": ast.BitAnd, "bitwise_or": ast.BitOr, "bitwise_xor": ast.BitXor,
    "bitwise_not": ast.Invert,
}  # fmt: skip


def gives(node: Node, v: Value) -> bool:
    """A block of the node gives the value as it is."""
    return any(v in values_of(b.outputs) for b in node.blocks)


def is_tensor(a: Arg) -> bool:
    return isinstance(a, Value) and isinstance(a.type, Type) and a.type.base == "Tensor"


def index_of(parts: Sequence[ast.expr]) -> ast.expr:
    cut = [as_slice(p) for p in parts]
    return cut[0] if len(cut) == 1 else ast.Tuple(cut, ast.Load())


def as_slice(e: ast.expr) -> ast.expr:
    """`slice(a, b, c)` as a:b:c."""
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id == "slice":
        ends = [None if isinstance(a, ast.Constant) and a.value is None else a for a in e.args]
        return ast.Slice(*ends)
    return e


def bare_list(e: ast.expr) -> ast.expr | None:
    """What `list(...)` was made of, where the list is only read."""
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id == "list":
        return e.args[0] if len(e.args) == 1 else None
    return None


def as_list(e: ast.expr, t: Any) -> ast.expr:
    """Lists of the table come as tuples; scripts have lists."""
    if isinstance(t, Type) and t.is_list and not t.optional:
        return call_of(read_of("list"), [e])
    return e


def iterated(kind: str, over: Sequence[ast.expr]) -> ast.expr:
    over = [bare_list(e) or e for e in over]
    if kind == "list":
        return over[0]
    if kind == "range":
        zero = isinstance(over[0], ast.Constant) and over[0].value == 0
        one = isinstance(over[2], ast.Constant) and over[2].value == 1
        return call_of(read_of("range"), over[1:2] if zero and one else over[:2] if one else over)
    if kind not in ("zip", "enumerate", "reversed"):
        raise ValueError(f"a loop over {kind!r}")
    return call_of(read_of(kind), over)


def chosen(test: ast.expr, a: ast.expr, b: ast.expr) -> ast.expr:
    if isinstance(b, ast.Constant) and b.value is False:
        return ast.BoolOp(ast.And(), [test, a])
    if isinstance(a, ast.Constant) and a.value is True:
        return ast.BoolOp(ast.Or(), [test, b])
    return ast.IfExp(test, a, b)


def shown_type(t: Type) -> str:
    """A type as annotations spell it."""
    base = {
        "Ints": "List[int]", "Floats": "List[float]", "Bools": "List[bool]",
        "Tensors": "List[Tensor]", "OptTensors": "List[Optional[Tensor]]", "Number": "number",
        "Numbers": "List[number]", "DType": "torch.dtype", "Device": "torch.device",
    }.get(t.base, t.base)  # fmt: skip
    if t.items:
        base = f"{t.base}[{', '.join(map(shown_type, t.items))}]"
    return f"Optional[{base}]" if t.optional else base
