"""Where the time of a graph of pipes goes: seconds, elements and queues of each stage.

Owns the clock of a watched graph. Invariant: a pipe's own time is that between being asked for an
element and giving it, without the time that its sources took meanwhile in the same thread. A graph
that nobody watches is not slowed down.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sized
from typing import Any

from .._connections import all_pipes
from .._notes import short_name

_HEAD = ("stage", "elements", "seconds", "share", "us/element", "queue", "longest")


class StageTimes:
    """What one stage did.

    Attributes:
        name: of the pipe.
        elements: handed out.
        seconds: its own time, without its sources'.
        queue: mean number of elements that waited in it when one was handed out; None if it has no
            queue.
        longest: the most that waited.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.elements = 0
        self.seconds = 0.0
        self.longest = 0
        self._waited: int | None = None

    @property
    def queue(self) -> float | None:
        if self._waited is None:
            return None
        return self._waited / self.elements if self.elements else 0.0

    def _note_queue(self, pipe: Any) -> None:
        waiting = _waiting(pipe)
        if waiting is not None:
            self._waited = (self._waited or 0) + waiting
            self.longest = max(self.longest, waiting)


def _waiting(pipe: Any) -> int | None:
    """How many elements wait in a pipe now."""
    run = pipe.__dict__.get("_run")
    buffer = getattr(run, "_buffer", None) if run is not None else None
    for name in ("_buffer", "buffer"):
        if buffer is None:
            buffer = pipe.__dict__.get(name)
    return len(buffer) if isinstance(buffer, Sized) else None


class Watch:
    """Watches a graph while it is read: see `watch`."""

    def __init__(self, pipe: Any) -> None:
        self._pipes = all_pipes(pipe)
        self.stages = [StageTimes(short_name(each)) for each in self._pipes]
        self._of = {id(each): stage for each, stage in zip(self._pipes, self.stages, strict=True)}
        self._local = threading.local()
        self._notes: list[Any] = []

    def __enter__(self) -> Watch:
        for each in self._pipes:
            each.__dict__["_watch"] = self
        return self

    def __exit__(self, *error: Any) -> None:
        for each in self._pipes:
            each.__dict__.pop("_watch", None)

    def timed(self, pipe: Any, elements: Iterator[Any]) -> Iterator[Any]:
        """The elements of a pipe, with the time that each takes."""
        stage, local = self._of[id(pipe)], self._local
        nothing = object()
        while True:
            outer = getattr(local, "inside", None)
            mine = local.inside = [0.0]  # seconds of the sources
            began = time.perf_counter()
            try:
                element = next(elements, nothing)
            finally:
                took = time.perf_counter() - began
                stage.seconds += took - mine[0]
                local.inside = outer
                if outer is not None:
                    outer[0] += took
            if element is nothing:
                return
            stage.elements += 1
            stage._note_queue(pipe)
            yield element

    def __str__(self) -> str:
        """A table, from the source to the last stage."""
        whole = sum(stage.seconds for stage in self.stages) or 1.0
        rows = [_HEAD]
        for stage in reversed(self.stages):
            each = 1e6 * stage.seconds / max(stage.elements, 1)
            queue = "" if stage.queue is None else f"{stage.queue:.1f}"
            longest = "" if stage.queue is None else str(stage.longest)
            share = f"{100 * stage.seconds / whole:.0f} %"
            numbers = (f"{stage.seconds:.3f}", share, f"{each:.1f}", queue, longest)
            rows.append((stage.name, str(stage.elements), *numbers))
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        lines = []
        for row in rows:
            first, *rest = (
                cell.ljust(w) if i == 0 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("  ".join((first, *rest)).rstrip())
        lines += [f"{short_name(p)}: {p.choice()}" for p in self._pipes if hasattr(p, "_chooses")]
        return "\n".join(lines)


def watch(pipe: Any) -> Watch:
    """Measures the stages of a graph while it is read inside `with`.

    Args:
        pipe: the last pipe. Workers of a loader have graphs of their own, which are not seen here.

    Returns:
        a context manager; it prints as a table, and has the figures in `stages`, the last pipe
        first: `name`, `elements`, `seconds`, `queue`, `longest`.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> from flambeau.utils.data.datapipes.utils import watch
        >>> pipe = IterableWrapper(range(100)).map(lambda n: n * n).shuffle(buffer_size=10).batch(4)
        >>> with watch(pipe) as times:
        ...     _ = list(pipe)
        >>> [(stage.name, stage.elements) for stage in times.stages]
        [('Batcher', 25), ('Shuffler', 100), ('Mapper', 100), ('IterableWrapper', 100)]
        >>> print(times)
        stage            elements  seconds  share  us/element  queue  longest
        IterableWrapper       100  ...
    """
    return Watch(pipe)
