"""Python's multiprocessing under this name, and `spawn` for a function of a rank.

Importing it makes queues, pipes and arguments of processes carry tensors as shared memory (see
``reductions``): both sides then see each other's changes.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from collections.abc import Callable
from typing import Any

from . import reductions

globals().update({n: getattr(_multiprocessing, n) for n in _multiprocessing.__all__})

__all__ = [
    *_multiprocessing.__all__,
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


class ProcessRaisedException(RuntimeError):
    """A process that `spawn` started ended with an exception or a bad exit status."""


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


class _Processes:
    """The processes of one `start_processes` call."""

    def __init__(self, processes: list[Any]) -> None:
        self.processes = processes

    def pids(self) -> list[int]:
        """Numbers of the processes."""
        return [p.pid for p in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Waits for all; True once every one has ended well.

        Raises:
            ProcessRaisedException: one of them failed; the others are stopped.
        """
        for rank, process in enumerate(self.processes):
            process.join(timeout)
            if process.exitcode is None:
                return False
            if process.exitcode != 0:
                for other in self.processes:
                    other.terminate()
                raise ProcessRaisedException(
                    f"process {rank} ended with exit status {process.exitcode}"
                )
        return True


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> _Processes | None:
    """Runs fn(rank, *args) in `nprocs` processes; waits for them if `join`."""
    context: Any = _multiprocessing.get_context(start_method)
    processes = []
    for rank in range(nprocs):
        process = context.Process(target=fn, args=(rank, *args), daemon=daemon)
        process.start()
        processes.append(process)
    started = _Processes(processes)
    if not join:
        return started
    started.join()
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> _Processes | None:
    """`start_processes` with fresh interpreters."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
