"""A unit as text and back: `read(write(unit))` writes the same.

Functions are written as the IR shows them, with `*` and defaults in their heads and whole places;
classes before them, an attribute to a line. The text describes a program and is parsed; nothing of
it is run.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from .._ir import graph_parse
from .._ir.errors import CompileError
from .._ir.graph import Function, show, show_arg
from .._ir.types import Param, Type
from .annotations import parse_type
from .calls import Given, default_value
from .unit import Class, Unit

graph_parse.more_types(parse_type)


def write(unit: Unit) -> str:
    """The text of a unit."""
    parts = [_class_text(c) for c in unit.classes.values()]
    for f in unit.functions.values():
        text = show(f)
        defaults = [
            f"  default {p.name} {'kwonly ' if p.kwonly else ''}= {_default_text(p)}\n"
            for p in f.params if p.default is not None or p.kwonly
        ]  # fmt: skip
        head, _, rest = text.partition("\n")
        parts.append(f"{head}\n{''.join(defaults)}{rest}")
    return "\n".join(parts)


def _default_text(p: Param) -> str:
    if p.default is None:
        return "required"
    value = default_value(p.default)
    return _literal(value)


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, dict) and not value:
        return "{}"
    if type(value) is tuple:
        return show_arg(tuple(value))
    return show_arg(value)


def _class_text(c: Class) -> str:
    lines = [f"class {c.name}({c.kind}):"]
    for n, t in c.attributes.items():
        place = f" in {c.places[n]}" if n in c.places else ""
        default = f" = {_literal(c.defaults[n])}" if n in c.defaults else ""
        lines.append(f"  {n}: {t}{place}{default}")
    lines += [f"  member {n} = {_literal(v)}" for n, v in c.defaults.items() if c.kind == "enum"]
    lines += [f"  child {n}" for n in c.places if n not in c.attributes]
    lines += [f"  def {n} = {f}" for n, f in c.methods.items()]
    return "\n".join(lines) + "\n"


_CLASS = re.compile(r"class ([\w.]+)\((module|class|tuple|enum|library|interface|native)\):")
_ATTRIBUTE = re.compile(r"(\w+): (.+?)(?: in (_parameters|_buffers|_modules))?(?: = (.*))?")
_DEFAULT = re.compile(r"  default (\w+) (kwonly )?= (.*)")


def read(text: str) -> Unit:
    """The unit that `write` wrote.

    Raises:
        ValueError: the text is not such a one.
    """
    unit = Unit()
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            blocks.append([line])
        elif line.strip():
            if not blocks:
                raise ValueError("script text: expected a class or a function")
            blocks[-1].append(line)
    for lines in blocks:
        if lines[0].startswith("class "):
            made = _class(lines)
            if made.name in unit.classes:
                raise ValueError(f"script text: {made.name} stands twice")
            unit.classes[made.name] = made
        else:
            f = _function(lines)
            if f.name in unit.functions:
                raise ValueError(f"script text: {f.name} stands twice")
            unit.functions[f.name] = f
    return unit


def _typed(text: str) -> Type:
    try:
        return graph_parse._type(text)
    except (SyntaxError, CompileError) as error:
        raise ValueError(f"script text: no type {text!r}") from error


def _value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_value(x) for x in graph_parse.parts(text[1:-1])]
    if text == "{}":
        return {}
    (value,) = graph_parse._Parser().args(text)
    return value


def _class(lines: list[str]) -> Class:
    m = _CLASS.fullmatch(lines[0])
    if m is None:
        raise ValueError(f"script text: expected a class, got {lines[0]!r}")
    c = Class(m[1], m[2])
    for line in lines[1:]:
        text = line.strip()
        if text.startswith("def "):
            n, _, f = text[4:].partition(" = ")
            c.methods[n] = f
        elif text.startswith("child "):
            c.places[text[6:]] = "_modules"
        elif text.startswith("member "):
            n, _, value = text[7:].partition(" = ")
            c.defaults[n] = _value(value)
        elif a := _ATTRIBUTE.fullmatch(text):
            c.attributes[a[1]] = _typed(a[2])
            if a[3]:
                c.places[a[1]] = a[3]
            if a[4] is not None:
                c.defaults[a[1]] = _value(a[4])
        else:
            raise ValueError(f"script text: expected an attribute or method, got {text!r}")
    return c


def _function(lines: list[str]) -> Function:
    defaults, plain = [], []
    for line in lines:
        m = _DEFAULT.fullmatch(line) if line.startswith("  default ") else None
        if m is None:
            plain.append(line)
        else:
            defaults.append(m)
    f = graph_parse.parse_function("\n".join(plain) + "\n")
    if not f.name:
        raise ValueError(f"script text: expected a function, got {lines[0]!r}")
    params = {p.name: p for p in f.params}
    for m in defaults:
        p = params.get(m[1])
        if p is None:
            raise ValueError(f"script text: {f.name} has no parameter {m[1]!r}")
        p.kwonly = bool(m[2])
        if m[3] != "required":
            p.default = Given(_value(m[3]))
    return f
