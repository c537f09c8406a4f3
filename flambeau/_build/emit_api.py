"""The C++ face of the table: public functions and methods of tensors, as programs call them.

Owns which C++ forms a public name has: argument lists by reference, numbers in the place of
tensors, `TensorOptions` in place of dtype and device, `NAME_out` and `NAME_outf`. What they do is
`ops::`; the classes of their arguments are csrc/api/flambeau. Rules: docs/design/cpp.md.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .._ir.types import Param
from .._table.fronts import Form, Group, groups
from .._table.model import Op
from .compiler import Unit
from .cpp_types import cpp_param, cpp_value
from .emit_modules import function_names
from .emit_op import cpp_name, default_text, out_names

LIMIT = 1500
_HEAD = "// Generated from flambeau/ops by flambeau._build; do not edit.\n"
_SOURCE = (
    f"{_HEAD}#define FLAMBEAU_API\n" + '#include "flambeau/flambeau.h"\n#include "gen/ops.h"\n'
)
#: names of C++ that the table's names may be
_KEYWORDS = frozenset({"and", "or", "not", "xor", "double", "float", "int", "bool", "char"})
#: public namespaces of C++ by the modules of the bindings
_SPACES = {"": "", "nn.functional": "nn::functional", "special": "special"}


@dataclass
class Argument:
    """One parameter of a public form: how it is declared, and what `ops::` is given for it."""

    type: str
    name: str
    default: str = ""

    def declared(self, defaults: bool) -> str:
        return f"{self.type} {self.name}" + (
            f" = {self.default}" if defaults and self.default else ""
        )


@dataclass
class Declared:
    """A form that programs can call: a function of a namespace, or a method (None)."""

    space: str | None
    name: str
    arguments: list[Argument]


@dataclass
class Scope:
    """Forms declared in one namespace or class: C++ must know them apart at every call."""

    taken: dict[tuple[str, ...], None] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def admit(self, name: str, args: list[Argument]) -> bool:
        """Takes the form in, without the defaults that would make short calls ambiguous."""
        required = 1 + max((i for i, a in enumerate(args) if not a.default), default=-1)
        if (name, *(a.type for a in args)) in self.taken:
            return False
        for count in range(len(args), required - 1, -1):
            key = (name, *(a.type for a in args[:count]))
            if key in self.taken:
                for a in args[: count + 1]:
                    a.default = ""
                break
            self.taken[key] = None
        return True


def _type(p: Param, number: bool) -> str:
    """C++ type of a parameter of a public form."""
    if number:
        return "const Scalar&"
    base, optional = p.type.base, p.type.optional
    if base == "str":
        return "const std::optional<Text>&" if optional else "const Text&"
    if base == "Ints":
        return "OptionalIntArrayRef" if optional else "IntArrayRef"
    if base == "Tensors" and not optional:
        return "TensorList"
    return cpp_param(p.type)


def _default(p: Param) -> str:
    if p.required:
        return ""
    none = isinstance(p.default, ast.Constant) and p.default.value is None
    if p.type.base == "Ints":
        return "std::nullopt" if none else default_text(p).removeprefix("Ints")
    if p.type.base == "str" and not none:
        return f"Text({default_text(p)})"
    return "std::nullopt" if none else default_text(p)


def _given(p: Param, number: bool) -> str:
    """What `ops::` is given for a parameter."""
    name = cpp_name(p.name)
    if number:
        return f"wrapped_number({name})"
    base, optional = p.type.base, p.type.optional
    if base == "str":
        return f"api::text({name})"
    if base == "Ints":
        return f"api::sized({name}, {p.type.length})" if p.type.length else f"{name}.ints()"
    if base == "Tensors" and not optional:
        return f"{name}.vec()"
    if base == "Tensor" and optional:
        return f"api::defined_or_none({name})"
    return name


def _numbers(op: Op) -> Iterator[frozenset[str]]:
    """Which tensors are given as numbers: any that may be, but never all tensors of an entry."""
    loose = [p.name for p in op.params if p.type.or_number]
    tensors = sum(p.type.is_tensor for p in op.params)
    for count in range(len(loose) + 1):
        for chosen in itertools.combinations(loose, count):
            if not chosen or len(chosen) < tensors:
                yield frozenset(chosen)


def _is_factory(op: Op) -> bool:
    names = {p.name: p for p in op.params}
    return "device" in names and "dtype" in names and names["dtype"].type.optional


#: parameters that options stand for
_OPTIONS = {"dtype": "options.dtype_opt()", "device": "options.device_opt()"}


def _arguments(params: Sequence[Param], numbers: frozenset[str]) -> list[Argument]:
    """Arguments in order; defaults behind the last that has none.

    `var(x, 1)` is the variance of dim 1: where a truth value is the whole difference between two
    overloads, a number is none.
    """
    args = [Argument(_type(p, p.name in numbers), cpp_name(p.name), _default(p)) for p in params]
    first = next((a for a in args if a.name not in ("input", "self")), None)
    if first and first.name == "unbiased":
        first.type = "Flag"
    last = max((i for i, a in enumerate(args) if not a.default), default=-1)
    for a in args[: last + 1]:
        a.default = ""
    return args


def _with_options(args: list[Argument], generator: bool) -> list[Argument]:
    """Options behind the arguments, but before the memory format; a generator has no default."""
    behind = [a for a in args if a.name == "memory_format"]
    front = [a for a in args if a.name != "memory_format" and (generator or a.name != "generator")]
    if generator:
        at = next(i for i, a in enumerate(front) if a.name == "generator")
        front.append(front.pop(at))
        for a in front:
            a.default = ""
    return [*front, Argument("const TensorOptions&", "options", "{}"), *behind]


class Face:
    """Collects declarations by namespace and their definitions."""

    def __init__(self) -> None:
        self.spaces: dict[str, Scope] = {}
        self.methods = Scope()
        self.definitions: dict[str, list[str]] = {}
        self.forms: list[Declared] = []

    def _function(self, space: str, name: str, ret: str, args: list[Argument], body: str) -> None:
        scope = self.spaces.setdefault(space, Scope())
        if not scope.admit(name, args):
            return
        self.forms.append(Declared(space, name, args))
        scope.lines.append(f"{ret} {name}({', '.join(a.declared(True) for a in args)});")
        head = f"{ret} {name}({', '.join(a.declared(False) for a in args)})"
        self.definitions.setdefault(space, []).append(f"{head} {{ {body} }}")

    def _method(self, name: str, ret: str, args: list[Argument], body: str) -> None:
        if not self.methods.admit(name, args):
            return
        self.forms.append(Declared(None, name, args))
        declared = ", ".join(a.declared(True) for a in args)
        self.methods.lines.append(f"{ret} {name}({declared}) const;")
        head = f"{ret} Tensor::{name}({', '.join(a.declared(False) for a in args)}) const"
        self.definitions.setdefault("", []).append(f"{head} {{ {body} }}")

    def function(self, space: str, name: str, form: Form) -> None:
        """All C++ forms of a function under one name."""
        op, ret = form.op, cpp_value(form.op.returns)
        for numbers in _numbers(op):
            if form.inplace and op.params[0].name in numbers:
                continue
            params = list(form.params)
            given = {p.name: _given(p, p.name in numbers) for p in params}
            if _is_factory(op):
                params = [p for p in params if p.name not in _OPTIONS]
                self._factory(space, name, form, numbers, given, params)
            else:
                args = _arguments(params, numbers)
                self._function(space, name, ret, args, f"return {_call(form, given)};")
            if form.has_out:
                self._outs(space, name, form, numbers, given, params)

    def _factory(self, space: str, name: str, form: Form, numbers: frozenset[str],
                 given: dict[str, str], params: list[Param]) -> None:  # fmt: skip
        drawn = any(p.name == "generator" for p in params)
        for generator in (True, False) if drawn else (False,):
            args = _with_options(_arguments(params, numbers), generator)
            told = given | _OPTIONS | ({} if generator else {"generator": "std::nullopt"})
            body = f"return api::with_options({_call(form, told)}, options);"
            self._function(space, name, "Tensor", args, body)

    def _outs(self, space: str, name: str, form: Form, numbers: frozenset[str],
              given: dict[str, str], params: list[Param]) -> None:  # fmt: skip
        op = form.op
        outs = out_names(op)
        written = [Argument("const Tensor&", o) for o in outs]
        told = given | (dict.fromkeys(_OPTIONS, "std::nullopt") if _is_factory(op) else {})
        ret = "Tensor" if len(outs) == 1 else cpp_value(op.returns)
        called = ", ".join([*(told[p.name] for p in op.params), *outs])
        body = f"return ops::{op.name}_out({called});"
        args = _arguments(params, numbers)
        self._function(space, f"{name}_out", ret, [*written, *args], body)
        bare = [Argument(a.type, a.name) for a in _arguments(params, numbers)]
        self._function(space, f"{name}_outf", ret, [*bare, *written], body)

    def method(self, name: str, form: Form) -> None:
        """All C++ forms of a method under one name."""
        op = form.op
        ret = cpp_value(op.returns)
        self_param, *params = form.params
        changed = form.inplace or op.mutates
        for numbers in _numbers(op):
            if self_param.name in numbers:
                continue
            given = {p.name: _given(p, p.name in numbers) for p in params}
            given[self_param.name] = "*this"
            if _is_factory(op):
                rest = [p for p in params if p.name not in _OPTIONS]
                args = _with_options(_arguments(rest, numbers), False)
                told = given | _OPTIONS | {"generator": "std::nullopt"}
                body = f"return api::with_options({_call(form, told)}, options);"
            else:
                args = _arguments(params, numbers)
                body = f"return {_call(form, given)};"
            if changed and ret in ("Tensor", "void"):
                body = f"{_call(form, given)}; return const_cast<Tensor&>(*this);"
                self._method(name, "Tensor&", args, body)
            else:
                self._method(name, ret, args, body)


def _call(form: Form, given: dict[str, str]) -> str:
    return f"ops::{form.cpp}({', '.join(given[p.name] for p in form.op.params)})"


def _names(g: Group) -> list[tuple[str, str]]:
    """(namespace, name) of a group's functions, the first ones of which the others are aliases."""
    found: dict[tuple[str, str], None] = {}
    suffix = "_" if g.functions[0].inplace else ""
    own = g.functions[0].op.name.removeprefix("functional_") + suffix
    apart = g.functions[0].op.name.startswith("functional_")
    for space in g.spaces or {"": None}:
        if space == "nn.functional" and not apart:
            found["", own] = None
        elif space == "special":
            found["", f"special_{g.name.removeprefix('special_')}"] = None
            found["special", g.name.removeprefix("special_")] = None
            continue
        if space in _SPACES:
            found[_SPACES[space], g.name] = None
        else:
            found["", own] = None
    for alias in g.aliases:
        *space, name = alias.split(".")
        found["::".join(space), name] = None
        if space == ["special"]:
            found["", f"special_{name}"] = None
    return [(s, n) for s, n in found if not n.startswith("_") and n not in _KEYWORDS]


def _covered(form: Form, others: Sequence[Form]) -> bool:
    """Does another form take the same with lists in the place of one number?"""
    lists = {"int": "Ints", "float": "Floats"}
    for other in others:
        pairs = [
            (p.type.base, q.type.base) for p, q in zip(form.params, other.params, strict=False)
        ]
        same = len(form.params) == len(other.params) and form.inplace == other.inplace
        if same and all(a == b or lists.get(a) == b for a, b in pairs):
            if any(a != b for a, b in pairs):
                return True
    return False


def face(unit: Unit) -> Face:
    """Every public form of the table."""
    out = Face()
    with_options = function_names()
    for g in groups(unit.ops):
        if g.functions:
            for space, name in _names(g):
                if space == "nn::functional" and name in with_options:
                    continue
                for form in g.functions:
                    if _covered(form, g.functions):
                        continue
                    out.function(space, name, form)
        for name in [g.name, *g.alias_methods]:
            if name.startswith("_") or name in _KEYWORDS:
                continue
            for form in g.methods:
                if not _covered(form, g.methods):
                    out.method(name, form)
    return out


def files(unit: Unit) -> dict[str, str]:
    """File name -> text."""
    f = face(unit)
    parts = []
    for space, scope in f.spaces.items():
        text = "\n".join(scope.lines)
        parts.append(f"namespace {space} {{\n{text}\n}}" if space else text)
    functions = "\n\n".join(parts)
    out = {
        "api/methods.h": f"{_HEAD}// Inside of class Tensor\n" + "\n".join(f.methods.lines) + "\n",
        "api/functions.h": f"{_HEAD}#pragma once\n\nnamespace flambeau {{\n\n{functions}\n\n}}\n",
    }
    for space, lines in f.definitions.items():
        for i in range(0, len(lines), LIMIT):
            name = "_".join(["api", *space.split("::"), *([str(i // LIMIT + 1)] if i else [])])
            opened = f"flambeau::{space}" if space else "flambeau"
            body = "\n".join(lines[i : i + LIMIT])
            name = name.replace("__", "_").rstrip("_")
            out[f"{name}.cpp"] = f"{_SOURCE}\nnamespace {opened} {{\n\n{body}\n\n}}\n"
    return out
