"""Whether calls are being recorded as a graph of `fx`: never."""

from __future__ import annotations

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """The mode that records calls: none is active."""
    return None
