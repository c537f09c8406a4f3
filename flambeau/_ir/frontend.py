"""Statements: a Python function of the subset to a `Function` of the IR, blocks in blocks.

Owns flow: which variables have a value where, what tests of None have shown, that every path
returns. Pure: the same source gives the same IR, nothing outside is read or changed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from .coerce import EMPTY_LIST, cost
from .expr import ARITHMETIC, ExprTyper, Lookup
from .graph import Arg, Block, Function, Node, Value, renumbered
from .placing import Placer, prune
from .scope import Env, merge, narrowed, stored_names, widened
from .typed import Expr
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
    "AssertionError": "Assertion",
}


@dataclass
class _Loop:
    """A loop whose body is compiled."""

    carried: list[str]
    breaks: list[tuple[Node, Env, dict[str, Value]]] = field(default_factory=list)


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
        self.loops: list[_Loop] = []
        self.assigned = stored_names(node)
        self.out = Placer(file, node.name)

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
        inputs = [self.out.value(p.type.plain(), p.name) for p in self.params]
        body, _, _ = self.block(self.node.body, self.env, inputs)
        if self.returns != NONE and not body.ended:
            self.fail(f"{self.node.name}: a path ends without return of {self.returns}", self.node)
        if self.out.joins:
            prune(body, set())
        made = Function(
            body.inputs, body.nodes, (), self.node.name, self.params, self.returns, self.file,
            self.node.lineno,
        )  # fmt: skip
        return renumbered(made)

    # -- blocks ---------------------------------------------------------------------------------

    def block(
        self, nodes: Sequence[ast.stmt], env: Env, inputs: Sequence[Value] = (),
        enter: Callable[[], None] | None = None,
    ) -> tuple[Block, Env | None, dict[str, Value]]:  # fmt: skip
        """A block, what holds after it (None: control does not get there), and its variables.

        `enter` is done at its beginning, before the statements.
        """
        outer, self.env = self.env, dict(env)
        with self.out.nested(inputs) as block:
            if enter is not None:
                enter()
            for i, node in enumerate(nodes):
                if i == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    continue  # docstring
                if block.ended:
                    self.fail("statement is never reached", node)
                self.stmt(node)
            values = self.out.values
        after = None if block.ended else self.env
        self.env = outer
        return block, after, values

    def stmt(self, node: ast.stmt) -> None:
        method = getattr(self, "_stmt_" + type(node).__name__.lower(), None)
        if method is None:
            self.fail(f"{type(node).__name__} is not part of the subset", node)
        method(node)

    def effect(self, target: str, node: ast.AST, *args: Arg) -> Node:
        """Appends a node without result that stands for a statement."""
        return self.out.add(target, args, (), getattr(node, "lineno", 0))

    # -- assignment -----------------------------------------------------------------------------

    def declare(self, name: str, t: Type, node: ast.AST) -> Type:
        """Type of variable `name`, which is about to get a value of type `t`."""
        if name in self.loop_names:
            self.fail(f"{name!r} is a loop variable; it cannot be assigned in the loop", node)
        return self.declared.setdefault(name, t.plain())

    def assign(
        self, name: str, value: Expr, node: ast.stmt | ast.expr, annotated: Type | None = None
    ) -> None:
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
        placed = self.out.place(self.as_type(value, declared, node, name))
        self.env[name] = (declared, current)
        self.out.bind(name, declared, placed, node.lineno)

    def _stmt_assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            self.fail("one target to an assignment", node)
        target = node.targets[0]
        if isinstance(target, ast.Name):
            self.assign(target.id, self.expr(node.value), node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if any(isinstance(e, ast.Subscript) for e in target.elts):
                self._assign_items(node, target)
            else:
                self._unpack(node, target)
        elif isinstance(target, ast.Subscript):
            self._set_item(node, target)
        else:
            self.fail("only variables and items of lists can be assigned", target)

    def _unpack(self, node: ast.Assign, target: ast.Tuple | ast.List) -> None:
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
        placed = self.out.place(value)
        for name, t in zip(names, types, strict=True):
            if not name:
                continue
            declared = self.declare(name, t, node)
            if declared != t.plain():
                self.fail(f"{name!r} is {declared}, got {t}; use another name", node)
            self.env[name] = (declared, declared)
        outs = [self.out.value(t.plain(), name) for name, t in zip(names, types, strict=True)]
        self.out.add("core.unpack", (placed,), outs, node.lineno)
        self.out.values.update({v.name: v for v in outs if v.name})

    def _assign_items(self, node: ast.Assign, target: ast.Tuple | ast.List) -> None:
        """`xs[i], xs[j] = a, b`: all values first, then the items."""
        if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(target.elts):
            self.fail("items are assigned from as many values", node)
        names = [f"item{i}_{node.lineno}" for i in range(len(target.elts))]
        for name, v in zip(names, node.value.elts, strict=True):
            self.assign(name, self.expr(v), node)
        for name, t in zip(names, target.elts, strict=True):
            read = ast.copy_location(ast.Name(name, ast.Load()), node)
            self._stmt_assign(ast.copy_location(ast.Assign([t], read), node))

    def _set_item(self, node: ast.Assign, target: ast.Subscript) -> None:
        xs = self.expr(target.value)
        if xs.op != "read" or not xs.type.is_list:
            self.fail(f"only items of list variables can be assigned, not of {xs.type}", target)
        i = self.typed(target.slice, INT, "index")
        value = self.as_type(self.expr(node.value), xs.type.element, node, "item")
        self.effect("core.setitem", node, *map(self.out.place, (xs, i, value)))

    def _stmt_annassign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name) or node.value is None:
            self.fail("an annotation stands on a variable that gets a value", node)
        t = parse_type(node.annotation, self.file)
        self.assign(node.target.id, self.expr(node.value), node, t)

    def _stmt_augassign(self, node: ast.AugAssign) -> None:
        text, op = ARITHMETIC[type(node.op)]
        if isinstance(node.target, ast.Subscript):
            load = ast.copy_location(
                ast.Subscript(node.target.value, node.target.slice, ast.Load()), node
            )
            changed = ast.copy_location(ast.BinOp(load, node.op, node.value), node)
            again = ast.copy_location(ast.Assign([node.target], changed), node)
            return self._set_item(again, node.target)
        if not isinstance(node.target, ast.Name):
            self.fail("only variables and items of lists can be assigned", node)
        read = self._name(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))
        value = self.binary(node, text, op, read, self.expr(node.value))
        return self.assign(node.target.id, value, node)

    # -- control --------------------------------------------------------------------------------

    def _stmt_if(self, node: ast.If) -> None:
        test = self.out.place(self.condition(node.test))
        sides = [
            self.block(body, narrowed(self.env, self.facts(node.test, truth)))
            for body, truth in ((node.body, True), (node.orelse, False))
        ]
        self.env = merge(sides[0][1], sides[1][1]) or self.env
        arriving = [(b, values) for b, after, values in sides if after is not None]
        outs = self.out.joined(arriving, self.env) if arriving else ()
        self.out.add("if", (test,), outs, node.lineno, [b for b, _, _ in sides])

    def _loop(
        self, node: ast.For | ast.While, kind: str, lists: Sequence[Expr], names: Sequence[str],
        types: Sequence[Type], test: ast.expr | None = None,
        enter: Callable[[Sequence[Value]], None] | None = None,
    ) -> None:  # fmt: skip
        """The carried values are the variables that the loop assigns and that have a value.

        `enter` is given the items of a turn at its beginning.
        """
        out, stored = self.out, stored_names(node)
        before = widened(self.env, stored)
        carried = [n for n in out.values if n in stored and n in before]
        init, placed = out.current(carried), tuple(map(out.place, lists))
        loop = _Loop(carried)
        own = [n for n in names if n]

        def inputs() -> list[Value]:
            items = [out.value(t.plain(), n) for t, n in zip(types, names, strict=True)]
            return items + [out.value(before[n][0], n) for n in carried]

        blocks: list[Block] = []
        inner: Env = {**before, **{n: (t, t) for n, t in zip(names, types, strict=True) if n}}
        if test is not None:
            self.env = before
            with out.nested(inputs()) as first:
                first.outputs = (out.place(self.condition(test)),)
            blocks.append(first)
            inner = narrowed(inner, self.facts(test, True))
        self.loop_names.extend(own)
        self.loops.append(loop)
        given = inputs()
        begin = partial(enter, given[: len(types)]) if enter is not None else None
        body, arrives, values = self.block(node.body, inner, given, begin)
        self.loops.pop()
        del self.loop_names[len(self.loop_names) - len(own) :]
        if arrives is not None:
            body.outputs = tuple(values[n] for n in carried)
        forever = isinstance(test, ast.Constant) and test.value is True
        after: Env | None = None if forever else before
        for _, env, _ in loop.breaks:
            after = merge(after, env)
        self.env = {k: v for k, v in (after or before).items() if k not in own or k in self.env}
        leaving = carried
        if forever:  # by `break` alone: what all of them have assigned has a value
            leaving = [n for n in self.env if n in stored and loop.breaks]
        outs = [out.value(self.env[n][0], n) for n in leaving]
        for jump, _, known in loop.breaks:
            jump.args = tuple(known[n] for n in leaving)
        out.add("loop", (kind, placed, init), outs, node.lineno, [*blocks, body])
        out.values.update({v.name: v for v in outs})

    def _stmt_for(self, node: ast.For) -> None:
        if node.orelse:
            self.fail("`else` of a loop is not part of the subset", node)
        over, args, types = self.iterable(node.iter)
        names = self.targets(node.target, len(types))
        clash = [n for n in names if n in self.env]
        if clash:
            self.fail(f"loop variable {clash[0]!r} hides a variable; use another name", node.target)
        self._loop(node, over, args, names, types)

    def _stmt_while(self, node: ast.While) -> None:
        if node.orelse:
            self.fail("`else` of a loop is not part of the subset", node)
        self._loop(node, "while", (), (), (), node.test)

    def _jump(self, node: ast.stmt, kind: str) -> None:
        if not self.loops:
            self.fail(f"{kind} outside a loop", node)
        loop = self.loops[-1]
        made = self.effect(kind, node, *self.out.current(loop.carried))
        if kind == "break":
            loop.breaks.append((made, dict(self.env), self.out.values))

    def _stmt_break(self, node: ast.Break) -> None:
        self._jump(node, "break")

    def _stmt_continue(self, node: ast.Continue) -> None:
        self._jump(node, "continue")

    def _stmt_pass(self, node: ast.Pass) -> None:
        pass

    def _stmt_return(self, node: ast.Return) -> None:
        if node.value is None or (
            isinstance(node.value, ast.Constant) and node.value.value is None
        ):
            if self.returns != NONE and not self.returns.optional:
                self.fail(f"return: expected {self.returns}, got None", node)
            if self.returns == NONE:
                self.effect("return", node)
                return
        assert node.value is not None
        value = self.expr(node.value)
        if self.returns == NONE:
            self.fail(f"return: expected None, got {value.type}", node)
        value = self.as_type(value, self.returns, node, "return")
        self.effect("return", node, self.out.place(value))

    # -- effects --------------------------------------------------------------------------------

    def refuse(self, node: ast.AST, kind: str, message: ast.expr) -> None:
        """Raises class `kind` with a message."""
        self.effect("raise", node, kind, self.out.place(self.typed(message, STR, "message")))

    def _stmt_raise(self, node: ast.Raise) -> None:
        match node.exc:
            case ast.Call(func=ast.Name(id=name), args=[message]) if name in ERRORS:
                return self.refuse(node, ERRORS[name], message)
        self.fail(f"raise takes one of {', '.join(ERRORS)} with a message", node)

    def refuse_unless(self, node: ast.stmt, kind: str, test: ast.expr, message: ast.expr) -> None:
        """Raises class `kind` with a message where a condition fails."""
        condition = self.out.place(self.condition(test))
        with self.out.nested() as otherwise:
            self.refuse(node, kind, message)
        self.out.add("if", (condition,), (), node.lineno, (Block(), otherwise))
        self.env = narrowed(self.env, self.facts(test, True))

    def _stmt_assert(self, node: ast.Assert) -> None:
        if node.msg is None:
            self.fail("assert takes a condition and a message", node)
        self.refuse_unless(node, "Assertion", node.test, node.msg)

    def _stmt_expr(self, node: ast.Expr) -> None:
        match node.value:
            case ast.Call(func=ast.Name(id=name), args=[test, message], keywords=[]) if (
                name in CHECKS
            ):
                return self.refuse_unless(node, CHECKS[name], test, message)
            case ast.Call(func=ast.Name(id=name)) if name in CHECKS:
                self.fail(f"{name} takes a condition and a message", node)
        value = self.expr(node.value)
        # What stands alone must change something or refuse something.
        changes = value.op == "core" and value.attr in (
            "warn", "append", "extend", "insert", "pop", "wrap_dim", "wrap_dims",
            "broadcast_shapes",
        )  # fmt: skip
        if value.op == "call" and (value.type == NONE or value.attr.changes):
            changes = True
        if not changes:
            self.fail(f"value of type {value.type} is not used", node)
        self.out.place(value)
        self.out.nodes[-1].where = self.out.where(node.lineno)


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
