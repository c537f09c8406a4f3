"""What is said of a pipe when something goes wrong in it.

Owns the text: the pipe with its arguments, its place in the chain, the line that made it. An
exception keeps its class and arguments and gets one note, which grows as it passes the pipes
that read from the one it was raised in.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any

from ._connections import connected_pipes

_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))) + os.sep
_HEAD = "This exception is thrown by __iter__ of "


def short_name(pipe: Any) -> str:
    """The class without the part that all pipes share: Mapper for MapperIterDataPipe."""
    name = type(pipe).__name__
    for ending in ("IterDataPipe", "MapDataPipe", "DataPipe"):
        name = name.removesuffix(ending) or name
    return name.lstrip("_")


def _shown(value: Any) -> str:
    if isinstance(value, functools.partial):
        return f"partial({_shown(value.func)})"
    code = getattr(value, "__code__", None)
    if code is not None:
        return f"{value.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
    try:
        text = repr(value)
    except Exception:
        text = object.__repr__(value)
    return text if len(text) <= 80 else text[:77] + "..."


def describe(pipe: Any) -> str:
    """The pipe as a call: class and those arguments that it keeps under their own names."""
    try:
        names = list(inspect.signature(type(pipe)).parameters)
    except (TypeError, ValueError):
        names = []
    state = vars(pipe)
    kept = [f"{name}={_shown(state[name])}" for name in names if name in state]
    return f"{type(pipe).__name__}({', '.join(kept)})"


def creation_site() -> tuple[str, int] | None:
    """File and line of the innermost frame that is not ours."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_HOME):
            return code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _upstream(pipe: Any) -> list[str]:
    """Names of the pipes that feed this one, the source first; of several feeds, the first."""
    names: list[str] = []
    seen = {id(pipe)}
    while True:
        feeds = connected_pipes(pipe)
        if not feeds or id(feeds[0]) in seen:
            return names[::-1]
        pipe = feeds[0]
        seen.add(id(pipe))
        names.append(short_name(pipe))


class _Trail:
    """The pipes that an exception has passed."""

    def __init__(self, pipe: Any) -> None:
        self.raised = self.last = pipe
        self.before = _upstream(pipe)
        self.after: list[str] = []
        self.text = ""

    def goes_on_to(self, pipe: Any) -> bool:
        """Whether a pipe reads from the one that was passed last (children of a fork: from its
        source)."""
        feeds = connected_pipes(pipe)
        return any(self.last is f or self.last in connected_pipes(f) for f in feeds)

    def write(self) -> str:
        chain = [*self.before, f"[{short_name(self.raised)}]", *self.after]
        self.text = _HEAD + describe(self.raised)
        if len(chain) > 1:
            self.text += f"\npipe {len(self.before) + 1} of {len(chain)}: {' -> '.join(chain)}"
        site = getattr(self.raised, "_made_at", None)
        if site is not None:
            self.text += f"\nmade at {site[0]}:{site[1]}"
        return self.text


def note(error: BaseException, pipe: Any) -> None:
    """Say in a note of the exception which pipe raised it; called by each pipe it passes."""
    trail: _Trail | None = getattr(error, "_flambeau_trail", None)
    notes: list[str] = getattr(error, "__notes__", [])
    if trail is not None and trail.text in notes and trail.goes_on_to(pipe):
        notes.remove(trail.text)
        trail.after.append(short_name(pipe))
        trail.last = pipe
    else:
        trail = _Trail(pipe)
        try:
            error._flambeau_trail = trail  # type: ignore[attr-defined]
        except AttributeError:
            return
    error.add_note(trail.write())
