"""Places in the user's program: which line of theirs a node, a symbol or a guard comes from."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

#: the package's folder by the name that its code goes by: links are not followed
PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


@dataclass(frozen=True)
class Where:
    """A line of a file, and the function it is in."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


def user_frame() -> Where | None:
    """The innermost running line outside of this package; None where there is none."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return None
    return Where(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
