"""A pass during which a loader finds out how many workers it needs.

Owns the clock, and the change in the middle of a pass: a state of the loader is put back into the
same loader with workers. Streams and loaders without order deal their elements by the number of
workers, so they change between passes. The rule is `_utils.tuning`'s.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from ._utils.fetch import _DatasetKind
from ._utils.tuning import WorkerChoice


class ChoosingIter(Iterator[Any]):
    """A pass that begins without workers.

    Args:
        loader: made with `num_workers="auto"`, nothing chosen yet.
        choice: of that loader.
    """

    def __init__(self, loader: Any, choice: WorkerChoice) -> None:
        self._loader, self._choice = loader, choice
        self._pass = loader._get_iterator()
        self._made = 0.0  # seconds of the last batch
        self._returned: float | None = None
        self._warm = False  # a first batch loads what later ones need

    def __next__(self) -> Any:
        if self._choice.workers is not None:
            return next(self._pass)
        began = time.perf_counter()
        if self._returned is not None:
            self._choice.note(self._made, began - self._returned)
            if self._choice.ready:
                self._choose()
                return next(self._pass)
        batch = next(self._pass)
        now = time.perf_counter()
        self._made, self._returned = now - began, now if self._warm else None
        self._warm = True
        return batch

    def __len__(self) -> int:
        return len(self._pass)

    def _choose(self) -> None:
        loader = self._loader
        keyed = loader._dataset_kind == _DatasetKind.Map
        try:
            batches = len(loader._index_sampler) if keyed else None
        except TypeError:
            batches = None
        workers = self._choice.choose(batches)
        if not workers:
            return
        if not (keyed and loader.in_order):
            return  # from the next pass on
        state = loader.state_dict()
        loader.num_workers = workers
        loader.load_state_dict(state)
        self._pass = loader._get_iterator()
        if loader.persistent_workers:
            loader._iterator = self._pass
