"""Pipes that put samples together and take them apart: batch, unbatch, groupby, buckets.

Owns when a batch is full. A batch is a `DataChunk` unless the user names another class.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe
from ..utils.common import _check_unpickable_fn, length_like

__all__ = [
    "BatcherIterDataPipe",
    "BucketBatcherIterDataPipe",
    "GrouperIterDataPipe",
    "MaxTokenBucketizerIterDataPipe",
    "UnBatcherIterDataPipe",
]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[Any]):
    """Batches of samples (functional name: `batch`).

    Args:
        datapipe: source.
        batch_size: samples per batch.
        drop_last: leave out a last batch that is not full.
        wrapper_class: what a batch is made of a list by.

    Raises:
        AssertionError: `batch_size` is not positive.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).batch(2))
        [[0, 1], [2, 3], [4]]
    """

    datapipe: Any
    batch_size: int
    drop_last: bool

    def __init__(
        self,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Any = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        size, wrap = self.batch_size, self.wrapper_class
        source = iter(self.datapipe)
        while batch := list(itertools.islice(source, size)):
            if len(batch) == size or not self.drop_last:
                yield wrap(batch)
            if len(batch) < size:
                return

    def __len__(self) -> int:
        length = length_like(self, self.datapipe)
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """The samples of batches (functional name: `unbatch`).

    Args:
        datapipe: source of lists.
        unbatch_level: how many levels of lists are taken apart; -1 for all.

    Raises:
        ValueError: while iterating, the level is below -1.
        IndexError: while iterating, the lists are not so deep.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> nested = IterableWrapper([[[0, 1], [2]], [[3]]])
        >>> list(nested.unbatch()), list(nested.unbatch(unbatch_level=2))
        ([[0, 1], [2], [3]], [0, 1, 2, 3])
    """

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        level = self.unbatch_level
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        for element in self.datapipe:
            if level == 1 and isinstance(element, list):
                yield from element
            else:
                yield from self._dive(element, level)

    def _dive(self, element: Any, level: int) -> Iterator[Any]:
        if level == 0 or (level == -1 and not isinstance(element, list)):
            yield element
        elif isinstance(element, list):
            for item in element:
                yield from self._dive(item, max(level - 1, -1))
        else:
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Batches of samples with one key (functional name: `groupby`).

    A group is handed out when it has `group_size` samples. When `buffer_size` samples wait, the
    largest group is: whole, if it has `guaranteed_group_size`.

    Args:
        datapipe: source.
        group_key_fn: function of a sample: its key.
        keep_key: hand out (key, samples).
        buffer_size: samples that may wait.
        group_size: samples per group; None for as many as there are.
        guaranteed_group_size: groups in a full buffer have at least so many; `group_size` by
            default.
        drop_remaining: drop a largest group that is smaller, in place of an error.

    Raises:
        AssertionError: the sizes contradict one another.
        RuntimeError: while iterating, the buffer is full and no group is large enough.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> files = IterableWrapper(["a.png", "b.png", "a.json", "b.json", "a.jpg"])
        >>> list(files.groupby(lambda name: name[0], group_size=2))
        [['a.png', 'a.json'], ['b.png', 'b.json'], ['a.jpg']]
    """

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        _check_unpickable_fn(group_key_fn)
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = None
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError(
                    "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
                )
            self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class = DataChunk

    def _largest(self, groups: dict[Any, list[Any]]) -> Any:
        """The key of the largest group, the first of equals."""
        key = max(groups, key=lambda k: len(groups[k]))
        enough = self.guaranteed_group_size
        if enough is not None and len(groups[key]) < enough and not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(groups[key]))
        return key

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = {}
        held, enough = 0, self.guaranteed_group_size
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            group = groups.setdefault(key, [])
            group.append(sample)
            held += 1
            if self.group_size == len(group):
                yield self._made(key, groups.pop(key))
                held -= len(group)
            if held == self.max_buffer_size:
                key = self._largest(groups)
                group = groups.pop(key)
                held -= len(group)
                if enough is None or len(group) >= enough:
                    yield self._made(key, group)
        for key in tuple(groups):
            yield self._made(key, groups.pop(key))

    def _made(self, key: Any, group: list[Any]) -> Any:
        chunk = self.wrapper_class(group)
        return (key, chunk) if self.keep_key else chunk


@functional_datapipe("bucketbatch")
class BucketBatcherIterDataPipe(IterDataPipe[Any]):
    """Batches of similar samples, in random order (functional name: `bucketbatch`).

    Samples are shuffled in a pool of `batch_size * batch_num * bucket_num`, sorted in buckets of
    `batch_size * batch_num`, batched, and the batches shuffled.

    Args:
        datapipe: source.
        batch_size: samples per batch.
        drop_last: leave out a last batch that is not full.
        batch_num: batches per bucket.
        bucket_num: buckets per pool.
        sort_key: function of a bucket (a list) that sorts it; None sorts nothing.
        use_in_batch_shuffle: shuffle within pools rather than through a buffer.

    Raises:
        AssertionError: a size is not positive.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> words = IterableWrapper(["ccc", "a", "dddd", "bb"])
        >>> pipe = words.bucketbatch(2, sort_key=lambda bucket: sorted(bucket, key=len))
        >>> sorted(pipe)
        [['a', 'bb'], ['ccc', 'dddd']]
    """

    def __new__(
        cls,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        batch_num: int = 100,
        bucket_num: int = 1,
        sort_key: Callable[[list[Any]], Any] | None = None,
        use_in_batch_shuffle: bool = True,
    ) -> Any:
        given = {"batch_size": batch_size, "batch_num": batch_num, "bucket_num": bucket_num}
        for name, number in given.items():
            if number <= 0:
                raise AssertionError(f"bucketbatch: expected {name} larger than 0, got {number}")
        bucket_size = batch_size * batch_num
        pool_size = bucket_size * bucket_num
        if bucket_num > 1 or sort_key is None:
            if use_in_batch_shuffle:
                datapipe = datapipe.batch(pool_size).in_batch_shuffle().unbatch()
            else:
                datapipe = datapipe.shuffle(buffer_size=pool_size)
        if sort_key is not None:
            datapipe = datapipe.batch(bucket_size).map(fn=sort_key).unbatch()
        datapipe = datapipe.batch(batch_size, drop_last=drop_last)
        if sort_key is not None:
            if use_in_batch_shuffle:
                datapipe = datapipe.batch(bucket_num).in_batch_shuffle().unbatch()
            else:
                datapipe = datapipe.shuffle(buffer_size=bucket_size)
        return datapipe


@functional_datapipe("max_token_bucketize")
class MaxTokenBucketizerIterDataPipe(IterDataPipe[Any]):
    """Batches of samples of similar length, bounded in all their tokens (functional name:
    `max_token_bucketize`).

    Args:
        datapipe: source.
        max_token_count: bound of the sum of lengths in a batch.
        len_fn: function of a sample: its length.
        min_len: shorter samples are left out.
        max_len: longer samples are left out; `max_token_count` by default.
        buffer_size: samples that wait, shortest first.
        include_padding: bound the number of samples times the longest of them.

    Raises:
        ValueError: the bounds contradict one another.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> words = IterableWrapper(["11111", "1", "111", "22"])
        >>> list(words.max_token_bucketize(max_token_count=5))
        [['1', '22'], ['111'], ['11111']]
    """

    def __init__(
        self,
        datapipe: Any,
        max_token_count: int,
        len_fn: Callable[[Any], int] = len,
        min_len: int = 0,
        max_len: int | None = None,
        buffer_size: int = 1000,
        include_padding: bool = False,
    ) -> None:
        if max_len is None:
            max_len = max_token_count
        if min_len < 0 or min_len > max_len:
            raise ValueError(
                "``min_len`` should be larger than 0 and equal to or smaller than ``max_len``."
            )
        if max_len > max_token_count:
            raise ValueError("``max_token_count`` must be equal to or greater than ``max_len``.")
        if buffer_size <= 0:
            raise ValueError("'buffer_size' is required to be a positive integer.")
        _check_unpickable_fn(len_fn)
        self.datapipe = datapipe
        self.max_token_count = max_token_count
        self.len_fn = len_fn
        self.min_len = min_len
        self.max_len = max_len
        self.buffer_size = buffer_size
        self.include_padding = include_padding

    def _shortest_first(self) -> Iterator[tuple[int, Any]]:
        """(length, sample) through a heap of `buffer_size`; of equal lengths in heap order."""
        heap: list[_Sized] = []
        for sample in self.datapipe:
            length = self.len_fn(sample)
            if self.min_len <= length <= self.max_len:
                heapq.heappush(heap, _Sized(length, sample))
                if len(heap) == self.buffer_size:
                    least = heapq.heappop(heap)
                    yield least.length, least.sample
        while heap:
            least = heapq.heappop(heap)
            yield least.length, least.sample

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        tokens = longest = 0
        for length, sample in self._shortest_first():
            if self.include_padding:
                longest = max(length, longest)
                needed = (len(batch) + 1) * longest
            else:
                needed = tokens + length
            if needed > self.max_token_count:
                yield DataChunk(batch)
                batch, tokens, longest = [sample], length, length
            else:
                batch.append(sample)
                tokens = needed
        if batch:
            yield DataChunk(batch)


class _Sized:
    """A sample in a heap, compared by its length alone."""

    __slots__ = ("length", "sample")

    def __init__(self, length: int, sample: Any) -> None:
        self.length, self.sample = length, sample

    def __lt__(self, other: _Sized) -> bool:
        return self.length < other.length
