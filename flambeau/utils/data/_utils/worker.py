"""What runs inside a loader's worker, a process or a thread.

Owns the worker's loop, its seeds and ``get_worker_info``. The protocol with the loading side is
Note [Protocol of loader workers]; a worker neither seeds the loading process's generators nor draws
from them: a thread has those of its ``rng``.
"""

# Note [Protocol of loader workers]
# ---------------------------------
# To worker:   (number, index, slots)   fetch this, these slots are free again;  _Resume(seed)
#              start over with the dataset, pipes seeded so, or with a start go on from there;  None
#              end.
# From worker: (number, payload, snapshot) where payload is a Parcel, a _Failure, or an
#              _EndOfStream: the worker's iterable dataset is used up; it answers nothing more until
#              resumed. The snapshot is what Snapshots.after_batch returns.
#              (_Resume, worker, snapshot) acknowledges a _Resume without a start.
# Numbers count the batches of one pass. Workers are told off in turn, so the loading
# process knows which worker owes which number and gives the batches out in order.

from __future__ import annotations

import functools
import gc
import importlib.util
import pickle
import random
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import flambeau as fb

from .. import _pipes
from .channel import WorkerEnd
from .snapshot import Snapshots, Start
from .transfer import Sender


class _RNG:
    """Generators of one worker, the same for a seed whether it is a process or a thread.

    Attributes:
        random_generator: a ``random.Random``.
        torch_generator: a ``Generator``.
        numpy_generator: a ``numpy.random.Generator``.
    """

    def __init__(self, base_seed: int, worker_id: int) -> None:
        self._seeds = base_seed, worker_id

    @functools.cached_property
    def random_generator(self) -> random.Random:
        return random.Random(sum(self._seeds))

    @functools.cached_property
    def torch_generator(self) -> Any:
        return fb.Generator().manual_seed(sum(self._seeds))

    @functools.cached_property
    def numpy_generator(self) -> Any:
        from numpy import random as module

        return module.default_rng(_numpy_words(module, *self._seeds))


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker knows about itself.

    Attributes:
        id: number of the worker, from 0.
        num_workers: how many there are.
        seed: the seed set for this worker: base seed plus ``id``.
        dataset: this worker's copy of the dataset; a thread's is a shallow one.
        rng: generators of this worker's own, seeded for it. Worker threads share the global ones
            with the program, so draws that shall repeat come from here.
        worker_method: "multiprocessing" or "thread".
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: _RNG | None = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None  # of a worker process
_of_thread = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """Facts about the current worker, process or thread, or None outside of one.

    Example:
        >>> get_worker_info() is None
        True
    """
    info: WorkerInfo | None = getattr(_of_thread, "info", None)
    return _worker_info if info is None else info


@dataclass(frozen=True)
class _EndOfStream:
    worker_id: int


@dataclass(frozen=True)
class _Resume:
    shared_seed: int | None = None
    start: Start | None = None


class _Failure:
    """An exception on its way to the loading process, with the traceback as text."""

    def __init__(self, error: BaseException, job: Job) -> None:
        # What ends a worker (SystemExit) must not end the program that loads.
        self.kind = (
            next(
                kind
                for kind in type(error).__mro__
                if issubclass(kind, Exception) and _is_sent(kind)
            )
            if isinstance(error, Exception)
            else RuntimeError
        )
        name = "thread" if job.method == "thread" else "process"
        self.text = (
            f"Caught {type(error).__name__} in DataLoader worker {name} {job.worker_id}.\n"
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


def _is_sent(kind: type) -> bool:
    """Whether another process knows a class by its name."""
    try:
        pickle.dumps(kind)
    except Exception:
        return False
    return True


class _Verbatim(str):
    """KeyError shows the repr of its argument, which would print newlines as escapes."""

    def __repr__(self) -> str:
        return str(self)


def _numpy_words(module: Any, base_seed: int, worker_id: int) -> Any:
    """A seed for `numpy.random`: base seed plus id would overlap with its own neighbours."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return module.SeedSequence(words).generate_state(4)


def _seed_everything(base_seed: int, worker_id: int) -> None:
    """Seeds the global generators of a worker process."""
    random.seed(base_seed + worker_id)
    fb.manual_seed(base_seed + worker_id)
    seeder = _NumpySeeder(base_seed, worker_id)
    if "numpy.random" in sys.modules:
        seeder.seed(sys.modules["numpy.random"])
    else:
        sys.meta_path.insert(0, seeder)


class _NumpySeeder:
    """Seeds NumPy when a worker loads it: it need not, and that takes longer than its start.

    Stands among the finders of modules until then, and finds nothing itself.
    """

    def __init__(self, base_seed: int, worker_id: int) -> None:
        self._seeds = base_seed, worker_id

    def seed(self, module: Any) -> None:
        """Seed the global generator of `numpy.random`."""
        module.seed(_numpy_words(module, *self._seeds))

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "numpy.random":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def then_seed(module: Any) -> None:
                execute(module)
                self.seed(module)

            spec.loader.exec_module = then_seed  # type: ignore[method-assign]
        return spec


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
    method: str = "multiprocessing"
    snapshot_every: int = 1
    waits: bool = False  # for a _Resume before it begins
    shared: list[tuple[Any, str, Any]] = field(default_factory=list)  # see SharedLists.of

    def share(self) -> None:
        """Put packed lists into the dataset.

        The lists they stand for are not freed, as the loader, of which a fork has a copy, refers to
        them: that would write to all of their elements.
        """
        for owner, name, items in self.shared:
            if name:
                vars(owner)[name] = items
            else:
                self.dataset = items

    @property
    def caught(self) -> type[BaseException]:
        """What is sent as a failure: whatever ends a thread would end it unseen."""
        return BaseException if self.method == "thread" else Exception


def _start(job: Job) -> Snapshots:
    global _worker_info
    seed = job.base_seed + job.worker_id
    rng = _RNG(job.base_seed, job.worker_id)
    if job.method != "thread":
        # One thread per process: the workers themselves are the parallelism.
        fb.set_num_threads(1)
        _seed_everything(job.base_seed, job.worker_id)
    if job.shared_seed is not None:
        _pipes.seed(job.dataset, job.shared_seed)
    info = WorkerInfo(job.worker_id, job.num_workers, seed, job.dataset, rng, job.method)
    if job.method == "thread":
        _of_thread.info = info
    else:
        _worker_info = info
    if _pipes.is_pipe(job.dataset):
        _pipes.shard(job.dataset, job.ranks, (job.num_workers, job.worker_id))
    if job.init_fn is not None:
        job.init_fn(job.worker_id)
    return Snapshots(job.snapshot_every, job.iterable, job.method != "thread", rng)


def serve(
    job: Job, receive: Callable[[], Any], send: Callable[[tuple[Any, ...]], None], sender: Any
) -> None:
    """Serves requests until ``receive`` returns None.

    Args:
        job: what to do.
        receive: waits for the next request.
        send: sends an answer.
        sender: packs batches.
    """
    fetcher, failure, ended = None, None, False
    try:
        snapshots = _start(job)
        if not job.waits:
            fetcher = job.make_fetcher(job.dataset)
    except job.caught as error:
        failure = _Failure(error, job)
    while (request := receive()) is not None:
        snapshot: bytes | bool = False
        if isinstance(request, _Resume):
            ended = False
            if failure is None:
                try:
                    fetcher, snapshot = _resumed(request, job, snapshots)
                except job.caught as error:
                    failure = _Failure(error, job)
            if request.start is None:
                send((_Resume(), job.worker_id, snapshot))
            continue
        number, index, slots = request
        sender.release(slots)
        if ended:
            continue
        payload: Any = failure
        if payload is None:
            payload, ended, snapshot = _fetch(fetcher, index, job, sender, snapshots)
        send((number, payload, snapshot))
        del payload  # a batch is the loading side's alone from here


def _resumed(request: _Resume, job: Job, snapshots: Snapshots) -> tuple[Any, bytes | bool]:
    """A fetcher for another pass, or for the rest of one, and the state at its start."""
    if request.shared_seed is not None:
        _pipes.seed(job.dataset, request.shared_seed)
    if request.start is not None:
        return snapshots.fetcher_at(request.start, job.dataset, job.make_fetcher), False
    snapshot = snapshots.begin(job.dataset)
    return job.make_fetcher(job.dataset), snapshot


def worker_loop(job: Job, sock: Any, trace: int | None, others: list[Any]) -> None:
    """A worker process: serves until told to end or until the loading process is gone.

    Args:
        job: what to do.
        sock: the worker's end.
        trace: descriptor for tracebacks.
        others: ends of the loading process, which a fork has too and must not keep open.
    """
    end = WorkerEnd(sock, trace)
    end.take_signals()
    for each in others:
        each.close()
    gc.freeze()  # a collection would write to each object that is shared with the parent
    sender = Sender(job.worker_id)
    job.share()
    try:
        serve(job, end.receive, lambda message: end.send(message, sender.opened()), sender)
    except ConnectionError:
        pass  # nobody waits for the answer any more
    except BaseException as error:
        end.note(error)
        raise


def _fetch(
    fetcher: Any, index: Any, job: Job, sender: Any, snapshots: Snapshots
) -> tuple[Any, bool, bytes | bool]:
    """The answer to a request, whether the worker's stream has ended, and the state after it."""
    try:
        batch = fetcher.fetch(index)
        snapshot = snapshots.after_batch(fetcher)
        return sender.pack(batch), False, snapshot
    except StopIteration as error:
        if job.iterable:
            return _EndOfStream(job.worker_id), True, False
        return _Failure(error, job), False, False
    except job.caught as error:
        return _Failure(error, job), False, False
