"""Fetchers: from one entry of the index sampler to one collated batch.

Owns the difference between map-style and iterable-style datasets. The same fetchers serve the
loading process itself and worker processes; they know neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import flambeau as fb

from ..dataset import TensorDataset
from . import collate


class _BaseDatasetFetcher:
    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[..., Any], drop_last: bool
    ) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> NoReturn:
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes as many samples from the stream as the index list is long."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dataset_iter = iter(self.dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for _ in possibly_batched_index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(samples)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Looks samples up by key, several at once where the dataset can."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # Rows of tensors need not be cut out one by one to be stacked again. The result is the same
        # as long as neither the dataset's nor the collation's behaviour has been replaced.
        self._rows_at_once = (
            self.auto_collation
            and type(self.dataset) is TensorDataset
            and self.collate_fn is collate.default_collate
            and all(type(t) is fb.Tensor for t in self.dataset.tensors)
        )

    def fetch(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if self._rows_at_once and _are_plain_ints(possibly_batched_index):
            stack = collate.default_collate_fn_map.get(fb.Tensor)
            if stack is collate.collate_tensor_fn:
                index = fb.tensor(possibly_batched_index, dtype=fb.int64)
                return [t[index] for t in self.dataset.tensors]
        many = getattr(self.dataset, "__getitems__", None)
        if many:
            return self.collate_fn(many(possibly_batched_index))
        return self.collate_fn([self.dataset[key] for key in possibly_batched_index])


class _DatasetKind:
    """The two kinds of dataset a loader tells apart."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int,
        dataset: Any,
        auto_collation: bool,
        collate_fn: Callable[..., Any],
        drop_last: bool,
    ) -> _BaseDatasetFetcher:
        """The fetcher that serves a dataset of this kind."""
        cls = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return cls(dataset, auto_collation, collate_fn, drop_last)


def _are_plain_ints(keys: Any) -> bool:
    return type(keys) is list and bool(keys) and all(type(key) is int for key in keys)
