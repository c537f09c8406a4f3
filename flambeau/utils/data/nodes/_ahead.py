"""Reading a node ahead of whoever wants its elements, in order or as they are ready.

Owns the thread that reads, and the states that it takes of the source while it does. Invariant: the
state of the whole is a state of the source and the numbers of those elements after it that were
handed out already, so that what was read ahead is read again. Threads refer to the flow alone, so
that the end of a node ends them.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_JOIN_SECONDS = 5.0

#: takes (number, element) and sees to it that the flow gets what becomes of it
Submit = Callable[[int, Any], None]


@dataclass
class _Raised:
    error: BaseException


class Flow:
    """What is on its way: between the thread that reads, those that work, and who takes.

    Args:
        limit: elements on their way at a time.
    """

    def __init__(self, limit: int) -> None:
        self.changed = threading.Condition()
        self.stopped = False
        self._free = limit
        self._results: dict[int, Any] = {}
        self._snapshots: deque[tuple[int, Any]] = deque()
        self._end: int | None = None  # how many elements there are

    def stop(self) -> None:
        with self.changed:
            self.stopped = True
            self.changed.notify_all()

    def reserve(self) -> bool:
        """Wait until another may be on its way; False when it is over."""
        with self.changed:
            while self._free == 0 and not self.stopped:
                self.changed.wait()
            self._free -= 1
            return not self.stopped

    def put(self, number: int, result: Any) -> None:
        with self.changed:
            self._results[number] = result
            self.changed.notify_all()

    def fail(self, number: int, error: BaseException) -> None:
        self.put(number, _Raised(error))

    def note(self, number: int, snapshot: Any) -> None:
        """The source's state after an element."""
        with self.changed:
            self._snapshots.append((number, snapshot))

    def end(self, count: int) -> None:
        with self.changed:
            self._end = count
            self.changed.notify_all()

    def take(self, number: int | None, taken: int) -> tuple[int, Any]:
        """The result with a number, or with None any; waits for it.

        Args:
            number: which.
            taken: how many were taken: none is left when those are all.

        Raises:
            StopIteration: there are no more.
        """
        with self.changed:
            while True:
                if number is None and self._results:
                    number = next(iter(self._results))
                if number in self._results:
                    self._free += 1
                    self.changed.notify_all()
                    return number, self._results.pop(number)
                if self._end is not None and taken >= self._end:
                    raise StopIteration
                if self.stopped:
                    raise RuntimeError("this pass over a node has been ended by another")
                self.changed.wait()

    def snapshot_below(self, number: int) -> tuple[int, Any] | None:
        """The last state of the source after elements that are all below a number."""
        found = None
        with self.changed:
            while self._snapshots and self._snapshots[0][0] < number:
                found = self._snapshots.popleft()
        return found


def _read(flow: Flow, source: Any, submit: Submit, frequency: int, passed: frozenset[int]) -> None:
    """The thread that reads. Elements in `passed` were handed out before the state was taken."""
    count = number = 0
    last_passed = max(passed, default=-1)
    while flow.reserve():
        try:
            while count in passed:
                next(source)
                count += 1
            item = next(source)
        except StopIteration:
            flow.end(number)
            return
        except BaseException as error:
            flow.fail(number, error)
            flow.end(number + 1)
            return
        count += 1
        if count % frequency == 0 and count > last_passed:
            flow.note(number, source.state_dict())
        submit(number, item)
        number += 1


def _stop(
    owner: int, flow: Flow, threads: list[threading.Thread], close: Callable[[], None]
) -> None:
    if os.getpid() != owner:
        return  # a fork has neither the threads nor the processes
    flow.stop()
    close()
    deadline = time.monotonic() + _JOIN_SECONDS
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(max(deadline - time.monotonic(), 0.0))


class Ahead:
    """A source that is read ahead.

    Args:
        source: a node; it is reset here and read by another thread from now on.
        limit: elements on their way at a time.
        in_order: hand elements out as the source gives them.
        frequency: take a state of the source after every so many elements.
        state: what `state` returned, or None to begin.
        work: given the flow, what is done with an element, threads that do it, and how to end them.
    """

    SNAPSHOT_KEY = "snapshot"
    STEPS_KEY = "steps_since_snapshot"
    PASSED_KEY = "handed_out_since_snapshot"

    def __init__(
        self,
        source: Any,
        limit: int,
        in_order: bool,
        frequency: int,
        state: dict[str, Any] | None,
        work: Callable[[Flow], tuple[Submit, list[threading.Thread], Callable[[], None]]],
    ) -> None:
        source.reset(None if state is None else state[self.SNAPSHOT_KEY])
        self._snapshot = source.state_dict() if state is None else state[self.SNAPSHOT_KEY]
        # Numbers count from the snapshot: elements that were handed out have none in the flow.
        passed = [] if state is None else state.get(self.PASSED_KEY, range(state[self.STEPS_KEY]))
        self._before = sorted(passed)
        self._in_order = in_order
        self._due = 0  # all below it were handed out
        self._out: set[int] = set()  # beyond it
        self._taken = 0
        self.flow = flow = Flow(limit)
        submit, threads, close = work(flow)
        reader = threading.Thread(
            target=_read,
            args=(flow, source, submit, frequency, frozenset(passed)),
            name="node reader",
            daemon=True,
        )
        self.close = weakref.finalize(self, _stop, os.getpid(), flow, [reader, *threads], close)
        for thread in [reader, *threads]:
            thread.start()

    def __next__(self) -> Any:
        number, result = self.flow.take(self._due if self._in_order else None, self._taken)
        self._taken += 1
        self._out.add(number)
        while self._due in self._out:
            self._out.discard(self._due)
            self._due += 1
        self._move_on()
        if isinstance(result, _Raised):
            raise result.error
        return result

    def _move_on(self) -> None:
        """Take up the last state of the source before which all was handed out."""
        noted = self.flow.snapshot_below(self._due)
        if noted is not None:
            number, self._snapshot = noted
            self._before = []
            self._base = number + 1

    _base = 0  # number of the first element after the snapshot

    def state(self) -> dict[str, Any]:
        """Where the elements that were handed out end."""
        out = [*range(self._base, self._due), *sorted(self._out)]
        passed = self._positions([n - self._base for n in out])
        state = {self.SNAPSHOT_KEY: self._snapshot, self.STEPS_KEY: len(passed)}
        if passed != list(range(len(passed))):
            state[self.PASSED_KEY] = passed
        return state

    def _positions(self, numbers: list[int]) -> list[int]:
        """Places in the source, which counts those that were handed out before as well."""
        before, wanted = set(self._before), set(numbers)
        places, place, number = list(self._before), 0, 0
        while number <= max(wanted, default=-1):
            if place not in before:
                if number in wanted:
                    places.append(place)
                number += 1
            place += 1
        return sorted(places)
