"""Expressions: `ast` to typed nodes.

Owns the meaning of every expression form of the subset. Statements, scopes of loops and the shape
of the output of a function belong to `frontend`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from . import calls, intrinsics
from .coerce import EMPTY_LIST, convert, cost, join
from .errors import CompileError
from .scope import Env, narrowed
from .typed import Callee, Comp, Expr
from .types import (
    BOOL,
    DEVICE,
    DTYPE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    Param,
    Type,
    list_of,
    tuple_of,
)  # fmt: skip

Lookup = Callable[[str], Sequence[Any]]

ARITHMETIC: dict[type, tuple[str, str]] = {  # operator -> (text, operation on tensors)
    ast.Add: ("+", "add"),
    ast.Sub: ("-", "sub"),
    ast.Mult: ("*", "mul"),
    ast.Div: ("/", "div"),
    ast.FloorDiv: ("//", "floor_divide"),
    ast.Mod: ("%", "remainder"),
    ast.Pow: ("**", "pow"),
    ast.MatMult: ("@", "matmul"),
    ast.BitAnd: ("&", "bitwise_and"),
    ast.BitOr: ("|", "bitwise_or"),
    ast.BitXor: ("^", "bitwise_xor"),
    ast.LShift: ("<<", "bitwise_left_shift"),
    ast.RShift: (">>", "bitwise_right_shift"),
}
COMPARISON: dict[type, tuple[str, str]] = {
    ast.Eq: ("==", "eq"),
    ast.NotEq: ("!=", "ne"),
    ast.Lt: ("<", "lt"),
    ast.LtE: ("<=", "le"),
    ast.Gt: (">", "gt"),
    ast.GtE: (">=", "ge"),
}
#: operators on plain values -> intrinsics
_PLAIN = dict(
    zip(
        "+ - * / // % ** & | ^ << >> == != < <= > >=".split(),
        "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift eq ne lt le gt ge".split(),
        strict=True,
    )
)
_INTEGER_ONLY = ("&", "|", "^", "<<", ">>")
_COMPARABLE = ("str", "DType", "Device", "Layout", "MemoryFormat")


class ExprTyper:
    """Types expressions in an environment; holds what is constant during one function."""

    def __init__(self, file: str, lookup: Lookup, constants: Mapping[str, ast.expr]) -> None:
        self.file = file
        self.lookup = lookup
        self.constants = constants
        self.env: Env = {}
        self.placed_by: list[Param] = []  # tensors on whose device new ones are made, see `placed`

    # -- errors and small makers ----------------------------------------------------------------

    def fail(self, message: str, node: ast.AST) -> NoReturn:
        raise CompileError(message, self.file, node)

    def make(self, node: ast.AST, op: str, args: Sequence[Expr], t: Type, attr: Any = None) -> Expr:
        return Expr(op, tuple(args), t.plain(), attr, getattr(node, "lineno", 0))

    def core(self, node: ast.AST, name: str, args: Sequence[Expr], t: Type) -> Expr:
        return self.make(node, "core", args, t, name)

    def as_type(self, e: Expr, t: Type, node: ast.AST, what: str) -> Expr:
        """`e` converted to `t`, or an error that says what was expected of `what`."""
        if cost(e, t) is None:
            self.fail(f"{what}: expected {t}, got {e.type}", node)
        return convert(e, t)

    # -- dispatch -------------------------------------------------------------------------------

    def expr(self, node: ast.expr) -> Expr:
        """The typed node of an expression."""
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is None:
            self.fail(f"{type(node).__name__} is not part of the subset", node)
        return method(node)

    def typed(self, node: ast.expr, t: Type, what: str) -> Expr:
        return self.as_type(self.expr(node), t, node, what)

    def condition(self, node: ast.expr) -> Expr:
        """An expression that must be a bool; other truth values have to be spelled out."""
        e = self.expr(node)
        if e.type == BOOL:
            return e
        hints = {"int": "write `!= 0`", "float": "write `!= 0`", "Tensor": "write `bool(x.item())`"}
        hint = hints.get(e.type.base, 'write `!= ""`' if e.type == STR else "")
        if e.type.is_list:
            hint = "write `len(xs) > 0`"
        if e.type.optional:
            hint = "write `is not None`"
        self.fail(f"condition: expected bool, got {e.type}" + (f"; {hint}" if hint else ""), node)

    # -- atoms ----------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Expr:
        v = node.value
        kinds: dict[type, Type] = {bool: BOOL, int: INT, float: FLOAT, str: STR, type(None): NONE}
        t = kinds.get(type(v))
        if t is None:
            self.fail(f"a literal of {type(v).__name__} is not part of the subset", node)
        return self.make(node, "const", (), t, v)

    def _name(self, node: ast.Name) -> Expr:
        name = node.id
        if name in self.env:
            declared, current = self.env[name]
            read = self.make(node, "read", (), declared, name)
            if declared.optional and not current.optional:
                if current == NONE:
                    return self.make(node, "const", (), NONE, None)
                return self.make(node, "unwrap", (read,), current)
            return read
        return self._global(node)

    def _global(self, node: ast.Name) -> Expr:
        name = node.id
        if name in self.constants:
            return self.expr(self.constants[name])
        if name in intrinsics.CONSTANTS:
            t, value = intrinsics.CONSTANTS[name]
            return self.make(node, "const", (), t, value)
        if name in intrinsics.DTYPES:
            return self.core(node, name, (), DTYPE)
        if name in intrinsics.MEMORY_FORMATS:
            return self.core(node, name, (), Type("MemoryFormat"))
        if name in intrinsics.LAYOUTS:
            return self.core(node, name, (), Type("Layout"))
        if name in self.assigned_somewhere():
            self.fail(f"{name!r} may have no value here; assign it on every path", node)
        if self.lookup(name):
            self.fail(f"{name!r} is an operation; it can only be called", node)
        self.fail(f"unknown name {name!r}", node)

    def assigned_somewhere(self) -> set[str]:
        return set()

    def _list(self, node: ast.List | ast.Tuple) -> Expr:
        items = [self.expr(e) for e in node.elts]
        if not items:
            return self.make(node, "list", (), EMPTY_LIST)
        t = items[0].type
        for e in items[1:]:
            both = join(t, e.type)
            if both is None:
                self.fail(f"list of {t} and {e.type}; its items must have one type", node)
            t = both
        return self.make(node, "list", [convert(e, t) for e in items], list_of(t))

    def _tuple(self, node: ast.Tuple) -> Expr:
        items = [self.expr(e) for e in node.elts]
        if not items:
            return self.make(node, "list", (), EMPTY_LIST)
        return self.make(node, "tuple", items, tuple_of(*(e.type for e in items)))

    def _joinedstr(self, node: ast.JoinedStr) -> Expr:
        parts: list[Expr] = []
        for v in node.values:
            if isinstance(v, ast.FormattedValue):
                if v.conversion != -1 or v.format_spec is not None:
                    self.fail("formats inside f-strings are not part of the subset", node)
                e = self.expr(v.value)
                if e.type.optional or e.type.base in ("Tensor", "Tensors", "OptTensors", "None"):
                    self.fail(f"f-string: cannot show {e.type}", v.value)
                parts.append(e)
            else:
                parts.append(self.expr(v))
        return self.make(node, "format", parts, STR)

    # -- operators ------------------------------------------------------------------------------

    def _binop(self, node: ast.BinOp) -> Expr:
        text, op = ARITHMETIC[type(node.op)]
        return self.binary(node, text, op, self.expr(node.left), self.expr(node.right))

    def binary(self, node: ast.AST, text: str, op: str, a: Expr, b: Expr) -> Expr:
        """`a text b` on tensors, numbers, text or lists."""
        if TENSOR in (a.type, b.type):
            return self.call_op(node, op, [a, b], {}, wrap=True)
        if a.type.is_numeric and b.type.is_numeric and text != "@":
            return self._number_op(node, text, a, b)
        if text == "+" and a.type == b.type == STR:
            return self.make(node, "format", (a, b), STR)
        if text == "+" and (listed := self._same_lists(a, b)):
            return self.core(node, "concat_lists", listed, listed[0].type)
        if text == "*" and b.type == INT and (a.type.is_list or a.op == "tuple"):
            a = self._as_list(a, node)
            return self.core(node, "repeat_list", (a, b), a.type)
        if (
            "Number" in (a.type.base, b.type.base)
            and text in "+-*/"
            and not (a.type.optional or b.type.optional)
        ):
            if cost(a, NUMBER) is not None and cost(b, NUMBER) is not None:
                parts = [convert(a, NUMBER), convert(b, NUMBER)]
                return self.core(node, f"number_{op}", parts, NUMBER)
        for e in (a, b):
            if e.type.optional:
                self.fail(f"{text}: operand may be None ({e.type}); test it with `is None`", node)
        self.fail(f"no operator {text} for {a.type} and {b.type}", node)

    def _number_op(self, node: ast.AST, text: str, a: Expr, b: Expr) -> Expr:
        floating = FLOAT in (a.type, b.type)
        if text in _INTEGER_ONLY:
            if floating:
                self.fail(f"no operator {text} for {a.type} and {b.type}", node)
            t = BOOL if a.type == b.type == BOOL and text in "&|^" else INT
            return self.make(node, _PLAIN[text], (convert(a, t), convert(b, t)), t)
        t = FLOAT if floating or text == "/" else INT
        if t == INT and text == "**" and b.op == "neg":
            t = FLOAT
        return self.make(node, _PLAIN[text], (convert(a, t), convert(b, t)), t)

    def _as_list(self, e: Expr, node: ast.AST) -> Expr:
        """A tuple literal as the list of its items."""
        if e.op != "tuple":
            return e
        t: Type | None = e.args[0].type
        for a in e.args[1:]:
            t = join(t, a.type) if t else None
        if t is None:
            self.fail(f"expected items of one type, got {e.type}", node)
        return convert(e, list_of(t))

    def _same_lists(self, a: Expr, b: Expr) -> tuple[Expr, Expr] | None:
        if a.type.is_list and cost(b, a.type) is not None:
            return a, convert(b, a.type)
        if b.type.is_list and cost(a, b.type) is not None:
            return convert(a, b.type), b
        return None

    def _unaryop(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.Not):
            return self.make(node, "not", (self.condition(node.operand),), BOOL)
        e = self.expr(node.operand)
        if e.type == TENSOR:
            names = {ast.USub: "neg", ast.Invert: "bitwise_not", ast.UAdd: "positive"}
            return self.call_op(node, names[type(node.op)], [e], {})
        if isinstance(node.op, ast.USub) and (e.type in (INT, FLOAT) or e.type == NUMBER):
            if e.op == "const":
                return self.make(node, "const", (), e.type, -e.attr)
            return self.make(node, "neg", (e,), e.type)
        if isinstance(node.op, ast.Invert) and e.type == INT:
            return self.make(node, "invert", (e,), INT)
        self.fail(f"no unary operator for {e.type}", node)

    def _boolop(self, node: ast.BoolOp) -> Expr:
        op = "and" if isinstance(node.op, ast.And) else "or"
        outer = self.env
        out = self.condition(node.values[0])
        for before, v in zip(node.values, node.values[1:], strict=False):
            self.env = narrowed(self.env, self.facts(before, op == "and"))
            out = self.make(node, op, (out, self.condition(v)), BOOL)
        self.env = outer
        return out

    def _ifexp(self, node: ast.IfExp) -> Expr:
        test = self.condition(node.test)
        outer = self.env
        self.env = narrowed(outer, self.facts(node.test, True))
        a = self.expr(node.body)
        self.env = narrowed(outer, self.facts(node.test, False))
        b = self.expr(node.orelse)
        self.env = outer
        if a.type.is_list or b.type.is_list:
            a, b = self._same_lists(a, b) or (a, b)
        t = join(a.type, b.type)
        if t is None:
            self.fail(f"conditional expression of {a.type} and {b.type}", node)
        return self.make(node, "if", (test, convert(a, t), convert(b, t)), t)

    def _compare(self, node: ast.Compare) -> Expr:
        parts: list[Expr] = []
        left = node.left
        if len(node.ops) > 1 and not all(
            isinstance(c, (ast.Name, ast.Constant)) for c in node.comparators[:-1]
        ):
            self.fail("the middle of a chained comparison must be a name or a literal", node)
        for op, right in zip(node.ops, node.comparators, strict=True):
            parts.append(self._comparison(node, op, left, right))
            left = right
        out = parts[0]
        for e in parts[1:]:
            out = self.make(node, "and", (out, e), BOOL)
        return out

    def _comparison(self, node: ast.AST, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Expr:
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self._is_none(node, op, left, right)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = self._contains(node, left, right)
            return found if isinstance(op, ast.In) else self.make(node, "not", (found,), BOOL)
        text, name = COMPARISON[type(op)]
        a, b = self.expr(left), self.expr(right)
        if TENSOR in (a.type, b.type):
            return self.call_op(node, name, [a, b], {}, wrap=True)
        return self.compare(node, text, a, b)

    def compare(self, node: ast.AST, text: str, a: Expr, b: Expr) -> Expr:
        """Comparison of two plain values."""
        if a.type.is_numeric and b.type.is_numeric:
            t = join(a.type, b.type)
            assert t is not None
            return self.make(node, _PLAIN[text], (convert(a, t), convert(b, t)), BOOL)
        for e in (a, b):
            if e.type.optional:
                self.fail(f"{text}: operand may be None ({e.type}); test it with `is None`", node)
        if text in ("==", "!="):
            if a.type == b.type and (a.type.base in _COMPARABLE):
                return self.make(node, _PLAIN[text], (a, b), BOOL)
            if listed := self._same_lists(a, b):
                return self.make(node, _PLAIN[text], listed, BOOL)
            if (
                NUMBER in (a.type, b.type)
                and cost(a, NUMBER) is not None
                and cost(b, NUMBER) is not None
            ):
                if a.type != NUMBER:
                    a, b = b, a
                if b.type.is_numeric:
                    return self.make(node, _PLAIN[text], (a, convert(b, FLOAT)), BOOL)
        self.fail(f"no comparison {text} of {a.type} and {b.type}", node)

    def _is_none(self, node: ast.AST, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Expr:
        if not (isinstance(right, ast.Constant) and right.value is None):
            self.fail("`is` compares with None only", node)
        e = self.expr(left)
        if isinstance(left, ast.Name) and left.id in self.env:
            declared = self.env[left.id][0]
            e = self.make(left, "read", (), declared, left.id)
        if not e.type.optional and e.type != NONE:
            self.fail(f"{ast.unparse(left)} is {e.type}, never None", node)
        test = self.make(node, "is_none", (e,), BOOL)
        return test if isinstance(op, ast.Is) else self.make(node, "not", (test,), BOOL)

    def _contains(self, node: ast.AST, left: ast.expr, right: ast.expr) -> Expr:
        item = self.expr(left)
        if isinstance(right, (ast.Tuple, ast.List)):
            tests = [self.compare(node, "==", item, self.expr(e)) for e in right.elts]
            if not tests:
                return self.make(node, "const", (), BOOL, False)
            out = tests[0]
            for t in tests[1:]:
                out = self.make(node, "or", (out, t), BOOL)
            return out
        return self._intrinsic(node, "contains", [self.expr(right), item], {})

    def facts(self, node: ast.expr, truth: bool) -> dict[str, Type]:
        """What is known of optional variables when a test came out as `truth`."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self.facts(inner, not truth)
            case ast.BoolOp(op=op, values=values):
                if isinstance(op, ast.And) == truth:
                    return {k: v for e in values for k, v in self.facts(e, truth).items()}
                return {}
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op],
                comparators=[ast.Constant(value=None)],
            ):  # fmt: skip
                if name not in self.env:
                    return {}
                declared = self.env[name][0]
                absent = isinstance(op, ast.Is) == truth
                return {name: NONE if absent else declared.required()}
        return {}

    # -- indexing -------------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript) -> Expr:
        value = self.expr(node.value)
        if value.type == TENSOR:
            return self._index_tensor(node, value)
        if value.type.base == "Tuple":
            return self._index_tuple(node, value)
        if not value.type.is_list and value.type != STR:
            hint = "; test it with `is None`" if value.type.optional else ""
            self.fail(f"{value.type} cannot be indexed{hint}", node)
        if isinstance(node.slice, ast.Slice):
            return self._slice_list(node, value, node.slice)
        i = self.typed(node.slice, INT, "index")
        item = STR if value.type == STR else value.type.element
        return self.make(node, "getitem", (value, i), item)

    def _index_tuple(self, node: ast.Subscript, value: Expr) -> Expr:
        i = self.expr(node.slice)
        if i.op != "const" or i.type != INT:
            self.fail("a tuple is indexed by a literal", node)
        n = len(value.type.items)
        if not -n <= i.attr < n:
            self.fail(f"index {i.attr} is outside {value.type}", node)
        at = self.make(node, "const", (), INT, i.attr % n)
        return self.make(node, "part", (value, at), value.type.items[i.attr % n])

    def _slice_list(self, node: ast.AST, value: Expr, s: ast.Slice) -> Expr:
        none = self.make(node, "const", (), NONE, None)
        ends = [self.typed(e, INT, "slice") if e else none for e in (s.lower, s.upper)]
        if s.step is not None:
            step = self.expr(s.step)
            if step.op != "const" or step.attr != -1 or s.lower or s.upper:
                self.fail("a slice of a list has no step, except [::-1]", node)
            return self.core(node, "reversed_list", (value,), value.type)
        return self.make(node, "getslice", (value, *ends), value.type)

    def _index_tensor(self, node: ast.Subscript, x: Expr) -> Expr:
        """`x[i, a:b, None, ..., j]` as select, slice and unsqueeze."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) == 1 and not isinstance(parts[0], (ast.Slice, ast.Constant)):
            j = self.expr(parts[0])
            if j.type == TENSOR:
                return self.call_op(node, "index", [x, self._list_of_one(node, j)], {})
        dim, from_end = 0, False  # after `...` dims count from the end
        for i, p in enumerate(parts):
            if isinstance(p, ast.Constant) and p.value is Ellipsis:
                dim, from_end = -sum(not _is_new_axis(q) for q in parts[i + 1 :]), True
                continue
            if _is_new_axis(p):
                at = self.make(node, "const", (), INT, dim - from_end)
                x = self.call_op(node, "unsqueeze", [x, at], {})
                dim += not from_end
                continue
            at = self.make(node, "const", (), INT, dim)
            if isinstance(p, ast.Slice):
                x = self._slice_tensor(node, x, at, p)
                dim += 1
            else:
                index = self.typed(p, INT, "index of a tensor")
                x = self.call_op(node, "select", [x, at, index], {})
                dim += from_end
        return x

    def _slice_tensor(self, node: ast.AST, x: Expr, at: Expr, s: ast.Slice) -> Expr:
        if not (s.lower or s.upper or s.step):
            return x
        none = self.make(node, "const", (), NONE, None)
        ends = [self.expr(e) if e else none for e in (s.lower, s.upper)]
        step = {"step": self.typed(s.step, INT, "slice")} if s.step else {}
        return self.call_op(node, "slice", [x, at, *ends], step)

    def _list_of_one(self, node: ast.AST, e: Expr) -> Expr:
        return self.make(node, "list", (e,), list_of(e.type))

    # -- comprehensions -------------------------------------------------------------------------

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> Expr:
        if len(node.generators) != 1:
            self.fail("a comprehension has one `for`", node)
        gen = node.generators[0]
        over, args, types = self.iterable(gen.iter)
        names = self.targets(gen.target, len(types))
        outer = self.env
        self.env = {**outer, **{n: (t, t) for n, t in zip(names, types, strict=True) if n}}
        tests = [self.condition(t) for t in gen.ifs[:1]]
        if len(gen.ifs) > 1:
            self.fail("a comprehension has one `if`", node)
        for t in gen.ifs:
            self.env = narrowed(self.env, self.facts(t, True))
        element = self.expr(node.elt)
        self.env = outer
        if element.type in (NONE, EMPTY_LIST):
            self.fail(f"comprehension of {element.type}", node.elt)
        comp = Comp(tuple(names), tuple(types), over, bool(tests))
        return self.make(node, "comp", (*args, *tests, element), list_of(element.type), comp)

    _generatorexp = _listcomp

    def targets(self, node: ast.expr, n: int) -> list[str]:
        """Names bound per item; `_` is no name."""
        elts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
        if len(elts) != n:
            self.fail(f"{len(elts)} names for {n} values", node)
        names = []
        for e in elts:
            if not isinstance(e, ast.Name):
                self.fail("only names can be assigned here", e)
            names.append("" if e.id == "_" else e.id)
        return names

    def iterable(self, node: ast.expr) -> tuple[str, list[Expr], list[Type]]:
        """How to loop over `node`: the form, its operands, the types bound per turn."""
        match node:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if 1 <= len(args) <= 3:
                parts = [self.typed(a, INT, "range") for a in args]
                zero, one = (self.make(node, "const", (), INT, v) for v in (0, 1))
                if len(parts) == 1:
                    parts.insert(0, zero)
                start, stop, step = parts if len(parts) == 3 else [*parts, one]
                if step.op == "const" and step.attr == 0:
                    self.fail("the step of range is 0", node)
                return "range", [start, stop, step], [INT]
            case ast.Call(func=ast.Name(id="zip"), args=args) if args:
                lists = [self.listed(a) for a in args]
                return "zip", lists, [self._item_type(e) for e in lists]
            case ast.Call(func=ast.Name(id="enumerate"), args=[arg]):
                e = self.listed(arg)
                return "enumerate", [e], [INT, self._item_type(e)]
            case ast.Call(func=ast.Name(id="reversed"), args=[arg]):
                return self._reversed(node, arg)
        e = self.listed(node)
        item = self._item_type(e)
        return "list", [e], list(item.items) if item.base == "Tuple" else [item]

    def _reversed(self, node: ast.expr, arg: ast.expr) -> tuple[str, list[Expr], list[Type]]:
        over, args, types = self.iterable(arg)
        if over == "list":
            return "reversed", args, types
        if over == "range" and args[2].attr == 1 and args[2].op == "const":
            one = self.make(node, "const", (), INT, 1)
            first, last = (
                self.make(node, "const", (), INT, e.attr - 1)
                if e.op == "const"
                else self.make(node, _PLAIN["-"], (e, one), INT)
                for e in (args[1], args[0])
            )
            return "range", [first, last, self.make(node, "const", (), INT, -1)], [INT]
        self.fail("reversed takes a list or a range of step 1", node)

    def listed(self, node: ast.expr) -> Expr:
        """An expression as a list: tuple literals, `range` and `reversed` count as lists too."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if (
                node.func.id in ("range", "reversed", "zip", "enumerate")
                and node.func.id not in self.env
            ):
                over, args, types = self.iterable(node)
                if len(types) != 1:
                    self.fail(f"{node.func.id} cannot be nested here", node)
                names, t = ("i",), types[0]
                element = self.make(node, "read", (), t, "i")
                comp = Comp(names, (t,), over, False)
                return self.make(node, "comp", (*args, element), list_of(t), comp)
        e = self._as_list(self.expr(node), node)
        if not e.type.is_list and e.type != STR:
            hint = "; loop over x.unbind()" if e.type == TENSOR else ""
            self.fail(f"expected a list, got {e.type}{hint}", node)
        return e

    def _item_type(self, e: Expr) -> Type:
        return STR if e.type == STR else e.type.element

    # -- attributes and calls -------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> Expr:
        value = self.expr(node.value)
        for entry in intrinsics.attributes().get(node.attr, ()):
            if entry.params[0].type == value.type:
                return self.core(node, node.attr, (value,), entry.returns)
        if value.type.optional:
            self.fail(
                f".{node.attr}: value may be None ({value.type}); test it with `is None`", node
            )
        if value.type == TENSOR and node.attr in ("T", "mT", "H", "mH", "real", "imag"):
            return self.call_op(node, node.attr, [value], {})
        self.fail(f"{value.type} has no attribute {node.attr!r}", node)

    def _call(self, node: ast.Call) -> Expr:
        if isinstance(node.func, ast.Name):
            return self._call_name(node, node.func.id)
        if not isinstance(node.func, ast.Attribute):
            self.fail("only operations, intrinsics and methods can be called", node)
        if isinstance(node.func.value, ast.Name) and node.func.value.id not in self.env:
            if node.func.value.id == "s":
                self.fail("scalar functions stand in pointwise entries only", node)
        value = self.expr(node.func.value)
        args, kwargs = self._arguments(node)
        return self._call_method(node, value, node.func.attr, args, kwargs)

    def _arguments(self, node: ast.Call) -> tuple[list[Expr], dict[str, Expr]]:
        args: list[Expr] = []
        for a in node.args:
            if isinstance(a, ast.Starred):
                self.fail("star arguments are not part of the subset", a)
            args.append(self.expr(a))
        kwargs: dict[str, Expr] = {}
        for k in node.keywords:
            if k.arg is None:
                self.fail("star arguments are not part of the subset", node)
            kwargs[k.arg] = self.expr(k.value)
        return args, kwargs

    def _call_method(
        self, node: ast.AST, value: Expr, name: str, args: list[Expr], kwargs: dict[str, Expr]
    ) -> Expr:
        if value.type.optional:
            self.fail(f".{name}(): value may be None ({value.type}); test it with `is None`", node)
        entries = [e for e in intrinsics.methods().get(name, ()) if e.params[0].type == value.type]
        if entries:
            target, full = self._resolve(node, entries, [value, *args], kwargs)
            return self.core(node, name, full, target.returns)
        if value.type == TENSOR:
            return self.call_op(node, name, [value, *args], kwargs, method=True)
        self.fail(f"{value.type} has no method {name!r}", node)

    def _call_name(self, node: ast.Call, name: str) -> Expr:
        special = getattr(self, f"_call_{name}", None) if name in _SPECIAL else None
        if special is not None and not self.lookup_first(name, node):
            return special(node)
        args, kwargs = self._arguments(node)
        # A name such as `sum` is both: the intrinsic on lists, the operation on tensors.
        if name in intrinsics.functions() and not (
            args and args[0].type == TENSOR and self.lookup(name)
        ):
            return self._intrinsic(node, name, args, kwargs)
        return self.call_op(node, name, args, kwargs)

    def lookup_first(self, name: str, node: ast.Call) -> bool:
        """An operation hides the built-in of its name when its first argument is a tensor."""
        if name not in ("min", "max", "abs", "sum", "all", "any") or len(node.args) < 1:
            return False
        if isinstance(node.args[0], (ast.GeneratorExp, ast.Starred)):
            return False
        return self.expr(node.args[0]).type == TENSOR

    def _intrinsic(
        self, node: ast.AST, name: str, args: list[Expr], kwargs: dict[str, Expr]
    ) -> Expr:
        target, full = self._resolve(node, intrinsics.functions()[name], args, kwargs)
        if name in ("empty", "empty_strided_as"):
            like = full[[p.name for p in target.params].index("like")]
            if like.absent:
                full = self.placed(node, target, full)
        return self.core(node, name, full, target.returns)

    def placed(self, node: ast.AST, target: Any, args: Sequence[Expr]) -> tuple[Expr, ...]:
        """Arguments of something that makes a tensor, with the device filled in.

        What a body makes without saying where belongs to the tensors that the body is given.
        """
        return tuple(
            self._place(node, a) if p.type == DEVICE.or_none() and self.placed_by else a
            for p, a in zip(target.params, args, strict=True)
        )

    def _place(self, node: ast.AST, device: Expr) -> Expr:
        if device.op == "some":
            return device
        tensors = [self.make(node, "read", (), p.type, p.name) for p in self.placed_by]
        here = self.core(node, "device_of", tensors, DEVICE)
        if not device.absent:
            here = self.core(node, "device_or", (device, here), DEVICE)
        return convert(here, DEVICE.or_none())

    def _resolve(
        self, node: ast.AST, entries: Sequence[Any], args: list[Expr], kwargs: dict[str, Expr],
        wrap: bool = False,
    ) -> tuple[Any, tuple[Expr, ...]]:  # fmt: skip
        return calls.resolve(entries, args, kwargs, self._default, self.file, node, wrap)

    def _default(self, p: Param, value: ast.expr) -> Expr:
        """A default, compiled outside the scope of the caller."""
        outer, self.env = self.env, {}
        try:
            return self.expr(value)
        finally:
            self.env = outer

    def call_op(
        self, node: ast.AST, name: str, args: list[Expr], kwargs: dict[str, Expr],
        wrap: bool = False, method: bool = False,
    ) -> Expr:  # fmt: skip
        """A call of an operation of the table, functional or in place."""
        entries = self.lookup(name)
        inplace = False
        if not entries and name.endswith("_"):
            entries = [e for e in self.lookup(name[:-1]) if e.has_inplace]
            inplace = bool(entries)
        if not entries:
            what = f"Tensor has no method {name!r}" if method else f"unknown operation {name!r}"
            self.fail(f"{what}; no entry of the table has that name", node)
        try:
            target, full = self._resolve(node, entries, args, kwargs, wrap)
        except CompileError:
            # Rules derived from scalar expressions give numbers where only tensors are public.
            target, full = self._resolve(node, entries, args, kwargs, wrap=True)
        if not any(p.type.base in ("Tensor", "Tensors", "OptTensors") for p in target.params):
            full = self.placed(node, target, full)
        returns = TENSOR if inplace else target.returns
        return self.make(node, "call", full, returns, Callee(target, inplace))

    # -- built-in functions with more than a signature --------------------------------------------

    def _one(self, node: ast.Call, name: str) -> ast.expr:
        if len(node.args) != 1 or node.keywords:
            self.fail(f"{name}() takes one argument here", node)
        return node.args[0]

    def _call_int(self, node: ast.Call) -> Expr:
        return self._cast(node, INT)

    def _call_float(self, node: ast.Call) -> Expr:
        arg = self._one(node, "float")
        if isinstance(arg, ast.Constant) and arg.value in ("inf", "-inf", "nan"):
            return self.make(node, "const", (), FLOAT, float(arg.value))
        return self._cast(node, FLOAT)

    def _call_bool(self, node: ast.Call) -> Expr:
        return self._cast(node, BOOL)

    def _cast(self, node: ast.Call, t: Type) -> Expr:
        e = self.expr(self._one(node, t.base))
        if e.type == TENSOR:
            e = self.core(node, "item", (e,), NUMBER)
        if not e.type.is_numeric and e.type != NUMBER:
            self.fail(f"{t}() of {e.type}", node)
        return e if e.type == t else self.make(node, t.base, (e,), t)

    def _call_list(self, node: ast.Call) -> Expr:
        arg = self._one(node, "list")
        if isinstance(arg, (ast.GeneratorExp, ast.ListComp)):
            return self._listcomp(arg)
        return self.listed(arg)

    _call_tuple = _call_list

    def _call_min(self, node: ast.Call) -> Expr:
        return self._extreme(node, "min")

    def _call_max(self, node: ast.Call) -> Expr:
        return self._extreme(node, "max")

    def _extreme(self, node: ast.Call, name: str) -> Expr:
        args, kwargs = self._arguments(node)
        if kwargs or not args:
            self.fail(f"{name}() takes numbers or one list", node)
        if len(args) == 1:
            xs = self._as_list(args[0], node)
            if xs.type.base not in ("Ints", "Floats"):
                self.fail(f"{name}() of {xs.type}", node)
            return self.core(node, f"{name}_of", (xs,), xs.type.element)
        t: Type | None = args[0].type
        for a in args[1:]:
            t = join(t, a.type) if t else None
        if t not in (INT, FLOAT):
            self.fail(f"{name}() of {', '.join(str(a.type) for a in args)}", node)
        out = convert(args[0], t)
        for a in args[1:]:
            out = self.core(node, name, (out, convert(a, t)), t)
        return out

    def _call_len(self, node: ast.Call) -> Expr:
        e = self.expr(self._one(node, "len"))
        if e.type.base == "List":
            return self.core(node, "len", (e,), INT)
        return self._intrinsic(node, "len", [self._as_list(e, node)], {})


_SPECIAL = ("int", "float", "bool", "list", "tuple", "min", "max", "len")


def _is_new_axis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
