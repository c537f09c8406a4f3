"""Which pipes a pipe reads from: a walk over its attributes.

Owns the order in which they are found, which decides the order of the seeds that shufflers get.
Attributes are looked at as they are; nothing is pickled, so that functions that cannot be pickled
are no obstacle. It knows pipes by the mark that their classes bear.
"""

from __future__ import annotations

import copy
import functools
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

_COLLECTIONS = (list, tuple, set, frozenset, deque)
#: types that hold no pipe, so that a list of a million of them is passed over at once
_ATOMS = frozenset((int, float, complex, bool, str, bytes, bytearray, type(None), range, slice))
#: what belongs to a pass, not to the pipe
_OF_A_PASS = frozenset(
    (
        "_pass",
        "_passes",
        "_run",
        "_resume",
        "_drawn",
        "_again",
        "_fast_forward_iterator",
        "_made_at",
        "_watch",
    )
)


class _Walk:
    """Collects the pipes that are reached without passing through another pipe."""

    def __init__(self, start: Any) -> None:
        self.found: dict[int, Any] = {}
        self._seen = {id(start)}

    def look(self, value: Any, *, into_objects: bool) -> None:
        cls = type(value)
        if cls in _ATOMS or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if getattr(cls, "_is_datapipe", False):
            self.found[id(value)] = value
        elif isinstance(value, dict):
            for key, inner in value.items():
                self.look(key, into_objects=True)
                self.look(inner, into_objects=True)
        elif isinstance(value, _COLLECTIONS):
            if not set(map(type, value)) <= _ATOMS:
                for inner in value:
                    self.look(inner, into_objects=True)
        elif into_objects:
            self._look_into(value)

    def _look_into(self, value: Any) -> None:
        if isinstance(value, functools.partial):
            parts: Any = (value.func, value.args, value.keywords)
        elif isinstance(value, types.MethodType):
            parts = (value.__self__,)
        elif isinstance(value, type | types.ModuleType | types.FunctionType):
            return
        else:
            parts = tuple(getattr(value, "__dict__", {}).values())
        for part in parts:
            self.look(part, into_objects=True)


def connected_pipes(pipe: Any, only_datapipe: bool = True) -> list[Any]:
    """The pipes that a pipe holds in its attributes, in their order."""
    walk = _Walk(pipe)
    for name, value in list(vars(pipe).items()):
        if name not in _OF_A_PASS:
            walk.look(value, into_objects=not only_datapipe)
    return list(walk.found.values())


def all_pipes(pipe: Any) -> list[Any]:
    """Each pipe of a graph once, from the last to the sources."""
    pipes: dict[int, Any] = {}

    def collect(each: Any) -> None:
        if id(each) not in pipes:
            pipes[id(each)] = each
            for source in connected_pipes(each):
                collect(source)

    collect(pipe)
    return list(pipes.values())


def copied_graph(pipe: Any) -> Any:
    """A copy of a graph that may be read beside it.

    What the wrappers hold is shared, for it may be large and a pass does not change it; so is what
    cannot be copied.
    """
    memo: dict[int, Any] = {}
    for each in all_pipes(pipe):
        for name, value in vars(each).items():
            walk = _Walk(None)
            walk.look(value, into_objects=True)
            if walk.found or id(value) in memo:
                continue
            if name in each._sources and not isinstance(value, Iterator):
                memo[id(value)] = value
                continue
            try:
                memo[id(value)] = copy.deepcopy(value, memo)
            except Exception:
                memo[id(value)] = value
    return copy.deepcopy(pipe, memo)
