"""One pass over a loader's dataset: what all iterators share, and the one without worker processes.

Owns the order of the first random calls of a pass (see Note [Random calls of a data loader]) and
the count of what was handed out. It knows the loader only by its public attributes.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any, NoReturn

import flambeau as fb
from flambeau.autograd import profiler

from . import _pipes, _state
from ._utils import snapshot as _snapshot
from ._utils.fetch import _DatasetKind
from ._utils.pin_memory import pin_memory


def _accelerator_is_available() -> bool:
    cuda = getattr(fb, "cuda", None)
    return bool(cuda is not None and cuda.is_available())


class _BaseDataLoaderIter:
    def __init__(self, loader: Any) -> None:
        state = loader._claim_state()
        with _state.put_back(loader, state):
            self._prepare(loader, state)
            self._begin(loader, state)

    def _prepare(self, loader: Any, state: Any) -> None:
        """Take over the loader's options, and draw what a pass draws at its start."""
        if _state.in_pass(loader, state):
            record = _state.PassRecord.of(loader, state["pass"])
        else:
            record = _state.PassRecord(loader)
        loader._pass = self._record = record
        self._dataset = loader.dataset
        self._shared_seed: int | None = record.shared_seed
        self._seeds: _pipes.SharedSeeds | None = None
        if _pipes.is_iter_pipe(self._dataset):
            self._seeds = _pipes.SharedSeeds(loader.generator)
            if not record.again:
                self._seed_pipes()
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers = loader.persistent_workers
        self._pin_memory = self._wants_pinned(loader)
        self._stateful_sampler = _state.stateful_sampler(loader)
        self._drawn_out = False  # the last list of keys was cut short by the sampler's end
        if record.again:
            assert record.base_seed is not None
            self._base_seed = record.base_seed
        else:
            self._sampler_iter = iter(self._index_sampler)
            draw = fb.empty((), dtype=fb.int64).random_(generator=loader.generator)
            self._base_seed = int(draw.item())
        record.base_seed, record.shared_seed = self._base_seed, self._shared_seed
        self._num_yielded = record.taken

    def _begin(self, loader: Any, state: Any) -> None:
        """Get ready for the first batch, or for the next one of the pass that a state is of."""
        raise NotImplementedError

    def _seed_pipes(self) -> None:
        """Draw the seed of a pass over pipes; other datasets have none."""
        if self._seeds is not None:
            self._shared_seed = self._seeds.draw()
            _pipes.seed(self._dataset, self._shared_seed)

    @staticmethod
    def _wants_pinned(loader: Any) -> bool:
        if not loader.pin_memory:
            return False
        if loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the "
                f"device, ignore pin_memory_device='{loader.pin_memory_device}'.",
                stacklevel=4,
            )
        if not _accelerator_is_available():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=4,
            )
            return False
        return True

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _has_workers(self) -> bool:
        """Whether this process can go on with the pass; a fork has no workers."""
        return True

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._seed_pipes()

    def _next_index(self) -> Any:
        index = next(self._sampler_iter)
        if self._stateful_sampler is not None and self._auto_collation:
            size = getattr(self._index_sampler, "batch_size", None)
            self._drawn_out = size is not None and len(index) < size
        return index

    def _next_data(self) -> NoReturn:
        raise NotImplementedError

    def _pass_over(self, count: int) -> list[Any]:
        """Draw the keys of batches handed out before; a sampler with a state is past them."""
        if self._stateful_sampler is not None:
            if self._record.drawn_out:
                self._sampler_iter = iter(())
            return []
        return list(itertools.islice(self._sampler_iter, count))

    def _fetcher_of(self, dataset: Any) -> Any:
        return _DatasetKind.create_fetcher(
            self._dataset_kind,
            dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def __next__(self) -> Any:
        data: Any
        if profiler._is_profiler_enabled:
            name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
            with profiler.record_function(name):
                data = self._next_data()
        else:
            data = self._next_data()
        self._num_yielded += 1
        promised = self._IterableDataset_len_called
        if (
            promised is not None
            and self._dataset_kind == _DatasetKind.Iterable
            and self._num_yielded > promised
        ):
            hint = (
                " Each worker process iterates over its own copy of the dataset: split the work "
                "with get_worker_info()."
                if self._num_workers > 0
                else ""
            )
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {promised} (when "
                f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched."
                + hint,
                stacklevel=2,
            )
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads each batch when it is asked for, in the calling thread."""

    def _begin(self, loader: Any, state: Any) -> None:
        if self._timeout != 0 and loader._chooses_workers is None:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        if _pipes.is_pipe(self._dataset):
            _pipes.shard(self._dataset, _pipes.ranks())
        goes_on = _state.in_pass(loader, state)
        known = None if state is None else state["dataset"]
        if known is not None and not goes_on:
            known.pop("iterator", None)
        self._dataset_fetcher = _snapshot.fetcher_at(known, self._dataset, self._fetcher_of)
        iterator = getattr(self._dataset_fetcher, "dataset_iter", None)
        if _snapshot.is_stateful(iterator):
            self._record.iterator = iterator
        self._mark = _snapshot.mark_global()
        if goes_on and self._record.first is not None:
            _snapshot.write_global(self._record.first)
        if goes_on and self._dataset_kind == _DatasetKind.Map:
            self._pass_over(self._record.taken)
        elif goes_on and known is None:
            for _ in range(self._record.taken):
                _snapshot.fetch_again(self._dataset_fetcher, self._next_index())

    def _next_data(self) -> Any:
        record = self._record
        if not record.taken:  # samplers and streams draw when they are first asked
            drawn = _snapshot.has_drawn(self._mark)
            record.first = _snapshot.read_global() if drawn else None
        try:
            index = self._next_index()
            data = self._dataset_fetcher.fetch(index)
        except StopIteration:
            record.finished, record.iterator = True, None
            raise
        except Exception:
            record.taken += 1
            raise
        record.taken += 1
        record.drawn_out = self._drawn_out
        if self._dataset_kind == _DatasetKind.Iterable:
            record.ended = self._dataset_fetcher.ended
        return pin_memory(data) if self._pin_memory else data
