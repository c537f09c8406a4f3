"""Pipes that read from several: concat, zip, mux, weighted sampling.

Owns in which order sources are asked and when the stream ends. How one pipe becomes several is
the business of `splitting`.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, TypeVar

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_like
from ._random import drawn_since
from .splitting import (
    DemultiplexerIterDataPipe,
    ForkerIterDataPipe,
    _ChildDataPipe,
    _DemultiplexerIterDataPipe,
    _ForkerIterDataPipe,
)

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "MultiplexerLongestIterDataPipe",
    "SampleMultiplexerDataPipe",
    "ZipperIterDataPipe",
    "ZipperLongestIterDataPipe",
    "_ChildDataPipe",
    "_DemultiplexerIterDataPipe",
    "_ForkerIterDataPipe",
]

_T_co = TypeVar("_T_co", covariant=True)


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[Any]):
    """All elements of the first source, then all of the next (functional name: `concat`).

    Args:
        *datapipes: sources, at least one.

    Raises:
        ValueError: there is none.
        TypeError: one is no `IterDataPipe`.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper("ab").concat(IterableWrapper([1, 2])))
        ['a', 'b', 1, 2]
    """

    datapipes: tuple[IterDataPipe[Any], ...]

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if len(datapipes) == 0:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(dp, IterDataPipe) for dp in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for datapipe in self.datapipes:
            yield from datapipe

    def __len__(self) -> int:
        return sum(length_like(self, datapipe) for datapipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe[Any]):
    """One element of each source in turn, until one ends (functional name: `mux`).

    Args:
        *datapipes: sources. A turn that not all can serve is dropped.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper("abc").mux(IterableWrapper([1, 2])))
        ['a', 1, 'b', 2]
    """

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        turns = zip(*self.datapipes, strict=False)
        yield from itertools.chain.from_iterable(turns)

    def __len__(self) -> int:
        lengths = [length_like(self, datapipe) for datapipe in self.datapipes]
        return min(lengths) * len(lengths)


@functional_datapipe("mux_longest")
class MultiplexerLongestIterDataPipe(IterDataPipe[Any]):
    """One element of each source in turn, until all have ended (functional name: `mux_longest`).

    Args:
        *datapipes: sources; one that has ended loses its turn.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper("abc").mux_longest(IterableWrapper([1])))
        ['a', 1, 'b', 'c']
    """

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        open_ones = [iter(datapipe) for datapipe in self.datapipes]
        while open_ones:
            for source in tuple(open_ones):
                try:
                    element = next(source)
                except StopIteration:
                    open_ones.remove(source)
                else:
                    yield element

    def __len__(self) -> int:
        return sum(length_like(self, datapipe) for datapipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[tuple[Any, ...]]):
    """Tuples of one element of each source, until one ends (functional name: `zip`).

    Args:
        *datapipes: sources.

    Raises:
        TypeError: one is no `IterDataPipe`.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper("abc").zip(IterableWrapper([1, 2])))
        [('a', 1), ('b', 2)]
    """

    datapipes: tuple[IterDataPipe[Any], ...]

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not all(isinstance(dp, IterDataPipe) for dp in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_like(self, datapipe) for datapipe in self.datapipes)


@functional_datapipe("zip_longest")
class ZipperLongestIterDataPipe(IterDataPipe[tuple[Any, ...]]):
    """Tuples of one element of each source, until all have ended (functional name: `zip_longest`).

    Args:
        *datapipes: sources.
        fill_value: stands for the elements of those that have ended.

    Raises:
        TypeError: one is no `IterDataPipe`.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper("ab").zip_longest(IterableWrapper([1]), fill_value=0))
        [('a', 1), ('b', 0)]
    """

    def __init__(self, *datapipes: IterDataPipe[Any], fill_value: Any = None) -> None:
        if not all(isinstance(dp, IterDataPipe) for dp in datapipes):
            raise TypeError(
                "All inputs are required to be `IterDataPipe` for `ZipperLongestIterDataPipe`."
            )
        super().__init__()
        self.datapipes = datapipes
        self.fill_value = fill_value

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield from itertools.zip_longest(*self.datapipes, fillvalue=self.fill_value)

    def __len__(self) -> int:
        return max(length_like(self, datapipe) for datapipe in self.datapipes)


class SampleMultiplexerDataPipe(IterDataPipe[_T_co]):
    """Elements of sources drawn by weight, until all have ended.

    Args:
        pipes_to_weights_dict: source → weight, positive. Those that have ended leave the draw.
        seed: of the draws, which go on from one pass to the next; None for a random one.

    Raises:
        ValueError: no source, or a weight that is not positive.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper, SampleMultiplexer
        >>> letters, numbers = IterableWrapper("abc"), IterableWrapper([1, 2])
        >>> list(SampleMultiplexer({letters: 0.9, numbers: 0.1}, seed=0))
        ['a', 'b', 'c', 1, 2]
    """

    def __init__(self, pipes_to_weights_dict: dict[Any, float], seed: int | None = None) -> None:
        if not pipes_to_weights_dict:
            raise ValueError("Empty dictionary passed to SampleMultiplexerDataPipe")
        for weight in pipes_to_weights_dict.values():
            if not weight > 0:
                raise ValueError(f"Expecting a positive and non-zero weight, got {weight}")
        total = sum(pipes_to_weights_dict.values())
        self.pipes_and_weights = [(p, w / total) for p, w in pipes_to_weights_dict.items()]
        self.random = random.Random() if seed is None else random.Random(seed)

    _drawn: deque[tuple[int, Any]] | None = None
    _again: list[Any] | None = None

    def reset(self) -> None:
        if self._again:
            version, numbers, gauss = self._again.pop(0)
            self.random.setstate((version, tuple(numbers), gauss))
        if self._drawn is None:
            self._drawn = deque(maxlen=64)
        self._drawn.append((time.monotonic_ns(), self.random.getstate()))

    def _drawn_since(self, start: int) -> list[Any]:
        """For a snapshot: the generator's states at the start of passes; the last, if none."""
        states = drawn_since(self._drawn, start) or [self.random.getstate()]
        return [[version, list(numbers), gauss] for version, numbers, gauss in states]

    def _draw_again(self, drawn: list[Any]) -> None:
        self._again = list(drawn)

    def __iter__(self) -> Iterator[_T_co]:
        sources = [(iter(pipe), weight) for pipe, weight in self.pipes_and_weights]
        while len(sources) > 1:
            point, reached = self.random.random(), 0.0
            chosen = None
            for source, weight in sources:
                reached += weight
                if point < reached:
                    chosen = source
                    break
            if chosen is None:
                continue  # rounding: the weights sum to a little less than one
            try:
                element = next(chosen)
            except StopIteration:
                left = 1 - weight
                sources = [(s, w / left) for s, w in sources if s is not chosen]
            else:
                yield element
        yield from sources[0][0]

    def __len__(self) -> int:
        return sum(length_like(self, pipe) for pipe, _ in self.pipes_and_weights)
