"""The pipe that any iterable becomes: the source of most graphs.

Owns the copy it makes by default, so that samples changed on their way do not change the source.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from .._connections import _ATOMS
from ..datapipe import IterDataPipe
from ..utils.common import length_like

__all__ = ["IterableWrapperIterDataPipe"]

_T = TypeVar("_T")


class IterableWrapperIterDataPipe(IterDataPipe[_T]):
    """The elements of an iterable.

    Args:
        iterable: what is iterated, from its start in each pass if it has one.
        deepcopy: hand out the elements of a copy, made when the first of a pass is asked for.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper([[1], [2]])
        >>> next(iter(pipe)).append(3)
        >>> list(pipe), len(pipe)
        ([[1], [2]], 2)
    """

    _sources: ClassVar[tuple[str, ...]] = ("iterable",)

    def __init__(self, iterable: Iterable[_T], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[_T]:
        source = self.iterable
        if self.deepcopy:
            source = _copied(source)
        yield from source

    def __len__(self) -> int:
        return length_like(self, self.iterable)


def _copied(iterable: Any) -> Any:
    if type(iterable) in (list, tuple) and set(map(type, iterable)) <= _ATOMS:
        return iterable[:]  # nothing in it can change
    try:
        return copy.deepcopy(iterable)
    except TypeError:
        warnings.warn(
            "The input iterable can not be deepcopied, please be aware of in-place modification "
            "would affect source data.",
            stacklevel=2,
        )
        return iterable
