"""What runs inside a loader's worker process.

Owns the worker's loop, its seeds and ``get_worker_info``. The protocol with the loading process is
Note [Protocol of loader workers]; a worker never draws from the loading process's generators.
"""

# Note [Protocol of loader workers]
# ---------------------------------
# To worker:   (number, index, slots)   fetch this, these slots are free again;  _Resume(seed)
#              start over with the dataset, pipes seeded so;  None  end.
# From worker: (number, payload) where payload is a Parcel, a _Failure, or an _EndOfStream: the
#              worker's iterable dataset is used up; it answers nothing more until resumed;
#              (_Resume, worker) acknowledges a _Resume.
# Numbers count the batches of one pass. Worker processes are told off in turn, so the loading
# process knows which worker owes which number and gives the batches out in order.

from __future__ import annotations

import os
import queue
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flambeau as fb

from .. import _pipes
from . import MP_STATUS_CHECK_INTERVAL
from .transfer import Sender


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker process knows about itself.

    Attributes:
        id: number of the worker, from 0.
        num_workers: how many there are.
        seed: the seed set for this worker: base seed plus ``id``.
        dataset: this process's copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Facts about the current worker process, or None outside of one.

    Example:
        >>> get_worker_info() is None
        True
    """
    return _worker_info


@dataclass(frozen=True)
class _EndOfStream:
    worker_id: int


@dataclass(frozen=True)
class _Resume:
    shared_seed: int | None = None


class _Failure:
    """An exception on its way to the loading process, with the traceback as text."""

    def __init__(self, error: BaseException, worker_id: int) -> None:
        self.kind = type(error)
        self.text = (
            f"Caught {self.kind.__name__} in DataLoader worker process {worker_id}.\n"
            f"Original {''.join(traceback.format_exception(error))}"
        )

    def reraise(self) -> None:
        """Raises an exception of the same class where its constructor allows it."""
        text: Any = self.text
        if self.kind is KeyError:
            text = _Verbatim(text)
        try:
            error = self.kind(text)
        except Exception:
            raise RuntimeError(self.text) from None
        raise error


class _Verbatim(str):
    """KeyError shows the repr of its argument, which would print newlines as escapes."""

    def __repr__(self) -> str:
        return str(self)


def _seed_numpy(base_seed: int, worker_id: int) -> None:
    """Seeds NumPy's global generator: base seed plus id would overlap with its own neighbours."""
    import numpy as np

    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))  # noqa: NPY002 (the global one)


def _seed_everything(base_seed: int, worker_id: int) -> int:
    seed = base_seed + worker_id
    random.seed(seed)
    fb.manual_seed(seed)
    _seed_numpy(base_seed, worker_id)
    return seed


@dataclass
class Job:
    """All that a worker is told at its start."""

    dataset: Any
    make_fetcher: Callable[[Any], Any]
    iterable: bool
    base_seed: int
    init_fn: Callable[[int], None] | None
    worker_id: int
    num_workers: int
    shared_seed: int | None = None
    ranks: tuple[int, int] = (1, 0)


def _start(job: Job) -> Any:
    global _worker_info
    # One thread per worker: the workers themselves are the parallelism.
    fb.set_num_threads(1)
    seed = _seed_everything(job.base_seed, job.worker_id)
    if job.shared_seed is not None:
        _pipes.seed(job.dataset, job.shared_seed)
    _worker_info = WorkerInfo(job.worker_id, job.num_workers, seed, job.dataset)
    if _pipes.is_pipe(job.dataset):
        _pipes.shard(job.dataset, job.ranks, (job.num_workers, job.worker_id))
    if job.init_fn is not None:
        job.init_fn(job.worker_id)
    return job.make_fetcher(job.dataset)


def worker_loop(job: Job, index_queue: Any, result_queue: Any) -> None:
    """Serves requests until told to end or until the loading process is gone."""
    parent = os.getppid()
    fetcher, failure, ended, sender = None, None, False, Sender(job.worker_id)
    try:
        try:
            fetcher = _start(job)
        except Exception as error:
            failure = _Failure(error, job.worker_id)
        while os.getppid() == parent:
            try:
                request = index_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
            except queue.Empty:
                continue
            if request is None:
                return
            if isinstance(request, _Resume):
                ended = False
                if failure is None:
                    try:
                        if request.shared_seed is not None:
                            _pipes.seed(job.dataset, request.shared_seed)
                        fetcher = job.make_fetcher(job.dataset)
                    except Exception as error:
                        failure = _Failure(error, job.worker_id)
                result_queue.put((request, job.worker_id))
                continue
            number, index, slots = request
            sender.release(slots)
            if ended:
                continue
            payload: Any = failure
            if payload is None:
                payload, ended = _fetch(fetcher, index, job, sender)
            result_queue.put((number, payload))
    except KeyboardInterrupt:
        return  # the loading process gets the same signal and reports it


def _fetch(fetcher: Any, index: Any, job: Job, sender: Sender) -> tuple[Any, bool]:
    """The answer to a request, and whether the worker's stream has ended."""
    try:
        return sender.pack(fetcher.fetch(index)), False
    except StopIteration as error:
        if job.iterable:
            return _EndOfStream(job.worker_id), True
        return _Failure(error, job.worker_id), False
    except Exception as error:
        return _Failure(error, job.worker_id), False
