"""Pipes that choose elements or repeat them: filter, header, cycle, repeat, and lengths.

Owns which elements pass; none changes an element.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import (
    StreamWrapper,
    _check_unpickable_fn,
    length_like,
    on_columns,
    validate_input_col,
)

__all__ = [
    "CyclerIterDataPipe",
    "FilterIterDataPipe",
    "HeaderIterDataPipe",
    "LengthSetterIterDataPipe",
    "RepeaterIterDataPipe",
]

_T_co = TypeVar("_T_co", covariant=True)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[_T_co]):
    """The samples that a function accepts (functional name: `filter`).

    Args:
        datapipe: source.
        filter_fn: function of a sample, or of the columns that `input_col` names, to a bool.
        input_col: index or key of a sample, or a list of them; None for the whole sample.

    Raises:
        ValueError: while iterating, the function returns something else than a bool.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).filter(lambda n: n % 2 == 0))
        [0, 2, 4]
    """

    datapipe: Any
    filter_fn: Callable[..., bool]

    def __init__(
        self, datapipe: Any, filter_fn: Callable[..., bool], input_col: Any = None
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        _check_unpickable_fn(filter_fn)
        self.filter_fn = filter_fn
        self.input_col = input_col
        validate_input_col(filter_fn, input_col)

    def __iter__(self) -> Iterator[_T_co]:
        accepts = on_columns(self.filter_fn, self.input_col)
        close = StreamWrapper.close_streams
        for data in self.datapipe:
            says = accepts(data)
            if says is True:
                yield data
            elif says is False:
                close(data)
            else:
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got",
                    type(says),
                )


@functional_datapipe("header")
class HeaderIterDataPipe(IterDataPipe[_T_co]):
    """The first elements (functional name: `header`).

    Args:
        source_datapipe: source.
        limit: how many; None for all.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper(range(100)).header(3)
        >>> list(pipe), len(pipe)
        ([0, 1, 2], 3)
    """

    def __init__(self, source_datapipe: Any, limit: int | None = 10) -> None:
        self.source_datapipe = source_datapipe
        self.limit = limit

    def __iter__(self) -> Iterator[_T_co]:
        if self.limit is None:
            yield from self.source_datapipe
            return
        left = self.limit
        if left <= 0:
            return
        for value in self.source_datapipe:
            yield value
            left -= 1
            if not left:
                return

    def __len__(self) -> int:
        try:
            length = len(self.source_datapipe)
        except TypeError as error:
            if self.limit is None:
                raise TypeError(
                    "The length of this HeaderIterDataPipe cannot be determined."
                ) from error
            warnings.warn(
                "The length of this HeaderIterDataPipe is inferred to be equal to its limit. The "
                "actual value may be smaller if the actual length of source_datapipe is smaller "
                "than the limit.",
                stacklevel=2,
            )
            return self.limit
        return length if self.limit is None else min(length, self.limit)


@functional_datapipe("set_length")
class LengthSetterIterDataPipe(IterDataPipe[_T_co]):
    """A source with a length that one says (functional name: `set_length`).

    Args:
        source_datapipe: source.
        length: what `len` answers.

    Raises:
        AssertionError: it is negative.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> len(IterableWrapper(range(4)).filter(lambda n: n > 1).set_length(2))
        2
    """

    def __init__(self, source_datapipe: Any, length: int) -> None:
        self.source_datapipe = source_datapipe
        if length < 0:
            raise AssertionError(f"set_length: expected a length of at least 0, got {length}")
        self.length = length

    def __iter__(self) -> Iterator[_T_co]:
        yield from self.source_datapipe

    def __len__(self) -> int:
        return self.length


@functional_datapipe("cycle")
class CyclerIterDataPipe(IterDataPipe[_T_co]):
    """The source again and again (functional name: `cycle`).

    Args:
        source_datapipe: source; each round is a pass over it, with an order of its own if shuffled.
        count: how often; None for ever.

    Raises:
        ValueError: `count` is negative.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper("ab").cycle(2))
        ['a', 'b', 'a', 'b']
    """

    def __init__(self, source_datapipe: Any, count: int | None = None) -> None:
        self.source_datapipe = source_datapipe
        self.count = count
        if count is not None and count < 0:
            raise ValueError(f"Expected non-negative count, got {count}")

    def __iter__(self) -> Iterator[_T_co]:
        rounds = 0
        while self.count is None or rounds < self.count:
            yield from self.source_datapipe
            rounds += 1

    def __len__(self) -> int:
        if self.count is None:
            raise TypeError(
                f"This {type(self).__name__} instance cycles forever, and therefore doesn't have "
                "valid length"
            )
        return self.count * length_like(self, self.source_datapipe)


@functional_datapipe("repeat")
class RepeaterIterDataPipe(IterDataPipe[_T_co]):
    """Each element several times (functional name: `repeat`).

    Args:
        source_datapipe: source.
        times: how often, more than once.

    Raises:
        ValueError: `times` is 1 or less.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper("ab").repeat(2))
        ['a', 'a', 'b', 'b']
    """

    def __init__(self, source_datapipe: Any, times: int) -> None:
        self.source_datapipe = source_datapipe
        self.times = times
        if times <= 1:
            raise ValueError(f"The number of repetition must be > 1, got {times}")

    def __iter__(self) -> Iterator[_T_co]:
        turns = range(self.times)
        for element in self.source_datapipe:
            for _ in turns:
                yield element

    def __len__(self) -> int:
        return self.times * length_like(self, self.source_datapipe)
