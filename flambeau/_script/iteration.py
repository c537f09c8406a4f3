"""What scripts loop over: lists, text, dicts and tensors side by side, and modules one by one.

Owns comprehensions, how `zip` and `enumerate` nest, and loops that are written out because their
items are known when the script is made.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .._ir.coerce import EMPTY_LIST, convert
from .._ir.scope import narrowed
from .._ir.typed import Comp, Expr
from .._ir.types import BOOL, INT, STR, TENSOR, Type, list_of, tuple_of
from .expressions import ScriptExpressions
from .meaning import Items, constant, static


class ScriptIteration(ScriptExpressions):
    """Types comprehensions, and says how loops run."""

    def _dictcomp(self, node: ast.DictComp) -> Expr:
        pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        listed = ast.copy_location(ast.ListComp(pair, node.generators), node)
        pairs = self._listcomp(listed)
        key, item = pairs.type.element.items
        return self.core(node, "dict_of", (pairs,), self.dict_type(key, item, node))

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> Expr:
        if len(node.generators) != 1:
            self.fail("a comprehension has one `for`; write loops", node)
        gen = node.generators[0]
        known = self.static_items(gen.iter) or self.constant_texts(gen.iter)
        if known is not None:
            return self.unrolled(node, gen, known)
        over, args, types_ = self.flat_iterable(gen.iter)
        outer, statics = self.env, self.statics
        self.statics = dict(statics)
        hidden = [f"item{len(self.env)}_{i}" for i in range(len(types_))]
        try:
            self.env = {**outer, **{n: (t, t) for n, t in zip(hidden, types_, strict=True)}}
            self.bind_items(gen.target, hidden, types_, self.shape)
            tests: list[Expr] = []
            for t in gen.ifs:
                test = self.condition(t)
                tests = [test] if not tests else [self.make(node, "and", (tests[0], test), BOOL)]
                self.env = narrowed(self.env, self.facts(t, True))
            element = self.plain(node.elt)
        finally:
            self.env, self.statics = outer, statics
        comp = Comp(tuple(hidden), tuple(types_), over, bool(tests))
        if element.type == EMPTY_LIST:
            element = convert(element, list_of(TENSOR))
        return self.make(node, "comp", (*args, *tests, element), list_of(element.type), comp)

    _generatorexp = _listcomp

    def bind_items(
        self, target: ast.expr, hidden: Sequence[str], types_: Sequence[Type], shape: Any
    ) -> None:
        """Names of a comprehension stand for (parts of) its items."""
        leaves = iter(zip(hidden, types_, strict=True))

        def build(s: Any) -> Expr:
            if s is None:
                name, t = next(leaves)
                return self.make(target, "read", (), t, name)
            parts = [build(x) for x in s]
            return self.make(target, "tuple", parts, tuple_of(*(p.type for p in parts)))

        self.bind_static(target, build(shape))

    def bind_static(self, target: ast.expr, value: Expr) -> None:
        """Names of a target stand for an expression that has no effect."""
        if isinstance(target, ast.Name):
            self.statics[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            if value.op == "static" and isinstance(value.attr, Items):
                parts = list(value.attr.values)
            elif value.type.base == "Tuple":
                parts = self.parts(target, value)
            else:
                self.fail(f"cannot unpack {value.type}", target)
            if len(parts) != len(target.elts):
                self.fail(f"{len(target.elts)} names for {len(parts)} values", target)
            for t, p in zip(target.elts, parts, strict=True):
                self.bind_static(t, p)
        else:
            self.fail("only names can be assigned here", target)

    def unrolled(self, node: Any, gen: ast.comprehension, known: Items) -> Expr:
        """A comprehension over values that are known one by one."""
        outer, items = self.statics, []
        for value in known.values:
            self.statics = dict(outer)
            self.bind_static(gen.target, value)
            tests = [self.condition(t) for t in gen.ifs]
            if any(t.op != "const" for t in tests):
                self.fail("a condition on modules must be known when the script is made", node)
            if all(t.attr for t in tests):
                items.append(self.plain(node.elt))
        self.statics = outer
        return self.list_of_values(node, items)

    def constant_texts(self, node: ast.expr) -> Items | None:
        """The items of a constant list of text: names, as `getattr` takes them."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        e = self.expr(node)
        if e.op != "list" or not all(a.op == "const" and a.type == STR for a in e.args):
            return None
        return Items(tuple(range(len(e.args))), e.args)

    def static_items(self, node: ast.expr) -> Items | None:
        """Values known one by one that a loop runs over: modules, tuples of several types."""
        match node:
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *rest]) if len(rest) < 2:
                known = self.static_items(inner)
                if known is None:
                    return None
                start = self.expr(rest[0]).attr if rest else 0
                pairs = [(constant(start + i), v) for i, v in enumerate(known.values)]
            case ast.Call(func=ast.Name(id="zip"), args=[_, *_]):
                found = [self.static_items(a) for a in node.args]
                if all(f is None for f in found):
                    return None
                pairs = list(zip(*self.columns(node, found, self.is_strict(node)), strict=False))
            case ast.Call(func=ast.Name(id="reversed"), args=[inner]):
                known = self.static_items(inner)
                return known and Items(known.keys[::-1], known.values[::-1])
            case _:
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    if node.func.id in ("range", "enumerate", "zip", "list"):
                        return None
                if isinstance(node, (ast.List, ast.ListComp, ast.GeneratorExp)):
                    return None
                e = self.expr(node)
                if e.op == "static" and isinstance(e.attr, Items):
                    return e.attr
                modules = self.compiler.sequence_of(e, self, node)
                if modules is not None:
                    return modules
                if e.type.base == "Tuple" and not e.type.optional:
                    parts = self.parts(node, e)
                    return Items(tuple(range(len(parts))), tuple(parts))
                return None
        values = tuple(self.together(node, p) for p in pairs)
        return Items(tuple(range(len(values))), values)

    def together(self, node: ast.AST, parts: Sequence[Expr | None]) -> Expr:
        """The values of one turn: a tuple, if all of them are values."""
        known = tuple(p for p in parts if p is not None)
        if all(p.op != "static" for p in known):
            return self.make(node, "tuple", known, tuple_of(*(p.type for p in known)))
        return static(Items(tuple(range(len(known))), known))

    def columns(
        self, node: ast.Call, found: Sequence[Items | None], strict: bool
    ) -> list[Sequence[Expr]]:
        """The values of each argument of a `zip` beside modules."""
        sizes = {len(f.values) for f in found if f is not None}
        n = min(sizes)
        if strict and len(sizes) > 1:
            self.fail(f"zip: strict=True, and lengths {sorted(sizes)}", node)
        out: list[Sequence[Expr]] = []
        for arg, f in zip(node.args, found, strict=True):
            if f is not None:
                out.append(f.values)
                continue
            box = self.plain(arg)
            if not box.type.is_list:
                self.fail(f"zip: expected a list beside modules, got {box.type}", node)
            if strict:
                count = self.make(node, "const", (), INT, n)
                box = self.core(node, "of_length", (box, count), box.type)
            ats = [self.make(node, "const", (), INT, i) for i in range(n)]
            out.append([self.make(node, "getitem", (box, at), box.type.element) for at in ats])
        return out

    # -- loops over lists -------------------------------------------------------------------------

    shape: Any = None

    def flat_iterable(self, node: ast.expr) -> tuple[str, list[Expr], list[Type]]:
        """How to loop over `node`: kind, operands, types of a turn; `shape` says how they nest."""
        self.shape = None
        match node:
            case ast.Call(func=ast.Name(id="range")) if "range" not in self.env:
                return self.iterable(node)
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]) if (
                "enumerate" not in self.env
            ):
                _, args, types_ = self.flat_iterable(inner)
                if self.shape is None and args[0].type.is_list and len(args) == 1:
                    self.shape = (None, None)
                    return "enumerate", args, [INT, *types_]
        leaves: list[Expr] = []
        shape = self.leaves(node, leaves)
        self.shape = shape
        types_ = [STR if e.type == STR else e.type.element for e in leaves]
        return ("list" if len(leaves) == 1 else "zip"), leaves, types_

    def leaves(self, node: ast.expr, out: list[Expr]) -> Any:
        """The lists that a loop runs over side by side; how a turn's items nest."""
        match node:
            case ast.Call(func=ast.Name(id="zip"), args=[_, *_]) if "zip" not in self.env:
                first, shape = len(out), []
                for a in node.args:
                    at = len(out)
                    shape.append(self.leaves(a, out))
                    if self.is_strict(node) and at > first:
                        out[first] = self.once_for_all(node, out[first])
                        count = self.core(node, "len", (out[first],), INT)
                        out[at] = self.core(node, "of_length", (out[at], count), out[at].type)
                return tuple(shape)
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *rest]) if (
                "enumerate" not in self.env
            ):
                at = len(out)
                shape = self.leaves(inner, out)
                out[at] = self.once_for_all(node, out[at])
                starts = [self.typed(r, INT, "enumerate") for r in rest]
                starts += [self.typed(k.value, INT, "enumerate") for k in node.keywords]
                start = starts[0] if starts else self.make(node, "const", (), INT, 0)
                count = self.core(node, "len", (out[at],), INT)
                out.insert(at, self.core(node, "count_from", (start, count), list_of(INT)))
                return (None, shape)
        out.append(self.sequence(node))
        return None

    def once_for_all(self, node: ast.expr, e: Expr) -> Expr:
        """The expression for two operands of one node."""
        if e.op in ("const", "read", "placed", "once"):
            return e
        return self.make(node, "once", (e,), e.type, [])

    def is_strict(self, node: ast.Call) -> bool:
        """A `zip` that refuses lists of several lengths; a script does so before the first turn."""
        for k in node.keywords:
            if k.arg != "strict" or not isinstance(k.value, ast.Constant):
                self.fail(f"zip: expected strict=True or False, got {ast.unparse(k)}", node)
        return any(k.value.value for k in node.keywords if isinstance(k.value, ast.Constant))

    def sequence(self, node: ast.expr) -> Expr:
        """An expression as something to loop over: a list or text."""
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and (
                node.func.id in ("range", "reversed", "enumerate", "zip")
                and node.func.id not in self.env
            )
        ):
            if node.func.id == "range":
                _, args, _ = self.iterable(node)
                return self.core(node, "range_list", args, list_of(INT))
            if node.func.id == "reversed":
                xs = self.sequence(node.args[0])
                return self.core(node, "reversed_list", (xs,), xs.type)
            self.fail(f"{node.func.id} cannot stand here; loop over it", node)
        return self.as_sequence(self.plain(node), node)

    def as_sequence(self, e: Expr, node: ast.AST) -> Expr:
        if e.type == TENSOR:
            return self.call_op(node, "unbind", [e], {})
        if e.type.base == "Dict" and not e.type.optional:
            return self.core(node, "keys", (e,), list_of(e.type.items[0]))
        if e.type.base == "Tuple" and e.type.items and len(set(e.type.items)) == 1:
            return self.make(node, "list", self.parts(node, e), list_of(e.type.items[0]))
        if (e.type.is_list or e.type == STR) and not e.type.optional:
            return e
        if e.op == "core" and e.attr == "tolist":
            self.fail("tolist(): say what it gives: `xs: List[int] = x.tolist()`", node)
        self.fail(f"cannot loop over {e.type}", node)
