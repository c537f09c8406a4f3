"""A long pointwise body as several short loops over a tile that stays in the first-level cache.

A processor looks ahead two to three hundred instructions. Where functions such as sine and
exponential follow one another, that is little more than one iteration, and each waits for the one
before; in a loop over one of them, several iterations are under way at once. So a body is cut where
a value depends on such a function: what later loops need is kept in arrays of the tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..ops.scalar import PRIMITIVES
from .cpp_text import Scope
from .nest import Store
from .scalar import Scalar, walk

if TYPE_CHECKING:
    from .emit_cpp import Emitter

TILE = 256
_SLOW = 10  # operations from which on a function is worth a loop
_AT_HAND = ("load", "const", "size", "index", "result")
_PLAIN = ("float", "double", "int64_t", "bool")


class Segments:
    """Which loop computes what."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self.nodes = walk(s.value for s in stores)
        cut = all(n.type in _PLAIN for n in self.nodes)  # into loops that vectorise
        slow = {id(n) for n in self.nodes if cut and _slow(n)}
        level: dict[int, int] = {}
        for n in self.nodes:
            level[id(n)] = max((level[id(a)] + (id(a) in slow) for a in n.args), default=0)
        self.count = 1 + max((level[key] for key in slow), default=0)
        level = {key: min(loop, self.count - 1) for key, loop in level.items()}
        self.place: dict[int, int] = {}
        self.last: dict[int, int] = {}  # the latest loop that needs a value
        for s in stores:
            self._need(s.value, level[id(s.value)])
        for n in reversed(self.nodes):
            if id(n) in slow:
                self.place[id(n)] = level[id(n)]
            for a in n.args:
                self._need(a, self.place[id(n)])

    def _need(self, n: Scalar, loop: int) -> None:
        self.place[id(n)] = min(loop, self.place.get(id(n), loop))
        self.last[id(n)] = max(loop, self.last.get(id(n), loop))

    def crossing(self, loop: int) -> list[Scalar]:
        """What a loop computes for later ones."""
        return [
            n
            for n in self.nodes
            if n.op not in _AT_HAND and self.place[id(n)] == loop < self.last[id(n)]
        ]


def _slow(n: Scalar) -> bool:
    return n.type in ("float", "double") and n.op in PRIMITIVES and PRIMITIVES[n.op].cost >= _SLOW


def loops(
    emitter: Emitter, stores: Sequence[Store], variable: str, angles: Iterable[Scalar]
) -> list[str]:
    """Loops over [from, to) of the innermost dim, tile by tile; empty where one loop is as good.

    Args:
        angles: values that are compared with the limit of trigonometric functions.
    """
    segments = Segments(stores)
    unchecked = {id(n): n for n in angles}
    before = emitter.before(stores, {variable})
    names = dict(before.names)  # and of what is kept
    arrays: list[str] = []
    lines: list[str] = []
    counter = before.counter
    for k in range(segments.count):
        scope = Scope()
        scope.counter, scope.names = counter, dict(names)
        for s in stores:
            if segments.place[id(s.value)] == k:
                emitter.store(s, scope)
        for n in segments.crossing(k):
            value, name = emitter.value(n, scope), f"kept{len(arrays)}"
            arrays.append(f"{n.type} {name}[{TILE}];")
            scope.lines.append(f"{name}[j] = {value};")
            names[id(n)] = f"{name}[j]"
        for key in [x for x in unchecked if segments.place[x] == k or x in scope.names]:
            angle = emitter.value(unchecked.pop(key), scope)
            scope.lines.append(f"bad |= s::beyond_trig({angle});")
        lines += [
            "#pragma GCC ivdep",
            "  for (int64_t j = 0; j < size; ++j) {",
            f"    [[maybe_unused]] const int64_t {variable} = at + j;",
            *(f"    {x}" for x in scope.lines),
            "  }",
        ]
    return arrays and [
        *arrays,
        *before.lines,
        f"for (int64_t at = from; at < to; at += {TILE}) {{",
        f"  const int64_t size = at + {TILE} < to ? {TILE} : to - at;",
        *lines,
        "}",
    ]
