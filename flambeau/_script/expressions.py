"""Expressions of scripts: the forms that the table's language does not have, or has narrower.

Owns names that mean Python objects, attributes of values, dicts, text, numbers of any kind, truth,
tests of types, indexing. Calls are `calls`', statements `typer`'s.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .._ir.coerce import EMPTY_LIST, convert, join
from .._ir.expr import _PLAIN
from .._ir.frontend import FunctionTyper
from .._ir.scope import narrowed
from .._ir.typed import Expr
from .._ir.types import (
    BOOL,
    DEVICE,
    DTYPE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    Type,
    list_of,
    tuple_of,
)
from . import signatures
from .annotations import (
    ANY,
    COMPLEX,
    EMPTY_DICT,
    TypeError_,
    dict_of,
    type_of,
    union_of,
)
from .meaning import Items, Method, constant, contained, is_enum, static

if TYPE_CHECKING:
    from .compiler import Compiler

_NUMBERS = (BOOL, INT, FLOAT, COMPLEX, NUMBER)
_ORDER = {t: i for i, t in enumerate(_NUMBERS)}
SLICE = Type("Slice")


def wider(a: Type, b: Type) -> Type | None:
    """The number type of two operands."""
    if a not in _ORDER or b not in _ORDER:
        return None
    return max(a, b, key=_ORDER.__getitem__)


class ScriptExpressions(FunctionTyper):
    """Types expressions of one function of a script."""

    compiler: Compiler
    names: Callable[[str], Any]
    statics: dict[str, Expr]
    mixed: dict[str, str]
    in_default = False

    # -- atoms ------------------------------------------------------------------------------------

    def _typed(self, node: Typed) -> Expr:
        return node.expression

    def value(self, e: Expr, node: ast.AST) -> Expr:
        """`e` where a value is needed: what is only known while typing is none."""
        if e.op != "static":
            return e
        obj = e.attr
        if isinstance(obj, Items) and not obj.pairs and obj.values:
            return self.make(node, "tuple", obj.values, tuple_of(*(v.type for v in obj.values)))
        what = getattr(obj, "__name__", None) or type(obj).__name__
        if isinstance(obj, Method):
            what = f"method {obj.name}"
        self.fail(f"{what} is a Python {type(obj).__name__}; a script has no value for it", node)

    def as_type(self, e: Expr, t: Type, node: ast.AST, what: str) -> Expr:
        if e.op == "core" and e.attr == "tolist" and (t.is_list or t in (INT, FLOAT, BOOL)):
            return self.core(node, "tolist", e.args, t)  # what it gives is what it is said to be
        return super().as_type(e, t, node, what)

    def plain(self, node: ast.expr) -> Expr:
        """The expression as a value."""
        return self.value(self.expr(node), node)

    def _constant(self, node: ast.Constant) -> Expr:
        made = constant(node.value, getattr(node, "lineno", 0))
        return made if made is not None else super()._constant(node)

    def _name(self, node: ast.Name) -> Expr:
        name = node.id
        name = self.variable(name)
        if name in self.statics:
            return self.statics[name]
        if name not in self.env:
            return self._global(node)
        declared, current = self.env[name]
        read = self.make(node, "read", (), declared, name)
        if current == declared:
            return read
        if current == NONE:
            return self.make(node, "const", (), NONE, None)
        return self.make(node, "unwrap", (read,), current)

    def variable(self, name: str) -> str:
        """The variable that a name stands for: of an item, in a comprehension."""
        e = self.statics.get(name)
        return e.attr if e is not None and e.op == "read" and e.attr in self.env else name

    def _global(self, node: ast.Name) -> Expr:
        name = node.id
        if self.in_default:
            return super()._global(node)
        try:
            obj = self.names(name)
        except KeyError:
            pass
        else:
            return self.meaning(obj, node)
        if name in self.mixed:
            self.fail(f"{name!r} has another type on each path: {self.mixed[name]}", node)
        if name in self.assigned_somewhere():
            self.fail(f"{name!r} may have no value here; assign it on every path", node)
        self.fail(f"undefined name {name!r}", node)

    def meaning(self, obj: Any, node: ast.AST) -> Expr:
        """What a Python object stands for."""
        line = getattr(node, "lineno", 0)
        made = constant(obj, line)
        if made is not None:
            return made
        if is_enum(type(obj)):
            owner = self.compiler.class_of(type(obj))
            assert owner is not None
            args = tuple(Expr("const", (), STR, x, line) for x in (owner.name, obj.name))
            return self.core(node, "enum", args, owner.type)
        return static(obj, line)

    # -- operators --------------------------------------------------------------------------------

    def binary(self, node: ast.AST, text: str, op: str, a: Expr, b: Expr) -> Expr:
        a, b = self.value(a, node), self.value(b, node)
        if TENSOR in (a.type, b.type):
            return super().binary(node, text, op, a, b)
        t = wider(a.type, b.type)
        if t is not None and text != "@":
            if t in (INT, FLOAT, BOOL):
                return super().binary(node, text, op, a, b)
            if text in ("+", "-", "*", "/", "**", "//", "%"):
                return self.core(node, _PLAIN[text], (convert(a, t), convert(b, t)), t)
        if text == "+" and a.type == b.type == STR:
            return self.core(node, "add", (a, b), STR)
        if text == "%" and a.type == STR:
            given = b.args if b.op == "tuple" else (b,)
            return self.core(node, "percent", (a, *given), STR)
        if text == "*" and a.type == STR and b.type == INT:
            return self.core(node, "mul", (a, b), STR)
        if text == "*" and a.type == INT and (b.type.is_list or b.op == "tuple" or b.type == STR):
            return self.binary(node, text, op, b, a)
        if text == "+" and a.type.base == b.type.base == "Tuple":
            parts = [*self.parts(node, a), *self.parts(node, b)]
            return self.make(node, "tuple", parts, tuple_of(*(p.type for p in parts)))
        if "." in a.type.base and not a.type.optional:
            found = self.operator_method(node, text, a, b)
            if found is not None:
                return found
        return super().binary(node, text, op, a, b)

    def parts(self, node: ast.AST, e: Expr) -> list[Expr]:
        """The items of a tuple."""
        if e.op == "tuple":
            return list(e.args)
        out = []
        for i, t in enumerate(e.type.items):
            at = self.make(node, "const", (), INT, i)
            out.append(self.make(node, "part", (e, at), t))
        return out

    def operator_method(self, node: ast.AST, text: str, a: Expr, *others: Expr) -> Expr | None:
        """A call of the method that a class of the program has for an operator."""
        names = {
            "+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "%": "__mod__",
            "**": "__pow__", "//": "__floordiv__", "==": "__eq__", "!=": "__ne__", "<": "__lt__",
            "<=": "__le__", ">": "__gt__", ">=": "__ge__", "&": "__and__", "|": "__or__",
            "^": "__xor__", "@": "__matmul__", "<<": "__lshift__", ">>": "__rshift__",
        }  # fmt: skip
        name = names.get(text, text)
        if not self.compiler.has_method(a.type, name):
            return None
        return self.call_method_of(node, a, name, list(others), {})

    def _unaryop(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            if inner.op == "const":
                return self.make(node, "const", (), BOOL, not inner.attr)
            return self.make(node, "not", (inner,), BOOL)
        e = self.plain(node.operand)
        if e.type in (COMPLEX, NUMBER, BOOL) and isinstance(node.op, ast.USub):
            return self.core(node, "neg", (e,), INT if e.type == BOOL else e.type)
        if e.type in _NUMBERS and isinstance(node.op, ast.UAdd):
            return e
        if "." in e.type.base:
            names = {ast.USub: "__neg__", ast.Invert: "__invert__", ast.UAdd: "__pos__"}
            found = self.operator_method(node, names[type(node.op)], e)
            if found is not None:
                return found
        return super()._unaryop(node)

    # -- truth ------------------------------------------------------------------------------------

    def condition(self, node: ast.expr) -> Expr:
        if isinstance(node, ast.BoolOp):
            return self._all_or_any(node)
        return self.truth(self.plain(node), node)

    def truth(self, e: Expr, node: ast.AST) -> Expr:
        """A value as a bool."""
        if e.type == BOOL:
            return e
        if e.op == "const" and e.type in (INT, FLOAT, STR, NONE):
            return self.make(node, "const", (), BOOL, bool(e.attr))
        if e.type.base == "Tuple" and not e.type.optional:
            return self.make(node, "const", (), BOOL, bool(e.type.items))
        if e.type == TENSOR or e.type in _NUMBERS:
            return self.core(node, "truth_of", (e,), BOOL)
        if self.compiler.has_method(e.type, "__bool__"):
            return self.call_method_of(node, e, "__bool__", [], {})
        if self.compiler.has_method(e.type, "__len__"):
            n = self.call_method_of(node, e, "__len__", [], {})
            return self.core(node, "truth_of", (n,), BOOL)
        if (e.type.is_list or e.type.base == "Dict" or e.type == STR) and not e.type.optional:
            return self.core(node, "truth_of", (e,), BOOL)
        if e.type.optional:
            self.fail(f"condition: {e.type} has no truth; write `is not None`", node)
        self.fail(f"condition: expected bool, int, float or Tensor, got {e.type}", node)

    def _boolop(self, node: ast.BoolOp) -> Expr:
        """`a or b` as a value: one of its operands."""
        outer, parts = self.env, []
        try:
            for v in node.values:
                part = self.plain(v)
                parts.append(part)
                if part.op == "const" and bool(part.attr) == isinstance(node.op, ast.Or):
                    break  # decides: what follows is not looked at
                self.env = narrowed(self.env, self.facts(v, isinstance(node.op, ast.And)))
        finally:
            self.env = outer
        if all(p.type == BOOL for p in parts):
            return self._all_or_any(node)
        out = parts[-1]
        before = list(zip(parts[:-1], node.values, strict=False))
        for part, v in reversed(before):
            test = self.truth(part, v)
            yes, no = (part, out) if isinstance(node.op, ast.Or) else (out, part)
            if test.op == "const":
                out = yes if test.attr else no
                continue
            if not _again(part):
                self.fail("`and` and `or` of values that are no bool give one of them: name the "
                          "first, or write `a if a else b`", node)  # fmt: skip
            t = self.common(yes.type, no.type)
            if t is None:
                self.fail(f"`and` and `or` of {part.type} and {out.type}", node)
            out = self.make(node, "if", (test, convert(yes, t), convert(no, t)), t)
        return out

    def _all_or_any(self, node: ast.BoolOp) -> Expr:
        op = "and" if isinstance(node.op, ast.And) else "or"
        outer = self.env
        out: Expr | None = None
        try:
            for i, v in enumerate(node.values):
                part = self.condition(v)
                if part.op == "const":
                    if part.attr == (op == "or"):  # decides: what follows is not looked at
                        if out is None or _without_effect(out):
                            return part
                        return self.make(node, op, (out, part), BOOL)
                else:
                    out = part if out is None else self.make(node, op, (out, part), BOOL)
                if i + 1 < len(node.values):
                    self.env = narrowed(self.env, self.facts(v, op == "and"))
        finally:
            self.env = outer
        return out if out is not None else self.make(node, "const", (), BOOL, op == "and")

    def _ifexp(self, node: ast.IfExp) -> Expr:
        test = self.condition(node.test)
        if test.op == "const":
            return self.expr(node.body if test.attr else node.orelse)
        outer = self.env
        yes, no = (narrowed(outer, self.facts(node.test, truth)) for truth in (True, False))
        self.env = yes
        a = self.plain(node.body)
        self.env = no
        b = self.plain(node.orelse)
        self.env = outer
        if a.type.is_list or b.type.is_list:
            a, b = self._same_lists(a, b) or (a, b)
        t = self.common(a.type, b.type)
        if t is None:
            self.fail(f"conditional expression of {a.type} and {b.type}", node)
        return self.make(node, "if", (test, convert(a, t), convert(b, t)), t)

    def common(self, a: Type, b: Type) -> Type | None:
        """The type of a value that comes from either of two places."""
        a, b = a.plain(), b.plain()
        if a == b:
            return a
        if a.base == b.base == "Tuple" and len(a.items) == len(b.items):
            items = [self.common(x, y) for x, y in zip(a.items, b.items, strict=True)]
            if None not in items:
                made = Type("Tuple", a.optional or b.optional, tuple(i for i in items if i))
                return made
        if ANY in (a, b):
            return ANY
        if EMPTY_LIST in (a, b) or EMPTY_DICT in (a, b):
            other = b if a in (EMPTY_LIST, EMPTY_DICT) else a
            return other if other.is_list or other.base == "Dict" else None
        if NONE in (a, b) or a.required() == b.required():
            return join(a, b)
        if "Union" in (a.base, b.base):
            return union_of([a, b])
        return join(a, b)

    # -- comparisons ------------------------------------------------------------------------------

    def _compare(self, node: ast.Compare) -> Expr:
        if len(node.ops) > 1:  # those in the middle are read twice
            middle: list[ast.expr] = []
            for c in node.comparators[:-1]:
                if not isinstance(c, (ast.Name, ast.Constant)) and _again(e := self.plain(c)):
                    name = f"middle of {c.lineno}:{c.col_offset}"
                    self.statics[name] = e
                    c = ast.copy_location(ast.Name(name, ast.Load()), c)
                middle.append(c)
            comparators = [*middle, node.comparators[-1]]
            node = ast.copy_location(ast.Compare(node.left, node.ops, comparators), node)
        return super()._compare(node)

    def _comparison(self, node: ast.AST, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Expr:
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self._is_none(node, op, left, right)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = self._contains(node, left, right)
            return found if isinstance(op, ast.In) else self.make(node, "not", (found,), BOOL)
        a, b = self.plain(left), self.plain(right)
        return super()._comparison(node, op, Typed(a), Typed(b))

    def compare(self, node: ast.AST, text: str, a: Expr, b: Expr) -> Expr:
        t = wider(a.type, b.type)
        if t is not None and t not in (INT, FLOAT, BOOL):
            return self.core(node, _PLAIN[text], (convert(a, t), convert(b, t)), BOOL)
        if a.type.base == b.type.base == "Tuple" or a.type.base == b.type.base == "Dict":
            return self.core(node, _PLAIN[text], (a, b), BOOL)
        if a.type == b.type == STR:
            return self.core(node, _PLAIN[text], (a, b), BOOL)
        if "." in a.type.base and not a.type.optional:
            found = self.operator_method(node, text, a, b)
            if found is not None:
                return found
            if text in ("==", "!=") and a.type == b.type:
                return self.core(node, _PLAIN[text], (a, b), BOOL)
        if text in ("==", "!=") and (a.type.optional or b.type.optional or NONE in
                                     (a.type, b.type)):  # fmt: skip
            if a.type.required() == b.type.required() or NONE in (a.type, b.type):
                return self.core(node, _PLAIN[text], (a, b), BOOL)
        if text in ("==", "!=") and a.type.is_list and b.type.is_list:
            listed = self._same_lists(a, b)
            if listed:
                return self.core(node, _PLAIN[text], listed, BOOL)
        if a.type.is_list and a.type == b.type and a.type.element in (INT, FLOAT, STR):
            return self.core(node, _PLAIN[text], (a, b), BOOL)
        if a.type.base == "Layout" == b.type.base or a.type == b.type == DEVICE:
            return self.core(node, _PLAIN[text], (a, b), BOOL)
        return super().compare(node, text, a, b)

    def _is_none(self, node: ast.AST, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Expr:
        negative = isinstance(op, ast.IsNot)
        if isinstance(left, ast.Constant) and left.value is None:
            left, right = right, left
        if not (isinstance(right, ast.Constant) and right.value is None):
            a, b = self.expr(left), self.expr(right)
            for x in (a, b):
                if (
                    x.op != "static"
                    and x.type.base not in ("Tensor", "bool")
                    and ("." not in x.type.base and not x.type.is_list and x.type.base != "Dict")
                ):
                    self.fail(f"`is` compares objects, not {x.type}; write ==", node)
            if a.op == "static" and b.op == "static":
                return self.make(node, "const", (), BOOL, (a.attr is b.attr) != negative)
            return self.core(node, "is_not" if negative else "is_", (a, b), BOOL)
        e = self.expr(left)
        if e.op == "static" or e.type == NONE:
            return self.make(node, "const", (), BOOL, (e.type == NONE) != negative)
        if not e.type.optional and e.type != ANY:
            return self.make(node, "const", (), BOOL, negative)
        test = self.make(node, "is_none", (e,), BOOL)
        return self.make(node, "not", (test,), BOOL) if negative else test

    def _contains(self, node: ast.AST, left: ast.expr, right: ast.expr) -> Expr:
        if isinstance(right, ast.Set):
            right = ast.copy_location(ast.List(right.elts, ast.Load()), right)
        box = self.expr(right)
        if box.op == "static" and isinstance(box.attr, Items):
            item = self.plain(left)
            if item.op == "const":
                return self.make(node, "const", (), BOOL, item.attr in box.attr.keys)
        box, item = self.value(box, right), self.plain(left)
        if isinstance(right, (ast.Tuple, ast.List)) or box.op == "tuple":
            tests = [self.compare(node, "==", item, e) for e in box.args]
            out = self.make(node, "const", (), BOOL, False) if not tests else tests[0]
            for t in tests[1:]:
                out = self.make(node, "or", (out, t), BOOL)
            return out
        if box.type == STR or box.type.base == "Dict" or box.type.is_list:
            inner = (
                STR if box.type == STR
                else box.type.items[0] if box.type.base == "Dict" else box.type.element
            )  # fmt: skip
            return self.core(node, "in_", (self.as_type(item, inner, node, "in"), box), BOOL)
        if self.compiler.has_method(box.type, "__contains__"):
            return self.call_method_of(node, box, "__contains__", [item], {})
        self.fail(f"`in`: expected a list, dict or str, got {box.type}", node)

    def facts(self, node: ast.expr, truth: bool) -> dict[str, Type]:
        match node:
            case ast.Call(func=func, args=[ast.Name(id=name), kind]) if (
                self.variable(name) in self.env and self.is_isinstance(func)
            ):
                return self.type_facts(self.variable(name), kind, truth)
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op],
                comparators=[ast.Constant(value=None)],
            ) if self.variable(name) in self.env:  # fmt: skip
                name = self.variable(name)
                now = self.env[name][1]
                if not now.optional:
                    return {}
                return {name: NONE if isinstance(op, ast.Is) == truth else now.required()}
        return super().facts(node, truth)

    def is_isinstance(self, func: ast.expr) -> bool:
        import flambeau

        if not isinstance(func, (ast.Name, ast.Attribute)):
            return False
        try:
            found = self.expr(func)
        except Exception:
            return False
        return found.op == "static" and found.attr in (isinstance, flambeau.jit.isinstance)

    def type_facts(self, name: str, kind: ast.expr, truth: bool) -> dict[str, Type]:
        """What a test `isinstance` shows of a variable."""
        now = self.env[name][1]
        asked = self.asked_types(kind, now)
        members = list(now.items) if now.base == "Union" else [now.required()]
        if now.optional:
            members.append(NONE)
        if truth:
            left = list(asked) if now == ANY else [m for m in members if m in asked]
        else:
            left = [] if now == ANY else [m for m in members if m not in asked]
        if now == NUMBER or not left:
            left = asked if truth and now == NUMBER else left
        return {name: union_of(left)} if left else {}

    def asked_types(self, kind: ast.expr, of: Type) -> list[Type]:
        """The types that a test `isinstance` of a value names; `tuple` alone: its tuples."""
        parts = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        out: list[Type] = []
        for p in parts:
            if isinstance(p, (ast.Name, ast.Attribute)):
                found = self.expr(p)
                if found.op == "static" and isinstance(found.attr, tuple):
                    out += [self.annotation(x, kind) for x in found.attr]
                    continue
                held = contained(found.attr, of) if found.op == "static" else None
                if held and of == ANY:
                    self.fail(f"isinstance: {ast.unparse(p)} of Any; say of what it is", kind)
                if held:
                    out += held
                    continue
            out.append(self.annotation(ast.unparse(p), kind))
        return out

    def annotation(self, what: Any, node: ast.AST) -> Type:
        """Type of an annotation, or an error at `node`."""
        try:
            return type_of(what, self.compiler.type_of_class, self.names)
        except TypeError_ as error:
            self.fail(str(error), node)

    # -- containers -------------------------------------------------------------------------------

    def _list(self, node: ast.List | ast.Tuple) -> Expr:
        return self.list_of_values(node, self.spread(node.elts))

    def list_of_values(self, node: ast.AST, items: Sequence[Expr]) -> Expr:
        """A list of values, converted to their common type."""
        if not items:
            return self.make(node, "list", (), EMPTY_LIST)
        t = items[0].type
        for e in items[1:]:
            both = self.common(t, e.type)
            if both is None:
                self.fail(f"list of {t} and {e.type}; its items must have one type", node)
            t = both
        return self.make(node, "list", [convert(e, t) for e in items], list_of(t))

    def _tuple(self, node: ast.Tuple) -> Expr:
        items = self.spread(node.elts)
        return self.make(node, "tuple", items, tuple_of(*(e.type for e in items)))

    def spread(self, nodes: Sequence[ast.expr]) -> list[Expr]:
        """Values of a display or call, `*tuple` written out."""
        out: list[Expr] = []
        for n in nodes:
            if not isinstance(n, ast.Starred):
                out.append(self.plain(n))
                continue
            e = self.expr(n.value)
            if e.op == "static" and isinstance(e.attr, Items):
                out += e.attr.values
            elif e.type.base == "Tuple":
                out += self.parts(n, e)
            elif e.op == "list":
                out += e.args
            else:
                self.fail(f"`*` takes a tuple here, got {e.type}: its length must be known", n)
        return out

    def _dict(self, node: ast.Dict) -> Expr:
        if not node.keys:
            return self.make(node, "dict", (), EMPTY_DICT)
        if None in node.keys:
            self.fail("`**` in a dict is not part of scripts; use update()", node)
        keys = [self.plain(k) for k in node.keys if k is not None]
        values = [self.plain(v) for v in node.values]
        key, item = keys[0].type, values[0].type
        for k, v in zip(keys[1:], values[1:], strict=True):
            both = self.common(item, v.type)
            if k.type != key or both is None:
                self.fail(f"dict of {key}: {item} and {k.type}: {v.type}; one type each", node)
            item = both
        args = [x for k, v in zip(keys, values, strict=True) for x in (k, convert(v, item))]
        return self.make(node, "dict", args, self.dict_type(key, item, node))

    def dict_type(self, key: Type, item: Type, node: ast.AST) -> Type:
        try:
            return dict_of(key, item)
        except TypeError_ as error:
            self.fail(str(error), node)

    # -- text -------------------------------------------------------------------------------------

    def _joinedstr(self, node: ast.JoinedStr) -> Expr:
        text, parts = "", []
        for v in node.values:
            if isinstance(v, ast.Constant):
                text += str(v.value).replace("{", "{{").replace("}", "}}")
                continue
            assert isinstance(v, ast.FormattedValue)
            spec = ""
            if v.format_spec is not None:
                assert isinstance(v.format_spec, ast.JoinedStr)
                if not all(isinstance(x, ast.Constant) for x in v.format_spec.values):
                    self.fail("a format inside a format is not part of scripts", node)
                spec = ":" + "".join(str(x.value) for x in v.format_spec.values)  # type: ignore[attr-defined]
            mark = "" if v.conversion == -1 else f"!{chr(v.conversion)}"
            text += "{" + mark + spec + "}"
            parts.append(self.plain(v.value))
        if all(p.op == "const" for p in parts):
            return self.make(node, "const", (), STR, text.format(*(p.attr for p in parts)))
        head = self.make(node, "const", (), STR, text)
        return self.core(node, "format", (head, *parts), STR)

    # -- indexing ---------------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript) -> Expr:
        value = self.expr(node.value)
        modules = self.compiler.sequence_of(value, self, node)
        if modules is not None:
            value = static(modules)
        if value.op == "static":
            return self.static_item(node, value)
        if value.type == TENSOR:
            return self.core(node, "get_item", (value, *self.key(node.slice)), TENSOR)
        if value.type.base == "Dict" and not value.type.optional:
            key = self.as_type(self.plain(node.slice), value.type.items[0], node, "key")
            return self.core(node, "lookup", (value, key), value.type.items[1])
        if value.type.base == "Tuple" and not value.type.optional:
            return self.tuple_item(node, value)
        if "." in value.type.base and not value.type.optional:
            items = self.compiler.tuple_items(value.type)
            if items is not None:
                return self.tuple_item(node, self.as_tuple(node, value, items))
            if self.compiler.has_method(value.type, "__getitem__"):
                return self.call_method_of(node, value, "__getitem__", [self.plain(node.slice)], {})
        if value.type == STR and isinstance(node.slice, ast.Slice):
            return self._slice_list(node, value, node.slice)
        return super()._subscript(node)

    def as_tuple(self, node: ast.AST, value: Expr, items: Sequence[Type]) -> Expr:
        return self.make(node, "unwrap", (value,), tuple_of(*items))

    def static_item(self, node: ast.Subscript, value: Expr) -> Expr:
        box = value.attr
        if isinstance(box, Items):
            if isinstance(node.slice, ast.Slice):
                ends = [
                    self.expr(e).attr if e else None
                    for e in (node.slice.lower, node.slice.upper, node.slice.step)
                ]
                cut = slice(*ends)
                return static(Items(box.keys[cut], box.values[cut]))
            at = self.plain(node.slice)
            if at.op != "const":
                self.fail("modules are indexed by a literal, or looped over", node)
            if box.pairs or isinstance(at.attr, str):
                if at.attr not in box.keys:
                    self.fail(f"there is no module {at.attr!r}", node)
                return box.values[box.keys.index(at.attr)]
            if not -len(box.values) <= at.attr < len(box.values):
                self.fail(f"module {at.attr} of {len(box.values)}", node)
            return box.values[at.attr]
        if is_enum(box):
            at = self.plain(node.slice)
            if at.op == "const" and at.attr in box.__members__:
                return self.meaning(box[at.attr], node)
        if isinstance(box, (dict, list, tuple)):
            at = self.plain(node.slice)
            if at.op == "const":
                try:
                    return self.meaning(box[at.attr], node)
                except (KeyError, IndexError) as error:
                    self.fail(f"{type(error).__name__}: {error}", node)
        self.fail("a Python object that scripts cannot index", node)

    def tuple_item(self, node: ast.Subscript, value: Expr) -> Expr:
        parts = self.parts(node, value)
        if isinstance(node.slice, ast.Slice):
            ends = [
                self.expr(e) if e else None
                for e in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            if any(e is not None and e.op != "const" for e in ends):
                self.fail("a tuple is cut by literals", node)
            cut = parts[slice(*(e.attr if e else None for e in ends))]
            return self.make(node, "tuple", cut, tuple_of(*(p.type for p in cut)))
        i = self.plain(node.slice)
        if i.op != "const" or i.type != INT:
            if i.type == INT and len(set(value.type.items)) == 1:
                listed = self.make(node, "list", parts, list_of(parts[0].type))
                return self.make(node, "getitem", (listed, i), parts[0].type)
            self.fail("a tuple of several types is indexed by a literal", node)
        if not -len(parts) <= i.attr < len(parts):
            self.fail(f"index {i.attr} is outside {value.type}", node)
        return parts[i.attr]

    def _slice_list(self, node: ast.AST, value: Expr, s: ast.Slice) -> Expr:
        none = self.make(node, "const", (), NONE, None)
        ends = [self.typed(e, INT, "slice") if e else none for e in (s.lower, s.upper)]
        step = [self.typed(s.step, INT, "slice")] if s.step else []
        return self.core(node, "getslice", (value, *ends, *step), value.type)

    def key(self, node: ast.expr) -> list[Expr]:
        """The parts of a tensor's index."""
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        if any(isinstance(p, ast.Starred) for p in parts):
            return self.spread(parts)
        return [self.key_part(p) for p in parts]

    def key_part(self, node: ast.expr) -> Expr:
        if isinstance(node, ast.Slice):
            none = self.make(node, "const", (), NONE, None)
            ends = [self.plain(e) if e else none for e in (node.lower, node.upper, node.step)]
            for e in ends:
                if e.type not in (INT, NONE, INT.or_none(), TENSOR):
                    self.fail(f"slice: expected int, got {e.type}", node)
            return self.core(node, "slice", ends, SLICE)
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            return self.core(node, "ellipsis", (), Type("Ellipsis"))
        e = self.plain(node)
        if e.type in (INT, NONE, TENSOR, BOOL, TENSOR.or_none()) or e.type.base in (
            "Ints", "Bools"
        ):  # fmt: skip
            return e
        if e.type == NUMBER:
            return e
        if e.type.base == "Tuple":
            return e
        self.fail(f"index of a tensor: expected int, slice, Tensor or None, got {e.type}", node)

    # -- attributes -------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> Expr:
        value = self.expr(node.value)
        if value.op == "static":
            return self.static_attribute(node, value, node.attr)
        return self.attribute(node, value, node.attr)

    def static_attribute(self, node: ast.AST, value: Expr, name: str) -> Expr:
        obj = value.attr
        if isinstance(obj, (Items, Method)):
            return static((obj, name))
        from .meaning import Super

        if isinstance(obj, Super):
            return static(Method(obj.owner, f"super.{obj.after.__name__}.{name}"))
        if not (isinstance(obj, (types.ModuleType, type)) or callable(obj)):
            module = getattr(type(obj), "__module__", "").partition(".")[0]
            if module not in ("flambeau", "torch"):
                self.fail(f"attribute {name!r} of a Python {type(obj).__name__}", node)
        try:
            return self.meaning(getattr(obj, name), node)
        except AttributeError:
            what = getattr(obj, "__name__", type(obj).__name__)
            self.fail(f"{what} has no attribute {name!r}", node)

    fields: dict[str, tuple[str, ...]]

    def fields_of(self, value: Expr) -> tuple[str, ...]:
        """Names of the parts of what the table gives: `values`, `indices`."""
        if value.op == "read":
            return self.fields.get(value.attr, ())
        if value.op == "call" and hasattr(value.attr, "target"):
            option = getattr(value.attr.target, "option", None)
            return tuple(option("fields") or ()) if option is not None else ()
        return ()

    def attribute(self, node: ast.AST, value: Expr, name: str) -> Expr:
        """An attribute of a value."""
        t = value.type
        if t.optional:
            self.fail(f".{name}: value may be None ({t}); test it with `is None`", node)
        names = self.fields_of(value)
        if t.base == "Tuple" and name in names:
            at = self.make(node, "const", (), INT, names.index(name))
            return self.make(node, "part", (value, at), t.items[names.index(name)])
        if "." in t.base:
            return self.class_attribute(node, value, name)
        text = {
            TENSOR: signatures.TENSOR_ATTRIBUTES, DEVICE: signatures.DEVICE_ATTRIBUTES,
            DTYPE: signatures.DTYPE_ATTRIBUTES,
        }.get(t)  # fmt: skip
        found = signatures.table(text, "core.attr_").get(name) if text else None
        if found:
            return self.core(node, f"attr_{name}", (value,), found[0].returns)
        if t in (COMPLEX, NUMBER, INT, FLOAT) and name in ("real", "imag"):
            return self.core(node, f"attr_{name}", (value,), FLOAT)
        self.fail(f"{t} has no attribute {name!r}", node)

    def class_attribute(self, node: ast.AST, value: Expr, name: str) -> Expr:
        raise NotImplementedError

    def call_method_of(
        self, node: ast.AST, value: Expr, name: str, args: list[Expr], kwargs: dict[str, Expr]
    ) -> Expr:
        raise NotImplementedError


def _without_effect(e: Expr) -> bool:
    """Leaving it out changes nothing: no call stands in it."""
    return e.op not in ("call", "comp") and (
        e.op != "core" or e.attr in ("getattr", "truth_of", "is_", "is_not", "in_", "len")
    ) and all(map(_without_effect, e.args))  # fmt: skip


def _again(e: Expr) -> bool:
    """It can stand in two places: reading it has no effect and gives the same."""
    return e.op in ("const", "read", "placed") or (
        (e.op == "unwrap" or (e.op == "core" and e.attr in _READS)) and all(map(_again, e.args))
    )


_READS = ("getattr", "len", "attr_ndim", "attr_dtype", "attr_device", "attr_shape")


class Typed(ast.expr):
    """An expression that has been typed; stands where a tree is asked for."""

    def __init__(self, e: Expr) -> None:
        super().__init__()
        self.expression = e
        self.lineno = e.line
