"""Python's multiprocessing under this name, and `spawn` for a function of a rank.

Importing it makes queues, pipes and arguments of processes carry tensors as shared memory (see
``reductions``): both sides then see each other's changes.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing

from . import reductions
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

globals().update({n: getattr(_multiprocessing, n) for n in _multiprocessing.__all__})

__all__ = [
    *_multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


reductions.init_reductions()


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """How tensors are sent now."""
    return reductions.sharing_strategy()


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how tensors are sent from this process.

    Args:
        new_strategy: "file_descriptor": each storage becomes shared memory, known by a descriptor
            that both sides hold open. "file_system": only what `share_memory_()` was called on
            goes that way, the rest as bytes, which takes up no descriptors.

    Raises:
        ValueError: an unknown strategy.
    """
    reductions.choose_strategy(new_strategy)
