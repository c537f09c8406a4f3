"""Ahead-of-time autograd: a captured graph to functional forward and backward graphs."""

from __future__ import annotations

from .metadata import Metadata
from .pipeline import Compiled, aot
from .runtime import callable_of

__all__ = ["Compiled", "Metadata", "aot", "callable_of"]
