"""Workers that are threads of the loading process.

Owns the threads of one iterator. Batches are handed over as they are, nothing is copied or pickled.
Invariant: a thread refers to its queues alone, never to the iterator, so that the end of the
iterator ends the threads. A thread cannot be ended by force: one that is stuck in the dataset is
left behind as a daemon, which no exit waits for beyond the time limit here.
"""

from __future__ import annotations

import copy
import os
import queue
import threading
import time
import weakref
from typing import Any

import flambeau as fb

from . import _pipes
from ._utils import worker as _worker
from ._workers import _WorkersIter

_JOIN_SECONDS = 5.0


class _Unpacked:
    """Passes batches on as they are: worker and loader share their memory."""

    def release(self, slots: list[int]) -> None:
        """There are no slots."""

    def pack(self, batch: Any) -> Any:
        return batch


def _own_copy(dataset: Any) -> Any:
    """What a thread may set attributes of without its neighbours' seeing it.

    What the attributes refer to is shared, except for pipes, whose every pass is their own.
    Sequences of the library have nothing to set.
    """
    if _pipes.is_pipe(dataset):
        return _pipes.copy_of(dataset)
    return copy.copy(dataset) if hasattr(dataset, "__dict__") else dataset


def _run(
    job: _worker.Job,
    requests: queue.SimpleQueue[Any],
    results: queue.SimpleQueue[Any],
    stop: threading.Event,
    grad_enabled: bool,
) -> None:
    def receive() -> Any:
        request = requests.get()
        return None if stop.is_set() else request

    fb.set_grad_enabled(grad_enabled)
    _worker.serve(job, receive, results.put, _Unpacked())


def _stop_threads(
    owner: int,
    threads: list[threading.Thread],
    requests: list[queue.SimpleQueue[Any]],
    stop: threading.Event,
) -> None:
    """Ends all threads once they are through with the batch at hand. May be called again.

    The garbage collector may call it in any thread, in one of these too.
    """
    if os.getpid() != owner:
        return
    stop.set()
    for each in requests:
        each.put(None)
    deadline = time.monotonic() + _JOIN_SECONDS
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(max(deadline - time.monotonic(), 0.0))


class _ThreadingDataLoaderIter(_WorkersIter):
    """A pass with worker threads."""

    def _launch(self, loader: Any) -> None:
        # Of the queues that the library has, this one alone may be used in a finalizer.
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._requests = [queue.SimpleQueue[Any]() for _ in range(self._num_workers)]
        self._workers: list[threading.Thread] = []
        stop = threading.Event()
        self._finalizer = weakref.finalize(
            self, _stop_threads, self._owner_pid, self._workers, self._requests, stop
        )
        for worker_id, requests in enumerate(self._requests):
            job = self._job(loader, worker_id, "thread")
            job.dataset = _own_copy(job.dataset)
            thread = threading.Thread(
                target=_run,
                args=(job, requests, self._results, stop, fb.is_grad_enabled()),
                name=f"DataLoader worker {worker_id}",
                daemon=True,
            )
            thread.start()
            self._workers.append(thread)

    def _send(self, worker_id: int, message: Any) -> None:
        self._requests[worker_id].put(message)

    def _poll(self, seconds: float) -> tuple[Any, ...] | None:
        try:
            head, payload, snapshot = self._results.get(timeout=seconds)
        except queue.Empty:
            return None
        return head, payload, snapshot

    def _dead(self) -> str:
        dead = [thread.name for thread in self._workers if not thread.is_alive()]
        return f"thread(s) {', '.join(dead)}) exited unexpectedly" if dead else ""
