"""Workers that are processes: their start, their end, and their queues.

Owns the processes of one iterator. Invariant: they end with the iterator, and a fork of the process
that started them leaves them alone. It knows no order of batches, which is ``_workers``'.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import time
import weakref
from typing import Any

from ._utils import worker as _worker
from ._utils.transfer import Parcel, Receiver
from ._workers import _WorkersIter

_JOIN_SECONDS = 5.0


def _stop_workers(
    owner: int, processes: list[Any], index_queues: list[Any], result_queue: Any
) -> None:
    """Ends all workers: asks first, then insists. Safe to call more than once.

    A fork of the process that started them (``owner``) has a copy of the loader but not of the
    workers, and leaves them alone.
    """
    if os.getpid() != owner:
        return
    for index_queue in index_queues:
        try:
            index_queue.put(None)
            index_queue.close()
        except (ValueError, OSError):
            pass  # already closed
    deadline = time.monotonic() + _JOIN_SECONDS
    while any(p.is_alive() for p in processes) and time.monotonic() < deadline:
        # A worker cannot end while its last results still fill the pipe.
        try:
            result_queue.get(timeout=0.02)
        except Exception:
            continue
    for process in processes:
        if process.is_alive():
            process.terminate()
        process.join(_JOIN_SECONDS)
    for each in [*index_queues, result_queue]:
        each.cancel_join_thread()
        each.close()
    processes.clear()
    index_queues.clear()


class _MultiProcessingDataLoaderIter(_WorkersIter):
    """A pass with worker processes."""

    def _launch(self, loader: Any) -> None:
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._result_queue = context.Queue()
        self._index_queues = [context.Queue() for _ in range(self._num_workers)]
        self._workers: list[Any] = []
        self._receiver = Receiver()
        self._finalizer = weakref.finalize(
            self, _stop_workers, self._owner_pid, self._workers, self._index_queues,
            self._result_queue,
        )  # fmt: skip
        for worker_id, index_queue in enumerate(self._index_queues):
            job = self._job(loader, worker_id, "multiprocessing")
            process = context.Process(
                target=_worker.worker_loop,
                args=(job, index_queue, self._result_queue),
                daemon=True,
            )
            process.start()
            self._workers.append(process)

    def _send(self, worker_id: int, message: Any) -> None:
        self._index_queues[worker_id].put(message)

    def _emptied(self, worker_id: int) -> list[int]:
        return self._receiver.emptied(worker_id)

    def _poll(self, seconds: float) -> tuple[Any, ...] | None:
        try:
            head, payload, snapshot = self._result_queue.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(payload, Parcel):
            payload = self._receiver.unpack(payload, self._workers[payload.worker_id].pid)
        return head, payload, snapshot

    def _dead(self) -> str:
        dead = [p for p in self._workers if not p.is_alive()]
        names = ", ".join(f"{p.pid} (exit code {p.exitcode})" for p in dead)
        return f"pid(s) {names}" if dead else ""
