"""A file of the table cut into its top-level functions, which are parsed when they are asked for.

Owns where a function begins and ends in the text. Most readers want a few entries of the table, and
parsing is what reading it costs. Nothing is trusted twice: a piece that was cut wrongly does not
parse, and the build parses every piece, and what lies between them.
"""

from __future__ import annotations

import ast
import copy
import os
import re
from functools import cached_property
from typing import TypeVar

_Tree = TypeVar("_Tree", bound=ast.AST)

# Lines at which a statement begins; others are empty, indented, comments, or close a bracket.
_START = re.compile(r"^(@[\w.]+|def \w+|[^\s)\]}#])", re.MULTILINE)

class Piece:
    """One decorated function of a file, unparsed.

    Attributes:
        decorator: the name that follows `@`, split at its dots.
        name: the function's.
        head: the text before `def`.
    """

    def __init__(self, decorator: str, name: str, head: str, body: str, line: int) -> None:
        self.decorator, self.name, self.head = tuple(decorator.split(".")), name, head
        self._body, self._line = body, line

    @cached_property
    def node(self) -> ast.FunctionDef:
        """The function's syntax tree, with its place in the file."""
        (node,) = ast.parse("\n" * (self._line - 1) + self.head + self._body).body
        assert isinstance(node, ast.FunctionDef)
        return node

    @cached_property
    def call(self) -> ast.expr:
        """The decorator's syntax tree alone."""
        return ast.parse("\n" * (self._line - 1) + self.head[1:], mode="eval").body


def cut(text: str) -> tuple[list[Piece], str]:
    """The pieces of a file in order, and the file without them, lines where they were."""
    starts = [(m.start(), m[1]) for m in _START.finditer(text)]
    ends = [at for at, _ in starts[1:]] + [len(text)]
    pieces: list[Piece] = []
    rest = [text[: starts[0][0]] if starts else text]
    line, k = 1 + rest[0].count("\n"), 0
    while k < len(starts):
        at, word = starts[k]
        head = next((n for n in range(k, len(starts)) if starts[n][1][0] != "@"), k)
        decorated = head > k and starts[head][1].startswith("def ")
        k = head if decorated else k
        end = ends[k]
        if decorated:
            name, middle = starts[k][1][4:], starts[k][0]
            pieces.append(Piece(word[1:], name, text[at:middle], text[middle:end], line))
            rest.append("\n" * text.count("\n", at, end))
        else:
            rest.append(text[at:end])
        line += text.count("\n", at, end)
        k += 1
    return pieces, "".join(rest)


def possible_names(text: str) -> set[str]:
    """Names that entries of a file may have, in C++ or in Python, and some that they do not have:
    what tells, without cutting it, that a file need not be cut."""
    out: set[str] = set()
    for part in text.split("\n@")[1:]:
        head, _, rest = part.partition("\ndef ")
        name = rest[: rest.find("(")]
        out.add(name)
        if "name" in head or "aliases" in head or "each" in head:  # options that give names
            words = [w.rpartition(".")[2] for w in head.replace("'", '"').split('"')[1::2]]
            out.update(words)
            for template in (w for w in (name, *words) if "NAME" in w):
                out.update(template.replace("NAME", w) for w in words)
    return out


def written_out(node: _Tree, name: str) -> _Tree:
    """A copy of the tree with `NAME` replaced in names and texts."""
    new = copy.deepcopy(node)
    for x in ast.walk(new):
        for key, value in ast.iter_fields(x):
            if isinstance(value, str):
                setattr(x, key, value.replace("NAME", name))
    return new


def entry_files(root: str | os.PathLike[str]) -> list[str]:
    """Files of the table below the root, in a stable order."""
    names = sorted(os.listdir(os.path.join(root, "flambeau", "ops")))
    return [
        f"flambeau/ops/{n}" for n in names if n.endswith(".py") and n[0] != "_" and n != "scalar.py"
    ]


def text_of(root: str | os.PathLike[str], file: str) -> str:
    """The text of a file below the root."""
    with open(os.path.join(root, file), encoding="utf-8") as f:
        return f.read()
