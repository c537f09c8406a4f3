"""The graph of pipes that ends in one: `traverse_dps`.

Owns its form, nested dictionaries by id. Invariant: a pipe's sub-graph is built once, however many
paths lead to it. Which pipes a pipe reads from is the business of `datapipes._connections`.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

from .datapipes._connections import connected_pipes
from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

DataPipe: TypeAlias = IterDataPipe[Any] | MapDataPipe[Any]
DataPipeGraph: TypeAlias = dict[int, tuple[DataPipe, Any]]

_PIPES = (IterDataPipe, MapDataPipe)


def traverse_dps(datapipe: DataPipe) -> DataPipeGraph:
    """The graph that ends in a pipe: `{id: (pipe, graph of what it reads from)}`.

    Pipes are looked for in attributes, and in lists, tuples, sets and dictionaries there.

    Args:
        datapipe: the last pipe.

    Raises:
        RuntimeError: it is no pipe.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> from flambeau.utils.data.graph import traverse_dps
        >>> [(last, sources)] = traverse_dps(IterableWrapper([1]).batch(2)).values()
        >>> last, [pipe for pipe, _ in sources.values()]
        (BatcherIterDataPipe, [IterableWrapperIterDataPipe])
    """
    return _graph(datapipe, True, {}, set())


def traverse(datapipe: DataPipe, only_datapipe: bool | None = None) -> DataPipeGraph:
    """As `traverse_dps`, deprecated; without `only_datapipe=True` all attributes are followed.

    Args:
        datapipe: the last pipe.
        only_datapipe: look at pipes and collections only.
    """
    message = (
        "`traverse` function is deprecated and will be removed after 1.13. "
        "Please use `traverse_dps` instead."
    )
    if not only_datapipe:
        message += " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
    warnings.warn(message, FutureWarning, stacklevel=2)
    return _graph(datapipe, bool(only_datapipe), {}, set())


def _graph(
    pipe: DataPipe, only_datapipe: bool, done: dict[int, DataPipeGraph], path: set[int]
) -> DataPipeGraph:
    if not isinstance(pipe, _PIPES):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    key = id(pipe)
    if key in path:
        return {}
    if key not in done:
        below: DataPipeGraph = {}
        path.add(key)
        for source in connected_pipes(pipe, only_datapipe):
            below.update(_graph(source, only_datapipe, done, path))
        path.discard(key)
        done[key] = {key: (pipe, below)}
    return done[key]
