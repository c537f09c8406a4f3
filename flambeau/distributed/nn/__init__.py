"""Collectives through which gradients flow."""

from __future__ import annotations

from . import functional
from .functional import *  # noqa: F403
from .functional import __all__ as _names
from .functional import _all_gather_base  # noqa: F401

__all__ = ["functional", *_names]
