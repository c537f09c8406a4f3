"""What pipes that draw at random share: a seed per pass, and Python's generator.

Owns when a seed is drawn, which is part of the order that a seed gives: at the start of a pass, of
the global generator, unless `set_seed` gave one for this pass. The numbers are those of
`random.Random`, as PyTorch's pipes draw them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Self, TypeVar

import flambeau as fb

from ..datapipe import IterDataPipe

_T_co = TypeVar("_T_co", covariant=True)


def draw_seed() -> int:
    return int(fb.empty((), dtype=fb.int64).random_().item())


def below(rng: random.Random, n: int) -> Callable[[], int]:
    """A function that draws as `rng.randint(0, n - 1)` does, without checking again each time."""
    bits, draw = n.bit_length(), rng.getrandbits

    def number() -> int:
        value = draw(bits)
        while value >= n:
            value = draw(bits)
        return value

    return number


class RandomIterDataPipe(IterDataPipe[_T_co]):
    """A pipe with a generator that is seeded at the start of each pass."""

    def __init__(self) -> None:
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Turn the shuffle on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """Use this seed for the next pass; later ones draw theirs again."""
        self._seed = seed
        return self

    def reset(self) -> None:
        if self._enabled:
            if self._seed is None:
                self._seed = draw_seed()
            self._rng.seed(self._seed)
            self._seed = None
