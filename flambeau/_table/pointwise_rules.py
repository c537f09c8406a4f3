"""Derivatives of pointwise operations as rules over tensor operations, in the table's own syntax.

Turns scalar graphs back into Python: each shared node becomes a variable. The result is compiled
like a rule that stands in the table, so that higher derivatives and transforms follow.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .._ir.scalars import Scalar, walk
from .model import Op
from .scalar_diff import tangents
from .scalar_expr import Graph

_OPERATORS = {
    "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})", "div": "({0} / {1})",
    "neg": "(-{0})", "pow": "({0} ** {1})",
}  # fmt: skip

Path = Sequence[tuple[ast.expr, bool]]


class _Writer:
    """Python text of nodes; shared ones become variables, numbered from `first`."""

    def __init__(self, op: Op, roots: Sequence[Scalar], tensors: set[str], first: int = 0) -> None:
        self.op = op
        self.lines: list[str] = []
        self.tensors = tensors
        self.text: dict[int, str] = {}
        nodes = walk(roots)
        uses: dict[int, int] = {}
        for n in nodes:
            for a in n.args:
                uses[id(a)] = uses.get(id(a), 0) + 1
        for n in nodes:
            text = self._node(n)
            if n.args and uses.get(id(n), 0) > 1:
                name = f"v{first + len(self.lines)}"
                self.lines.append(f"{name} = {text}")
                text = name
            self.text[id(n)] = text

    def _node(self, n: Scalar) -> str:
        if n.op == "const":
            if n.value in (float("inf"), float("-inf")):
                return "inf" if n.value > 0 else "(-inf)"
            return "nan" if n.value != n.value else repr(n.value)
        if n.op in ("input", "param"):
            return str(n.value)
        if n.op == "complex":
            return f"complex({', '.join(self._part(a, n) for a in n.args)})"
        args = [self.text[id(a)] for a in n.args]
        if n.op == "conj" and n.args[0].op == "param":
            return f"{args[0]}.conj()"
        if n.op == "imag":  # of real numbers, too
            return f"_imaginary({args[0]})"
        if n.op == "underivable":
            return f"underivable({args[0]}, {self.op.name!r})"
        if n.op in _OPERATORS:
            return _OPERATORS[n.op].format(*args)
        if n.op in ("inf", "nan"):
            return n.op
        return f"{n.op}({', '.join(args)})"

    def _part(self, a: Scalar, n: Scalar) -> str:
        """A part of a complex number; a constant takes the other part's shape."""
        if a.op != "const":
            return self.text[id(a)]
        other = next(b for b in n.args if b is not a)
        return f"full_like({self.text[id(other)]}, {a.value})"


def _function(op: Op, params: Sequence[str], body: list[str]) -> ast.FunctionDef:
    text = "\n".join([f"def _({', '.join(params)}):", *("    " + x for x in body)])
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    for n in ast.walk(node):
        if hasattr(n, "lineno"):
            n.lineno = n.end_lineno = op.node.lineno  # type: ignore[attr-defined]
    return node


def _branches(bodies: Sequence[list[str]], paths: Sequence[Path]) -> list[str]:
    """The variants' bodies, chosen by the tests of the operation's own body."""
    if len(bodies) == 1:
        return bodies[0]
    lines: list[str] = []
    for i, (body, path) in enumerate(zip(bodies, paths, strict=True)):
        tests = [ast.unparse(t) if taken else f"not ({ast.unparse(t)})" for t, taken in path]
        if i == len(bodies) - 1:
            lines += body
        else:
            lines += [f"if {' and '.join(tests)}:", *("    " + x for x in body)]
    return lines


def _tested(op: Op, paths: Sequence[Path]) -> list[str]:
    names = {
        n.id for path in paths for t, _ in path for n in ast.walk(t) if isinstance(n, ast.Name)
    }
    return [p.name for p in op.params if p.name in names]


def _used(op: Op, roots: Sequence[Scalar]) -> set[str]:
    return {str(n.value) for n in walk(roots) if n.op in ("input", "param")}


def vjp_rule(
    op: Op, variants: Sequence[Sequence[Scalar | None]], paths: Sequence[Path]
) -> ast.FunctionDef:
    """`def _(g, …)` that returns the cotangent of each tensor parameter.

    Cotangents have the broadcast shape and the computed type; the engine makes them conform.
    """
    tensors = [p.name for p in op.params if p.type.is_tensor]
    outputs = len(op.outputs)
    used: set[str] = set()
    bodies = []
    named = 0  # variables of other variants serve other cotangents
    for cotangents in variants:
        roots = [c for c in cotangents if c is not None]
        used |= _used(op, roots)
        writer = _Writer(op, roots, set(tensors), named)
        named += len(writer.lines)
        values = []
        for c in cotangents:
            if c is None:
                values.append("None")
                continue
            values.append(writer.text[id(c)])
        bodies.append([*writer.lines, f"return {', '.join(values)}"])
    used |= set(_tested(op, paths))
    seeds = ["g"] if outputs == 1 else [f"g{j}" for j in range(outputs)]
    params = [*seeds, *(p.name for p in op.params if p.name in used)]
    params += [r for r in ("result", *(f"result{j}" for j in range(outputs))) if r in used]
    return _function(op, params, _branches(bodies, paths))


def jvp_rule(
    op: Op,
    g: Graph,
    variants: Sequence[tuple[Sequence[Scalar], Sequence[Scalar | None]]],
    paths: Sequence[Path],
    real_only: bool,
    only: str | None = None,
) -> ast.FunctionDef | None:
    """`def _(input, input_t, …)` that returns the tangent of each result.

    Args:
        op: the entry.
        g: where its expressions are.
        variants: of each variant, its results and the cotangents of its tensors.
        paths: which variant is taken when.
        real_only: numbers are real.
        only: the tensor that has a tangent, if it is known that no other has one. What it gives
            need not have the shape and the type of the result.
    """
    tensors = [p.name for p in op.params if p.type.is_tensor]
    kind = "real" if real_only else "same"
    used: set[str] = set()
    bodies = []
    for outputs, cotangents in variants:
        given = {
            id(g.input(t, kind)): g.input(f"{t}_t", kind)
            for t, c in zip(tensors, cotangents, strict=True)
            if c is not None and only in (None, t)
        }
        if "vjp" in op.rules:
            served = [
                c if only in (None, t) else None for t, c in zip(tensors, cotangents, strict=True)
            ]
            roots = [_transposed(g, served, tensors, kind, real_only)]
        else:
            roots = tangents(g, outputs, given)
        if any(r is None for r in roots):
            return None
        used |= _used(op, roots)  # type: ignore[arg-type]
        writer = _Writer(op, roots, set(tensors))  # type: ignore[arg-type]
        bodies.append([*writer.lines, "return " + ", ".join(writer.text[id(r)] for r in roots)])
    used |= set(_tested(op, paths))
    names = [n for p in op.params for n in (p.name, f"{p.name}_t") if n in used]
    names += [r for r in ("result", *(f"result{j}" for j in range(len(op.outputs)))) if r in used]
    return _function(op, names, _branches(bodies, paths))


def _transposed(
    g: Graph,
    cotangents: Sequence[Scalar | None],
    tensors: Sequence[str],
    kind: str,
    real_only: bool,
) -> Scalar | None:
    """Tangent from an explicit rule: it is linear in `g`, and conjugate to the tangent's map."""
    total: Scalar | None = None
    for name, c in zip(tensors, cotangents, strict=True):
        if c is None:
            continue
        t = g.input(f"{name}_t", kind)
        seed = g.input("g", kind)
        term = _substitute(g, c, seed, g.call("conj", t), {})
        term = term if real_only else g.call("conj", term)
        total = term if total is None else g.call("add", total, term)
    return total


def _substitute(g: Graph, n: Scalar, old: Scalar, new: Scalar, done: dict[int, Scalar]) -> Scalar:
    if n is old:
        return new
    if not n.args:
        return n
    if id(n) not in done:
        done[id(n)] = g.call(n.op, *(_substitute(g, a, old, new, done) for a in n.args))
    return done[id(n)]
