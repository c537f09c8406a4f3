"""Special functions: the operations that the table puts in this namespace."""

from __future__ import annotations

from ._C.special import *  # noqa: F403

__all__ = [name for name in globals() if not name.startswith("_") and name != "annotations"]
