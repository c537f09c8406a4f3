"""What a loader does for pipes: it seeds their shuffles, and gives each copy its share.

Owns the shared seed of a pass, which all ranks and workers get alike (see Note [Random calls of a
data loader]), and the arithmetic of ranks and workers. Pipes are told by the mark of their class,
so that a loader of other datasets loads none of them.
"""

from __future__ import annotations

import sys
from typing import Any

import flambeau as fb

from .dataset import IterableDataset


def is_pipe(dataset: Any) -> bool:
    """Whether a dataset is a pipe of either kind."""
    return bool(getattr(type(dataset), "_is_datapipe", False))


def is_iter_pipe(dataset: Any) -> bool:
    """Whether a dataset is an iterable pipe."""
    return is_pipe(dataset) and isinstance(dataset, IterableDataset)


def with_shuffle(dataset: Any, shuffle: bool | None) -> Any:
    """The pipe to load from, with its shufflers on or off."""
    from .graph_settings import apply_shuffle_settings

    return apply_shuffle_settings(dataset, shuffle)


def copy_of(dataset: Any) -> Any:
    """A graph of the same pipes for another thread, which may be read beside this one.

    Pipes and what holds them are copied; functions, lists and other sources are shared.
    """
    from .datapipes._connections import copied_graph

    return copied_graph(dataset)


def seed(dataset: Any, shared_seed: int) -> None:
    """Seed the random pipes of a graph."""
    from .graph_settings import apply_random_seed

    apply_random_seed(dataset, fb.Generator().manual_seed(shared_seed))


def state_of_next_pass(dataset: Any) -> dict[str, Any]:
    """The state of a pipe from which its next pass begins, whether one has ended or not."""
    from .datapipes._snapshots import state_of

    return state_of(dataset, next_pass=True)


def waits_to_go_on(dataset: Any) -> bool:
    """Whether a state was put back into a pipe that nothing has been read of since."""
    return is_pipe(dataset) and "_resume" in vars(dataset)


def between_passes(dataset: Any) -> dict[str, Any] | None:
    """What a graph of pipes takes from pass to pass beside its seeds; None for other datasets."""
    if not is_iter_pipe(dataset):
        return None
    from .datapipes._snapshots import between_passes

    return between_passes(dataset)


def put_between_passes(dataset: Any, state: dict[str, Any] | None) -> None:
    """Let the next pass of a graph follow on what `between_passes` returned."""
    if state and is_iter_pipe(dataset):
        from .datapipes._snapshots import put_between_passes

        put_between_passes(dataset, state)


def shard(dataset: Any, ranks: tuple[int, int], workers: tuple[int, int] = (1, 0)) -> None:
    """Give a copy of the graph its share.

    Args:
        dataset: the last pipe.
        ranks: how many ranks there are, and which this is.
        workers: how many workers each has, and which this is. Elements are dealt to ranks first.
    """
    from .graph_settings import apply_sharding

    (world_size, rank), (num_workers, worker) = ranks, workers
    apply_sharding(dataset, world_size * num_workers, worker * world_size + rank)


def ranks() -> tuple[int, int]:
    """World size and rank of this process; (1, 0) outside of a job."""
    dist = _distributed()
    return (dist.get_world_size(), dist.get_rank()) if dist else (1, 0)


class SharedSeeds:
    """Draws the seed of each pass, the same in all ranks."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        dist = _distributed()
        self._group = dist.new_group(backend="gloo") if dist else None

    def draw(self) -> int:
        value = fb.empty((), dtype=fb.int64).random_(generator=self._generator)
        dist = _distributed()
        if dist and self._group is not None:
            dist.broadcast(value, src=0, group=self._group)
        return int(value.item())


def _distributed() -> Any:
    """The module, if this process is part of a job: then somebody has loaded it."""
    dist = sys.modules.get("flambeau.distributed")
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None
