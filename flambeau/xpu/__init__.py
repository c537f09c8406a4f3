"""Intel GPUs: none in this build.

Queries answer truthfully; nothing here computes. Must not know the core.
"""

from __future__ import annotations

__all__ = ["device_count", "empty_cache", "is_available", "is_initialized", "manual_seed_all"]


def is_available() -> bool:
    """Whether an Intel GPU can be used: never in this build."""
    return False


def device_count() -> int:
    """Number of Intel GPUs that can be used."""
    return 0


def is_initialized() -> bool:
    """Whether the runtime was started."""
    return False


def is_bf16_supported() -> bool:
    """Whether an Intel GPU computes in bfloat16."""
    return False


def empty_cache() -> None:
    """Hand unused device memory back: there is none."""


def manual_seed(seed: int) -> None:
    """Seed the current device, were there one."""


def manual_seed_all(seed: int) -> None:
    """Seed all devices: none."""
