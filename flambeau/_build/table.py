"""Reads `flambeau/ops/*.py` with `ast` into a list of `Op`; the files are never imported here.

Owner of the surface syntax of entries: decorators, signature types, rules. Refuses anything it
does not know, with file and line, so that a typo cannot become a silently missing operation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from .model import CPP_TYPES, Op, Param, Rule, Type

KINDS = ("pointwise", "reduction", "view", "structured", "composite")
RULES = ("vjp", "jvp", "vmap", "samples")


class TableError(SyntaxError):
    """An entry that the table's syntax does not allow."""

    def __init__(self, message: str, file: str, node: ast.AST) -> None:
        line = getattr(node, "lineno", 0)
        super().__init__(f"{file}:{line}: {message}")


def parse_type(node: ast.expr, file: str) -> Type:
    """Type of an annotation."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        left, right = node.left, node.right
        if isinstance(right, ast.Constant) and right.value is None:
            inner = parse_type(left, file)
            return Type(inner.base, True, inner.items, inner.length, inner.or_number)
        if isinstance(right, ast.Name) and right.id == "Number":
            return Type("Tensor", or_number=True)
    if isinstance(node, ast.Constant) and node.value is None:
        return Type("None")
    if isinstance(node, ast.Name):
        if node.id in CPP_TYPES:
            return Type(node.id)
        if node.id[:-1] == "Ints" and node.id[-1].isdigit():
            return Type("Ints", length=int(node.id[-1]))
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        if node.value.id == "Tuple" and isinstance(node.slice, ast.Tuple):
            return Type("Tuple", items=tuple(parse_type(e, file) for e in node.slice.elts))
    raise TableError(f"unknown type {ast.unparse(node)!r}", file, node)


def parse_params(node: ast.FunctionDef, file: str, typed: bool) -> list[Param]:
    """Parameters of an entry (typed) or of a rule (types optional: Tensor unless annotated)."""
    a = node.args
    if a.vararg or a.kwarg or a.posonlyargs:
        raise TableError("star arguments are not part of the subset", file, node)
    out: list[Param] = []
    defaults = [None] * (len(a.args) - len(a.defaults)) + list(a.defaults)
    pairs = [(p, d, False) for p, d in zip(a.args, defaults, strict=True)]
    pairs += [(p, d, True) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    for p, default, kwonly in pairs:
        if p.annotation is None:
            if typed:
                raise TableError(f"parameter {p.arg!r} has no type", file, p)
            out.append(Param(p.arg, Type(""), default, kwonly))
        else:
            out.append(Param(p.arg, parse_type(p.annotation, file), default, kwonly))
    return out


def _options(call: ast.expr, file: str) -> dict[str, object]:
    if not isinstance(call, ast.Call):
        return {}
    if call.args:
        raise TableError("decorator options are named", file, call)
    try:
        return {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except ValueError:
        raise TableError("decorator options are literals", file, call) from None


def _decorator(dec: ast.expr) -> tuple[str, ...]:
    target = dec.func if isinstance(dec, ast.Call) else dec
    return tuple(ast.unparse(target).split("."))


def parse_file(path: Path, root: Path) -> list[Op]:
    """Entries of one file, rules attached."""
    file = str(path.relative_to(root))
    ops: list[Op] = []
    for node in ast.parse(path.read_text(), file).body:
        if not isinstance(node, ast.FunctionDef):
            if isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign, ast.AnnAssign)):
                continue
            raise TableError("only entries, rules, constants and imports may stand here", file, node)
        if len(node.decorator_list) != 1:
            raise TableError(f"{node.name}: exactly one decorator", file, node)
        dec = node.decorator_list[0]
        match _decorator(dec):
            case (kind,) if kind in KINDS:
                ops.append(_entry(node, kind, _options(dec, file), file, path.stem))
            case (name, rule) if rule in RULES:
                owner = next((o for o in reversed(ops) if o.name == name), None)
                if owner is None:
                    raise TableError(f"@{name}.{rule}: no entry {name!r} above", file, node)
                if rule in owner.rules:
                    raise TableError(f"{name} has two rules {rule!r}", file, node)
                params = parse_params(node, file, typed=False)
                owner.rules[rule] = Rule(params, node, _options(dec, file))
            case other:
                raise TableError(f"unknown decorator {'.'.join(other)!r}", file, node)
    return ops


def _entry(node: ast.FunctionDef, kind: str, options: dict[str, object], file: str, family: str) -> Op:
    if node.returns is None:
        raise TableError(f"{node.name} has no return type", file, node)
    doc = ast.get_docstring(node)
    if not doc:
        raise TableError(f"{node.name} has no docstring", file, node)
    params = parse_params(node, file, typed=True)
    name = str(options.get("name", node.name))
    return Op(name, kind, params, parse_type(node.returns, file), node, file, family, doc, options)


def constants(path: Path) -> dict[str, ast.expr]:
    """Module-level constants of an entry file (upper-case names), usable in its bodies."""
    out: dict[str, ast.expr] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            out[node.targets[0].id] = node.value
    return out


def entry_files(root: Path) -> Iterator[Path]:
    """Files of the table, in a stable order."""
    folder = root / "flambeau" / "ops"
    return (p for p in sorted(folder.glob("*.py")) if not p.stem.startswith("_") and p.stem != "scalar")


def load(root: Path) -> list[Op]:
    """The whole table, overloads numbered."""
    ops = [op for path in entry_files(root) for op in parse_file(path, root)]
    seen: dict[str, int] = {}
    for op in ops:
        op.overload = seen.get(op.name, 0)
        seen[op.name] = op.overload + 1
    return ops
