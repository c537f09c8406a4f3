"""Exceptions that `compile` raises."""

from __future__ import annotations

from flambeau._capture.errors import (
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    RecompileError,
    Unsupported,
)

__all__ = ["BackendCompilerFailed", "FailOnRecompileLimitHit", "RecompileError", "Unsupported"]
