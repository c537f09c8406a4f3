"""One pass over a loader's dataset: what all iterators share, and the one without worker processes.

Owns the order of the first random calls of a pass (see Note [Random calls of a data loader]) and
the count of what was handed out. It knows the loader only by its public attributes.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import flambeau as fb

from . import _pipes
from ._utils.fetch import _DatasetKind
from ._utils.pin_memory import pin_memory


def _accelerator_is_available() -> bool:
    cuda = getattr(fb, "cuda", None)
    return bool(cuda is not None and cuda.is_available())


class _BaseDataLoaderIter:
    def __init__(self, loader: Any) -> None:
        self._dataset = loader.dataset
        self._shared_seed: int | None = None
        self._seeds: _pipes.SharedSeeds | None = None
        if _pipes.is_iter_pipe(self._dataset):
            self._seeds = _pipes.SharedSeeds(loader.generator)
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
        self._sampler_iter = iter(self._index_sampler)
        draw = fb.empty((), dtype=fb.int64).random_(generator=loader.generator)
        self._base_seed = int(draw.item())
        self._num_yielded = 0

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
        return next(self._sampler_iter)

    def _next_data(self) -> NoReturn:
        raise NotImplementedError

    def _create_fetcher(self) -> Any:
        return _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def __next__(self) -> Any:
        data: Any = self._next_data()
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

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        if _pipes.is_pipe(self._dataset):
            _pipes.shard(self._dataset, _pipes.ranks())
        self._dataset_fetcher = self._create_fetcher()

    def _next_data(self) -> Any:
        data = self._dataset_fetcher.fetch(self._next_index())
        return pin_memory(data) if self._pin_memory else data
