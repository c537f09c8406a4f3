"""Workers that are processes: their start, their end, and what is known when one fails.

Owns the processes of one iterator. Invariant: they end with the iterator, and a fork of the process
that started them leaves them alone. It knows no order of batches, which is ``_workers``'.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import selectors
import signal
import time
import weakref
from collections import deque
from multiprocessing import connection, reduction
from typing import Any

from ._utils import worker as _worker
from ._utils.channel import LoaderEnd
from ._utils.transfer import Parcel, Receiver
from ._workers import _WorkersIter

_JOIN_SECONDS = 5.0
_TERMINATE_SECONDS = 1.0


def _wait_for(links: list[LoaderEnd], seconds: float) -> list[LoaderEnd]:
    """Wait until all processes have ended; those that have not."""
    deadline = time.monotonic() + seconds
    sentinels = {link.process.sentinel for link in links if link.process.is_alive()}
    while sentinels and time.monotonic() < deadline:
        left = max(deadline - time.monotonic(), 0.0)
        sentinels.difference_update(connection.wait(list(sentinels), left))
    return [link for link in links if link.process.is_alive()]


def _stop_workers(owner: int, links: list[LoaderEnd], selector: Any, patience: list[float]) -> None:
    """Ends all workers: asks first, then insists. Safe to call more than once.

    A fork of the process that started them (``owner``) has a copy of the loader but not of the
    workers, and leaves them alone.
    """
    if os.getpid() != owner:
        return
    selector.close()
    for link in links:
        if link.is_stopped():
            link.process.kill()
        link.close()
    left = _wait_for(links, patience[0])
    for link in left:
        link.process.terminate()
    left = _wait_for(left, _TERMINATE_SECONDS) if left else []
    for link in left:
        link.process.kill()
    for link in links:
        link.process.join()
    links.clear()


class _MultiProcessingDataLoaderIter(_WorkersIter):
    """A pass with worker processes."""

    def _launch(self, loader: Any) -> None:
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._links: list[LoaderEnd] = []
        self._workers: list[Any] = []
        self._selector = selectors.DefaultSelector()
        self._messages: deque[tuple[Any, ...]] = deque()
        self._receiver = Receiver()
        self._patience = [_JOIN_SECONDS]
        self._finalizer = weakref.finalize(
            self, _stop_workers, self._owner_pid, self._links, self._selector, self._patience
        )
        shared = loader._shared_lists.of(self._dataset)
        for worker_id in range(self._num_workers):
            job = self._job(loader, worker_id, "multiprocessing")
            job.shared = shared
            # No interrupt between the start of a process and its entry in the list.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                self._start(context, job)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start(self, context: Any, job: _worker.Job) -> None:
        link = LoaderEnd(job.worker_id)
        forks = context.get_start_method() == "fork"
        if not forks:
            job.dataset, job.shared = _with_shared(job.dataset, job.shared), []
        trace: Any = link.trace
        if trace is not None and not forks:
            trace = _Carried(trace)
        # A fork has a copy of each descriptor that the loading process reads or writes by.
        ours = [each.sock for each in (*self._links, link)] if forks else []
        link.process = context.Process(
            target=_worker.worker_loop, args=(job, link.theirs, trace, ours), daemon=True
        )
        try:
            link.process.start()
        except BaseException:
            link.close()
            raise
        link.theirs.close()
        self._links.append(link)
        self._workers.append(link.process)
        self._selector.register(link.sock, selectors.EVENT_READ, link)

    def _send(self, worker_id: int, message: Any) -> None:
        link = self._links[worker_id]
        link.send(message)
        self._watch(link)

    def _watch(self, link: LoaderEnd) -> None:
        events = selectors.EVENT_READ
        if not link.flush():
            events |= selectors.EVENT_WRITE
        if self._selector.get_key(link.sock).events != events:
            self._selector.modify(link.sock, events, link)

    def _emptied(self, worker_id: int) -> list[int]:
        return self._receiver.emptied(worker_id)

    def _poll(self, seconds: float) -> tuple[Any, ...] | None:
        if not self._messages:
            for key, events in self._selector.select(seconds):
                if events & selectors.EVENT_WRITE:
                    self._watch(key.data)
                if events & selectors.EVENT_READ:
                    self._messages.extend(key.data.read())
        if not self._messages:
            return None
        head, payload, snapshot = self._messages.popleft()
        if isinstance(payload, Parcel):
            descriptors = self._links[payload.worker_id].descriptors
            payload = self._receiver.unpack(payload, descriptors.popleft)
        return head, payload, snapshot

    def _dead(self) -> str:
        dead = [link for link in self._links if link.is_dead()]
        pids = ", ".join(str(link.process.pid) for link in dead)
        causes = "\n".join(link.cause_of_death() for link in dead)
        return f"pid(s) {pids}) exited unexpectedly\n{causes}" if dead else ""

    def _late(self, owing: set[int]) -> str:
        self._patience[0] = _TERMINATE_SECONDS  # whoever is late now need not be waited for again
        return "".join(f"\n{self._links[w].what_it_does()}" for w in sorted(owing))


def _with_shared(dataset: Any, shared: list[tuple[Any, str, Any]]) -> Any:
    """The dataset as it is sent to a process that is not forked: its long lists go by memory."""
    copied = dataset
    for owner, name, items in shared:
        if not name:
            return items
        if owner is dataset:
            copied = copy.copy(dataset) if copied is dataset else copied
            vars(copied)[name] = items
    return copied


class _Carried:
    """A descriptor on its way to a process that is not forked."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> Any:
        return _taken_out, (reduction.DupFd(self._descriptor),)


def _taken_out(carried: Any) -> int:
    descriptor: int = carried.detach()
    return descriptor
