"""Comprehensions that CPython 3.12 compiles into the function around them (PEP 709).

They were calls of functions of their own, which a graph could end before, and go on after. So that
it still can, one is found here as a range of instructions, to be run as if it were one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .opcodes import Decoded, Instruction

_PREFIX = ("LOAD_FAST_AND_CLEAR", "MAKE_CELL", "SWAP", "BUILD_LIST", "BUILD_SET", "BUILD_MAP")


@dataclass(frozen=True)
class Inlined:
    """A comprehension: what its variables held is saved at `first`, and was put back before `end`.

    After `loop` (FOR_ITER) has ended, the program goes on at `landing`.
    """

    first: int
    loop: int
    landing: int
    end: int


def comprehension(d: Decoded, n: int) -> Inlined | None:
    """The outermost comprehension in line that instruction n belongs to."""
    for first in range(n + 1):
        if d.instructions[first].name == "LOAD_FAST_AND_CLEAR":
            found = _from(d, first)
            if found is not None and n < found.end:
                return found
    return None


def sets_others(d: Decoded, c: Inlined, unset: frozenset[int]) -> bool:
    """Whether it may set a local that is not set and no variable of a comprehension (by `:=`)."""
    body = d.instructions[c.loop : c.landing]
    stores = Counter(i.arg for i in body if i.name == "STORE_FAST")
    cleared = Counter(i.arg for i in body if i.name == "LOAD_FAST_AND_CLEAR")
    own = {i.arg for i in _saving(d, c.first, c.loop)}
    return any(stores[s] > 2 * cleared[s] for s in unset - own)


def _saving(d: Decoded, first: int, loop: int) -> list[Instruction]:
    return [i for i in d.instructions[first:loop] if i.name == "LOAD_FAST_AND_CLEAR"]


def _from(d: Decoded, first: int) -> Inlined | None:
    loop = first
    while d.instructions[loop].name in _PREFIX:
        loop += 1
    i = d.instructions[loop]
    if i.name != "FOR_ITER":
        return None
    end = _restored(d, i.target, len(_saving(d, first, loop)))
    return None if end is None else Inlined(first, loop, i.target, end)


def _restored(d: Decoded, landing: int, saved: int) -> int | None:
    """Where what was saved is back: it lies below the result, which may be stored before it."""
    saves = [True] * saved + [False]
    n = landing
    while any(saves):
        i = d.instructions[n]
        if i.name == "SWAP" and i.arg <= len(saves):
            saves[-1], saves[-i.arg] = saves[-i.arg], saves[-1]
        elif i.name in ("STORE_FAST", "POP_TOP"):
            saves.pop()
        else:
            return None
        n += 1
    return n
