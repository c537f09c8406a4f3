"""Where the files of the alias are, and which PyTorch they say we answer for.

Owns the folder that goes onto `sys.path`: it holds the record of a distribution `torch`, whose
name carries the version, and the `torch` that `import` finds first. Imports nothing of ours.
"""

from __future__ import annotations

import os

#: holds `torch/__init__.py` and the record of the distribution
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_path")


def record_name() -> str:
    """The folder of the record: torch-VERSION.dist-info."""
    return next(n for n in os.listdir(FOLDER) if n.endswith(".dist-info"))


def version() -> str:
    """The version of PyTorch that we answer for, with a local label."""
    return record_name().removeprefix("torch-").removesuffix(".dist-info")
