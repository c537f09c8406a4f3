"""Nodes that put elements together, and take them apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from .base_node import BaseNode, T

__all__ = ["Batcher", "Unbatcher"]


class Batcher(BaseNode[list[T]]):
    """Lists of elements.

    Args:
        source: what is put together.
        batch_size: elements in each.
        drop_last: leave out a last list that is not full.

    Example:
        >>> from flambeau.utils.data.nodes import Batcher, IterableWrapper
        >>> list(Batcher(IterableWrapper(range(5)), 2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    SOURCE_KEY = "source"

    def __init__(self, source: BaseNode[T], batch_size: int, drop_last: bool = True) -> None:
        super().__init__()
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"Batcher: expected a positive batch_size, got {batch_size!r}")
        self.source, self.batch_size, self.drop_last = source, batch_size, drop_last
        self._ended = False

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        self.source.reset(None if initial_state is None else initial_state[self.SOURCE_KEY])
        # A source that has ended may begin again when it is asked once more.
        self._ended = False if initial_state is None else initial_state.get("ended", False)

    def next(self) -> list[T]:
        batch = [] if self._ended else list(islice(self.source, self.batch_size))
        if len(batch) < self.batch_size:
            self._ended = True
            if self.drop_last or not batch:
                raise StopIteration
        return batch

    def get_state(self) -> dict[str, Any]:
        return {self.SOURCE_KEY: self.source.state_dict(), "ended": self._ended}


class Unbatcher(BaseNode[T]):
    """The elements of batches.

    Args:
        source: batches.

    Example:
        >>> from flambeau.utils.data.nodes import IterableWrapper, Unbatcher
        >>> list(Unbatcher(IterableWrapper(["ab", "", "c"])))
        ['a', 'b', 'c']
    """

    SOURCE_KEY = "source"
    BATCH_IDX_KEY = "batch_idx"

    def __init__(self, source: BaseNode[Sequence[T]]) -> None:
        super().__init__()
        self.source = source
        self._batch: Sequence[T] = ()
        self._batch_idx = 0
        self._before: dict[str, Any] = {}  # the source's state before it made this batch

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        self._batch, self._batch_idx = (), 0
        if initial_state is None:
            self.source.reset(None)
            self._before = self.source.state_dict()
            return
        self._before = initial_state[self.SOURCE_KEY]
        self.source.reset(self._before)
        if initial_state[self.BATCH_IDX_KEY]:
            self._batch = next(self.source)
            self._batch_idx = initial_state[self.BATCH_IDX_KEY]

    def next(self) -> T:
        while self._batch_idx >= len(self._batch):
            self._batch, self._batch_idx = (), 0
            self._before = self.source.state_dict()
            self._batch = next(self.source)
        self._batch_idx += 1
        return self._batch[self._batch_idx - 1]

    def get_state(self) -> dict[str, Any]:
        return {self.SOURCE_KEY: self._before, self.BATCH_IDX_KEY: self._batch_idx}
