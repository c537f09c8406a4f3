"""The shuffle of a map-style pipe: an iterable one over its keys.

Owns the order that a seed gives, which is PyTorch's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from ..datapipe import MapDataPipe
from ..iter._random import RandomIterDataPipe
from ..utils.common import length_like

__all__ = ["ShufflerIterDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


class ShufflerIterDataPipe(RandomIterDataPipe[_T_co]):
    """The samples of a map-style pipe in random order (functional name: `shuffle`).

    Args:
        datapipe: map-style source.
        indices: its keys; 0, 1, … by default.

    Example:
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> pipe = SequenceWrapper(range(6)).shuffle().set_seed(0)
        >>> list(pipe)
        [4, 2, 1, 0, 5, 3]
    """

    datapipe: Any

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices

    def __iter__(self) -> Iterator[_T_co]:
        order = self.indices
        if self._enabled:
            order = self._rng.sample(order, len(order))[::-1]
        for key in order:
            yield self.datapipe[key]

    def __len__(self) -> int:
        return length_like(self, self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
