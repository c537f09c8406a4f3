"""Tracing: the table run over tensors without data, and what it calls put down as a graph.

The table's typed IR is interpreted, so shapes, dtypes and errors are those of the kernels. Knows
nothing of frames.
"""

from __future__ import annotations

from . import added as _added  # noqa: F401  what added operators return
from .tracing import trace

__all__ = ["trace"]
