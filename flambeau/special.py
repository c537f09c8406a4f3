"""Special functions: the operations that the table puts in this namespace."""

from __future__ import annotations

from ._C.special import *  # noqa: F403
