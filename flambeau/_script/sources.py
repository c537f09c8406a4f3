"""The syntax tree of a Python function or class, with the places of its file.

Owns how sources are found. Reads files as `inspect` does, runs nothing.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .._ir.errors import CompileError


@dataclass(frozen=True)
class Source:
    """A definition, where it stands, and what its names mean."""

    tree: ast.FunctionDef | ast.ClassDef
    file: str
    lines: tuple[str, ...]  # of the whole file as far as needed; line n is lines[n - 1]
    comment: str = ""  # a type comment: `(int, Tensor) -> Tensor`


class NoSource(TypeError):
    """A function whose text cannot be had."""


def source_of(obj: Callable[..., Any] | type) -> Source:
    """The definition of a function or class.

    Raises:
        NoSource: there is no text, or none that is one definition.
    """
    return _read(inspect.unwrap(obj))


def forget() -> None:
    """Sources are read anew from now on: before each script, for files may have changed."""
    _read.cache_clear()


@lru_cache(256)
def _read(obj: Callable[..., Any] | type) -> Source:
    name = getattr(obj, "__qualname__", str(obj))
    try:
        found = _quick(obj)
        lines, first, tree = found or (*inspect.getsourcelines(obj), None)
        file = inspect.getsourcefile(obj) or "<script>"
    except (OSError, TypeError) as error:
        raise NoSource(
            f"jit.script: the source of {name} is not there ({error}); it must come from a file"
        ) from None
    first = max(first, 1)
    if tree is None:
        try:
            tree = _tree(lines, first)
        except (SyntaxError, ValueError):
            raise NoSource(f"jit.script: the source of {name} is not one definition") from None
    if isinstance(tree, ast.AsyncFunctionDef):
        raise CompileError("async functions cannot be scripted", file, tree)
    if not isinstance(tree, (ast.FunctionDef, ast.ClassDef)):
        raise NoSource(f"jit.script: {name} is no def; a lambda cannot be scripted, write a def")
    return Source(tree, file, ("",) * (first - 1) + tuple(x.rstrip("\n") for x in lines),
                  _comment(lines))  # fmt: skip


def _tree(lines: list[str], first: int) -> ast.stmt:
    """The one statement of the lines, with its place in the file."""
    text = "".join(lines)
    if not text[:1].isspace():
        (tree,) = ast.parse("\n" * (first - 1) + text).body
        return tree
    (block,) = ast.parse("\n" * (first - 2) + "if 1:\n" + text).body  # which may be indented
    assert isinstance(block, ast.If)
    (tree,) = block.body
    return tree


def _quick(obj: Any) -> tuple[list[str], int, ast.stmt] | None:
    """What `inspect.getsourcelines` gives of a function, and its tree, without splitting the text into
    tokens to see where it ends: behind its last line of code, before the next that is not indented."""
    code = getattr(obj, "__code__", None)
    if not isinstance(code, types.CodeType) or code.co_name == "<lambda>":
        return None
    whole, first = inspect.findsource(obj)
    column = _column(whole[first])
    end = max((line for *_, line in code.co_lines() if line is not None), default=0)
    end = max(end, first + 1)
    while end < len(whole) and (not whole[end].strip() or _column(whole[end]) > column):
        end += 1
    while not whole[end - 1].strip():
        end -= 1
    lines = whole[first:end]
    try:
        return lines, first + 1, _tree(lines, first + 1)
    except (SyntaxError, ValueError):  # a text of several lines is cut, say
        return None


def _column(line: str) -> int:
    return len(line) - len(line.lstrip())


def _comment(lines: list[str]) -> str:
    """The type comment of a function: below its head, or one line for each argument."""
    single: list[str] = []
    for line in lines:
        code, mark, text = line.partition("# type:")
        text = text.strip()
        if not mark or text.startswith("ignore"):
            if code.strip().endswith(":") and single:
                continue
            continue
        if text.startswith("(") and "->" in text:
            args, _, result = text.rpartition("->")
            inner = args.strip()[1:-1].strip()
            if inner == "..." and single:
                return f"({', '.join(single)}) -> {result.strip()}"
            return text
        if "=" not in code.split("def ")[-1] or code.strip().endswith(","):
            single.append(text)
    return ""


def names_of(function: types.FunctionType) -> Callable[[str], Any]:
    """What the free names of a function mean: closure, globals, built-ins (KeyError: nothing)."""
    function = inspect.unwrap(function)
    free = function.__code__.co_freevars
    cells = dict(zip(free, function.__closure__ or (), strict=False))
    space = function.__globals__
    builtin = space.get("__builtins__", {})
    builtins = builtin if isinstance(builtin, dict) else vars(builtin)

    def look(name: str) -> Any:
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:
                raise KeyError(name) from None
        return space[name] if name in space else builtins[name]

    return look
