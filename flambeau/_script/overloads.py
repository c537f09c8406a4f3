"""Functions that are typed for each call: those with `*args`, and those with overloads.

Owns which declaration of `jit._overload` a call chooses, and the tuple that `*args` are. Must not
know how bodies are typed.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from flambeau.jit._marks import overloads_of

from .._ir.errors import CompileError
from .._ir.typed import Expr
from .._ir.types import Param, Type
from .calls import Given
from .made import Made
from .sources import source_of
from .unit import Signature

Declared = tuple[list[Param], Type | None]


def star_of(f: Any) -> str | None:
    """The name of a function's `*args`."""
    code = getattr(f, "__code__", None)
    if code is None or not code.co_flags & inspect.CO_VARARGS:
        return None
    return str(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])


def star_param(a: ast.arguments, given: Type | None, item: Type | None, source: Any) -> Param:
    """The parameter that stands for `*args`: a tuple of what a call gives."""
    assert a.vararg is not None
    if given is None:
        raise CompileError(
            f"*{a.vararg.arg}: how many there are is known only where a script calls the function; "
            "declare a list", source.file, a.vararg,
        )  # fmt: skip
    t = given if item is None else Type("Tuple", items=(item.plain(),) * len(given.items))
    return Param(a.vararg.arg, t, None, True)


class Overloads:
    """The part of a compiler that chooses among declarations."""

    signature: Any
    _made: dict[str, Made]
    #: parameters and results of chosen declarations, by the names of their functions
    _declared: dict[str, Declared]

    @staticmethod
    def packed(
        f: Any, args: Sequence[Expr], kwargs: Mapping[str, Expr], bound: int, line: int
    ) -> tuple[list[Expr], dict[str, Expr]]:
        """Arguments of a call, those that `*args` take as one tuple of that name."""
        name = star_of(f)
        if name is None:
            return list(args), dict(kwargs)
        cut = max(f.__code__.co_argcount - bound, 0)
        rest = tuple(args[cut:])
        t = Type("Tuple", items=tuple(a.type.plain() for a in rest))
        return list(args[:cut]), {**kwargs, name: Expr("tuple", rest, t, None, line)}

    def chosen(
        self, f: Any, first: Type | None, given: Any, node: ast.AST | None, typer: Any
    ) -> tuple[int, Declared] | None:
        """The declaration that a call means; None where a function has no overloads."""
        found = overloads_of(f)
        if not found:
            return None
        source = source_of(f)
        if f in found:
            raise CompileError(
                f"{f.__name__} has overloads and no function after them", source.file, source.tree
            )
        if given is None or typer is None:
            raise CompileError(
                f"{f.__name__} has overloads, of which a call chooses one; script what calls it",
                source.file, source.tree,
            )  # fmt: skip
        skip = 1 if first is not None else 0
        declared: list[Declared] = []
        for d in found:
            params, returns = self.signature(d, source_of(d), first, "")
            defaults = {p.name: p.default for p in _own_params(f)}
            declared.append(
                ([Param(p.name, p.type, p.default or defaults.get(p.name), p.kwonly)
                  for p in params], returns)
            )  # fmt: skip
        known = [Signature(f.__name__, p[skip:], r or Type("")) for p, r in declared]
        target, _ = typer._resolve(node, known, list(given[0]), dict(given[1]))
        at = known.index(target)
        return at, declared[at]


def _own_params(f: Any) -> list[Param]:
    """Parameters of what is behind overloads, whose own annotations may say anything."""
    found = inspect.signature(f).parameters.values()
    return [Param(p.name, Type("Any"), None if p.default is p.empty else Given(p.default))
            for p in found]  # fmt: skip
