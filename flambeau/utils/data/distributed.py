"""DistributedSampler: each process of a group visits its own share of a dataset.

Invariant: all ranks compute the same permutation from (seed, epoch) and take interleaved slices of
equal length. It asks ``flambeau.distributed`` only for what the caller leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import flambeau as fb

from .sampler import Sampler

__all__ = ["DistributedSampler"]

_T_co = TypeVar("_T_co", covariant=True)


def _process_group() -> Any:
    dist = getattr(fb, "distributed", None)
    if dist is None or not dist.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return dist


class DistributedSampler(Sampler[_T_co]):
    """Splits the indices of a dataset evenly among ``num_replicas`` processes.

    Where the length does not divide evenly, the list is filled up with indices from its start, or,
    with ``drop_last``, cut. Call ``set_epoch`` before each epoch, or every epoch has the same
    order.

    Args:
        dataset: a dataset of constant length.
        num_replicas: number of processes; by default that of the current group.
        rank: number of this process; by default that within the current group.
        shuffle: permute the indices, alike on all ranks.
        seed: base of the permutation's seed, the same on all ranks.
        drop_last: cut instead of filling up.

    Example:
        >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = _process_group().get_world_size()
        if rank is None:
            rank = _process_group().get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        share = len(dataset) / num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * num_replicas

    def _order(self) -> list[int]:
        n = len(self.dataset)
        if not self.shuffle:
            return list(range(n))
        generator = fb.Generator()
        generator.manual_seed(self.seed + self.epoch)
        return fb.randperm(n, generator=generator).tolist()

    def __iter__(self) -> Iterator[_T_co]:
        order = self._order()
        if order and len(order) < self.total_size:
            order *= math.ceil(self.total_size / len(order))
        order = order[: self.total_size]
        if len(order) != self.total_size:
            raise AssertionError(
                f"Number of indices ({len(order)}) does not match total_size ({self.total_size})"
            )
        return iter(order[self.rank :: self.num_replicas])  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses the permutation of the next pass.

        Args:
            epoch: number of the epoch, the same on all ranks.
        """
        self.epoch = epoch
