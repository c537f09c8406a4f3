"""One pass over a pipe: what every `__iter__` is wrapped in.

Owns the rule of one iterator: a new pass ends the one before it, whose next element is an error
that says so. It also counts elements and names the pipe in an exception. Invariant: an element
costs two looks at a slot beside the pipe's own work. It knows no kind of pipe.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from flambeau.autograd import profiler

from ._notes import describe, note
from ._snapshots import passed_over


class _SnapshotState(Enum):
    """Whether a pass has begun, and whether the pipe waits where a snapshot left it."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


class _Pass:
    """A pass over one pipe.

    Attributes:
        count: elements handed out.
        ended: the pass has come to its end, so that the next one begins another.
        stale: a newer pass has begun, so this one may not go on.
        started: when it began, by the monotonic clock: what pipes drew later is of this pass.
    """

    __slots__ = ("count", "ended", "stale", "started")

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self.stale = self.ended = False
        self.started = time.monotonic_ns()


def begin_pass(pipe: Any) -> _Pass:
    """End the pass that is open, if any, and begin one; the pipe is reset unless restored."""
    state = pipe.__dict__
    before = state.get("_pass")
    if before is not None:
        before.stale = True
    this = state["_pass"] = _Pass()
    number = pipe._valid_iterator_id
    state["_valid_iterator_id"] = 0 if number is None else number + 1
    reset(pipe)
    return this


def reset(pipe: Any) -> None:
    """Reset the pipe, unless it has just been restored: then that position is the start."""
    if pipe._snapshot_state is not _SnapshotState.Restored:
        pipe.__dict__["_fast_forward_iterator"] = None
        pipe.reset()
    pipe.__dict__["_snapshot_state"] = _SnapshotState.Iterating


def _invalidated(pipe: Any) -> RuntimeError:
    return RuntimeError(
        "This iterator has been invalidated because another iterator has been created from the "
        f"same IterDataPipe: {describe(pipe)}\n"
        "This may be caused by multiple references to the same IterDataPipe. We recommend using "
        "`.fork()` if that is necessary."
    )


def _forwarded(pipe: Any) -> Iterator[Any] | None:
    """The iterator that a snapshot has moved to its place, once."""
    waiting: Iterator[Any] | None = pipe._fast_forward_iterator
    if waiting is not None:
        pipe.__dict__["_fast_forward_iterator"] = None
        pipe.__dict__["_snapshot_state"] = _SnapshotState.Iterating
    return waiting


def hooked(func: Callable[..., Any]) -> Callable[..., Any]:
    """The `__iter__` to use in place of one that a class defines.

    A generator begins its pass with the first element that is asked for, anything else when `iter`
    is called. Called through `super()` from the `__iter__` of a subclass it is part of that pass.
    """
    wrap = _hooked_generator if inspect.isgeneratorfunction(func) else _hooked_function
    return wrap(func)


def _hooked_generator(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def __iter__(self: Any) -> Iterator[Any]:
        if type(self).__iter__ is not __iter__:
            yield from func(self)
            return
        waiting = _forwarded(self)
        if waiting is not None:
            yield from waiting
            return
        this = self._begin_pass()
        try:
            elements = func(self)
            if "_watch" in self.__dict__:
                elements = self._watch.timed(self, elements)
            if profiler._watchers:
                elements = _recorded(self, elements)
            if "_resume" in self.__dict__:
                passed_over(self, elements, this)
            for element in elements:
                this.count += 1
                yield element
                if this.stale:
                    raise self._invalidated()
            this.ended = True
        except Exception as error:
            note(error, self)
            raise

    return __iter__


def _hooked_function(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def __iter__(self: Any) -> Iterator[Any]:
        if type(self).__iter__ is not __iter__:
            return func(self)
        waiting = _forwarded(self)
        if waiting is not None:
            return waiting
        started = time.monotonic_ns()
        iterator, this = func(self), self._begin_pass()
        this.started = started
        if "_watch" in self.__dict__:
            iterator = self._watch.timed(self, iterator)
        if "_resume" in self.__dict__:
            passed_over(self, iterator, this)
        return _Watched(self, iterator, this)

    return __iter__


def _range(pipe: Any) -> str:
    """What a stage is called in profiles."""
    return "enumerate(DataPipe)#" + type(pipe).__name__.removesuffix("IterDataPipe")


def _recorded(pipe: Any, elements: Iterator[Any]) -> Iterator[Any]:
    """The elements, each of them a range in the profiles that are open when it is made."""
    name, nothing = _range(pipe), object()
    while True:
        with profiler.record_function(name):
            element = next(elements, nothing)
        if element is nothing:
            return
        yield element


def watched(pipe: Any, iterator: Iterator[Any], this: _Pass) -> Iterator[Any]:
    """An iterator whose pass has begun, held to the rule of one iterator."""
    try:
        if this.stale:
            raise pipe._invalidated()
        if "_watch" in pipe.__dict__:
            iterator = pipe._watch.timed(pipe, iterator)
        if profiler._watchers:
            iterator = _recorded(pipe, iterator)
        if "_resume" in pipe.__dict__:
            passed_over(pipe, iterator, this)
        for element in iterator:
            this.count += 1
            yield element
            if this.stale:
                raise pipe._invalidated()
        this.ended = True
    except Exception as error:
        note(error, pipe)
        raise


class _Watched:
    """The same, with the attributes of the iterator that a user's `__iter__` made."""

    __slots__ = ("_iterator", "_pipe", "_this")

    def __init__(self, pipe: Any, iterator: Any, this: _Pass) -> None:
        self._pipe, self._iterator, self._this = pipe, iterator, this

    def __iter__(self) -> _Watched:
        return self

    def __next__(self) -> Any:
        this = self._this
        try:
            if this.stale:
                raise self._pipe._invalidated()
            if profiler._is_profiler_enabled:
                with profiler.record_function(_range(self._pipe)):
                    element = next(self._iterator)
            else:
                element = next(self._iterator)
        except StopIteration:
            this.ended = True
            raise
        except Exception as error:
            note(error, self._pipe)
            raise
        this.count += 1
        return element

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_iterator"), name)
