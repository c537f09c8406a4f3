"""Statements: a Python function of the subset to a `Function` of typed nested blocks.

Owns flow: which variables have a value where, what tests of None have shown, that every path
returns. Pure: the same source gives the same IR, nothing outside is read or changed.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from .coerce import EMPTY_LIST, cost
from .expr import ARITHMETIC, ExprTyper, Lookup
from .ir import (
    Check,
    Do,
    Expr,
    For,
    Function,
    If,
    Jump,
    Let,
    Return,
    SetItem,
    Stmt,
    Unpack,
    While,
    terminates,
)  # fmt: skip
from .scope import Env, merge, narrowed, stored_names, widened
from .types import INT, NONE, STR, Param, Type, parse_type

CHECKS = {
    "check": "Runtime",
    "check_value": "Value",
    "check_type": "Type",
    "check_index": "Index",
    "check_not_implemented": "NotImplemented",
}
ERRORS = {
    "RuntimeError": "Runtime",
    "ValueError": "Value",
    "TypeError": "Type",
    "IndexError": "Index",
    "NotImplementedError": "NotImplemented",
}


class FunctionTyper(ExprTyper):
    """Compiles the body of one function."""

    def __init__(
        self, node: ast.FunctionDef, params: Sequence[Param], returns: Type, file: str,
        lookup: Lookup, constants: Mapping[str, ast.expr],
    ) -> None:  # fmt: skip
        super().__init__(file, lookup, constants)
        self.node = node
        self.params = list(params)
        self.returns = returns
        self.declared: dict[str, Type] = {p.name: p.type.plain() for p in params}
        self.loop_names: list[str] = []
        self.loop_ends: list[list[Env]] = []
        self.assigned = stored_names(node)

    def assigned_somewhere(self) -> set[str]:
        return self.assigned

    def place_by(self, params: Sequence[Param]) -> None:
        """New tensors go to the device of these parameters (those that are tensors)."""
        self.placed_by = [
            Param(p.name, p.type.plain())
            for p in params
            if p.type.base in ("Tensor", "Tensors", "OptTensors")
        ]

    def compile(self) -> Function:
        """The whole function."""
        self.env = {p.name: (p.type.plain(), p.type.plain()) for p in self.params}
        body = self.block(self.node.body, self.env)[0]
        if self.returns != NONE and not terminates(body):
            self.fail(f"{self.node.name}: a path ends without return of {self.returns}", self.node)
        names = {p.name for p in self.params}
        return Function(
            self.node.name, self.params, self.returns, body, self.file, self.node.lineno,
            self.assigned & names,
        )  # fmt: skip

    # -- blocks ---------------------------------------------------------------------------------

    def block(self, nodes: Sequence[ast.stmt], env: Env) -> tuple[list[Stmt], Env | None]:
        """Statements of a block and what holds after it (None: control does not get there)."""
        outer, self.env = self.env, dict(env)
        out: list[Stmt] = []
        for i, node in enumerate(nodes):
            if i == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # docstring
            if out and terminates(out):
                self.fail("statement is never reached", node)
            out.extend(self.stmt(node))
        after = None if terminates(out) else self.env
        self.env = outer
        return out, after

    def stmt(self, node: ast.stmt) -> list[Stmt]:
        method = getattr(self, "_stmt_" + type(node).__name__.lower(), None)
        if method is None:
            self.fail(f"{type(node).__name__} is not part of the subset", node)
        made = method(node)
        return made if isinstance(made, list) else [made]

    # -- assignment -----------------------------------------------------------------------------

    def declare(self, name: str, t: Type, node: ast.AST) -> Type:
        """Type of variable `name`, which is about to get a value of type `t`."""
        if name in self.loop_names:
            self.fail(f"{name!r} is a loop variable; it cannot be assigned in the loop", node)
        return self.declared.setdefault(name, t.plain())

    def assign(
        self, name: str, value: Expr, node: ast.stmt | ast.expr, annotated: Type | None = None
    ) -> Let:
        """`name = value`, converted to the variable's type."""
        if annotated is None and name not in self.declared:
            if value.type == EMPTY_LIST:
                self.fail(f"type of an empty list: write `{name}: Ints = []` or alike", node)
            if value.type == NONE:
                self.fail(f"type of None: write `{name}: Tensor | None = None` or alike", node)
            if value.op == "tuple" and len({a.type for a in value.args}) == 1:
                value = self._as_list(value, node)
        declared = self.declare(name, annotated or value.type, node)
        if annotated is not None and declared != annotated.plain():
            self.fail(f"{name!r} was {declared} before, now {annotated}", node)
        if cost(value, declared) is None:
            self.fail(f"{name!r} is {declared}, got {value.type}; use another name", node)
        current = declared
        if declared.optional and not value.type.optional:
            current = NONE if value.type == NONE else declared.required()
        value = self.as_type(value, declared, node, name)
        self.env[name] = (declared, current)
        return Let(node.lineno, name, value, declared)

    def _stmt_assign(self, node: ast.Assign) -> Stmt | list[Stmt]:
        if len(node.targets) != 1:
            self.fail("one target to an assignment", node)
        target = node.targets[0]
        if isinstance(target, ast.Name):
            return self.assign(target.id, self.expr(node.value), node)
        if isinstance(target, (ast.Tuple, ast.List)):
            if any(isinstance(e, ast.Subscript) for e in target.elts):
                return self._assign_items(node, target)
            return self._unpack(node, target)
        if isinstance(target, ast.Subscript):
            return self._set_item(node, target)
        self.fail("only variables and items of lists can be assigned", target)

    def _unpack(self, node: ast.Assign, target: ast.Tuple | ast.List) -> Stmt:
        value = self.expr(node.value)
        n = len(target.elts)
        if value.type.base == "Tuple" and not value.type.optional:
            types = value.type.items
            if len(types) != n:
                self.fail(f"{n} names for {len(types)} values", node)
        elif value.type.is_list and not value.type.optional:
            types = (value.type.element,) * n
        else:
            self.fail(f"cannot unpack {value.type}", node)
        names = self.targets(target, n)
        for name, t in zip(names, types, strict=True):
            if not name:
                continue
            declared = self.declare(name, t, node)
            if declared != t.plain():
                self.fail(f"{name!r} is {declared}, got {t}; use another name", node)
            self.env[name] = (declared, declared)
        return Unpack(node.lineno, tuple(names), tuple(types), value)

    def _assign_items(self, node: ast.Assign, target: ast.Tuple | ast.List) -> list[Stmt]:
        """`xs[i], xs[j] = a, b`: all values first, then the items."""
        if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(target.elts):
            self.fail("items are assigned from as many values", node)
        lets: list[Stmt] = []
        stores: list[Stmt] = []
        for i, (t, v) in enumerate(zip(target.elts, node.value.elts, strict=True)):
            name = f"item{i}_{node.lineno}"
            lets.append(self.assign(name, self.expr(v), node))
            read = ast.copy_location(ast.Name(name, ast.Load()), node)
            one = ast.copy_location(ast.Assign([t], read), node)
            made = self._stmt_assign(one)
            stores.extend(made if isinstance(made, list) else [made])
        return lets + stores

    def _set_item(self, node: ast.Assign, target: ast.Subscript) -> Stmt:
        xs = self.expr(target.value)
        if xs.op != "var" or not xs.type.is_list:
            self.fail(f"only items of list variables can be assigned, not of {xs.type}", target)
        i = self.typed(target.slice, INT, "index")
        value = self.as_type(self.expr(node.value), xs.type.element, node, "item")
        self.assigned.add(xs.attr)
        return SetItem(node.lineno, xs, i, value)

    def _stmt_annassign(self, node: ast.AnnAssign) -> Stmt:
        if not isinstance(node.target, ast.Name) or node.value is None:
            self.fail("an annotation stands on a variable that gets a value", node)
        t = parse_type(node.annotation, self.file)
        return self.assign(node.target.id, self.expr(node.value), node, t)

    def _stmt_augassign(self, node: ast.AugAssign) -> Stmt:
        text, op = ARITHMETIC[type(node.op)]
        if isinstance(node.target, ast.Subscript):
            load = ast.copy_location(
                ast.Subscript(node.target.value, node.target.slice, ast.Load()), node
            )
            changed = ast.copy_location(ast.BinOp(load, node.op, node.value), node)
            return self._set_item(
                ast.copy_location(ast.Assign([node.target], changed), node), node.target
            )
        if not isinstance(node.target, ast.Name):
            self.fail("only variables and items of lists can be assigned", node)
        read = self._name(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))
        value = self.binary(node, text, op, read, self.expr(node.value))
        return self.assign(node.target.id, value, node)

    # -- control --------------------------------------------------------------------------------

    def _stmt_if(self, node: ast.If) -> Stmt:
        test = self.condition(node.test)
        then, after_then = self.block(node.body, narrowed(self.env, self.facts(node.test, True)))
        if node.orelse:
            other, after_other = self.block(
                node.orelse, narrowed(self.env, self.facts(node.test, False))
            )
        else:
            other, after_other = [], narrowed(self.env, self.facts(node.test, False))
        self.env = merge(after_then, after_other) or self.env
        return If(node.lineno, test, then, other)

    def _loop(
        self, node: ast.For | ast.While, names: dict[str, Type], test: ast.expr | None
    ) -> list[Stmt]:
        before = widened(self.env, stored_names(node))
        inner: Env = {**before, **{n: (t, t) for n, t in names.items()}}
        if test is not None:
            inner = narrowed(inner, self.facts(test, True))
        self.loop_names.extend(names)
        self.loop_ends.append([])
        body, _ = self.block(node.body, inner)
        breaks = self.loop_ends.pop()
        del self.loop_names[len(self.loop_names) - len(names) :]
        forever = isinstance(test, ast.Constant) and test.value is True
        after: Env | None = None if forever else before
        for env in breaks:
            after = merge(after, env)
        self.env = {k: v for k, v in (after or before).items() if k not in names or k in self.env}
        return body

    def _stmt_for(self, node: ast.For) -> Stmt:
        if node.orelse:
            self.fail("`else` of a loop is not part of the subset", node)
        over, args, types = self.iterable(node.iter)
        names = self.targets(node.target, len(types))
        clash = [n for n in names if n in self.env]
        if clash:
            self.fail(f"loop variable {clash[0]!r} hides a variable; use another name", node.target)
        body = self._loop(node, {n: t for n, t in zip(names, types, strict=True) if n}, None)
        return For(node.lineno, tuple(names), tuple(types), over, tuple(args), body)

    def _stmt_while(self, node: ast.While) -> Stmt:
        if node.orelse:
            self.fail("`else` of a loop is not part of the subset", node)
        stored = {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.env = widened(self.env, stored)
        test = self.condition(node.test)
        return While(node.lineno, test, self._loop(node, {}, node.test))

    def _jump(self, node: ast.stmt, kind: str) -> Stmt:
        if not self.loop_ends:
            self.fail(f"{kind} outside a loop", node)
        if kind == "break":
            self.loop_ends[-1].append(dict(self.env))
        return Jump(node.lineno, kind)

    def _stmt_break(self, node: ast.Break) -> Stmt:
        return self._jump(node, "break")

    def _stmt_continue(self, node: ast.Continue) -> Stmt:
        return self._jump(node, "continue")

    def _stmt_pass(self, node: ast.Pass) -> list[Stmt]:
        return []

    def _stmt_return(self, node: ast.Return) -> Stmt:
        if node.value is None or (
            isinstance(node.value, ast.Constant) and node.value.value is None
        ):
            if self.returns != NONE and not self.returns.optional:
                self.fail(f"return: expected {self.returns}, got None", node)
            if self.returns == NONE:
                return Return(node.lineno, None)
        assert node.value is not None
        value = self.expr(node.value)
        if self.returns == NONE:
            self.fail(f"return: expected None, got {value.type}", node)
        return Return(node.lineno, self.as_type(value, self.returns, node, "return"))

    # -- effects --------------------------------------------------------------------------------

    def _stmt_raise(self, node: ast.Raise) -> Stmt:
        match node.exc:
            case ast.Call(func=ast.Name(id=name), args=[message]) if name in ERRORS:
                return Check(node.lineno, ERRORS[name], None, self.typed(message, STR, "message"))
        self.fail(f"raise takes one of {', '.join(ERRORS)} with a message", node)

    def _stmt_expr(self, node: ast.Expr) -> Stmt:
        match node.value:
            case ast.Call(func=ast.Name(id=name), args=[test, message], keywords=[]) if (
                name in CHECKS
            ):
                made = Check(
                    node.lineno,
                    CHECKS[name],
                    self.condition(test),
                    self.typed(message, STR, "message"),
                )
                self.env = narrowed(self.env, self.facts(test, True))
                return made
            case ast.Call(func=ast.Name(id=name)) if name in CHECKS:
                self.fail(f"{name} takes a condition and a message", node)
        value = self.expr(node.value)
        # What stands alone must change something or refuse something.
        changes = value.op == "core" and value.attr in (
            "warn", "append", "extend", "insert", "pop", "wrap_dim", "wrap_dims",
            "broadcast_shapes",
        )  # fmt: skip
        if value.op == "call" and (value.type == NONE or value.attr.name.endswith("_")):
            changes = True
        if not changes:
            self.fail(f"value of type {value.type} is not used", node)
        return Do(node.lineno, value)


def compile_function(
    node: ast.FunctionDef, params: Sequence[Param], returns: Type, file: str, lookup: Lookup,
    constants: Mapping[str, ast.expr] | None = None, placed: bool = False,
) -> Function:  # fmt: skip
    """The typed IR of a function.

    Args:
        node: the function as parsed.
        params: its parameters with types.
        returns: type of its result.
        file: name of the source for messages.
        lookup: operations of a name (an empty sequence: none); each has `name`, `params`,
            `returns`, `has_inplace`.
        constants: module-level names and their values.
        placed: tensors made without a device go to that of the tensor parameters.
    """
    typer = FunctionTyper(node, params, returns, file, lookup, constants or {})
    if placed:
        typer.place_by(params)
    return typer.compile()
