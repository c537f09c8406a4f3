"""Training with uneven inputs, for a world of one, and hooks that average gradients."""

from __future__ import annotations

from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
