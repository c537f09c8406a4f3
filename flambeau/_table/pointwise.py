"""Pointwise operations: from an entry to kernels and their derivatives.

`plan(op)` is what the other generators use. The body becomes scalar graphs, one for each path
through tests of its non-tensor parameters; the derivative comes from an explicit rule or from
symbolic differentiation, in two forms: fused kernels for ordinary backward, and a rule over tensor
operations (as Python syntax, compiled like a hand-written one) for everything else.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .._ir.errors import CompileError
from .._ir.scalars import Scalar, walk
from .._ir.types import Param
from ..ops.scalar import PRIMITIVES
from .kernel import Kernel
from .model import Op
from .pointwise_rules import jvp_rule, vjp_rule
from .scalar_diff import cotangents
from .scalar_expr import Graph, Reader, operations

_DEFAULT_CLASSES = "bifc"


@dataclass
class Variant:
    """One path through the tests of a body."""

    outputs: list[Scalar]
    kernel: Kernel
    cotangents: list[Scalar | None] = field(default_factory=list)  # of each tensor parameter
    backward: dict[tuple[int, ...], Kernel] = field(default_factory=dict)  # wanted slots -> fused


@dataclass
class Plan:
    """How an operation is computed and differentiated."""

    op: Op
    variants: list[Variant]
    selector: ast.FunctionDef | None  # gives the number of the variant, after the body's checks
    composite_vjp: ast.FunctionDef | None = None
    jvp: ast.FunctionDef | None = None
    #: the same where one tensor alone has a tangent: a slope of another one that is infinite or no
    #: number has no say then, as it would have by a product with zero
    jvp_of: dict[str, ast.FunctionDef] = field(default_factory=dict)

    @property
    def kernels(self) -> list[Kernel]:
        out = [v.kernel for v in self.variants]
        return out + [k for v in self.variants for k in v.backward.values()]


# Reading bodies ---------------------------------------------------------------------------------


def _statements(op: Op) -> list[ast.stmt]:
    body = op.node.body
    first = body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_doc else body


def _is_check(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Raise) or (
        isinstance(stmt, ast.Expr)
        and isinstance(stmt.value, ast.Call)
        and isinstance(stmt.value.func, ast.Name)
        and stmt.value.func.id.startswith(("check", "_check"))
    )


def paths(op: Op) -> list[list[tuple[ast.expr, bool]]]:
    """Tests with outcomes that lead to each return, in the order of variants."""
    out: list[list[tuple[ast.expr, bool]]] = []

    def follow(stmts: list[ast.stmt], path: list[tuple[ast.expr, bool]]) -> None:
        for i, stmt in enumerate(stmts):
            if isinstance(stmt, ast.If):
                rest = stmts[i + 1 :]
                follow([*stmt.body, *rest], [*path, (stmt.test, True)])
                follow([*stmt.orelse, *rest], [*path, (stmt.test, False)])
                return
            if isinstance(stmt, ast.Return):
                out.append(path)
                return
            if isinstance(stmt, ast.Raise):
                return

    follow(_statements(op), [])
    return out


def _selector(op: Op) -> ast.FunctionDef | None:
    """The body with `return k` for the k-th path: checks kept, arithmetic dropped."""
    stmts = _statements(op)
    count = 0

    def follow(stmts: list[ast.stmt]) -> list[ast.stmt]:
        nonlocal count
        out: list[ast.stmt] = []
        for i, stmt in enumerate(stmts):
            if isinstance(stmt, ast.If):
                rest = stmts[i + 1 :]
                then = follow([*stmt.body, *rest])
                other = follow([*stmt.orelse, *rest])
                out.append(ast.copy_location(ast.If(stmt.test, then, other), stmt))
                return out
            if isinstance(stmt, ast.Return):
                out.append(
                    ast.copy_location(
                        ast.Return(ast.copy_location(ast.Constant(count), stmt)), stmt
                    )
                )
                count += 1
                return out
            if _is_check(stmt):
                out.append(stmt)
        return out

    body = follow(stmts)
    if len(body) == 1 and isinstance(body[0], ast.Return):
        return None
    node = ast.FunctionDef(
        name=op.node.name,
        args=op.node.args,
        body=body,
        decorator_list=[],
        returns=ast.Name("int", ast.Load()),
    )
    return ast.fix_missing_locations(ast.copy_location(node, op.node))


def _param(op: Op, g: Graph, p: Param) -> Scalar:
    """A parameter that is no tensor; only a Number may be complex."""
    return g.param(p.name, "same" if p.type.base == "Number" and "c" in _classes(op) else "real")


def _read(op: Op, g: Graph, path: int) -> list[Scalar]:
    """Outputs of the `path`-th way through the body."""
    file = op.file
    classes = _classes(op)
    conditions = _conditions(op)
    names: dict[str, Scalar] = {}
    for p in op.params:
        if p.type.is_tensor:
            kind = "bool" if p.name in conditions else "same" if "c" in classes else "real"
            names[p.name] = g.input(p.name, kind)
        elif p.type.base in ("Number", "float", "int", "bool"):
            names[p.name] = _param(op, g, p)
    reader = Reader(g, names, file)
    taken = {id(test): outcome for test, outcome in paths(op)[path]}

    def follow(stmts: list[ast.stmt]) -> list[Scalar]:
        for i, stmt in enumerate(stmts):
            if isinstance(stmt, ast.If):
                branch = stmt.body if taken[id(stmt.test)] else stmt.orelse
                return follow([*branch, *stmts[i + 1 :]])
            if isinstance(stmt, ast.Return) and stmt.value is not None:
                value = stmt.value
                items = value.elts if isinstance(value, ast.Tuple) else [value]
                return [reader.expr(e) for e in items]
            if not _is_check(stmt):
                reader.assign(stmt)
        raise CompileError(f"{op.name}: a path through the body does not return", file, op.node)

    return follow(_statements(op))


def _classes(op: Op) -> str:
    return str(op.option("dtypes", _DEFAULT_CLASSES))


def _conditions(op: Op) -> frozenset[str]:
    return frozenset(op.option("conditions", ()))


def _tensor_names(op: Op) -> list[str]:
    return [p.name for p in op.params if p.type.is_tensor]


def _kernel(
    op: Op, name: str, outputs: list[Scalar], inputs: list[str], **options: object
) -> Kernel:
    used = {str(n.value) for n in walk(outputs) if n.op == "param"}
    params = [p.name for p in op.params if p.name in used]
    promote = str(op.option("promote", "same"))
    promote = "same" if promote in ("bool", "real", "complex") else promote
    return Kernel(
        name, str(op.option("label", op.name)), outputs, inputs, params, _conditions(op),
        _classes(op), promote, exact=frozenset(op.option("exact", ())), **options,  # type: ignore[arg-type]
    )  # fmt: skip


def plan(op: Op) -> Plan:
    """Kernels, calls and derivatives of a pointwise operation."""
    g = Graph(PRIMITIVES)
    ways = paths(op)
    variants: list[Variant] = []
    tensors = _tensor_names(op)
    for i in range(len(ways)):
        outputs = _read(op, g, i)
        suffix = f"_{i}" if len(ways) > 1 else ""
        kernel = _kernel(
            op,
            f"{op.uid}{suffix}",
            outputs,
            tensors,
            results=tuple(op.option("results", ())),
            rounded=frozenset(op.option("rounded", ())),
        )
        variants.append(Variant(outputs, kernel))
    all_params = [p.name for p in op.params if any(p.name in v.kernel.params for v in variants)]
    for v in variants:
        v.kernel.params = all_params
    out = Plan(op, variants, _selector(op))
    if op.option("differentiable", True):
        _differentiate(out, g)
    return out


def _differentiate(plan: Plan, g: Graph) -> None:
    op = plan.op
    tensors = _tensor_names(op)
    conditions = _conditions(op)
    real_only = "c" not in _classes(op)
    kind = "real" if real_only else "same"
    for i, v in enumerate(plan.variants):
        if all(n.type == "bool" for n in v.outputs):
            return
        seeds = [  # the cotangent of a complex result is complex, whatever the operands are
            g.input(
                "g" if len(v.outputs) == 1 else f"g{j}", "same" if n.type == "complex" else kind
            )
            for j, n in enumerate(v.outputs)
        ]
        inputs = [g.input(t, "bool" if t in conditions else kind) for t in tensors]
        if "vjp" in op.rules:
            v.cotangents = _explicit(op, g, seeds, inputs, v)
        else:
            reading = op.option("result_for", tensors)
            v.cotangents = [
                _use_results(g, c, v) if t in reading else c
                for t, c in zip(tensors, cotangents(g, v.outputs, seeds, inputs), strict=True)
            ]
        if len(v.outputs) == 1:
            _fuse(op, v, i if len(plan.variants) > 1 else None)
    if not any(c is not None for v in plan.variants for c in v.cotangents):
        return
    ways = paths(op)
    plan.composite_vjp = vjp_rule(op, [v.cotangents for v in plan.variants], ways)
    made = [(v.outputs, v.cotangents) for v in plan.variants]
    plan.jvp = jvp_rule(op, g, made, ways, real_only)
    if len(tensors) > 1:
        for name in tensors:
            alone = jvp_rule(op, g, made, ways, real_only, name)
            if alone is not None:
                plan.jvp_of[name] = alone


def _explicit(
    op: Op, g: Graph, seeds: list[Scalar], inputs: list[Scalar], v: Variant
) -> list[Scalar | None]:
    rule = op.rules["vjp"]
    names = {str(n.value): n for n in [*seeds, *inputs]}
    kind = "real" if "c" not in _classes(op) else "same"
    for j, _ in enumerate(v.outputs):
        name = "result" if len(v.outputs) == 1 else f"result{j}"
        names[name] = g.input(name, kind)
    for p in op.params:
        if not p.type.is_tensor:
            names[p.name] = _param(op, g, p)
    reader = Reader(g, names, op.file)
    value: ast.expr | None = None
    for stmt in rule.node.body:
        if isinstance(stmt, ast.Return):
            value = stmt.value
        else:
            reader.assign(stmt)
    items = value.elts if isinstance(value, ast.Tuple) else [value]
    if len(items) != len(inputs):
        raise CompileError(
            f"{op.name}: the rule returns {len(items)} cotangents for {len(inputs)} tensors",
            op.file,
            rule.node,
        )
    is_none = [isinstance(e, ast.Constant) and e.value is None for e in items]
    return [None if none else reader.expr(e) for e, none in zip(items, is_none, strict=True)]  # type: ignore[arg-type]


def _use_results(g: Graph, c: Scalar | None, v: Variant) -> Scalar | None:
    """A derivative that is written over `y` reads the saved result, not computing it again."""
    if c is None or len(v.outputs) != 1:
        return c
    root = v.outputs[0]
    primitive = PRIMITIVES.get(root.op)
    texts = (*primitive.partials, *primitive.vjp) if primitive else ()
    if not any(
        t and "y" in {n.id for n in ast.walk(ast.parse(t)) if isinstance(n, ast.Name)}
        for t in texts
    ):
        return c
    return _replace(g, c, root, g.input("result", root.type), {})


def _replace(g: Graph, n: Scalar, old: Scalar, new: Scalar, done: dict[int, Scalar]) -> Scalar:
    if n is old:
        return new
    if not n.args:
        return n
    if id(n) not in done:
        done[id(n)] = g.call(n.op, *(_replace(g, a, old, new, done) for a in n.args))
    return done[id(n)]


def _fuse(op: Op, v: Variant, number: int | None) -> None:
    """Kernels for the cotangents that take more than one operation."""
    active = [i for i, c in enumerate(v.cotangents) if c is not None]
    choices = [tuple(active)] if len(active) == 1 else [tuple(active), *((i,) for i in active)]
    suffix = "" if number is None else f"_{number}"
    for slots in choices:
        outputs = [v.cotangents[i] for i in slots]
        if operations(outputs) < len(slots) + 1:  # type: ignore[arg-type]
            continue  # one tensor operation each is as good
        nodes = walk(outputs)  # type: ignore[arg-type]
        if any(n.op == "underivable" for n in nodes):
            continue  # the rule refuses it
        inputs = list(dict.fromkeys(str(n.value) for n in nodes if n.op == "input"))
        name = f"{op.uid}_backward{suffix}" + ("" if len(slots) == len(active) else f"_{slots[0]}")
        kernel = _kernel(op, name, outputs, inputs)  # type: ignore[arg-type]
        kernel.classes = "".join(c for c in _classes(op) if c in "fc")
        kernel.promote, kernel.label = "same", f"{op.name}_backward"
        v.backward[slots] = kernel
