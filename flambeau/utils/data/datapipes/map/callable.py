"""The map-style pipe that applies a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe
from ..utils.common import _check_unpickable_fn, length_like

__all__ = ["MapperMapDataPipe", "default_fn"]

_T_co = TypeVar("_T_co", covariant=True)


def default_fn(data: Any) -> Any:
    """The sample as it is."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe[_T_co]):
    """Each sample after a function (functional name: `map`).

    Args:
        datapipe: source.
        fn: function of a sample.

    Example:
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> pipe = SequenceWrapper(range(10)).map(lambda x: x * x)
        >>> pipe[3], len(pipe)
        (9, 10)
    """

    datapipe: Any

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = default_fn) -> None:
        super().__init__()
        self.datapipe = datapipe
        _check_unpickable_fn(fn)
        self.fn = fn

    def __len__(self) -> int:
        return length_like(self, self.datapipe)

    def __getitem__(self, index: Any) -> _T_co:
        return self.fn(self.datapipe[index])
