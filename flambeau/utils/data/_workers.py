"""One pass over a loader's dataset with workers of either kind.

Owns the order of requests and results. Invariant: at most ``prefetch_factor`` requests are open per
worker, and with ``in_order`` batches come out in the order of the index sampler whatever the
workers' speed. The messages are those of Note [Protocol of loader workers]; how they travel, and
the workers' life, belong to the subclasses (``_processes``, ``_threads``).
"""

from __future__ import annotations

import functools
import itertools
import os
import pickle
import time
from typing import Any

from . import _pipes, _state
from ._iterators import _BaseDataLoaderIter
from ._utils import MP_STATUS_CHECK_INTERVAL
from ._utils import snapshot as _snapshot
from ._utils import worker as _worker
from ._utils.fetch import _DatasetKind
from ._utils.pin_memory import pin_memory
from ._utils.tuning import Tuned


def _make_fetcher(
    kind: int, auto_collation: bool, collate_fn: Any, drop_last: bool, dataset: Any
) -> Any:
    return _DatasetKind.create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last)


class _WorkersIter(_BaseDataLoaderIter):
    """Hands index lists to workers in turn and gives the batches out in order.

    A subclass starts the workers in ``_launch`` and carries the messages.
    """

    _finalizer: Any  # ends the workers; safe to call more than once

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if self._ended:  # the workers have gone through the pass that ended: here is the next
            self._reset(loader)

    def _begin(self, loader: Any, state: Any) -> None:
        self._in_order = loader.in_order
        self._tuned = loader._chooses_prefetch
        self._owner_pid = os.getpid()
        self._goes_on = _state.in_pass(loader, state)
        self._ended = self._goes_on and state["position"] == "end"
        self._open = state["pass"]["open"] if self._goes_on else []
        self._launch(loader)
        self._reset(loader, first_iter=True)

    def _launch(self, loader: Any) -> None:
        """Start all workers."""
        raise NotImplementedError

    def _send(self, worker_id: int, message: Any) -> None:
        """Send a worker a message, without waiting for it."""
        raise NotImplementedError

    def _poll(self, seconds: float) -> tuple[Any, ...] | None:
        """The next message of any worker, or None if none came in time."""
        raise NotImplementedError

    def _dead(self) -> str:
        """Which workers are dead and of what, after "DataLoader worker ("; empty if none is."""
        raise NotImplementedError

    def _late(self, owing: set[int]) -> str:
        """What workers do that owe an answer, a line each."""
        return ""

    def _emptied(self, worker_id: int) -> list[int]:
        """Slots that the worker may use again."""
        return []

    def _job(self, loader: Any, worker_id: int, method: str) -> _worker.Job:
        return _worker.Job(
            dataset=self._dataset,
            make_fetcher=functools.partial(
                _make_fetcher,
                self._dataset_kind,
                self._auto_collation,
                self._collate_fn,
                self._drop_last,
            ),
            iterable=self._dataset_kind == _DatasetKind.Iterable,
            base_seed=self._base_seed,
            init_fn=loader.worker_init_fn,
            worker_id=worker_id,
            num_workers=self._num_workers,
            shared_seed=self._shared_seed,
            ranks=_pipes.ranks(),
            method=method,
            snapshot_every=1 if self._stateful_sampler is not None else loader._snapshot_every,
            waits=self._goes_on,
        )

    def _has_workers(self) -> bool:
        return os.getpid() == self._owner_pid and bool(self._finalizer.alive)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:
            begun = loader._pass = _state.PassRecord(loader, again=True)
            begun.base_seed, begun.workers = self._base_seed, self._record.workers
            self._record = begun
        super()._reset(loader, first_iter)
        self._sent = 0  # number of the next request
        self._due = 0  # number of the next batch to hand out
        self._owner: dict[int, int] = {}  # open request -> worker
        self._arrived: dict[int, Any] = {}
        # request -> the sampler's state after it, and whether it was the sampler's last
        self._draws: dict[int, tuple[bytes, bool]] = {}
        self._active = [True] * self._num_workers
        first, record = 0, self._record
        if self._stateful_sampler is not None:  # reading ahead will change it
            record.sampler = pickle.dumps(self._stateful_sampler.state_dict())
        if not first_iter:
            record.shared_seed = self._shared_seed
            self._resume_workers()
        elif self._goes_on:
            first = self._go_on()
        self._turn = itertools.islice(itertools.cycle(range(self._num_workers)), first, None)
        if first_iter:
            for worker_id, index in self._open:
                self._post(worker_id, index)
        if first_iter and self._ended and self._dataset_kind == _DatasetKind.Map:
            if self._stateful_sampler is None:
                next(self._sampler_iter, None)  # it may draw at its end
            return
        self._prefetch_factor = loader.prefetch_factor if self._tuned is None else self._tuned.size
        for _ in range(self._prefetch_factor * self._num_workers - len(self._owner)):
            self._request()

    def _resume_workers(self) -> None:
        """Lets every worker start over; answers left from a broken-off pass are dropped."""
        for worker_id in range(self._num_workers):
            self._send(worker_id, _worker._Resume(self._shared_seed))
        waiting = self._num_workers
        while waiting:
            head, payload, snapshot = self._receive()
            if isinstance(head, _worker._Resume):
                self._record.workers[payload].begin(snapshot or None)
                waiting -= 1

    def _go_on(self) -> int:
        """Tells the workers where the pass stood; returns whose turn it is."""
        record, count = self._record, self._num_workers
        if self._dataset_kind == _DatasetKind.Map:
            used = self._pass_over(record.taken if self._in_order else record.sent)
            replays = [
                used[record.offset + w :: count][each.at : each.taken]
                for w, each in enumerate(record.workers)
            ]
        else:
            index = self._next_index()  # they are all alike
            replays = [[index] * (each.taken - each.at) for each in record.workers]
            # Kept workers find the end once more, for what a dataset does there.
            kept = self._persistent_workers
            self._active = [kept or each.ended is None for each in record.workers]
        for worker_id, (each, replay) in enumerate(zip(record.workers, replays, strict=True)):
            start = _snapshot.Start(each.snapshot, replay)
            self._send(worker_id, _worker._Resume(record.shared_seed, start))
        if self._in_order or self._dataset_kind == _DatasetKind.Iterable:
            return record.turn
        return (record.sent - record.offset) % count

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
        self._record.sent += 1
        if self._stateful_sampler is not None:
            known = pickle.dumps(self._stateful_sampler.state_dict())
            if not self._in_order:
                self._draws.clear()  # a state notes what was asked for, answered or not
            self._draws[self._sent] = known, self._drawn_out
        self._post(worker_id, index)

    def _post(self, worker_id: int, index: Any) -> None:
        self._send(worker_id, (self._sent, index, self._emptied(worker_id)))
        self._owner[self._sent] = worker_id
        if not self._in_order and self._dataset_kind == _DatasetKind.Map:
            self._record.open[self._sent] = worker_id, index
        self._sent += 1

    def _receive(self) -> tuple[Any, ...]:
        """The next message of any worker; notices workers that died and the loader's time limit."""
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            wait = MP_STATUS_CHECK_INTERVAL
            if deadline is not None:
                wait = min(wait, max(deadline - time.monotonic(), 0.0))
            message = self._poll(wait)
            if message is not None:
                return message
            dead = self._dead()
            if dead:
                self._finalizer()
                raise RuntimeError(f"DataLoader worker ({dead}")
            if deadline is not None and time.monotonic() >= deadline:
                late = self._late({w for n, w in self._owner.items() if n not in self._arrived})
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds{late}")

    def _retire(self, worker_id: int) -> None:
        """The worker's stream has ended: nothing more will come of its open requests."""
        self._active[worker_id] = False
        each = self._record.workers[worker_id]
        each.ended = each.taken + sum(self._owner[n] == worker_id for n in self._arrived)
        self._owner = {n: w for n, w in self._owner.items() if w != worker_id or n in self._arrived}

    def _take(self) -> Any:
        """The next batch to hand out, waiting for it if need be."""
        if os.getpid() != self._owner_pid:
            raise RuntimeError(
                f"DataLoader: this pass belongs to the process {self._owner_pid} that began it, "
                f"not to its fork {os.getpid()}; call iter(loader) for a pass of one's own"
            )
        if self._owner and not self._finalizer.alive:
            raise RuntimeError(
                "DataLoader: the workers of this pass have ended; call iter(loader) for another"
            )
        while self._owner:
            while self._in_order and self._due < self._sent and self._due not in self._owner:
                self._due += 1  # a request that a used-up worker left unanswered
            ready = self._due if self._in_order else next(iter(self._arrived), -1)
            if ready in self._arrived:
                return self._handed_out(ready)
            self._sort_in(self._receive())
        self._record.finished, self._record.sampler = True, None
        if not self._persistent_workers:
            self._finalizer()
        raise StopIteration

    def _sort_in(self, message: tuple[Any, ...]) -> None:
        """Keep a batch until it is due; or learn that a worker has no more."""
        number, payload, snapshot = message
        if isinstance(payload, _worker._EndOfStream):
            self._owner.pop(number, None)
            self._retire(payload.worker_id)
            self._request()
        else:
            self._arrived[number] = payload, snapshot

    def _tune(self, tuned: Tuned) -> None:
        """See how many batches wait, and read further ahead where that helps."""
        while (message := self._poll(0.0)) is not None:
            self._sort_in(message)
        if tuned.took(len(self._arrived), len(self._owner)):
            self._prefetch_factor = tuned.size
            for _ in range(self._prefetch_factor * self._num_workers - len(self._owner)):
                self._request()

    def _handed_out(self, number: int) -> Any:
        """A batch that has arrived; notes that it was the next."""
        payload, snapshot = self._arrived.pop(number)
        worker_id, record = self._owner.pop(number), self._record
        record.workers[worker_id].take(snapshot)
        record.open.pop(number, None)
        record.taken += 1
        record.turn = (worker_id + 1) % self._num_workers
        if self._draws:
            last = self._draws.pop(number) if self._in_order else max(self._draws.values())
            record.sampler, record.drawn_out = last
        return payload

    def _next_data(self) -> Any:
        if self._tuned is not None and self._owner and self._finalizer.alive:
            self._tune(self._tuned)
        payload = self._take()
        self._request()
        if isinstance(payload, _worker._Failure):
            payload.reraise()
        return pin_memory(payload) if self._pin_memory else payload
