"""What pipes that draw at random share: a seed per pass, and Python's generator.

Owns when a seed is drawn, which is part of the order that a seed gives: at the start of a pass, of
the global generator, unless `set_seed` gave one for this pass. The numbers are those of
`random.Random`, as PyTorch's pipes draw them.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Self, TypeVar

import flambeau as fb

from ..datapipe import IterDataPipe

_T_co = TypeVar("_T_co", covariant=True)


#: passes whose draws are kept for a snapshot
_REMEMBERED = 4096


def drawn_since(drawn: Any, start: int) -> list[Any]:
    """What was drawn at `start` or later, of (time, drawn) pairs."""
    if drawn is None:
        return []
    if len(drawn) == drawn.maxlen and drawn[0][0] >= start:
        raise RuntimeError(
            f"state_dict: a random pipe has begun more than {drawn.maxlen} passes within this one"
        )
    return [value for time_, value in drawn if time_ >= start]


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

    _drawn: deque[tuple[int, int]] | None = None
    _again: list[int] | None = None

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
            self._rng.seed(self._next_seed())

    def _next_seed(self) -> int:
        if self._again:
            seed = self._again.pop(0)
        elif self._seed is not None:
            seed = self._seed
        else:
            seed = draw_seed()
        self._seed = None
        if self._drawn is None:
            self._drawn = deque(maxlen=_REMEMBERED)
        self._drawn.append((time.monotonic_ns(), seed))
        return seed

    def _drawn_since(self, start: int) -> list[Any]:
        """For a snapshot: the seeds of a pass that began then, and the one set for the next."""
        return [drawn_since(self._drawn, start), self._seed, self._enabled]

    def _draw_again(self, drawn: list[Any]) -> None:
        seeds, self._seed, self._enabled = drawn
        self._again = list(seeds)
