"""The progress bar of downloads: tqdm's where it is installed, a plain one otherwise.

Owns the plain bar and the choice. tqdm is looked for when a bar is first wanted, so that importing
the package does not import it.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


class Bar:
    """How far something is, on standard error; stands for tqdm where that is not installed."""

    def __init__(
        self,
        iterable: Any = None,
        desc: str | None = None,
        total: float | None = None,
        leave: bool = True,
        file: Any = None,
        disable: bool = False,
        **options: Any,
    ) -> None:
        self.iterable, self.total, self.n, self.desc = iterable, total, 0, desc
        self.disable = disable
        self._file = file

    @property
    def _stream(self) -> Any:
        return self._file if self._file is not None else sys.stderr

    def update(self, n: int = 1) -> None:
        """Go on by some steps."""
        if self.disable:
            return
        self.n += n
        share = f"{100 * self.n / self.total:.1f}%" if self.total else f"{self.n:.1f} bytes"
        self._stream.write(f"\r{self.desc + ': ' if self.desc else ''}{share}")
        self._stream.flush()

    def set_description(self, desc: str | None = None, refresh: bool = True) -> None:
        """Show another text."""
        self.desc = desc

    def write(self, s: str) -> None:
        """Write a line."""
        self._stream.write(f"{s}\n")

    def close(self) -> None:
        """End the line."""
        if not self.disable:
            self._stream.write("\n")
        self.disable = True

    def __iter__(self) -> Any:
        for value in self.iterable:
            yield value
            self.update()
        self.close()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def bar_class() -> Any:
    """tqdm's class, or `Bar` where tqdm is not installed."""
    try:
        return importlib.import_module("tqdm").tqdm
    except ImportError:
        return Bar
