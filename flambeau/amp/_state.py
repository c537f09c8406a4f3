"""The part of autocast's state that lives in Python: how deep contexts are nested in a thread.

The flags themselves are the core's modes. Must not know what autocast does to operations.
"""

from __future__ import annotations

import threading

_local = threading.local()


def autocast_increment_nesting() -> int:
    """Enters a context; the depth after."""
    _local.depth = getattr(_local, "depth", 0) + 1
    return _local.depth


def autocast_decrement_nesting() -> int:
    """Leaves a context; the depth after."""
    _local.depth = getattr(_local, "depth", 0) - 1
    return _local.depth


def clear_autocast_cache() -> None:
    """Forgets converted weights. Nothing is kept yet, so there is nothing to forget."""
