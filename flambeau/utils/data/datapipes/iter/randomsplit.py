"""The random split of a pipe into parts.

Owns the draws, which are those of torchdata for a seed and the same in each pass.
"""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Hashable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["RandomSplitterIterDataPipe", "SplitterIterator"]


class _RandomSplitterIterDataPipe(IterDataPipe[Any]):
    """The source of the parts, and how they are drawn."""

    def __init__(
        self, source_datapipe: Any, total_length: int, weights: dict[Hashable, float], seed: Any
    ) -> None:
        self.source_datapipe = source_datapipe
        self.total_length = total_length
        self._seed = seed
        self.keys = list(weights)
        self.norm_weights = _normalised(list(weights.values()), total_length)

    def draws(self) -> Iterator[Any]:
        """The key that each element belongs to, the same in each pass."""
        rng, keys = random.Random(self._seed), self.keys
        weights, left = list(self.norm_weights), self.total_length
        draw, last = rng.random, len(keys) - 1
        while True:  # as `rng.choices(keys, weights)` draws
            bounds = list(itertools.accumulate(weights))
            if bounds[-1] <= 0:
                raise ValueError("random_split: the source has more elements than total_length")
            place = bisect.bisect(bounds, draw() * bounds[-1], 0, last)
            key = keys[place]
            weights[place] -= 1
            left -= 1
            if weights[place] < 0:
                weights[place] = 0
                weights = _normalised(weights, left)
            yield key

    def get_length(self, target: Any) -> int:
        weights = self.norm_weights
        if not all(w.is_integer() for w in weights) or sum(weights) != self.total_length:
            raise TypeError(
                "Lengths of the split cannot be known in advance. Please supply integer `weights` "
                "that sum up to `total_length`.\nAlternatively, use "
                "`datapipe.set_length(LENGTH)` to manually set the desired length."
            )
        return int(weights[self.keys.index(target)])


def _normalised(weights: list[float], total: int) -> list[float]:
    whole = sum(weights) or 1.0
    return [float(w) * total / whole for w in weights]


class SplitterIterator(IterDataPipe[Any]):
    """One part of a random split."""

    def __init__(self, main_datapipe: _RandomSplitterIterDataPipe, target: Any) -> None:
        self.main_datapipe = main_datapipe
        self.target = target

    def __iter__(self) -> Iterator[Any]:
        target, draws = self.target, self.main_datapipe.draws()
        for sample in self.main_datapipe.source_datapipe:
            if next(draws) == target:
                yield sample

    def override_seed(self, seed: Any) -> SplitterIterator:
        """Split by another seed, all parts alike."""
        self.main_datapipe._seed = seed
        return self

    def __len__(self) -> int:
        return self.main_datapipe.get_length(self.target)


@functional_datapipe("random_split")
class RandomSplitterIterDataPipe(IterDataPipe[Any]):
    """Parts that the elements fall into at random (functional name: `random_split`).

    Each part reads the whole source and hands out its share; the parts are disjoint and the same
    in each pass.

    Args:
        source_datapipe: source.
        weights: part → how much of the source, in elements or as a ratio.
        seed: of the draws.
        total_length: elements of the source, if it has no length of its own.
        target: hand back this part alone.

    Returns:
        A list of pipes in the order of `weights`, or the pipe of `target`.

    Raises:
        TypeError: the length of the source is not known.
        KeyError: `target` is no part.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> train, test = IterableWrapper(range(6)).random_split({"train": 4, "test": 2}, seed=0)
        >>> list(train), list(test), len(test)
        ([1, 2, 3, 5], [0, 4], 2)
    """

    def __new__(
        cls,
        source_datapipe: Any,
        weights: dict[Any, float],
        seed: Any,
        total_length: int | None = None,
        target: Any = None,
    ) -> Any:
        if total_length is None:
            try:
                total_length = len(source_datapipe)
            except TypeError:
                raise TypeError(
                    "RandomSplitter needs `total_length`, but it is unable to infer it from the "
                    f"`source_datapipe`: {source_datapipe}."
                ) from None
        container = _RandomSplitterIterDataPipe(source_datapipe, total_length, weights, seed)
        if target is None:
            return [SplitterIterator(container, key) for key in weights]
        if target not in weights:
            raise KeyError(f"`target={target}` does not match any key in `weights`.")
        return SplitterIterator(container, target)
