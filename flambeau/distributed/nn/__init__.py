"""Collectives through which gradients flow, for a world of one."""

from __future__ import annotations

from . import functional
from .functional import *  # noqa: F403
from .functional import __all__ as _names

__all__ = ["functional", *_names]
