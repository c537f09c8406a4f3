"""Pipes that keep the share of one worker or rank, and names of shards.

Owns the arithmetic of nested groups: ranks of a job first, workers of a loader within.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from itertools import islice
from typing import Any, NoReturn

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_like

__all__ = [
    "SHARDING_PRIORITIES",
    "ShardExpanderIterDataPipe",
    "ShardingFilterIterDataPipe",
    "ShardingRoundRobinDispatcherIterDataPipe",
]


class SHARDING_PRIORITIES(IntEnum):
    """What shares the elements of a graph."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe[Any]):
    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
    ) -> NoReturn | None:
        raise NotImplementedError


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """Every n-th element, where n copies of the graph run (functional name: `sharding_filter`).

    A loader says to each worker, and to each rank of a job, which share is its own. Put it behind
    the shuffle and before what is costly.

    Args:
        source_datapipe: source.
        sharding_group_filter: heed this group of copies alone.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper(range(7)).sharding_filter()
        >>> list(pipe)
        [0, 1, 2, 3, 4, 5, 6]
        >>> pipe.apply_sharding(num_of_instances=3, instance_id=0)
        >>> list(pipe), len(pipe)
        ([0, 3, 6], 3)
    """

    def __init__(
        self, source_datapipe: Any, sharding_group_filter: SHARDING_PRIORITIES | None = None
    ) -> None:
        super().__init__()
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances = 1
        self.instance_id = 0

    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
    ) -> None:
        """Say which share is this copy's.

        Raises:
            ValueError: `instance_id` is not below `num_of_instances`.
            RuntimeError: DEFAULT and other groups are mixed.
        """
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than "
                f"num_of_instances({num_of_instances})"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        if self.groups and (sharding_group == default) != (default in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter in (None, group):
                instances, instance = self.groups[group]
                self.instance_id += self.num_of_instances * instance
                self.num_of_instances *= instances

    def __iter__(self) -> Iterator[Any]:
        if self.num_of_instances == 1:
            yield from self.source_datapipe
        else:
            yield from islice(self.source_datapipe, self.instance_id, None, self.num_of_instances)

    def __len__(self) -> int:
        whole, rest = divmod(length_like(self, self.source_datapipe), self.num_of_instances)
        return whole + (self.instance_id < rest)


@functional_datapipe("sharding_round_robin_dispatch")
class ShardingRoundRobinDispatcherIterDataPipe(IterDataPipe[Any]):
    """A mark: what is before it runs once and is dealt out to the workers (functional name:
    `sharding_round_robin_dispatch`).

    It marks a place for a reading service; a `DataLoader` runs the whole graph in each worker, and
    passes the elements on.

    Args:
        source_datapipe: source.
        sharding_group_filter: `SHARDING_PRIORITIES.MULTIPROCESSING`.

    Raises:
        NotImplementedError: another group, or none.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> from flambeau.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
        >>> workers = SHARDING_PRIORITIES.MULTIPROCESSING
        >>> list(IterableWrapper([1, 2]).sharding_round_robin_dispatch(workers))
        [1, 2]
    """

    def __init__(
        self, source_datapipe: Any, sharding_group_filter: SHARDING_PRIORITIES | None = None
    ) -> None:
        self.source_datapipe = source_datapipe
        if sharding_group_filter != SHARDING_PRIORITIES.MULTIPROCESSING:
            raise NotImplementedError(
                "`sharding_round_robin_dispatch` currently only supports "
                "`SHARDING_PRIORITIES.MULTIPROCESSING`."
            )
        self.sharding_group_filter = sharding_group_filter

    def __iter__(self) -> Iterator[Any]:
        yield from self.source_datapipe

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


def expand_shards(pattern: str) -> list[str]:
    """The names that a pattern such as `part-{000..012}.tar` stands for."""
    found = re.search(r"\{([0-9]+)\.\.([0-9]+)\}", pattern)
    if found is None:
        return [pattern]
    low, high = found.groups()
    padded = len(low) == len(high) and low.startswith("0")
    if not padded and len(low) > len(high):
        raise ValueError("shard_expand: low bound must be shorter than high bound")
    if not padded and low.startswith("0") and low != "0":
        raise ValueError("shard_expand: low bound must not start with 0 if low bound is shorter")
    if int(low) >= int(high):
        raise ValueError(f"shard_expand: bad range in shard spec {pattern}.")
    width = len(high) if padded else 0
    head, tails = pattern[: found.start()], expand_shards(pattern[found.end() :])
    numbers = range(int(low), int(high) + 1)
    return [f"{head}{number:0{width}d}{tail}" for number in numbers for tail in tails]


@functional_datapipe("shard_expand")
class ShardExpanderIterDataPipe(IterDataPipe[str]):
    """The names that patterns with `{low..high}` stand for (functional name: `shard_expand`).

    Args:
        source_datapipe: source of patterns.

    Raises:
        ValueError: while iterating, the bounds are no range.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(["part-{08..10}.tar"]).shard_expand())
        ['part-08.tar', 'part-09.tar', 'part-10.tar']
    """

    def __init__(self, source_datapipe: Any) -> None:
        super().__init__()
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[str]:
        for pattern in self.source_datapipe:
            yield from expand_shards(pattern)
