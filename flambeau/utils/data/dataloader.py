"""DataLoader: options, their checks, and the choice of an iterator.

Owns what a user configures. How a batch is made belongs to ``_utils`` and the iterators; worker
processes are loaded only when a loader asks for them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from . import _pipes, _state, _utils
from ._choosing import ChoosingIter
from ._iterators import _BaseDataLoaderIter, _SingleProcessDataLoaderIter
from ._utils import collate as _collate
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _DatasetKind
from ._utils.shared_list import SharedLists
from ._utils.tuning import Tuned, WorkerChoice, processors
from ._utils.worker import get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = [
    "DataLoader",
    "_DatasetKind",
    "_utils",
    "default_collate",
    "default_convert",
    "get_worker_info",
]

_T_co = TypeVar("_T_co", covariant=True)
_worker_init_fn_t = Callable[[int], None]
_collate_fn_t = Callable[[list[Any]], Any]

_FIXED = frozenset(
    (
        "batch_size",
        "batch_sampler",
        "sampler",
        "drop_last",
        "dataset",
        "persistent_workers",
        "worker_backend",
    )
)
_BACKENDS = ("process", "thread")


class _InfiniteConstantSampler(Sampler[None]):
    """Yields None for ever: an iterable dataset has no keys and says itself when it ends."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[_T_co]):
    """Iterates over a dataset in batches, optionally shuffled and read ahead by workers.

    Args:
        dataset: map-style or iterable-style dataset.
        batch_size: samples per batch; None hands samples out one by one, not batched.
        shuffle: visit the samples in a new random order each pass. Of a pipe, it turns the
            shufflers on or off.
        sampler: the order of keys; excludes ``shuffle``.
        batch_sampler: the order of lists of keys; excludes ``batch_size``, ``shuffle``,
            ``sampler`` and ``drop_last``.
        num_workers: worker processes or threads; 0 loads in the calling thread. "auto" makes the
            first batches there, chooses by their times, and goes on with workers if they are worth
            it (a stream from its next pass on); `choice` says what was chosen and why.
        collate_fn: makes a batch of a list of samples (of one sample, if not batched).
        pin_memory: put batches into page-locked memory where there is an accelerator.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a batch from the workers; 0 waits for ever.
        worker_init_fn: called with the worker's number in each worker, after seeding.
        multiprocessing_context: start method or context of the worker processes.
        generator: source of random numbers for ``shuffle`` and the workers' seeds.
        prefetch_factor: batches read ahead per worker (2 by default). "auto" doubles them where
            batches are at times all ready and at others waited for.
        persistent_workers: keep the workers from one pass to the next.
        pin_memory_device: deprecated and without effect.
        in_order: hand batches out in the sampler's order; False takes whichever is ready.
        worker_backend: "process", or "thread" for workers in this process. Threads start at once,
            share the dataset's memory and hand batches over without a copy; they gain time where
            the work gives up the interpreter's lock (files, images, tensor operations), and their
            random draws repeat if they come from ``get_worker_info().rng``.

    Raises:
        ValueError: options that exclude one another or are out of range.

    Example:
        >>> [batch.tolist() for batch in DataLoader(range(5), batch_size=2)]
        [[0, 1], [2, 3], [4]]
        >>> threads = DataLoader(range(5), batch_size=2, num_workers=2, worker_backend="thread")
        >>> [batch.tolist() for batch in threads]
        [[0, 1], [2, 3], [4]]
    """

    dataset: Dataset[_T_co]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Sampler[Any] | Iterable[Any]
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: _BaseDataLoaderIter | None
    #: after how many batches a worker notes its state; those since are made again
    _snapshot_every = 16
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int | str = 0,
        collate_fn: _collate_fn_t | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: _worker_init_fn_t | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | str | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker_backend: str = "process",
    ) -> None:
        self._chooses_workers = self._chooses_prefetch = None
        if num_workers == "auto":
            num_workers, self._chooses_workers = 1, WorkerChoice(processors())
        if prefetch_factor == "auto":
            self._chooses_prefetch = Tuned("prefetch_factor", most=64)
            prefetch_factor = self._chooses_prefetch.size
        num_workers, prefetch_factor = _whole_numbers(num_workers, prefetch_factor)
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_backend(worker_backend, num_workers, multiprocessing_context)
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        self.dataset = dataset
        self.num_workers = num_workers
        self.worker_backend = worker_backend
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.persistent_workers = persistent_workers
        self.generator = generator

        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if _pipes.is_iter_pipe(dataset) and shuffle is not None:
            self.dataset = dataset = _pipes.with_shuffle(dataset, bool(shuffle))
            shuffle = None
        if iterable:
            _check_iterable_options(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                    "and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            sampler = self._default_sampler(bool(shuffle))
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            # Looked up in the module, where a program may have put its own.
            collate_fn = (
                _collate.default_collate if self._auto_collation else _collate.default_convert
            )
        self.collate_fn = collate_fn
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self._pass: Any = None  # the record of the last pass that began
        self._resume: dict[str, Any] | None = None
        self._shared_lists = SharedLists()
        if self._chooses_workers is not None:
            self.num_workers = 0  # so far
        self.__initialized = True
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle: bool) -> Sampler[Any]:
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)  # type: ignore[arg-type]
        return SequentialSampler(self.dataset)  # type: ignore[arg-type]

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        if self.worker_backend == "thread":
            from ._threads import _ThreadingDataLoaderIter

            return _ThreadingDataLoaderIter(self)
        from ._processes import _MultiProcessingDataLoaderIter

        return _MultiProcessingDataLoaderIter(self)

    def choice(self) -> str:
        """What `num_workers` and `prefetch_factor` are, and where "auto" chose them, why.

        Example:
            >>> loader = DataLoader(range(6), num_workers="auto")
            >>> loader.choice()
            'num_workers=0 until 8 batches have been measured'
            >>> DataLoader(range(6), num_workers=2).choice()
            'num_workers=2 was given; prefetch_factor=2 was given'
        """
        workers, prefetch = self._chooses_workers, self._chooses_prefetch
        parts = [f"num_workers={self.num_workers} was given" if workers is None else str(workers)]
        if prefetch is not None:
            parts.append(str(prefetch).replace("elements", "batches"))
        elif self.num_workers:
            parts.append(f"prefetch_factor={self.prefetch_factor} was given")
        return "; ".join(parts)

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands: plain data and tensors, as `save` keeps them.

        In the middle of a pass, finished or broken off, it says what was handed out; read ahead
        counts as not yet loaded. A loader made with the same options goes on from there and gives
        the rest of the pass, in the same order and with the same random numbers of its workers.
        The global generators of this process are not part of it: save `get_rng_state` apart.

        Example:
            >>> loader = DataLoader(range(6), batch_size=2, shuffle=True)
            >>> batches = iter(loader)
            >>> _ = next(batches)
            >>> state = loader.state_dict()
            >>> other = DataLoader(range(6), batch_size=2, shuffle=True)
            >>> other.load_state_dict(state)
            >>> [b.tolist() for b in other] == [b.tolist() for b in batches]
            True
        """
        return _state.state_of(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next pass go on where the state was taken; the one after it is a whole one.

        Keys of a map-style dataset are passed over without loading samples. A stream that has
        `state_dict` and `load_state_dict`, itself or its iterator, is put back by them; other
        streams are read again up to there, and workers make the last few batches again for their
        random numbers (see `StatefulDataLoader`).

        Args:
            state_dict: what `state_dict` returned, of a loader with the same options. A map-style
                dataset may have another number of workers then; the workers' own random numbers
                are new ones in that case.

        Raises:
            TypeError: not a state of a loader.
            RuntimeError: one of a loader with other options.
        """
        if self._chooses_workers is not None and self._chooses_workers.workers is None:
            self._take_workers(state_dict)
        self._resume = _state.checked(self, state_dict)
        self._iterator = None

    def _take_workers(self, state: Any) -> None:
        """Have as many workers as the loader that a state is of, if it had any."""
        workers = state.get("num_workers") if isinstance(state, dict) else None
        if workers and self._chooses_workers is not None:
            self._chooses_workers.take(workers)
            self.num_workers = workers

    def _claim_state(self) -> dict[str, Any] | None:
        """The state that the next pass goes on from, which is then used up."""
        state, self._resume = self._resume, None
        return state

    @property
    def multiprocessing_context(self) -> Any:
        """Context that the worker processes are started from."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            context = _checked_context(context, self.num_workers)
        self.__multiprocessing_context = context

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in _FIXED:
            raise ValueError(
                f"{attr} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(attr, val)

    def __iter__(self) -> _BaseDataLoaderIter:
        choice = self._chooses_workers
        if choice is not None:
            if choice.workers is None:
                return ChoosingIter(self, choice)  # type: ignore[return-value]
            self.num_workers = choice.workers
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None or not self._iterator._has_workers():
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        # What was promised is kept, to warn when the stream turns out to be longer.
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        if self.drop_last:
            return length // self.batch_size
        return math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warns about more workers than processors that this process may use."""
        if not self.num_workers:
            return
        most = processors()
        if self.num_workers > most:
            kind = "threads" if self.worker_backend == "thread" else "processes"
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker {kind} in total, but "
                f"the suggested maximum on this system is {most}. Too many workers make "
                "loading slow or even freeze it: lower num_workers if that happens.",
                stacklevel=3,
            )


def _whole_numbers(num_workers: Any, prefetch_factor: Any) -> tuple[int, int | None]:
    for name, value in (("num_workers", num_workers), ("prefetch_factor", prefetch_factor)):
        if isinstance(value, str):
            raise ValueError(
                f"{name} option should be a number or 'auto', but got {name}={value!r}"
            )
    return num_workers, prefetch_factor


def _check_worker_options(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if prefetch_factor is not None:
        if num_workers == 0:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing: expected "
                "num_workers > 0, or prefetch_factor=None"
            )
        if prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_backend(backend: str, num_workers: int, context: Any) -> None:
    if backend not in _BACKENDS:
        raise ValueError(
            f"worker_backend option should be one of {_BACKENDS!r}, but got "
            f"worker_backend={backend!r}"
        )
    if backend == "thread" and num_workers == 0:
        raise ValueError(
            "worker_backend='thread' needs num_workers > 0, but got num_workers=0, which loads in "
            "the calling thread"
        )
    if backend == "thread" and context is not None:
        raise ValueError(
            "multiprocessing_context is an option of worker processes: expected None with "
            f"worker_backend='thread', but got multiprocessing_context={context!r}"
        )


def _check_iterable_options(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """A stream has no keys, so nothing may choose their order."""
    given = {
        "shuffle": shuffle or None,
        "sampler": sampler,
        "batch_sampler": batch_sampler,
    }
    for option, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {option} option, but got "
                f"{option}={value}"
            )


def _checked_context(context: Any, num_workers: int) -> Any:
    import multiprocessing

    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > "
            f"0), but got num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods!r}, but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )
    return context


def __getattr__(name: str) -> Any:
    # Only programs that name the class pay for importing multiprocessing.
    if name == "_MultiProcessingDataLoaderIter":
        from ._processes import _MultiProcessingDataLoaderIter

        return _MultiProcessingDataLoaderIter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
