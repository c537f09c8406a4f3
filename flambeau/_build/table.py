"""Reads `flambeau/ops/*.py` with `ast` into a list of `Op`; the files are never imported here.

Owner of the surface syntax of entries: decorators, signature types, rules. Refuses anything it
does not know, with file and line, so that a typo cannot become a silently missing operation.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path

from .._ir.errors import CompileError
from .._ir.types import parse_params, parse_type
from .model import Op, Rule

KINDS = ("pointwise", "reduction", "view", "structured", "composite")
RULES = ("vjp", "jvp", "vmap", "samples", "decompose")


class TableError(CompileError):
    """An entry that the table's syntax does not allow."""


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


def _named(text: str, name: str) -> str:
    return text.replace("NAME", name)


def written_out(node: ast.FunctionDef, name: str) -> ast.FunctionDef:
    """A copy of the entry with `NAME` replaced in names and texts."""
    new = copy.deepcopy(node)
    for x in ast.walk(new):
        for key, value in ast.iter_fields(x):
            if isinstance(value, str):
                setattr(x, key, _named(value, name))
    return new


def _nodes(path: Path, file: str) -> Iterator[ast.stmt]:
    """Statements of the file; an entry with `each=(...)` stands for one entry per name."""
    for node in ast.parse(path.read_text(), file).body:
        each: object = ()
        if isinstance(node, ast.FunctionDef) and len(node.decorator_list) == 1:
            each = _options(node.decorator_list[0], file).get("each", ())
        if not each:
            yield node
            continue
        assert isinstance(node, ast.FunctionDef) and isinstance(each, tuple)
        for name in each:
            yield written_out(node, name)


def parse_file(path: Path, root: Path) -> list[Op]:
    """Entries of one file, rules attached."""
    file = str(path.relative_to(root))
    ops: list[Op] = []
    for node in _nodes(path, file):
        if not isinstance(node, ast.FunctionDef):
            if isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign, ast.AnnAssign)):
                continue
            raise TableError(
                "only entries, rules, constants and imports may stand here", file, node
            )
        if len(node.decorator_list) != 1:
            raise TableError(f"{node.name}: exactly one decorator", file, node)
        dec = node.decorator_list[0]
        match _decorator(dec):
            case (kind,) if kind in KINDS:
                ops.append(_entry(node, kind, _options(dec, file), file, path.stem))
            case (name, "overload"):
                first = next((o for o in ops if o.node.name == name), None)
                if first is None or first.node.name != node.name:
                    raise TableError(f"@{name}.overload: no entry {name!r} above", file, node)
                options = _options(dec, file)
                kind = str(options.pop("kind", first.kind))
                ops.append(_entry(node, kind, options, file, path.stem))
                ops[-1].extra = True
            case (name, rule) if rule in RULES:
                owner = next((o for o in reversed(ops) if o.node.name == name), None)
                if owner is None:
                    raise TableError(f"@{name}.{rule}: no entry {name!r} above", file, node)
                if rule in owner.rules:
                    raise TableError(f"{name} has two rules {rule!r}", file, node)
                params = parse_params(node, file, typed=False)
                owner.rules[rule] = Rule(params, node, _options(dec, file))
            case other:
                raise TableError(f"unknown decorator {'.'.join(other)!r}", file, node)
    return ops


def _entry(
    node: ast.FunctionDef, kind: str, options: dict[str, object], file: str, family: str
) -> Op:
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
    return (
        p for p in sorted(folder.glob("*.py")) if not p.stem.startswith("_") and p.stem != "scalar"
    )


def load(root: Path, errors: list[CompileError] | None = None) -> list[Op]:
    """The whole table, overloads numbered. Errors are raised, or left out and put in `errors`."""
    ops = [op for path in entry_files(root) for op in parse_file(path, root)]
    seen: dict[str, int] = {}
    kept: list[Op] = []
    for op in ops:
        op.overload = seen.get(op.name, 0)
        if op.overload and not op.extra:
            first = next(o for o in ops if o.name == op.name)
            message = f"{op.name} has an entry in {first.file} already; write @{op.name}.overload"
            if errors is None:
                raise TableError(message, op.file, op.node)
            errors.append(TableError(message, op.file, op.node))
            continue
        kept.append(op)
        seen[op.name] = op.overload + 1
    return kept
