"""Built-in functions of scripts that have more than a signature, and those of `torch.jit`.

Owns `len`, conversions, `isinstance`, `hasattr`, `fork`, and functions of the package whose
arguments decide the type of their result. Other calls are `calls`'.
"""

from __future__ import annotations

import ast
import builtins as b
import typing
import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import flambeau

from .._ir.coerce import EMPTY_LIST, convert, cost
from .._ir.errors import CompileError
from .._ir.typed import Expr
from .._ir.types import BOOL, INT, NONE, NUMBER, STR, TENSOR, Type, list_of, tuple_of
from .._table import entries
from .annotations import ANY, COMPLEX, EMPTY_DICT, future_of
from .calls import ScriptCalls
from .meaning import Items, static


class ScriptBuiltIns(ScriptCalls):
    """Types calls of built-ins."""

    def built_in(self, obj: Any) -> Callable[[Any, ast.Call], Expr] | None:
        try:
            return _SPECIAL.get(obj)
        except TypeError:  # of no hash
            return None

    # -- built-ins --------------------------------------------------------------------------------

    def _one_argument(self, node: ast.Call, name: str) -> Expr:
        args, kwargs = self._arguments(node)
        if len(args) != 1 or kwargs:
            self.fail(f"{name}() takes one argument here", node)
        return args[0]

    def only(self, node: ast.AST, kwargs: dict[str, Expr], name: str, *known: str) -> None:
        """Refuses arguments by other names."""
        for k in kwargs:
            if k not in known:
                self.fail(f"{name}: unknown argument {k!r}", node)

    def b_len(self, node: ast.Call) -> Expr:
        e = self.expr(node.args[0]) if len(node.args) == 1 else self._one_argument(node, "len")
        if e.op == "static" and isinstance(e.attr, Items):
            return self.make(node, "const", (), INT, len(e.attr.values))
        e = self.value(e, node)
        modules = self.compiler.sequence_of(e, self, node)
        if modules is not None:
            return self.make(node, "const", (), INT, len(modules.values))
        if e.type.base == "Tuple" and not e.type.optional:
            return self.make(node, "const", (), INT, len(e.type.items))
        if self.compiler.has_method(e.type, "__len__"):
            return self.call_method_of(node, e, "__len__", [], {})
        if e.type.is_list or e.type in (STR, TENSOR) or e.type.base == "Dict":
            if not e.type.optional:
                return self.core(node, "len", (e,), INT)
        self.fail(f"len() of {e.type}", node)

    def b_number(self, node: ast.Call, t: Type, zero: Any) -> Expr:
        if not node.args:
            return self.make(node, "const", (), t, zero)
        args, _ = self._arguments(node)
        e = args[0]
        if e.op == "const" and e.type == STR and len(args) == 1:
            try:
                return self.make(node, "const", (), t, type(zero)(e.attr))
            except ValueError as error:
                self.fail(str(error), node)
        fine = e.type in (TENSOR, STR, NUMBER, BOOL, INT) or e.type.base in ("float", "complex")
        if not fine or e.type.optional:
            self.fail(f"{t}() of {e.type}", node)
        if t == BOOL:
            return self.truth(e, node)
        return e if e.type == t else self.core(node, f"{t.base}_of", args, t)

    def b_complex(self, node: ast.Call) -> Expr:
        args, kwargs = self._arguments(node)
        self.only(node, kwargs, "complex")
        if len(args) < 2:
            return self.b_number(node, COMPLEX, 0j)
        t = Type("float")
        parts = [self.as_type(a, t, node, "complex") for a in args]
        return self.core(node, "complex_of", parts, COMPLEX)

    def b_format(self, node: ast.Call) -> Expr:
        args, kwargs = self._arguments(node)
        self.only(node, kwargs, "format")
        spec = args[1].attr if len(args) == 2 and args[1].op == "const" else ""
        if not 1 <= len(args) <= 2 or (len(args) == 2 and args[1].op != "const"):
            self.fail("format() takes a value and a literal", node)
        text = self.make(node, "const", (), STR, f"{{:{spec}}}")
        return self.core(node, "format", (text, args[0]), STR)

    def b_str(self, node: ast.Call) -> Expr:
        return self.core(node, "str", (self._one_argument(node, "str"),), STR)

    def b_list(self, node: ast.Call) -> Expr:
        if not node.args:
            return self.make(node, "list", (), EMPTY_LIST)
        given = node.args[0]
        if isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and not given.keywords:
            callee = self.expr(given.func)
            if callee.op == "static" and callee.attr in (b.reversed, b.zip, b.enumerate):
                target, item = (ast.Name("item", c()) for c in (ast.Store, ast.Load))
                made = ast.ListComp(item, [ast.comprehension(target, given, [], 0)])
                return self.expr(ast.fix_missing_locations(ast.copy_location(made, node)))
        e = self.expr(given)
        if e.op == "static":
            return e
        if e.op == "comp":
            return e
        xs = self.as_sequence(e, node)
        t = list_of(STR) if xs.type == STR else xs.type
        return self.core(node, "list_of", (xs,), t)

    def b_range(self, node: ast.Call) -> Expr:
        return self.sequence(node)

    def b_tuple(self, node: ast.Call) -> Expr:
        e = self._one_argument(node, "tuple")
        if e.type.base == "Tuple":
            return e
        if e.op == "list":
            return self.make(node, "tuple", e.args, tuple_of(*(a.type for a in e.args)))
        self.fail(f"tuple() of {e.type}: the length of a tuple must be known", node)

    def b_dict(self, node: ast.Call) -> Expr:
        if not node.args and not node.keywords:
            return self.make(node, "dict", (), EMPTY_DICT)
        if not node.args:
            keys: list[ast.expr | None] = [ast.Constant(k.arg) for k in node.keywords]
            made = ast.Dict(keys, [k.value for k in node.keywords])
            return self.expr(ast.fix_missing_locations(ast.copy_location(made, node)))
        e = self._one_argument(node, "dict")
        if e.type.base == "Dict":
            return self.core(node, "copy", (e,), e.type)
        if e.type.is_list and e.type.element.base == "Tuple" and len(e.type.element.items) == 2:
            return self.core(node, "dict_of", (e,), self.dict_type(*e.type.element.items, node))
        self.fail(f"dict() of {e.type}", node)

    def b_extreme(self, node: ast.Call, name: str) -> Expr:
        args, kwargs = self._arguments(node)
        if args and args[0].type == TENSOR:
            return self.call_on_tensor(node, args[0], name, args[1:], kwargs)
        if kwargs or not args:
            self.fail(f"{name}() takes values or one list", node)
        if len(args) == 1:
            xs = self._as_list(args[0], node)
            if not xs.type.is_list or xs.type.element.base not in ("int", "float", "bool", "str"):
                self.fail(f"{name}() of {xs.type}", node)
            return self.core(node, f"{name}_of", (xs,), xs.type.element)
        t: Type | None = args[0].type
        for a in args[1:]:
            t = self.common(t, a.type) if t else None
        if t is None or t.base not in ("int", "float", "str", "Number"):
            self.fail(f"{name}() of {', '.join(str(a.type) for a in args)}", node)
        return self.core(node, name, [convert(a, t) for a in args], t)

    def b_print(self, node: ast.Call) -> Expr:
        args, kwargs = self._arguments(node)
        if kwargs:
            self.fail("print takes values by position in scripts", node)
        return self.core(node, "print", args, NONE)

    def b_isinstance(self, node: ast.Call) -> Expr:
        if len(node.args) != 2:
            self.fail("isinstance takes a value and a type", node)
        e = self.expr(node.args[0])
        if e.op == "static":
            found = self.expr(node.args[1])
            yes = found.op == "static" and isinstance(e.attr, found.attr)
            return self.make(node, "const", (), BOOL, yes)
        asked = self.asked_types(node.args[1], e.type)
        members = list(e.type.items) if e.type.base == "Union" else [e.type.required()]
        if e.type.optional:
            members.append(NONE)
        if e.type != ANY and e.type != NUMBER:
            hits = [self.is_a(m, a) for m in members for a in [asked]]
            if all(hits) or not any(hits):
                return self.make(node, "const", (), BOOL, all(hits))
        names = self.make(node, "const", (), STR, " or ".join(map(str, asked)))
        return self.core(node, "isinstance", (e, names), BOOL)

    def is_a(self, t: Type, asked: Sequence[Type]) -> bool:
        return t in asked or any(self.compiler.derives(t, a) for a in asked)

    def b_hasattr(self, node: ast.Call) -> Expr:
        name = self.expr(node.args[1])
        if name.op != "const":
            self.fail("hasattr takes a literal name", node)
        e = self.expr(node.args[0])
        if e.op == "static":
            return self.make(node, "const", (), BOOL, hasattr(e.attr, name.attr))
        if "." in e.type.base:
            found = self.compiler.has_attribute(e.type, name.attr) or self.compiler.has_method(
                e.type, name.attr
            )
            return self.make(node, "const", (), BOOL, found)
        try:
            self.attribute(node, e, name.attr)
        except CompileError:
            found = bool(entries.public(name.attr)) and e.type == TENSOR
            return self.make(node, "const", (), BOOL, found)
        return self.make(node, "const", (), BOOL, True)

    def b_getattr(self, node: ast.Call) -> Expr:
        name = self.expr(node.args[1])
        if name.op != "const" or not isinstance(name.attr, str):
            self.fail("getattr takes a literal name", node)
        e = self.expr(node.args[0])
        if len(node.args) == 3:
            has = self.b_hasattr(ast.copy_location(ast.Call(node.func, node.args[:2], []), node))
            if not has.attr:
                return self.expr(node.args[2])
        if e.op == "static":
            return self.static_attribute(node, e, name.attr)
        return self.attribute(node, e, name.attr)

    def b_type(self, node: ast.Call) -> Expr:
        e = self.expr(node.args[0]) if len(node.args) == 1 else None
        found = self.compiler.python_class(e.type) if e is not None else None
        if found is None:
            self.fail("type() has no value in scripts; use isinstance", node)
        return static(found)

    def b_true(self, node: ast.Call) -> Expr:
        return self.make(node, "const", (), BOOL, True)

    def b_false(self, node: ast.Call) -> Expr:
        return self.make(node, "const", (), BOOL, False)

    def b_annotate(self, node: ast.Call) -> Expr:
        if len(node.args) != 2:
            self.fail("annotate takes a type and a value", node)
        t = self.annotation(ast.unparse(node.args[0]), node)
        return self.as_type(self.plain(node.args[1]), t, node, "annotate")

    def b_cast(self, node: ast.Call) -> Expr:
        t = self.annotation(ast.unparse(node.args[0]), node)
        e = self.plain(node.args[1])
        if cost(e, t) is not None:
            return convert(e, t)
        return self.make(node, "unwrap", (e,), t)

    def b_unchecked(self, node: ast.Call) -> Expr:
        e = self._one_argument(node, "_unwrap_optional")
        return e if not e.type.optional else self.core(node, "not_none", (e,), e.type.required())

    def b_fork(self, node: ast.Call) -> Expr:
        if not node.args:
            self.fail("fork takes a function and its arguments", node)
        self.expr(node.args[0])
        rest = ast.copy_location(ast.Call(node.args[0], node.args[1:], node.keywords), node)
        made = self.expr(rest)
        if made.op != "call" or not made.attr.uid.startswith("fn."):
            if made.op != "call":
                self.fail("fork takes a function of the script or a module", node)
        name = made.attr.uid if made.op == "call" else ""
        if made.op == "call" and not name.startswith("fn."):
            made, name = self.compiler.around(made, node.lineno)
        text = self.make(node, "const", (), STR, name)
        return self.core(node, "fork", (text, *made.args), future_of(made.type))

    def b_assert(self, node: ast.Call) -> Expr:
        test = self.condition(node.args[0])
        text = self.plain(node.args[1]) if len(node.args) > 1 else None
        message = text if text is not None else self.make(node, "const", (), STR, "")
        return self.core(node, "check", (test, message), NONE)

    def b_wait(self, node: ast.Call) -> Expr:
        e = self._one_argument(node, "wait")
        if e.type.base != "Future":
            self.fail(f"wait: expected a Future, got {e.type}", node)
        return self.core(node, "wait", (e,), e.type.items[0])

    def b_warn(self, node: ast.Call) -> Expr:
        text = self.plain(node.args[0])
        return self.core(node, "warn", (self.core(node, "str", (text,), STR),), NONE)

    def b_tensor(self, node: ast.Call) -> Expr:
        args, kwargs = self._arguments(node)
        if len(args) != 1:
            self.fail("torch.tensor takes one value", node)
        none = self.make(node, "const", (), NONE, None)
        parts = [kwargs.pop(k, none) for k in ("dtype", "device", "requires_grad")]
        if kwargs:
            self.fail(f"tensor: unknown argument {next(iter(kwargs))!r}", node)
        return self.core(node, "tensor", (args[0], *parts), TENSOR)

    def b_einsum(self, node: ast.Call) -> Expr:
        args, kwargs = self._arguments(node)
        self.only(node, kwargs, "einsum")
        rest = args[1:]
        if len(rest) == 1 and rest[0].type.is_list:
            xs = rest[0]
        else:
            xs = self.make(node, "list", rest, list_of(TENSOR))
        return self.core(node, "einsum", (args[0], xs), TENSOR)

    def b_meshgrid(self, node: ast.Call) -> Expr:
        args, kwargs = self._arguments(node)
        xs = args[0] if len(args) == 1 and args[0].type.is_list else self.make(
            node, "list", args, list_of(TENSOR)
        )  # fmt: skip
        self.only(node, kwargs, "meshgrid", "indexing")
        how = kwargs.get("indexing", self.make(node, "const", (), NONE, None))
        return self.core(node, "meshgrid", (xs, how), list_of(TENSOR))

    def b_split(self, node: ast.Call) -> Expr:
        args, kwargs = self._arguments(node)
        return self.call_on_tensor(node, args[0], "split", args[1:], kwargs)

    def b_unique(self, node: ast.Call) -> Expr:
        args, kwargs = self._arguments(node)
        known = ("sorted", "return_inverse", "return_counts", "dim")
        self.only(node, kwargs, "unique", *known)
        if len(args) != 1:
            self.fail("unique takes its options by name in scripts", node)
        counts = [kwargs.get(k) for k in ("return_inverse", "return_counts")]
        flags = [bool(c.attr) if c is not None and c.op == "const" else False for c in counts]
        none = self.make(node, "const", (), NONE, None)
        yes = self.make(node, "const", (), BOOL, True)
        asked = [self.make(node, "const", (), BOOL, f) for f in flags]
        full = [args[0], kwargs.get("sorted", yes), *asked, kwargs.get("dim", none)]
        n = 1 + sum(flags)
        t = TENSOR if n == 1 else tuple_of(*[TENSOR] * n)
        return self.core(node, "unique", full, t)


def _method(name: str, *extra: Any) -> Callable[[ScriptBuiltIns, ast.Call], Expr]:
    return lambda typer, node: getattr(typer, name)(node, *extra)


def _specials() -> dict[Any, Callable[[ScriptBuiltIns, ast.Call], Expr]]:
    jit = flambeau.jit
    float_, int_ = Type("float"), INT
    out: dict[Any, Callable[[ScriptBuiltIns, ast.Call], Expr]] = {
        b.len: _method("b_len"), b.int: _method("b_number", int_, 0),
        b.float: _method("b_number", float_, 0.0), b.bool: _method("b_number", BOOL, False),
        b.complex: _method("b_complex"),
        b.format: _method("b_format"), b.str: _method("b_str"), b.list: _method("b_list"), b.tuple: _method("b_tuple"),
        b.dict: _method("b_dict"), b.min: _method("b_extreme", "min"),
        b.max: _method("b_extreme", "max"), b.print: _method("b_print"),
        b.isinstance: _method("b_isinstance"), b.hasattr: _method("b_hasattr"),
        b.getattr: _method("b_getattr"), b.type: _method("b_type"), b.range: _method("b_range"),
        jit.isinstance: _method("b_isinstance"), jit.is_scripting: _method("b_true"),
        jit.is_tracing: _method("b_false"), jit.annotate: _method("b_annotate"),
        jit.Attribute: _method("b_annotate"), typing.cast: _method("b_cast"),
        flambeau._assert: _method("b_assert"),
        jit.fork: _method("b_fork"), jit.wait: _method("b_wait"), warnings.warn: _method("b_warn"),
        flambeau.tensor: _method("b_tensor"), flambeau.as_tensor: _method("b_tensor"),
    }  # fmt: skip
    return out


#: those of modules that are imported when a program asks for them: their places by their names
_ELSEWHERE = {
    "einsum": ("einsum", _method("b_einsum")), "meshgrid": ("meshgrid", _method("b_meshgrid")),
    "unique": ("unique", _method("b_unique")),
    "is_compiling": ("compiler.is_compiling", _method("b_false")),
    **{n: (f"overrides.{n}", _method("b_false")) for n in (
        "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")},
}  # fmt: skip


class _Specials:
    """Built-ins by identity, found when they are first asked for."""

    def __init__(self) -> None:
        self._found: dict[Any, Callable[[ScriptBuiltIns, ast.Call], Expr]] = {}

    def get(self, obj: Any) -> Callable[[ScriptBuiltIns, ast.Call], Expr] | None:
        if not self._found:
            self._found = _specials()
        if obj in self._found:
            return self._found[obj]
        name = getattr(obj, "__name__", None)
        place, method = _ELSEWHERE.get(name, ("", None)) if isinstance(name, str) else ("", None)
        return method if method and obj is reduce(getattr, place.split("."), flambeau) else None


_SPECIAL = _Specials()
