"""A node whose source is read by a thread."""

from __future__ import annotations

from .base_node import BaseNode, T
from .map import _check_frequency, _Parallel

__all__ = ["Prefetcher"]


class Prefetcher(_Parallel):
    """The same elements, read ahead.

    Args:
        source: what is read, by a thread of its own.
        prefetch_factor: elements read ahead.
        snapshot_frequency: take the source's state after every so many elements; what was handed
            out since the last one is read again when a state is put back.

    Raises:
        ValueError: an option that is not a positive integer.

    Example:
        >>> from flambeau.utils.data.nodes import IterableWrapper, Prefetcher
        >>> list(Prefetcher(IterableWrapper("abc"), prefetch_factor=2))
        ['a', 'b', 'c']
    """

    def __init__(
        self, source: BaseNode[T], prefetch_factor: int, snapshot_frequency: int = 1
    ) -> None:
        if prefetch_factor < 1:
            raise ValueError(
                f"Prefetcher: expected a positive prefetch_factor, got {prefetch_factor}"
            )
        _check_frequency("Prefetcher", snapshot_frequency)
        super().__init__(
            source,
            (prefetch_factor, True, snapshot_frequency),
            lambda flow: (flow.put, [], lambda: None),
        )
        self.source, self.prefetch_factor = source, prefetch_factor
        self.snapshot_frequency = snapshot_frequency
