"""The one error of the front end: what is wrong, where, in the user's own line.

Every refusal names file and line; `show` adds the source line with a caret for the terminal.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence


class CompileError(SyntaxError):
    """A program outside the typed subset, or one whose types do not fit."""

    def __init__(self, message: str, file: str, node: ast.AST | None = None, line: int = 0) -> None:
        self.file = file
        self.line = getattr(node, "lineno", line)
        self.column = getattr(node, "col_offset", 0)
        self.end_column = getattr(node, "end_col_offset", None)
        self.reason = message
        super().__init__(f"{file}:{self.line}: {message}")

    def show(self, source: Sequence[str]) -> str:
        """The message, the source line, and a caret under the place."""
        head = f"{self.file}:{self.line}: error: {self.reason}"
        if not 0 < self.line <= len(source):
            return head
        text = source[self.line - 1]
        end = self.end_column or self.column + 1
        width = max(1, min(end, len(text)) - self.column)
        return f"{head}\n  {text}\n  {' ' * self.column}{'^' * width}"
