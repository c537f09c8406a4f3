"""Settings that reach all pipes of a graph: seeds, shuffling, sharding.

Owns what a loader does to the pipes it is given. Which pipe takes part is decided by the methods
it has (`set_seed`, `set_shuffle`, `apply_sharding`), so that users' own pipes do.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import flambeau as fb

from .datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from .graph import DataPipe, DataPipeGraph, traverse_dps

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: DataPipeGraph) -> list[DataPipe]:
    """Each pipe of a graph once, from the last to the sources.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> from flambeau.utils.data.graph import traverse_dps
    >>> from flambeau.utils.data.graph_settings import get_all_graph_pipes
    >>> get_all_graph_pipes(traverse_dps(IterableWrapper([1]).batch(2)))
    [BatcherIterDataPipe, IterableWrapperIterDataPipe]
    """
    pipes: dict[int, DataPipe] = {}

    def collect(graph: DataPipeGraph) -> None:
        for key, (pipe, below) in graph.items():
            if key not in pipes:
                pipes[key] = pipe
                collect(below)

    collect(graph)
    return list(pipes.values())


def _has_methods(pipe: Any, *names: str) -> bool:
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in names)


def apply_sharding(
    datapipe: DataPipe,
    num_of_instances: int,
    instance_id: int,
    sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
) -> DataPipe:
    """Let each `sharding_filter` of the graph keep every n-th element.

    Args:
        datapipe: the last pipe.
        num_of_instances: n, how many copies of the graph share the elements.
        instance_id: which of them this is.
        sharding_group: what the copies are: processes of a job, workers of a loader.

    Raises:
        RuntimeError: two filters on one path: elements would be lost.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> from flambeau.utils.data.graph_settings import apply_sharding
        >>> list(apply_sharding(IterableWrapper(range(7)).sharding_filter(), 3, 1))
        [1, 4]
    """
    done: set[tuple[int, int]] = set()

    def walk(graph: DataPipeGraph, above: Any) -> None:
        for key, (pipe, below) in graph.items():
            if (key, id(above)) in done:
                continue
            done.add((key, id(above)))
            applied = above
            if isinstance(pipe, _ShardingIterDataPipe) or _has_methods(pipe, "apply_sharding"):
                if above is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause "
                        f"data loss. Sharding already applied to {above} while trying to apply "
                        f"to {pipe}"
                    )
                _shard(pipe, num_of_instances, instance_id, sharding_group)
                applied = pipe
            walk(below, applied)

    walk(traverse_dps(datapipe), None)
    return datapipe


def _shard(pipe: Any, instances: int, instance: int, group: SHARDING_PRIORITIES) -> None:
    if len(inspect.signature(pipe.apply_sharding).parameters) < 3:
        pipe.apply_sharding(instances, instance)
    else:
        pipe.apply_sharding(instances, instance, sharding_group=group)


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turn the shufflers of the graph on or off.

    Args:
        datapipe: the last pipe.
        shuffle: None changes nothing. True with no shuffler in the graph adds one at the end,
            with a warning.

    Returns:
        The last pipe: the shuffler, if one was added.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> from flambeau.utils.data.graph_settings import apply_shuffle_settings
        >>> list(apply_shuffle_settings(IterableWrapper(range(4)).shuffle(), shuffle=False))
        [0, 1, 2, 3]
    """
    if shuffle is None:
        return datapipe
    pipes: list[Any] = list(get_all_graph_pipes(traverse_dps(datapipe)))
    shufflers = [pipe for pipe in pipes if _has_methods(pipe, "set_shuffle", "set_seed")]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one "
            "at the end. Be aware that the default buffer size might not be sufficient for your "
            "task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """As `apply_random_seed`, deprecated."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future "
        "releases. Please use `apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """Give each pipe of the graph that has `set_seed` a seed of its own.

    Args:
        datapipe: the last pipe.
        rng: generator that the seeds are drawn from; None for the global one.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> from flambeau.utils.data.graph_settings import apply_random_seed
        >>> pipe = IterableWrapper(range(5)).shuffle()
        >>> first = list(apply_random_seed(pipe, torch.Generator().manual_seed(1)))
        >>> first == list(apply_random_seed(pipe, torch.Generator().manual_seed(1)))
        True
    """
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _has_methods(pipe, "set_seed"):
            seed = fb.empty((), dtype=fb.int64).random_(generator=rng)
            pipe.set_seed(int(seed.item()))
    return datapipe
