"""Choice of the implementation of scaled dot-product attention.

Owns the set of implementations that may be used, in order of preference. Invariant: leaving
`sdpa_kernel` restores what was allowed before.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

__all__ = ["SDPBackend", "sdpa_kernel", "WARN_FOR_UNFUSED_KERNELS"]

# Whether attention says why a fused implementation was not taken.
WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """The implementations."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_allowed: tuple[SDPBackend, ...] = (
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """What may be used now, preferred first."""
    return list(_allowed)


@contextlib.contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict[str, Any]]:
    """Inside, attention uses these implementations only. Also a decorator.

    Args:
        backends: one or several.
        set_priority: their order is the order of preference.
    """
    global _allowed
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    wanted = dict.fromkeys([backends] if isinstance(backends, SDPBackend) else backends)
    before = _allowed
    order = list(wanted) if set_priority else sorted(wanted, key=_preference)
    _allowed = tuple(order)
    try:
        yield {}
    finally:
        _allowed = before


def _preference(backend: SDPBackend) -> int:
    usual = (
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.MATH,
        SDPBackend.CUDNN_ATTENTION,
    )
    return usual.index(backend) if backend in usual else len(usual)
