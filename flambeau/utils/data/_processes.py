"""One pass over a loader's dataset with worker processes.

Owns the workers' life and the order of results. Invariant: at most ``prefetch_factor`` requests
are open per worker, and with ``in_order`` batches come out in the order of the index sampler
whatever the workers' speed. The messages are those of Note [Protocol of loader workers].
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import queue
import time
import weakref
from typing import Any

from . import _pipes
from ._iterators import _BaseDataLoaderIter
from ._utils import MP_STATUS_CHECK_INTERVAL
from ._utils import worker as _worker
from ._utils.fetch import _DatasetKind
from ._utils.pin_memory import pin_memory
from ._utils.transfer import Parcel, Receiver

_JOIN_SECONDS = 5.0


def _make_fetcher(
    kind: int, auto_collation: bool, collate_fn: Any, drop_last: bool, dataset: Any
) -> Any:
    return _DatasetKind.create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last)


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


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Hands index lists to worker processes in turn and gives the batches out in order."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._in_order = loader.in_order
        self._prefetch_factor = loader.prefetch_factor
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._result_queue = context.Queue()
        self._index_queues = [context.Queue() for _ in range(self._num_workers)]
        self._workers: list[Any] = []
        self._receiver = Receiver()
        self._owner_pid = os.getpid()
        self._finalizer = weakref.finalize(
            self, _stop_workers, self._owner_pid, self._workers, self._index_queues,
            self._result_queue,
        )  # fmt: skip
        for worker_id in range(self._num_workers):
            self._workers.append(self._launch(context, worker_id, loader.worker_init_fn))
        self._reset(loader, first_iter=True)

    def _launch(self, context: Any, worker_id: int, init_fn: Any) -> Any:
        iterable = self._dataset_kind == _DatasetKind.Iterable
        job = _worker.Job(
            dataset=self._dataset,
            make_fetcher=functools.partial(
                _make_fetcher,
                self._dataset_kind,
                self._auto_collation,
                self._collate_fn,
                self._drop_last,
            ),
            iterable=iterable,
            base_seed=self._base_seed,
            init_fn=init_fn,
            worker_id=worker_id,
            num_workers=self._num_workers,
            shared_seed=self._shared_seed,
            ranks=_pipes.ranks(),
        )
        process = context.Process(
            target=_worker.worker_loop,
            args=(job, self._index_queues[worker_id], self._result_queue),
            daemon=True,
        )
        process.start()
        return process

    def _has_workers(self) -> bool:
        return os.getpid() == self._owner_pid

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        if not first_iter:
            self._resume_workers()
        self._sent = 0  # number of the next request
        self._due = 0  # number of the next batch to hand out
        self._owner: dict[int, int] = {}  # open request -> worker
        self._arrived: dict[int, Any] = {}
        self._active = [True] * self._num_workers
        self._turn = itertools.cycle(range(self._num_workers))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._request()

    def _resume_workers(self) -> None:
        """Lets every worker start over; answers left from a broken-off pass are dropped."""
        for index_queue in self._index_queues:
            index_queue.put(_worker._Resume(self._shared_seed))
        waiting = self._num_workers
        while waiting:
            head, _ = self._receive()
            waiting -= isinstance(head, _worker._Resume)

    def _request(self) -> None:
        """Sends the next index list to the next worker that is not used up."""
        for worker_id in itertools.islice(self._turn, self._num_workers):
            if self._active[worker_id]:
                break
        else:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        slots = self._receiver.emptied(worker_id)
        self._index_queues[worker_id].put((self._sent, index, slots))
        self._owner[self._sent] = worker_id
        self._sent += 1

    def _receive(self) -> tuple[Any, Any]:
        """The next message of any worker; notices workers that died and the loader's time limit."""
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            wait = MP_STATUS_CHECK_INTERVAL
            if deadline is not None:
                wait = min(wait, max(deadline - time.monotonic(), 0.0))
            try:
                head, payload = self._result_queue.get(timeout=wait)
                if isinstance(payload, Parcel):
                    pid = self._workers[payload.worker_id].pid
                    payload = self._receiver.unpack(payload, pid)
                return head, payload
            except queue.Empty:
                self._check_alive()
                if deadline is not None and time.monotonic() >= deadline:
                    raise RuntimeError(
                        f"DataLoader timed out after {self._timeout} seconds"
                    ) from None

    def _check_alive(self) -> None:
        dead = [p for p in self._workers if not p.is_alive()]
        if dead:
            names = ", ".join(f"{p.pid} (exit code {p.exitcode})" for p in dead)
            self._finalizer()
            raise RuntimeError(f"DataLoader worker (pid(s) {names}) exited unexpectedly")

    def _retire(self, worker_id: int) -> None:
        """The worker's stream has ended: nothing more will come of its open requests."""
        self._active[worker_id] = False
        self._owner = {n: w for n, w in self._owner.items() if w != worker_id or n in self._arrived}

    def _take(self) -> Any:
        """The next batch to hand out, waiting for it if need be."""
        if not self._has_workers():
            raise RuntimeError(
                f"DataLoader: this pass belongs to the process {self._owner_pid} that began it, "
                f"not to its fork {os.getpid()}; call iter(loader) for a pass of one's own"
            )
        while self._owner:
            while self._in_order and self._due < self._sent and self._due not in self._owner:
                self._due += 1  # a request that a used-up worker left unanswered
            ready = self._due if self._in_order else next(iter(self._arrived), -1)
            if ready in self._arrived:
                del self._owner[ready]
                return self._arrived.pop(ready)
            number, payload = self._receive()
            if isinstance(payload, _worker._EndOfStream):
                self._owner.pop(number, None)
                self._retire(payload.worker_id)
                self._request()
            else:
                self._arrived[number] = payload
        if not self._persistent_workers:
            self._finalizer()
        raise StopIteration

    def _next_data(self) -> Any:
        payload = self._take()
        self._request()
        if isinstance(payload, _worker._Failure):
            payload.reraise()
        return pin_memory(payload) if self._pin_memory else payload
