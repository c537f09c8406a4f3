"""Statements of scripts: a parsed function to a `Function` of the IR.

Owns assignment (names may change their type where no other path sees it), attributes, items, loops
over anything, `with`, what is raised, and the inferred type of the result.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Sequence
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

import flambeau

from .._ir.coerce import EMPTY_LIST, convert, cost
from .._ir.errors import CompileError
from .._ir.expr import ARITHMETIC
from .._ir.graph import Arg, Block, Function, Value, renumbered
from .._ir.placing import prune
from .._ir.scope import Env, merge
from .._ir.typed import Expr
from .._ir.types import INT, NONE, STR, TENSOR, Param, Type, list_of
from .._table import entries
from .annotations import ANY, EMPTY_DICT, dict_of, union_of
from .built_ins import ScriptBuiltIns
from .made import ours
from .meaning import STATIC, Items, static

if TYPE_CHECKING:
    from .compiler import Compiler

#: context managers of the package that scripts enter, and their places, imported when one is met
CONTEXTS = {
    "no_grad": "no_grad", "enable_grad": "enable_grad", "inference_mode": "inference_mode",
    "set_grad_enabled": "set_grad_enabled", "autocast": "autocast", "cpu_autocast": "amp.autocast",
    "record_function": "autograd.profiler.record_function",
}  # fmt: skip


@cache
def context(kind: str) -> Any:
    """The context manager of that name."""
    return reduce(getattr, CONTEXTS[kind].split("."), flambeau)


class ScriptTyper(ScriptBuiltIns):
    """Types one function of a script."""

    def __init__(
        self, compiler: Compiler, node: ast.FunctionDef, params: Sequence[Param],
        returns: Type | None, file: str, names: Any, name: str, owner: type | None = None,
    ) -> None:  # fmt: skip
        super().__init__(node, params, returns or NONE, file, entries.overloads, {})
        self.compiler, self.names, self.owner = compiler, names, owner
        self.qualified = name
        self.inferred: Type | None = returns
        self.statics: dict[str, Expr] = {}
        self.mixed: dict[str, str] = {}
        self.annotated_later: dict[str, Type] = {}  # by `x: T` without a value
        self.fields: dict[str, tuple[str, ...]] = {}  # names of the parts of variables

    def compile(self) -> Function:
        """The whole function."""
        self.env = {p.name: (p.type.plain(), p.type.plain()) for p in self.params}
        inputs = [self.out.value(p.type.plain(), p.name) for p in self.params]
        body, after, _ = self.block(self.node.body, self.env, inputs)
        returns = self.inferred or NONE
        if after is not None and returns != NONE and not returns.optional and returns != ANY:
            self.fail(f"{self.node.name}: a path ends without return of {returns}", self.node)
        if self.out.joins:
            prune(body, set())
        made = Function(
            body.inputs, body.nodes, (), self.qualified, self.params, returns, self.file,
            self.node.lineno,
        )  # fmt: skip
        return renumbered(made)

    # -- blocks -----------------------------------------------------------------------------------

    def block(
        self, nodes: Sequence[ast.stmt], env: Env, inputs: Sequence[Value] = (), enter: Any = None
    ) -> tuple[Block, Env | None, dict[str, Value]]:
        outer, self.env = self.env, dict(env)
        statics, self.statics = self.statics, dict(self.statics)
        with self.out.nested(inputs) as block:
            if enter is not None:
                enter()
            for node in nodes:
                if block.ended:
                    break  # never reached
                self.stmt(node)
            values = self.out.values
        after = None if block.ended else self.env
        self.env = outer
        kept = {k: v for k, v in self.statics.items() if k in statics and v is statics[k]}
        self.statics = {k: v for k, v in statics.items() if k in kept}
        return block, after, values

    # -- assignment -------------------------------------------------------------------------------

    def assign(
        self, name: str, value: Expr, node: ast.stmt | ast.expr, annotated: Type | None = None
    ) -> None:
        if value.op == "static" and annotated is None:
            if name in self.env:
                self.fail(f"{name!r} is a variable; a Python object needs another name", node)
            self.statics[name] = value
            return
        value = self.value(value, node)
        self.statics.pop(name, None)
        if annotated is None and name not in self.env:
            annotated = self.annotated_later.get(name)
        if annotated is None and name not in self.env:
            annotated_type = None
            if value.type == EMPTY_LIST:
                annotated_type = list_of(TENSOR)
            elif value.type == EMPTY_DICT:
                annotated_type = dict_of(STR, TENSOR)
            declared = annotated_type or value.type.plain()
        elif annotated is not None:
            declared = annotated.plain()
            if name in self.env and self.is_carried(name) and self.env[name][0] != declared:
                self.fail(f"{name!r} was {self.env[name][0]} before the loop, now {declared}", node)
        else:
            declared = self.env[name][0]
            if cost(value, declared) is None or (
                declared.base == "float" and value.type == INT
            ):  # rebound: to another type, where no other path sees it
                declared = self.rebound(name, declared, value, node)
        self.fields[name] = self.fields_of(value)
        placed = self.out.place(self.as_type(value, declared, node, name))
        current = declared
        if declared.optional or declared.base in ("Union", "Any"):
            current = NONE if value.type == NONE else value.type
            if value.type.base in ("EmptyList", "EmptyDict") or (
                current.is_list and declared.required().is_list
            ):
                current = declared.required()
            if cost(Expr("read", (), current), declared) is None:
                current = declared
        self.declared[name] = declared
        self.env[name] = (declared, current)
        self.out.bind(name, declared, placed, node.lineno)

    def is_carried(self, name: str) -> bool:
        return any(name in loop.carried for loop in self.loops)

    def rebound(self, name: str, declared: Type, value: Expr, node: ast.AST) -> Type:
        """The type of a variable that gets a value of another type."""
        t = value.type.plain()
        if t in (EMPTY_LIST, EMPTY_DICT):
            self.fail(f"{name!r} is {declared}, got an empty list or dict", node)
        if self.is_carried(name):
            if declared.base == "float" and t == INT:
                return declared
            self.fail(
                f"{name!r} is {declared} before the loop and {t} in it; "
                f"annotate it where it is first assigned, or use another name", node,
            )  # fmt: skip
        return t

    def _stmt_assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            if isinstance(node.value, ast.Tuple) and not any(
                isinstance(e, ast.Starred) for e in (*node.targets[0].elts, *node.value.elts)
            ):
                return self.assign_pairs(node, node.targets[0], node.value)
        value = self.expr(node.value)
        if len(node.targets) > 1 and value.op not in ("const", "read", "static"):
            value = self.once(node, value)
        for target in node.targets:
            self.assign_to(target, value, node)

    def once(self, node: ast.stmt, value: Expr) -> Expr:
        """The value, computed here once."""
        value = self.value(value, node)
        return Expr("placed", (), value.type, self.out.place(value), node.lineno)

    def assign_pairs(self, node: ast.Assign, target: Any, value: ast.Tuple) -> None:
        """`a, b = x, y`: all values first."""
        if len(target.elts) != len(value.elts):
            self.fail(f"{len(target.elts)} targets for {len(value.elts)} values", node)
        values = [self.expr(v) for v in value.elts]
        values = [v if v.op in ("static", "const") else self.once(node, v) for v in values]
        for t, v in zip(target.elts, values, strict=True):
            self.assign_to(t, v, node)

    def assign_to(self, target: ast.expr, value: Expr, node: ast.stmt) -> None:
        """The value to a name, attribute, item, or names that it is unpacked into."""
        if isinstance(target, ast.Name):
            self.assign(target.id, value, node)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(target, self.value(value, node), node)
        elif isinstance(target, ast.Subscript):
            self.set_item_to(target, self.value(value, node), node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack_to(target, value, node)
        else:
            self.fail("cannot be assigned", target)

    def unpack_to(self, target: ast.Tuple | ast.List, value: Expr, node: ast.stmt) -> None:
        if value.op == "static" and isinstance(value.attr, Items):
            parts = list(value.attr.values)
        else:
            value = self.value(value, node)
            items = None
            if "." in value.type.base and not value.type.optional:
                items = self.compiler.tuple_items(value.type)
                if items is not None:
                    value = self.as_tuple(node, value, items)
            if value.type.base == "Tuple" and not value.type.optional:
                if value.op not in ("placed", "read", "tuple"):
                    value = self.once(node, value)
                parts = self.parts(node, value)
            else:
                parts = self.list_parts(target, value, node)
        stars = [i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)]
        if stars:
            at, after = stars[0], len(target.elts) - stars[0] - 1
            if len(stars) > 1 or len(parts) < at + after:
                self.fail(f"cannot unpack {len(parts)} values", node)
            middle = parts[at : len(parts) - after]
            rest = self.make(node, "list", middle, list_of(middle[0].type if middle else TENSOR))
            star = target.elts[at]
            assert isinstance(star, ast.Starred)
            targets = [*target.elts[:at], star.value, *target.elts[at + 1 :]]
            parts = [*parts[:at], rest, *parts[len(parts) - after :]]
        else:
            targets = list(target.elts)
        if len(parts) != len(targets):
            self.fail(f"{len(targets)} names for {len(parts)} values", node)
        parts = [p if p.op in ("static", "const") else self.once(node, p) for p in parts]
        for t, p in zip(targets, parts, strict=True):
            self.assign_to(t, p, node)

    def list_parts(self, target: Any, value: Expr, node: ast.stmt) -> list[Expr]:
        """The items of a list or of a tensor's first dimension, their number checked."""
        if value.type == TENSOR:
            value = self.call_op(node, "unbind", [value], {})
        if not value.type.is_list or value.type.optional:
            self.fail(f"cannot unpack {value.type}", node)
        if any(isinstance(e, ast.Starred) for e in target.elts):
            self.fail("`*` among targets takes a tuple", node)
        t = value.type.element
        outs = [self.out.value(t.plain()) for _ in target.elts]
        self.out.add("core.unpack", (self.out.place(value),), outs, node.lineno)
        return [Expr("placed", (), v.type, v, node.lineno) for v in outs]  # type: ignore[arg-type]

    def set_attribute(self, target: ast.Attribute, value: Expr, node: ast.stmt) -> None:
        owner = self.expr(target.value)
        if owner.type == TENSOR:
            if target.attr in ("grad", "requires_grad", "data"):
                name = self.make(node, "const", (), STR, target.attr)
                self.out.place(self.core(node, "setattr", (owner, name, value), NONE))
                return
            self.fail(f"attribute {target.attr!r} of a Tensor cannot be assigned", node)
        if "." not in owner.type.base or owner.type.optional:
            self.fail(f"attributes of {owner.type} cannot be assigned", node)
        setter = self.compiler.setter(owner.type, target.attr, self, node)
        if setter is not None:
            self.out.place(self.call_signature(node, setter, [owner, value], {}))
            return
        t = self.compiler.attribute_to_set(owner.type, target.attr, value, self, node)
        value = self.as_type(value, t, node, f".{target.attr}")
        name = self.make(node, "const", (), STR, target.attr)
        self.out.place(self.core(node, "setattr", (owner, name, value), NONE))

    def set_item_to(self, target: ast.Subscript, value: Expr, node: ast.stmt) -> None:
        box = self.plain(target.value)
        if box.type == TENSOR:
            if value.type != TENSOR and value.type.base not in ("int", "float", "bool", "Number",
                                                                "complex"):  # fmt: skip
                self.fail(f"items of a tensor: expected Tensor or a number, got {value.type}", node)
            self.out.place(self.core(node, "set_item", (box, value, *self.key(target.slice)), NONE))
        elif box.type.base == "Dict":
            key = self.as_type(self.plain(target.slice), box.type.items[0], node, "key")
            item = self.as_type(value, box.type.items[1], node, "item")
            self.out.place(self.core(node, "setitem", (box, key, item), NONE))
        elif box.type.is_list and isinstance(target.slice, ast.Slice):
            none = self.make(node, "const", (), NONE, None)
            s = target.slice
            ends = [self.typed(e, INT, "slice") if e else none for e in (s.lower, s.upper, s.step)]
            value = self.as_type(value, box.type, node, "items")
            self.out.place(self.core(node, "setslice", (box, value, *ends), NONE))
        elif box.type.is_list:
            i = self.typed(target.slice, INT, "index")
            item = self.as_type(value, box.type.element, node, "item")
            self.out.place(self.core(node, "setitem", (box, i, item), NONE))
        elif self.compiler.has_method(box.type, "__setitem__"):
            args = [self.plain(target.slice), value]
            self.out.place(self.call_method_of(node, box, "__setitem__", args, {}))
        else:
            self.fail(f"items of {box.type} cannot be assigned", node)

    def _stmt_annassign(self, node: ast.AnnAssign) -> None:
        t = self.annotation(ast.unparse(node.annotation), node)
        if isinstance(node.target, ast.Attribute):
            if node.value is None:
                return
            owner = self.expr(node.target.value)
            if "." in owner.type.base:
                self.compiler.declare_attribute(owner.type, node.target.attr, t, self, node)
            value = self.as_type(self.plain(node.value), t, node, f".{node.target.attr}")
            return self.set_attribute(node.target, value, node)
        if not isinstance(node.target, ast.Name):
            self.fail("an annotation stands on a variable or an attribute", node)
        if node.value is None:
            self.annotated_later[node.target.id] = t
            return None
        return self.assign(node.target.id, self.expr(node.value), node, t)

    def _stmt_augassign(self, node: ast.AugAssign) -> None:
        text, op = ARITHMETIC[type(node.op)]
        load = self.loaded(node.target)
        old, value = self.plain(load), self.plain(node.value)
        if old.type == TENSOR:
            method = {"+": "add_", "-": "sub_", "*": "mul_", "/": "div_", "//": "floor_divide_",
                      "%": "remainder_", "**": "pow_", "&": "bitwise_and_", "|": "bitwise_or_",
                      "^": "bitwise_xor_", "<<": "bitwise_left_shift_",
                      ">>": "bitwise_right_shift_"}.get(text)  # fmt: skip
            if method is None:
                made = self.binary(node, text, op, old, value)
                return self.assign_to(node.target, made, node)
            if isinstance(node.target, ast.Subscript):
                self.out.place(
                    self.core(
                        node, "update_item",
                        (self.plain(node.target.value), self.make(node, "const", (), STR, method),
                         value, *self.key(node.target.slice)), NONE,
                    )
                )  # fmt: skip
                return None
            made = self.call_on_tensor(node, old, method, [value], {})
            if isinstance(node.target, ast.Name):
                return self.assign(node.target.id, made, node)
            self.out.place(made)
            return None
        if text == "+" and old.type.is_list and not old.type.optional:
            more = self.as_sequence(self._as_list(value, node), node)
            if cost(more, old.type) is None:
                self.fail(f"+=: expected {old.type}, got {more.type}", node)
            self.out.place(self.core(node, "extend", (old, convert(more, old.type)), NONE))
            return None
        if "." in old.type.base:
            name = {"+": "__iadd__", "-": "__isub__", "*": "__imul__", "/": "__itruediv__"}
            found = self.operator_method(node, name.get(text, ""), old, value)
            if found is not None:
                return self.assign_to(node.target, found, node)
        made = self.binary(node, text, op, old, value)
        return self.assign_to(node.target, made, node)

    def loaded(self, target: ast.expr) -> ast.expr:
        """The target of an assignment as what is read."""
        match target:
            case ast.Name(id=name):
                return ast.copy_location(ast.Name(name, ast.Load()), target)
            case ast.Attribute(value=value, attr=attr):
                return ast.copy_location(ast.Attribute(value, attr, ast.Load()), target)
            case ast.Subscript(value=value, slice=index):
                return ast.copy_location(ast.Subscript(value, index, ast.Load()), target)
        self.fail("cannot be changed", target)

    def _stmt_delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self.env:
                del self.env[target.id]
                self.mixed[target.id] = "it was deleted"
            elif isinstance(target, ast.Subscript):
                box = self.plain(target.value)
                if box.type.base != "Dict" and not box.type.is_list:
                    self.fail(f"items of {box.type} cannot be deleted", node)
                t = box.type.items[0] if box.type.base == "Dict" else INT
                key = self.as_type(self.plain(target.slice), t, node, "key")
                self.out.place(self.core(node, "delitem", (box, key), NONE))
            else:
                self.fail("cannot be deleted", node)

    # -- control ----------------------------------------------------------------------------------

    def _stmt_if(self, node: ast.If) -> None:
        test = self.condition(node.test)
        if test.op == "const":
            facts = self.facts(node.test, bool(test.attr))
            for name, t in facts.items():
                if name in self.env:
                    self.env[name] = (self.env[name][0], t)
            for inner in node.body if test.attr else node.orelse:
                if self.out.nodes and Block((), self.out.nodes).ended:
                    break
                self.stmt(inner)
            return
        condition = self.out.place(test)
        before = dict(self.env)
        sides = []
        for body, truth in ((node.body, True), (node.orelse, False)):
            env = dict(before)
            for name, t in self.facts(node.test, truth).items():
                if name in env:
                    env[name] = (env[name][0], t)
            sides.append(self.block(body, env))
        self.env = self.met(sides[0][1], sides[1][1]) or self.env
        arriving = [(b, values) for b, after, values in sides if after is not None]
        outs = self.joined(arriving) if arriving else ()
        self.out.add("if", (condition,), outs, node.lineno, [b for b, _, _ in sides])

    def joined(self, arriving: Any) -> tuple[Value, ...]:
        """What leaves blocks: variables that have another value after them, of their joint type."""
        outs = self.out.joined(arriving, self.env)
        for v in outs:
            v.type = self.env[v.name][0]
        return outs

    def met(self, a: Env | None, b: Env | None) -> Env | None:
        """What holds where two paths meet; a variable of two types gets their common one."""
        out = merge(a, b)
        if a is None or b is None or out is None:
            return out
        for name in a.keys() & b.keys():
            if name in out:
                now = self.common(a[name][1], b[name][1])
                if (
                    now is not None
                    and now != out[name][1]
                    and cost(Expr("read", (), now), out[name][0]) is not None
                ):
                    out[name] = (out[name][0], now)
                continue
            s, t = a[name][0], b[name][0]
            both = self.common(s, t)
            if both is None or both in (Type("float"), Type("Number"), INT):
                self.mixed[name] = f"{s} and {t}"
            else:
                out[name] = (both, both)
                self.declared[name] = both
        return {k: out[k] for k in sorted(out, key=list({**a, **b}).index)}

    def _stmt_for(self, node: ast.For) -> None:
        if node.orelse:
            self.fail("`else` of a loop is not part of scripts", node)
        known = self.static_items(node.iter)
        if known is not None:
            return self.unrolled_loop(node, known)
        over, args, types_ = self.flat_iterable(node.iter)
        shape = self.shape

        def enter(items: Sequence[Value]) -> None:
            left = iter(items)

            def build(s: Any) -> Expr:
                if s is None:
                    v = next(left)
                    return Expr("placed", (), v.type, v, node.lineno)  # type: ignore[arg-type]
                parts = [build(x) for x in s]
                return self.make(
                    node, "tuple", parts, Type("Tuple", items=tuple(p.type for p in parts))
                )

            self.assign_to(node.target, build(shape), node)

        self._loop(node, over, args, [""] * len(types_), types_, enter=enter)
        return None

    def unrolled_loop(self, node: ast.For, known: Items) -> None:
        """A loop over modules, or over a tuple: its body once for each."""
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Break, ast.Continue)) and self.belongs(inner, node):
                self.fail("break and continue in a loop over modules or a tuple", inner)
        for value in known.values:
            if isinstance(node.target, ast.Name):
                if value.op == "static" or "." in value.type.base:
                    self.env.pop(node.target.id, None)
                    self.statics[node.target.id] = value
                else:
                    self.assign(node.target.id, value, node)
            else:
                self.unpack_static(node.target, value, node)
            for inner in node.body:
                if self.out.nodes and Block((), self.out.nodes).ended:
                    return
                self.stmt(inner)

    def unpack_static(self, target: ast.expr, value: Expr, node: ast.For) -> None:
        parts = (
            value.attr.values if value.op == "static" and isinstance(value.attr, Items)
            else self.parts(node, value)
        )  # fmt: skip
        assert isinstance(target, (ast.Tuple, ast.List))
        if len(parts) != len(target.elts):
            self.fail(f"{len(target.elts)} names for {len(parts)} values", node)
        for t, p in zip(target.elts, parts, strict=True):
            if isinstance(t, ast.Name) and (p.op == "static" or "." in p.type.base):
                self.env.pop(t.id, None)
                self.statics[t.id] = p
            elif isinstance(t, (ast.Tuple, ast.List)):
                self.unpack_static(t, p, node)
            else:
                self.assign_to(t, p, node)

    def belongs(self, jump: ast.AST, loop: ast.For) -> bool:
        """A jump of this loop, not of one inside of it."""
        inner = [n for n in ast.walk(loop) if isinstance(n, (ast.For, ast.While)) and n is not loop]
        return not any(jump in ast.walk(n) for n in inner)

    def _stmt_with(self, node: ast.With) -> None:
        item, rest = node.items[0], node.items[1:]
        body = node.body
        if rest:
            body = [ast.copy_location(ast.With(rest, node.body), node)]
        kind, args, entered = self.context(item.context_expr)
        placed = tuple(self.out.place(a) for a in args)

        def enter() -> None:
            if item.optional_vars is None:
                return
            if entered is None:
                self.fail(f"{kind} gives no value", node)
            v = self.out.value(entered)
            self.out.add("core.entered", (), (v,), node.lineno)
            self.assign_to(item.optional_vars, Expr("placed", (), entered, v, node.lineno), node)

        made, after, values = self.block(body, self.env, (), enter)
        self.env = after or self.env
        outs = self.joined([(made, values)]) if after is not None else ()
        self.out.add("with", (kind, placed), outs, node.lineno, (made,))

    def context(self, node: ast.expr) -> tuple[str, list[Expr], Type | None]:
        """What is entered: its kind, operands, and the type of what `as` gets."""
        if isinstance(node, ast.Call):
            callee = self.expr(node.func)
            if callee.op == "static":
                for kind in CONTEXTS:
                    if callee.attr is context(kind):
                        args, kwargs = self._arguments(node)
                        names = self.make(node, "const", (), STR, ",".join(kwargs))
                        return kind, [names, *args, *kwargs.values()], None
        e = self.plain(node)
        if "." not in e.type.base or not self.compiler.has_method(e.type, "__exit__"):
            self.fail(f"with: expected a context manager, got {e.type}", node)
        made = self.compiler.method(e.type, "__enter__", node, self)
        self.compiler.method(e.type, "__exit__", node, self)
        return "object", [e], made.returns

    def _stmt_return(self, node: ast.Return) -> None:
        if node.value is None:
            value = self.make(node, "const", (), NONE, None)
        else:
            value = self.plain(node.value)
        if self.inferred is None:
            t = value.type
            if t == EMPTY_LIST:
                t = list_of(TENSOR)
            if t == EMPTY_DICT:
                t = dict_of(STR, TENSOR)
            self.inferred = self.pending = t.plain()
        elif self.pending is not None and cost(value, self.inferred) is None:
            both = self.common(self.inferred, value.type)
            if both is None:
                both = union_of([self.inferred, value.type])
            self.inferred = self.pending = both
        if self.inferred == NONE and value.type == NONE:
            self.effect("return", node, *(() if node.value is None else (None,)))
            return
        value = self.as_type(value, self.inferred, node, "return")
        self.effect("return", node, self.out.place(value))

    pending: Type | None = None

    def _stmt_raise(self, node: ast.Raise) -> None:
        exc = node.exc
        if exc is None:
            self.fail("raise takes an exception", node)
        call = exc if isinstance(exc, ast.Call) else None
        found = self.expr(call.func if call else exc)
        if found.op != "static" or not (
            isinstance(found.attr, type) and issubclass(found.attr, BaseException)
        ):
            self.fail("raise takes an exception", node)
        cls = found.attr
        known = cls.__name__ if getattr(builtins, cls.__name__, None) is cls else ""
        name = known or self.compiler.error_class(cls)
        args = [self.plain(a) for a in call.args] if call else []
        parts = [self.core(node, "str", (a,), STR) if a.type != STR else a for a in args]
        if not parts:
            text = self.make(node, "const", (), STR, "")
        elif len(parts) == 1:
            text = parts[0]
        else:
            head = self.make(node, "const", (), STR, "(" + ", ".join(["{!r}"] * len(args)) + ")")
            text = self.core(node, "format", (head, *args), STR)
        self.effect("raise", node, name, self.out.place(text))

    def refuse(self, node: ast.AST, kind: str, message: ast.expr) -> None:
        e = self.plain(message)
        text = e if e.type == STR else self.core(node, "str", (e,), STR)
        self.effect("raise", node, f"{kind}Error", self.out.place(text))

    def _stmt_assert(self, node: ast.Assert) -> None:
        message = node.msg or ast.copy_location(ast.Constant(""), node)
        test = self.condition(node.test)
        if test.op == "const":
            if not test.attr:
                self.refuse(node, "Assertion", message)
            return
        condition = self.out.place(test)
        with self.out.nested() as otherwise:
            self.refuse(node, "Assertion", message)
        self.out.add("if", (condition,), (), node.lineno, (Block(), otherwise))
        for name, t in self.facts(node.test, True).items():
            if name in self.env:
                self.env[name] = (self.env[name][0], t)

    def _stmt_expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring, or `...`
        value = self.expr(node.value)
        if value.op == "static" or value.op in ("const", "read"):
            return
        arg: Arg = self.out.place(value)
        if isinstance(arg, Value) and self.out.nodes:
            self.out.nodes[-1].where = self.out.where(node.lineno)

    def _stmt_functiondef(self, node: ast.FunctionDef) -> None:
        self.fail("a function inside of a function cannot be scripted; define it outside", node)

    def _stmt_import(self, node: ast.stmt) -> None:
        self.fail("import inside of a script; import at the top of the file", node)

    def _stmt_importfrom(self, node: ast.ImportFrom) -> None:
        """Modules of the package import each other where they are used."""
        if not ours(self.file) or node.level or node.module is None:
            return self._stmt_import(node)
        for name in node.names:
            found = getattr(importlib.import_module(node.module), name.name)
            self.assign(name.asname or name.name, static(found), node)
        return None

    def _stmt_try(self, node: ast.Try) -> None:
        self.fail("try is not part of scripts; test before, or mark the caller @jit.ignore", node)

    def _stmt_global(self, node: ast.stmt) -> None:
        self.fail("global variables cannot be assigned in a script; return the value", node)

    _stmt_nonlocal = _stmt_global

    # -- attributes of classes --------------------------------------------------------------------

    def class_attribute(self, node: ast.AST, value: Expr, name: str) -> Expr:
        return self.compiler.attribute(value, name, node, self)


__all__ = ["CONTEXTS", "STATIC", "CompileError", "ScriptTyper", "context"]
