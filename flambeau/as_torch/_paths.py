"""Where the files of the alias are, and which PyTorch they say we answer for.

Owns the folder that goes onto `sys.path`, with the `torch` that `import` finds first and the record
of a distribution `torch` beside it; and the text of that record. The record is a file
`torch.egg-info`: tools that make packages leave out folders that end in `.dist-info`. Where one
leaves out this file too, `distributions` stands in for it. Imports nothing of ours.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator
    from importlib.metadata import Distribution

#: the version of PyTorch that we answer for, with a local label
VERSION = "2.13.0+flambeau"

#: holds `torch/__init__.py` and the record of the distribution
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_path")

#: the record, which children read before they import anything of ours; holds METADATA
RECORD = os.path.join(FOLDER, "torch.egg-info")

METADATA = f"""Metadata-Version: 2.1
Name: torch
Version: {VERSION}
Summary: Flambeau under PyTorch's name, see flambeau.as_torch
License: BSD-3-Clause
Requires-Python: >=3.11
"""


def distributions(context: Any) -> Iterator[Distribution]:
    """The distribution `torch` for `importlib.metadata`, unless its search finds the record."""
    import importlib.metadata as metadata

    class Ours(metadata.Distribution):
        def read_text(self, filename: str) -> str | None:
            return METADATA if filename == "METADATA" else None

        def locate_file(self, path: str | os.PathLike[str]) -> pathlib.Path:
            import pathlib

            return pathlib.Path(FOLDER) / path

    name = getattr(context, "name", None)
    if name in (None, "torch") and FOLDER in context.path and not os.path.isfile(RECORD):
        yield Ours()
