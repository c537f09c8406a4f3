"""Apple GPUs: none in this build.

Queries answer truthfully; nothing here computes. Must not know the core.
"""

from __future__ import annotations

__all__ = ["device_count", "empty_cache", "manual_seed"]


def device_count() -> int:
    """Number of Apple GPUs that can be used."""
    return 0


def empty_cache() -> None:
    """Hand unused device memory back: there is none."""


def manual_seed(seed: int) -> None:
    """Seed the device, were there one."""
