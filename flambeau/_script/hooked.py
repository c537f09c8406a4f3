"""A module's `forward` between its hooks.

Owns the function that runs them in order, written as a program writes it and typed like one. What
a hook may give is eager's: None leaves the value as it is. Must not know how code is made.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from .._ir.coerce import cost
from .._ir.errors import CompileError
from .._ir.typed import Expr
from .._ir.types import NONE, Param, Type
from .hooks import PLAIN, Hooks
from .made import Made, Opening
from .sources import NoSource, Source, names_of, source_of
from .typer import ScriptTyper
from .unit import Signature, Unit


class Hooked:
    """The part of a compiler that knows hooks."""

    unit: Unit
    _made: dict[str, Made]
    _open: set[str]
    _check_known: Any
    _method: Any
    method: Any
    remember: Any

    def _hooked(self, made: Made, node: ast.AST | None, typer: Any) -> Signature:
        """`forward` between the hooks of the module."""
        known = made.signatures.get("forward")
        if known is not None:
            self._check_known(known, node, typer)
            return known
        opened = Signature(f"{made.record.name}.forward", [], Type(""))
        opening = Opening(made.signatures, "forward")
        opening.keep(opened)
        self._open.add(opened.name)
        try:
            return opening.keep(forward_with(self, made.record.type, made.hooks, node, typer))
        except BaseException:
            opening.drop()
            raise
        finally:
            self._open.discard(opened.name)

    def hook(self, t: Type, label: str, f: Any, given: Mapping[str, Type]) -> Signature:
        """A hook as a method of the module's class."""
        return self._method(self._made[t.base], label, f, None, None, None, given)

    def written(self, t: Type, label: str, lines: Sequence[str], params: list[Param]) -> Signature:
        """A method written here, where the module's own `forward` stands."""
        f = inspect.unwrap(self._made[t.base].python.forward)  # type: ignore[attr-defined]
        source = source_of(f)
        text = "\n".join(f" {line}" for line in lines)
        tree = ast.parse(f"def {label}({', '.join(p.name for p in params)}):\n{text}").body[0]
        assert isinstance(tree, ast.FunctionDef)
        for n in ast.walk(tree):
            if hasattr(n, "lineno"):
                n.lineno = n.end_lineno = source.tree.lineno
        name = f"{t.base}.{label}"
        body = ScriptTyper(self, tree, params, None, source.file, names_of(f), name)
        done = self.unit.functions[name] = body.compile()
        return Signature(name, params, done.returns)


def forward_with(compiler: Any, t: Type, hooks: Hooks, node: Any, typer: Any) -> Signature:
    """The function of the unit that runs a module's `forward` between its hooks."""
    plain: Signature = compiler.method(t, PLAIN, node, typer)
    positional = [p for p in plain.params[1:] if not p.kwonly]
    given = Type("Tuple", items=tuple(p.type.plain() for p in positional))
    lines = ["args = (" + "".join(f"{p.name}, " for p in positional) + ")"]
    for name, f in list(hooks.named().items())[: len(hooks.before)]:
        made = _hook(compiler, t, name, f, [given])
        got, call = made.returns, f"{plain.params[0].name}.{name}(args)"
        if got == NONE:
            lines.append(call)
            continue
        whole = got.base == "Tuple"
        new = got.required() if whole else Type("Tuple", items=(got.required(),))
        _check_same(new, given, got, f) if got.optional else None
        value = "got" if whole else "(got,)"
        lines.append(f"got = {call}")
        lines += ["if got is not None:", f" args = {value}"] if got.optional else [
            f"args = {value}"
        ]  # fmt: skip
        given = new
    named = "".join(f", {p.name}={p.name}" for p in plain.params if p.kwonly)
    _check_taken(given, positional, hooks)
    lines.append(f"out = {plain.params[0].name}.{PLAIN}(*args{named})")
    out = plain.returns.plain()
    for name, f in list(hooks.named().items())[len(hooks.before) :]:
        made = _hook(compiler, t, name, f, [given, out])
        got, call = made.returns, f"{plain.params[0].name}.{name}(args, out)"
        if got == NONE:
            lines.append(call)
            continue
        _check_same(got.required(), out, got, f) if got.optional else None
        lines.append(f"got = {call}")
        lines += ["if got is not None:", " out = got"] if got.optional else ["out = got"]
        out = got.required().plain() if got.optional else got.plain()
    lines.append("return out")
    made = compiler.written(t, "forward", lines, plain.params)
    assert isinstance(made, Signature)
    return made


def _hook(compiler: Hooked, t: Type, name: str, f: Any, given: list[Type]) -> Signature:
    """A hook as a method; what it does not annotate has the type of what it is given."""
    try:
        source = source_of(f)
    except NoSource as error:
        raise CompileError(str(error), "") from None
    assert isinstance(source.tree, ast.FunctionDef)
    a = source.tree.args
    if len(a.args) != 1 + len(given) or a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs:
        what = "module, args" if len(given) == 1 else "module, args, output"
        raise CompileError(f"a hook takes ({what})", source.file, source.tree)
    compiler.remember(source)
    named = {p.arg: g for p, g in zip(a.args[1:], given, strict=True)}
    made: Signature = compiler.hook(t, name, f, named)
    for p, g in zip(made.params[1:], given, strict=True):
        if cost(Expr("placed", (), g), p.type) is None:
            raise CompileError(
                f"the hook {f.__name__}: {p.name!r} is declared {p.type}, and given {g}",
                source.file, source.tree,
            )  # fmt: skip
    return made


def _check_same(new: Type, old: Type, got: Type, f: Any) -> None:
    if new.plain() != old.plain():
        source: Source = source_of(f)
        raise CompileError(
            f"the hook {f.__name__} gives {got}, and {old} where that is None; give one type",
            source.file, source.tree,
        )  # fmt: skip


def _check_taken(given: Type, positional: list[Param], hooks: Hooks) -> None:
    fits = len(given.items) == len(positional) and all(
        cost(Expr("placed", (), g), p.type) is not None
        for g, p in zip(given.items, positional, strict=True)
    )
    if not fits:
        source = source_of(hooks.before[-1])
        wanted = Type("Tuple", items=tuple(p.type for p in positional))
        raise CompileError(
            f"hooks before forward give {given}, and forward takes {wanted}",
            source.file, source.tree,
        )  # fmt: skip
