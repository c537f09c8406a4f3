"""Calls in scripts: what is called, and how its arguments are bound.

Owns the look-up of the table by public names, functions and classes of the program, methods of
values, built-ins. Forms of expressions are `expressions`'.
"""

from __future__ import annotations

import ast
import builtins
import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import flambeau

from .._ir.coerce import EMPTY_LIST, cost
from .._ir.errors import CompileError
from .._ir.typed import Callee, Expr
from .._ir.types import BOOL, INT, NUMBER, STR, TENSOR, Param, Type, list_of, tuple_of
from .._table import added, entries
from .._table.fronts import Form, Group
from . import signatures
from .annotations import ANY, EMPTY_DICT
from .iteration import ScriptIteration
from .made import qualified
from .meaning import Items, Method, Super, is_enum, is_named_tuple, static
from .signatures import Entry

_DROPPED = ("layout", "pin_memory", "requires_grad", "size_average", "reduce")


@dataclass(eq=False)
class Public:
    """One signature of a public function or method: its parameters, and the entry they go to."""

    name: str
    params: list[Param]
    returns: Type
    form: Form
    chosen: Form | None = None  # what a flag, the last parameter, calls instead


@cache
def signatures_of(group: Group, methods: bool) -> tuple[Public, ...]:
    """The signatures of a name; the front's, where functions have one, stand for all."""
    front = None if methods else group.front
    if front is not None:
        form = group.functions[0]
        return (Public(group.name, front.params, _returns(form), form, front.chosen),)
    forms = group.methods if methods else group.functions
    return tuple(Public(group.name, f.params, _returns(f), f) for f in forms)


def _returns(form: Form) -> Type:
    if form.inplace:
        return TENSOR
    asked = form.op.option("asked")
    if asked:  # results that a flag asks for are left out without it
        kept = [t for t, flag in zip(form.op.outputs, asked, strict=True) if not flag]
        return kept[0] if len(kept) == 1 else tuple_of(*kept)
    return form.op.returns


@cache
def space(name: str) -> Any:
    """A module below the package."""
    found: Any = flambeau
    for part in name.split(".") if name else ():
        found = getattr(found, part)
    return found


@cache
def group_of(function: Any) -> Group | None:
    """The group of the table that a function of the package belongs to."""
    name = getattr(function, "__name__", "")
    for g in entries.public(name):
        for s in g.spaces:
            if getattr(space(s), g.name, None) is function or (
                getattr(space(s), name, None) is function
            ):
                return g
        for a in g.aliases:
            where, _, last = a.rpartition(".")
            if last == name and getattr(space(where), last, None) is function:
                return g
    return None


@cache
def library() -> dict[int, str]:
    """Functions of the package in Python, by identity: their places."""
    out: dict[int, str] = {}
    for place in signatures.table(signatures.LIBRARY, "lib."):
        if place in signatures.WRITTEN_OUT:
            continue
        where, _, name = place.rpartition(".")
        out[id(getattr(space(where), name))] = place
    return out


class ScriptCalls(ScriptIteration):
    """Types calls."""

    def _call(self, node: ast.Call) -> Expr:
        func = node.func
        if isinstance(func, ast.Attribute):
            owner = self.expr(func.value)
            if owner.op == "static":
                callee = self.static_attribute(func, owner, func.attr)
            elif "." in owner.type.base:
                return self.call_on_class(node, owner, func.attr)
            else:
                return self.call_on_value(node, owner, func.attr)
        elif isinstance(func, ast.Name) and func.id == "super" and "super" not in self.env:
            return self.super_()
        else:
            callee = self.expr(func)
        if callee.op != "static":
            if "." in callee.type.base:
                return self.call_on_class(node, callee, "__call__")
            self.fail(f"{callee.type} cannot be called", node)
        return self.call_static(node, callee.attr)

    def super_(self) -> Expr:
        if self.owner is None:
            self.fail("super() outside of a class", self.node)
        first = Expr("read", (), self.env[self.params[0].name][0], self.params[0].name)
        return static(Super(first, self.owner))

    owner: type | None = None

    # -- arguments --------------------------------------------------------------------------------

    def _arguments(self, node: ast.Call) -> tuple[list[Expr], dict[str, Expr]]:
        args = self.spread(node.args)
        kwargs: dict[str, Expr] = {}
        for k in node.keywords:
            if k.arg is None:
                self.fail("`**` in a call is not part of scripts; name the arguments", node)
            kwargs[k.arg] = self.plain(k.value)
        return args, kwargs

    def _resolve(
        self,
        node: ast.AST,
        entries: Sequence[Any],
        args: list[Expr],
        kwargs: dict[str, Expr],
        wrap: bool = False,
    ) -> tuple[Any, tuple[Expr, ...]]:
        target, full = super()._resolve(node, entries, args, kwargs, wrap)
        return target, tuple(map(_plain_number, full))

    def _default(self, p: Param, value: ast.expr) -> Expr:
        outer, self.in_default = self.in_default, not isinstance(value, Given)
        env, self.env = self.env, {}
        try:
            return self.expr(value)
        finally:
            self.env, self.in_default = env, outer

    def _given(self, node: Given) -> Expr:
        if isinstance(node.value, list) and not node.value:
            return self.make(node, "list", (), EMPTY_LIST)
        if isinstance(node.value, dict) and not node.value:
            return self.make(node, "dict", (), EMPTY_DICT)
        return self.value(self.meaning(node.value, node), node)

    # -- what is called ---------------------------------------------------------------------------

    def call_static(self, node: ast.Call, obj: Any) -> Expr:
        """A call of a Python object."""
        special = self.built_in(obj)
        if special is not None:
            return special(self, node)
        if isinstance(obj, tuple):  # a method of modules known one by one
            return self.call_items(node, *obj)
        if isinstance(obj, Method):
            args, kwargs = self._arguments(node)
            return self.call_method_of(node, obj.owner, obj.name, args, kwargs)
        if isinstance(obj, type):
            return self.call_class(node, obj)
        place = library().get(id(obj))
        if place:
            found = signatures.table(signatures.LIBRARY, "lib.")[place]
            return self.call_entries(node, found, *self._arguments(node))
        operators = added.overloads(obj)
        if operators:
            for o in operators:
                self.compiler.know(o)
            known = [Entry(o.name, o.uid, tuple(o.params), o.returns) for o in operators]
            return self.call_entries(node, known, *self._arguments(node))
        if isinstance(obj, (types.BuiltinFunctionType, types.MethodDescriptorType)):
            return self.call_builtin(node, obj)
        if hasattr(obj, "_function_name"):
            if getattr(obj, "_constants", None):
                self.fail(f"{obj.name} is a trace that holds tensors; trace a module of it", node)
            made = self.compiler.script(obj)
            return self.call_signature(node, made, *self._arguments(node))
        if isinstance(obj, types.FunctionType):
            if getattr(obj, "_torchscript_modifier", None) is not None or hasattr(
                obj, "_script_modifier"
            ):
                return self.call_left_to_python(node, obj)
            args, kwargs = self.compiler.packed(obj, *self._arguments(node), 0, node.lineno)
            made = self.compiler.function(obj, node, self, (args, kwargs))
            return self.call_signature(node, made, args, kwargs)
        name = getattr(obj, "__name__", None) or type(obj).__name__
        self.fail(f"{name} (a Python {type(obj).__name__}) cannot be called in a script", node)

    def built_in(self, obj: Any) -> Callable[[Any, ast.Call], Expr] | None:
        """How a call of a function that has more than a signature is typed."""
        raise NotImplementedError

    def call_left_to_python(self, node: ast.Call, obj: Any) -> Expr:
        kind = obj._script_modifier
        if kind == "unused":
            returns = self.compiler.declared(obj, node, self).returns
            message = f"{obj.__name__} is marked as unused: scripts cannot call it"
            name = self.compiler.name_for(qualified(obj), obj)
            made = self.compiler.raising(name, message, returns, node.lineno)
            return self.call_signature(node, made, [], {})
        made = self.compiler.ignored(obj, node, self)
        return self.call_signature(node, made, *self._arguments(node))

    def call_signature(
        self, node: ast.AST, made: Any, args: list[Expr], kwargs: dict[str, Expr]
    ) -> Expr:
        """A call of a function of the unit."""
        _, full = self._resolve(node, [made], args, kwargs)
        return self.make(node, "call", full, made.returns, Callee(made))

    def call_entries(
        self, node: ast.AST, found: Sequence[Entry], args: list[Expr], kwargs: dict[str, Expr],
        first: Expr | None = None,
    ) -> Expr:  # fmt: skip
        """A call of one of several signatures, type variables bound by what is given."""
        given = args if first is None else [first, *args]
        if found[0].star:
            t = found[0].params[0].type.element
            parts = [self.as_type(a, t, node, found[0].name) for a in given]
            packed = self.make(node, "list", parts, list_of(t))
            return self.make(node, "core", (packed,), found[0].returns, found[0].target)
        known = [e.of(self.bound(e, given, kwargs)) for e in found]
        target, full = self._resolve(node, known, given, kwargs)
        return self.target(node, target, full)

    def target(self, node: ast.AST, entry: Entry, full: Sequence[Expr]) -> Expr:
        if entry.target.startswith("core."):
            return self.core(node, entry.target[5:], full, entry.returns)
        return self.make(node, "call", full, entry.returns, _Library(entry.target))

    def bound(self, e: Entry, given: Sequence[Expr], kwargs: dict[str, Expr]) -> dict[str, Type]:
        out: dict[str, Type] = {}
        pairs = list(zip(e.params, given, strict=False))
        pairs += [(p, kwargs[p.name]) for p in e.params if p.name in kwargs]
        for p, a in pairs:
            _match(p.type, a.type, out)
        return out

    def call_builtin(self, node: ast.Call, obj: Any) -> Expr:
        """A call of a function of C: of `math`, of the table, or a built-in."""
        if getattr(obj, "__self__", None) is math:
            found = signatures.table(signatures.MATH, "core.math_").get(str(obj.__name__))
            if found:
                args, kwargs = self._arguments(node)
                args = [_item_of(self, node, a) for a in args]
                return self.call_entries(node, found, args, kwargs)
        group, name = group_of(obj), str(obj.__name__)
        if group is not None:
            return self.call_public(node, signatures_of(group, False), *self._arguments(node))
        found = signatures.table(signatures.BUILTINS, "core.").get(name)
        if found and getattr(builtins, name, None) is obj:
            args, kwargs = self._arguments(node)
            if args and args[0].type == TENSOR and entries.public(name):
                return self.call_on_tensor(node, args[0], name, args[1:], kwargs)
            if args:
                args[0] = self.as_sequence(args[0], node) if _alike(args[0]) else args[0]
            return self.call_entries(node, found, args, kwargs)
        self.fail(f"{name} cannot be called in a script", node)

    def call_public(
        self, node: ast.AST, known: Sequence[Public], args: list[Expr], kwargs: dict[str, Expr]
    ) -> Expr:
        """A call of a function or method of the table by its public name."""
        names = {p.name for k in known for p in k.params}
        for name in _DROPPED:
            if name in kwargs and name not in names:
                self.check_dropped(node, name, kwargs.pop(name))
        renamed = {"axis": "dim", "keepdims": "keepdim"}
        for old, new in renamed.items():
            if old in kwargs and old not in names and new in names:
                kwargs[new] = kwargs.pop(old)
        if "out" in kwargs and "out" not in names:
            return self.call_into(node, known, args, kwargs)
        try:
            target, full = self._resolve(node, known, args, kwargs)
        except CompileError as error:
            packed = self.packed(node, known, args)
            if packed is None:
                if any(a.type == NUMBER for a in args):
                    target, full = self._resolve(node, known, args, kwargs, wrap=True)
                else:
                    raise error
            else:
                try:
                    target, full = self._resolve(node, known, packed, kwargs)
                except CompileError:
                    raise error from None
        return self.called(node, target, full)

    def call_into(
        self, node: ast.AST, known: Sequence[Public], args: list[Expr], kwargs: dict[str, Expr]
    ) -> Expr:
        """A call whose result goes into the tensor `out`."""
        out = kwargs.pop("out")
        made = self.call_public(node, known, args, kwargs)
        if out.absent:
            return made
        if not any(k.form.has_out for k in known) or made.type != TENSOR:
            self.fail(f"{known[0].name} takes no out= in scripts; use the in-place form", node)
        if out.type != TENSOR:
            self.fail(f"out= is expected to be a Tensor, got {out.type}", node)
        return self.core(node, "into", (made, out), TENSOR)

    def packed(self, node: ast.AST, known: Sequence[Public], args: list[Expr]) -> list[Expr] | None:
        """Several ints at the end, or `*sizes`, as the one list that a signature takes."""
        for k in known:
            for at, p in enumerate(k.params):
                if p.type.base not in ("Ints", "Tensors") or at > len(args) or p.kwonly:
                    continue
                item = p.type.element
                rest = args[at:]
                if all(cost(a, item) is not None for a in rest):
                    return [*args[:at], self.make(node, "list", rest, list_of(item))]
                if len(rest) == 1 and rest[0].op == "tuple":
                    return [*args[:at], self.make(node, "list", rest[0].args, list_of(item))]
                if len(rest) == 1 and rest[0].type.base == "Tuple":
                    parts = self.parts(node, rest[0])
                    if all(cost(a, item) is not None for a in parts):
                        return [*args[:at], self.make(node, "list", parts, list_of(item))]
        return None

    def check_dropped(self, node: ast.AST, name: str, e: Expr) -> None:
        fine = (
            e.absent
            or e.op == "const"
            and (not e.attr or (name == "layout" and e.attr == flambeau.strided))
        )
        if not fine:
            self.fail(f"{name}= is not part of scripts here", node)

    def called(self, node: ast.AST, target: Public, full: Sequence[Expr]) -> Expr:
        """The node of a public signature: arguments in the order of the entry."""
        form = target.form
        given = dict(zip((p.name for p in target.params), full, strict=True))
        for name in ("size_average", "reduce"):
            if name in given and name not in {p.name for p in form.op.params}:
                self.check_dropped(node, name, given.pop(name))
        args = [given[p.name] for p in form.op.params if p.name in given]
        plain = self.make(node, "call", args, target.returns, Callee(form.op, form.inplace))
        if target.chosen is None:
            return plain
        flag = given[target.params[-1].name]
        other = target.chosen
        names = [p.name for p in other.op.params]
        chosen = self.make(
            node,
            "call",
            [given[n] for n in names],
            _returns(other),
            Callee(other.op, other.inplace),
        )
        if flag.op == "const":
            return chosen if flag.attr else plain
        if chosen.type != plain.type:
            self.fail(f"{target.params[-1].name}= must be a literal: it decides the type", node)
        return self.make(node, "if", (flag, chosen, plain), plain.type)

    # -- methods ----------------------------------------------------------------------------------

    def call_on_value(self, node: ast.Call, owner: Expr, name: str) -> Expr:
        """A method of a tensor, number, list, dict, text, future."""
        if owner.type.optional:
            self.fail(f".{name}(): value may be None ({owner.type}); test it with `is None`", node)
        if owner.type == STR and name == "format":
            args, kwargs = self._arguments(node)
            if kwargs:
                self.fail("format takes arguments by position", node)
            return self.core(node, "format", (owner, *args), STR)
        args, kwargs = self._arguments(node)
        if owner.op == "const" and owner.type == STR and hasattr(str, name) and not kwargs:
            if all(a.op == "const" for a in args):
                return self.meaning(getattr(owner.attr, name)(*(a.attr for a in args)), node)
        if owner.type == TENSOR:
            return self.call_on_tensor(node, owner, name, args, kwargs)
        if owner.type.base == "Future":
            return self.call_future(node, owner, name, args)
        if _alike(owner) and name in ("count", "index"):
            owner = self.as_sequence(owner, node)
        found = signatures.method(owner.type, name)
        if found:
            if owner.type.is_list and name == "extend" and args and args[0].type != owner.type:
                args = [self.as_sequence(args[0], node)]
            return self.call_entries(node, found, args, kwargs, owner)
        self.fail(f"{owner.type} has no method {name!r}", node)

    def call_on_tensor(
        self, node: ast.AST, owner: Expr, name: str, args: list[Expr], kwargs: dict[str, Expr]
    ) -> Expr:
        """A method of a tensor."""
        known = tuple(k for g in entries.public(name) for k in signatures_of(g, True))
        if known:
            return self.call_public(node, known, [owner, *args], kwargs)
        if name == "tolist":
            return self.core(node, "tolist", (owner,), ANY)
        found = signatures.table(signatures.TENSOR, "lib.Tensor.").get(name)
        if found:
            if name in ("resize_",) and len(args) > 1:
                args = [self.make(node, "list", args, list_of(INT))]
            return self.call_entries(node, found, args, kwargs, owner)
        self.fail(f"Tensor has no method {name!r} in scripts", node)

    def call_future(self, node: ast.AST, owner: Expr, name: str, args: list[Expr]) -> Expr:
        item = owner.type.items[0]
        if name == "wait" or name == "value":
            return self.core(node, "wait", (owner,), item)
        if name == "done":
            return self.core(node, "future_done", (owner,), BOOL)
        self.fail(f"Future has no method {name!r} in scripts", node)

    def call_items(self, node: ast.Call, box: Any, name: str) -> Expr:
        """A method of modules known one by one."""
        assert isinstance(box, Items)
        if name == "keys":
            return static(Items(box.keys, tuple(self.meaning(k, node) for k in box.keys)))
        if name == "values":
            return static(Items(box.keys, box.values))
        if name == "items":
            pairs = [
                static(Items((0, 1), (self.meaning(k, node), v)))
                for k, v in zip(box.keys, box.values, strict=True)
            ]
            return static(Items(box.keys, tuple(pairs)))
        self.fail(f"modules have no method {name!r} in scripts", node)

    def call_on_class(self, node: ast.Call, owner: Expr, name: str) -> Expr:
        """A method of a value of a class, or a call of what is its attribute."""
        if owner.type.optional:
            self.fail(f".{name}(): value may be None ({owner.type}); test it with `is None`", node)
        known = self.compiler.children(owner, name, self, node)
        if known is not None:
            return static(known)
        if self.compiler.has_attribute(owner.type, name):
            callee = self.class_attribute(node, owner, name)
            if callee.op == "static":
                return self.call_static(node, callee.attr)
            return self.call_on_class(node, callee, "__call__")
        plain = self.compiler.static_method(owner.type, name)
        if plain is not None:
            return self.call_static(node, plain)
        args, kwargs = self._arguments(node)
        return self.call_method_of(node, owner, name, args, kwargs)

    def call_method_of(
        self, node: ast.AST, value: Expr, name: str, args: list[Expr], kwargs: dict[str, Expr]
    ) -> Expr:
        f = self.compiler.function_behind(value.type, name)
        args, kwargs = self.compiler.packed(f, args, kwargs, 1, getattr(node, "lineno", 0))
        made = self.compiler.method(value.type, name, node, self, (args, kwargs))
        return self.call_signature(node, made, [value, *args], kwargs)

    # -- classes ----------------------------------------------------------------------------------

    def call_class(self, node: ast.Call, cls: type) -> Expr:
        """A value of a class is made."""
        if cls is flambeau.device:
            args, kwargs = self._arguments(node)
            if all(a.op == "const" for a in (*args, *kwargs.values())):
                named = {k: v.attr for k, v in kwargs.items()}
                device = flambeau.device(*(a.attr for a in args), **named)
                return self.meaning(device, node)
            return self.core(node, "device", args, Type("Device"))
        if cls is flambeau.Tensor or issubclass(cls, flambeau.nn.Module):
            self.fail(f"{cls.__name__} cannot be made in a script", node)
        if is_enum(cls):
            owner = self.compiler.class_of(cls)
            assert owner is not None
            value = self.as_type(
                self.plain(node.args[0]), self.compiler.enum_value(owner), node, cls.__name__
            )
            return self.core(
                node, "enum_of", (self.make(node, "const", (), STR, owner.name), value), owner.type
            )
        args, kwargs = self._arguments(node)
        if is_named_tuple(cls):
            made = self.compiler.tuple_class(cls, node, self)
            _, full = self._resolve(node, [made], args, kwargs)
            name = self.make(node, "const", (), STR, made.returns.base)
            return self.core(node, "make_tuple", (name, *full), made.returns)
        made = self.compiler.constructor(cls, node, self)
        return self.call_signature(node, made, args, kwargs)


class _Library:
    """A function of the package in Python, as a callee."""

    changes = True

    def __init__(self, uid: str) -> None:
        self.uid = uid


class Given(ast.Constant):
    """A default value; stands where a tree is asked for."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.lineno = 0


def _plain_number(e: Expr) -> Expr:
    """A literal is a Number as it stands."""
    if e.op == "some":
        inner = _plain_number(e.args[0])
        return e if inner is e.args[0] else Expr("some", (inner,), e.type, e.attr, e.line)
    if e.op == "number" and e.args[0].op == "const":
        return Expr("const", (), e.type, e.args[0].attr, e.line)
    return e


def default_value(node: ast.expr) -> Any:
    """The value of a parameter's default."""
    return node.value if isinstance(node, Given) else ast.literal_eval(node)


def _match(t: Type, given: Type, out: dict[str, Type]) -> None:
    if t.base in "TKV" and len(t.base) == 1:
        out.setdefault(t.base, given.required() if t.optional else given)
    elif t.base == "List" and given.is_list and not given.optional:
        _match(t.element, given.element, out)
    elif t.items and given.base == t.base and len(t.items) == len(given.items):
        for a, b in zip(t.items, given.items, strict=True):
            _match(a, b, out)


def _alike(e: Expr) -> bool:
    """A tuple whose items are of one type."""
    return e.type.base == "Tuple" and len(set(e.type.items)) == 1 and not e.type.optional


def _item_of(typer: ScriptCalls, node: ast.AST, e: Expr) -> Expr:
    if e.type in (TENSOR, NUMBER):
        return typer.core(node, "float_of", (e,), Type("float"))
    return e
