"""Exceptions that `compile` raises."""

from __future__ import annotations

from flambeau._capture.errors import BackendCompilerFailed, Unsupported

__all__ = ["BackendCompilerFailed", "Unsupported"]
