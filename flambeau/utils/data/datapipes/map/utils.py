"""Map-style pipes that hold samples: a sequence, and a cache of another pipe's."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe
from ..utils.common import length_like

__all__ = ["InMemoryCacheHolderMapDataPipe", "SequenceWrapperMapDataPipe"]

_T = TypeVar("_T")


class SequenceWrapperMapDataPipe(MapDataPipe[_T]):
    """The elements of a sequence, or the values of a mapping.

    Args:
        sequence: what is looked up in.
        deepcopy: hold a copy of it.

    Example:
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper("abc")[1], SequenceWrapper({"x": 5})["x"]
        ('b', 5)
    """

    sequence: Sequence[_T] | Mapping[Any, _T]

    _sources: ClassVar[tuple[str, ...]] = ("sequence",)

    def __init__(self, sequence: Sequence[_T] | Mapping[Any, _T], deepcopy: bool = True) -> None:
        if deepcopy:
            try:
                sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place "
                    "modification would affect source data",
                    stacklevel=2,
                )
        self.sequence = sequence

    def __getitem__(self, index: Any) -> _T:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("in_memory_cache")
class InMemoryCacheHolderMapDataPipe(MapDataPipe[Any]):
    """A pipe whose samples are computed once (functional name: `in_memory_cache`).

    Args:
        source_dp: map-style source.

    Example:
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> pipe = SequenceWrapper(range(3)).map(lambda i: [i]).in_memory_cache()
        >>> pipe[2] is pipe[2]
        True
    """

    def __init__(self, source_dp: Any) -> None:
        self.source_dp = source_dp
        self.cache: dict[Any, Any] = {}

    def __getitem__(self, index: Any) -> Any:
        if index not in self.cache:
            self.cache[index] = self.source_dp[index]
        return self.cache[index]

    def __len__(self) -> int:
        return length_like(self, self.source_dp)
