"""What back ends are built of."""

from __future__ import annotations

from . import common

__all__ = ["common"]
