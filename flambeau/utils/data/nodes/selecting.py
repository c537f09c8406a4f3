"""Nodes that hand out some elements of their source, or all of them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base_node import BaseNode, T

__all__ = ["Cycler", "Filter", "Header"]


class Filter(BaseNode[T]):
    """The elements that a function says yes to.

    Args:
        source_node: what is read.
        filter_fn: of an element.

    Example:
        >>> from flambeau.utils.data.nodes import Filter, IterableWrapper
        >>> list(Filter(IterableWrapper(range(6)), lambda n: n % 2))
        [1, 3, 5]
    """

    SOURCE_KEY = "source"
    NUM_FILTERED_KEY = "num_filtered"
    NUM_YIELDED_KEY = "num_yielded"

    def __init__(self, source_node: BaseNode[T], filter_fn: Callable[[T], Any]) -> None:
        super().__init__()
        self.source, self.filter_fn = source_node, filter_fn
        self._num_filtered = self._num_yielded = 0

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        state = initial_state or {}
        self.source.reset(state.get(self.SOURCE_KEY))
        self._num_filtered = state.get(self.NUM_FILTERED_KEY, 0)
        self._num_yielded = state.get(self.NUM_YIELDED_KEY, 0)

    def next(self) -> T:
        while True:
            item = next(self.source)
            if self.filter_fn(item):
                self._num_yielded += 1
                return item
            self._num_filtered += 1

    def get_state(self) -> dict[str, Any]:
        return {
            self.SOURCE_KEY: self.source.state_dict(),
            self.NUM_FILTERED_KEY: self._num_filtered,
            self.NUM_YIELDED_KEY: self._num_yielded,
        }


class Header(BaseNode[T]):
    """The first elements.

    Args:
        source_node: what is read; no more of it than is handed out.
        n: how many.

    Example:
        >>> from flambeau.utils.data.nodes import Header, IterableWrapper
        >>> list(Header(IterableWrapper("abc"), 2))
        ['a', 'b']
    """

    SOURCE_KEY = "source"
    NUM_YIELDED_KEY = "num_yielded"

    def __init__(self, source_node: BaseNode[T], n: int) -> None:
        super().__init__()
        if n < 0:
            raise ValueError(f"Header: expected n >= 0, got {n}")
        self.source, self.n = source_node, n
        self._num_yielded = 0

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        state = initial_state or {}
        self.source.reset(state.get(self.SOURCE_KEY))
        self._num_yielded = state.get(self.NUM_YIELDED_KEY, 0)

    def next(self) -> T:
        if self._num_yielded >= self.n:
            raise StopIteration
        item = next(self.source)
        self._num_yielded += 1
        return item

    def get_state(self) -> dict[str, Any]:
        return {
            self.SOURCE_KEY: self.source.state_dict(),
            self.NUM_YIELDED_KEY: self._num_yielded,
        }


class Cycler(BaseNode[T]):
    """All elements again and again; none if the source has none.

    Args:
        source_node: what is read.
        max_cycles: how often; None for ever.

    Example:
        >>> from flambeau.utils.data.nodes import Cycler, IterableWrapper
        >>> list(Cycler(IterableWrapper("ab"), max_cycles=2))
        ['a', 'b', 'a', 'b']
    """

    SOURCE_KEY = "source"
    NUM_CYCLES_KEY = "num_cycles"
    HAS_STARTED_KEY = "has_started"
    NUM_YIELDED_KEY = "num_yielded"

    def __init__(self, source_node: BaseNode[T], max_cycles: int | None = None) -> None:
        super().__init__()
        if max_cycles is not None and max_cycles < 1:
            raise ValueError(f"Cycler: expected max_cycles >= 1 or None, got {max_cycles}")
        self.source, self.max_cycles = source_node, max_cycles
        self._num_cycles = self._num_yielded = 0
        self._has_started = False  # whether this cycle has given anything

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        state = initial_state or {}
        self.source.reset(state.get(self.SOURCE_KEY))
        self._num_cycles = state.get(self.NUM_CYCLES_KEY, 0)
        self._num_yielded = state.get(self.NUM_YIELDED_KEY, 0)
        self._has_started = state.get(self.HAS_STARTED_KEY, False)

    def next(self) -> T:
        while self.max_cycles is None or self._num_cycles < self.max_cycles:
            try:
                item = next(self.source)
            except StopIteration:
                if not self._has_started:
                    raise
                self._num_cycles += 1
                self._has_started = False
                if self._num_cycles != self.max_cycles:
                    self.source.reset(None)
            else:
                self._has_started = True
                self._num_yielded += 1
                return item
        raise StopIteration

    def get_state(self) -> dict[str, Any]:
        return {
            self.SOURCE_KEY: self.source.state_dict(),
            self.NUM_CYCLES_KEY: self._num_cycles,
            self.HAS_STARTED_KEY: self._has_started,
            self.NUM_YIELDED_KEY: self._num_yielded,
        }
