"""Reads `flambeau/ops/*.py` with `ast` into `Op`s; the files are never imported here.

Owner of the surface syntax of entries: decorators, signature types, rules. Refuses anything it
does not know, with file and line, so that a typo cannot become a silently missing operation.
`drafts_of` gives a file as `Draft`s, which become `Op`s one by one; `load` all of the table, checked.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cached_property

from .._ir.errors import CompileError
from .._ir.types import parse_params, parse_type
from .model import Op, Rule, numbered
from .outline import Piece, cut, entry_files, text_of, written_out

KINDS = ("pointwise", "view", "structured", "composite")
RULES = ("vjp", "jvp", "vmap", "samples", "decompose")


_NAMED, _EACH = re.compile(r"\bname\s*="), re.compile(r"\beach\s*=")


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


class Function:
    """A piece of a file, for one of the names that `each=(...)` gives it."""

    def __init__(self, piece: Piece, file: str, each: str | None = None) -> None:
        self.piece, self.file, self.each = piece, file, each
        self.name, self.decorator = piece.name, piece.decorator
        if each is not None:
            self.name = self.name.replace("NAME", each)
            self.decorator = tuple(x.replace("NAME", each) for x in self.decorator)

    @cached_property
    def node(self) -> ast.FunctionDef:
        node = self.piece.node
        if len(node.decorator_list) != 1:
            raise TableError(f"{node.name}: exactly one decorator", self.file, node)
        return node if self.each is None else written_out(node, self.each)

    @property
    def options(self) -> dict[str, object]:
        call = self.piece.call
        return _options(call if self.each is None else written_out(call, self.each), self.file)

    def error(self, message: str) -> TableError:
        return TableError(message, self.file, self.node)


class Draft:
    """An entry that is not parsed yet.

    Attributes:
        first: of an overload: the entry that it is an overload of.
        overload: place among the entries of its name.
        name: the public name.
    """

    def __init__(self, function: Function, family: str, first: Draft | None = None) -> None:
        self.function, self.family, self.first = function, family, first
        self.rules: dict[str, Function] = {}
        self.overload = 0
        given = function.options.get("name") if _NAMED.search(function.piece.head) else None
        self.name = str(given or function.name)

    @property
    def uid(self) -> str:
        return numbered(self.name, self.overload)

    @cached_property
    def op(self) -> Op:
        f = self.function
        node, options = f.node, f.options
        kind = f.decorator[0]
        if self.first is not None:
            kind = str(options.pop("kind", self.first.op.kind))
        made = _entry(node, kind, options, f.file, self.family)
        made.extra, made.overload = self.first is not None, self.overload
        for key, rule in self.rules.items():
            params = parse_params(rule.node, f.file, typed=False)
            made.rules[key] = Rule(params, rule.node, rule.options)
        return made


def _functions(pieces: list[Piece], file: str) -> Iterator[Function]:
    for piece in pieces:
        each: object = ()
        if _EACH.search(piece.head):
            each = Function(piece, file).options.get("each", ())
        assert isinstance(each, tuple)
        if each:
            yield from (Function(piece, file, str(name)) for name in each)
        else:
            yield Function(piece, file)


def drafts_of(text: str, file: str) -> list[Draft]:
    """Entries of one file, rules attached, overloads numbered (they stand in one file)."""
    family = os.path.basename(file).removesuffix(".py")
    drafts: list[Draft] = []
    first_of: dict[str, Draft] = {}
    last_of: dict[str, Draft] = {}
    for f in _functions(cut(text)[0], file):
        match f.decorator:
            case (kind,) if kind in KINDS:
                drafts.append(Draft(f, family))
                first_of.setdefault(f.name, drafts[-1])
                last_of[f.name] = drafts[-1]
            case (name, "overload"):
                first = first_of.get(name)
                if first is None or f.name != name:
                    raise f.error(f"@{name}.overload: no entry {name!r} above")
                drafts.append(Draft(f, family, first))
                last_of[name] = drafts[-1]
            case (name, rule) if rule in RULES:
                owner = last_of.get(name)
                if owner is None:
                    raise f.error(f"@{name}.{rule}: no entry {name!r} above")
                if rule in owner.rules:
                    raise f.error(f"{name} has two rules {rule!r}")
                owner.rules[rule] = f
            case other:
                raise f.error(f"unknown decorator {'.'.join(other)!r}")
    seen: dict[str, int] = {}
    for d in drafts:
        d.overload = seen.get(d.name, 0)
        seen[d.name] = d.overload + 1
    return drafts


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


def constants(root: str | os.PathLike[str], file: str) -> dict[str, ast.expr]:
    """Module-level constants of an entry file (upper-case names), usable in its bodies."""
    out: dict[str, ast.expr] = {}
    for node in _outside(text_of(root, file)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            out[node.targets[0].id] = node.value
    return out


def _outside(text: str) -> list[ast.stmt]:
    """Statements that are no part of an entry."""
    return ast.parse(cut(text)[1]).body


def _check_outside(text: str, file: str) -> None:
    for node in _outside(text):
        if not isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign, ast.AnnAssign)):
            raise TableError(
                "only entries, rules, constants and imports may stand here", file, node
            )


def load(
    root: str | os.PathLike[str], errors: list[CompileError] | None = None
) -> list[Op]:
    """The whole table, overloads numbered. Errors are raised, or left out and put in `errors`."""
    texts = {file: text_of(root, file) for file in entry_files(root)}
    for file, text in texts.items():
        _check_outside(text, file)
    ops = [d.op for file, text in texts.items() for d in drafts_of(text, file)]
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
