"""Nodes that apply a function: where they are read, or in threads or processes.

Owns the workers of `ParallelMapper`. A process that dies ends the pass with an error.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import threading
import traceback
from collections.abc import Callable
from typing import Any

from ._ahead import Ahead, Flow, Submit
from .base_node import BaseNode, T
from .batch import Batcher, Unbatcher

__all__ = ["Mapper", "ParallelMapper"]


class Mapper(BaseNode[T]):
    """Each element after a function.

    Args:
        source: what is read.
        map_fn: of an element.

    Example:
        >>> from flambeau.utils.data.nodes import IterableWrapper, Mapper
        >>> list(Mapper(IterableWrapper(range(3)), str))
        ['0', '1', '2']
    """

    SOURCE_KEY = "source"

    def __init__(self, source: BaseNode[Any], map_fn: Callable[[Any], T]) -> None:
        super().__init__()
        self.source, self.map_fn = source, map_fn

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        self.source.reset(None if initial_state is None else initial_state[self.SOURCE_KEY])

    def next(self) -> T:
        return self.map_fn(next(self.source))

    def get_state(self) -> dict[str, Any]:
        return {self.SOURCE_KEY: self.source.state_dict()}


class ParallelMapper(BaseNode[T]):
    """Each element after a function that several threads or processes apply.

    Args:
        source: what is read, by a thread of its own.
        map_fn: of an element. For processes that are not forked it must be picklable.
        num_workers: how many; 0 applies it where the node is read.
        in_order: keep the source's order; False hands out what is ready.
        method: "thread" or "process".
        multiprocessing_context: start method of the processes.
        max_concurrent: elements on their way at a time, at most `num_workers`; None for twice
            `num_workers`.
        snapshot_frequency: take the source's state after every so many elements. What was handed
            out since the last one is read again when a state is put back, and not mapped again.
        prebatch: hand this many elements to a worker at once.

    Raises:
        ValueError: an option out of its range.

    Example:
        >>> from flambeau.utils.data.nodes import IterableWrapper, ParallelMapper
        >>> list(ParallelMapper(IterableWrapper(range(4)), lambda n: n * n, num_workers=2))
        [0, 1, 4, 9]
    """

    IT_STATE_KEY = "it_state"

    def __init__(
        self,
        source: BaseNode[Any],
        map_fn: Callable[[Any], T],
        num_workers: int,
        in_order: bool = True,
        method: str = "thread",
        multiprocessing_context: str | None = None,
        max_concurrent: int | None = None,
        snapshot_frequency: int = 1,
        prebatch: int | None = None,
    ) -> None:
        super().__init__()
        if method not in ("thread", "process"):
            raise ValueError(
                f"ParallelMapper: expected method 'thread' or 'process', got {method!r}"
            )
        if num_workers < 0:
            raise ValueError(f"ParallelMapper: expected num_workers >= 0, got {num_workers}")
        if max_concurrent is not None and num_workers and not 0 < max_concurrent <= num_workers:
            raise ValueError(
                f"ParallelMapper: expected max_concurrent from 1 to num_workers={num_workers}, got "
                f"{max_concurrent}"
            )
        if prebatch is not None and prebatch < 1:
            raise ValueError(f"ParallelMapper: expected a positive prebatch, got {prebatch}")
        _check_frequency("ParallelMapper", snapshot_frequency)
        self.source, self.map_fn, self.num_workers = source, map_fn, num_workers
        self.in_order, self.method, self.max_concurrent = in_order, method, max_concurrent
        self.multiprocessing_context = multiprocessing_context
        self.snapshot_frequency, self.prebatch = snapshot_frequency, prebatch
        mapped: BaseNode[Any]
        if prebatch is None:
            mapped = self._mapped(source, map_fn)
        else:
            batches = Batcher(source, prebatch, drop_last=False)
            mapped = Unbatcher(self._mapped(batches, _EachOf(map_fn)))
        self._it = mapped

    def _mapped(self, source: BaseNode[Any], map_fn: Callable[[Any], Any]) -> BaseNode[Any]:
        if self.num_workers == 0:
            return Mapper(source, map_fn)
        limit = 2 * self.num_workers if self.max_concurrent is None else self.max_concurrent
        options = limit, self.in_order, self.snapshot_frequency
        if self.method == "thread":
            return _Parallel(source, options, _Threads(map_fn, self.num_workers))
        context = multiprocessing.get_context(self.multiprocessing_context)
        return _Parallel(source, options, _Processes(map_fn, self.num_workers, context))

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        self._it.reset(None if initial_state is None else initial_state[self.IT_STATE_KEY])

    def next(self) -> T:
        return next(self._it)

    def get_state(self) -> dict[str, Any]:
        return {self.IT_STATE_KEY: self._it.state_dict()}


class _Parallel(BaseNode[Any]):
    """A source that is read ahead and worked on."""

    def __init__(self, source: BaseNode[Any], options: tuple[int, bool, int], work: Any) -> None:
        super().__init__()
        self._source, self._options, self._work = source, options, work
        self._ahead: Ahead | None = None

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        if self._ahead is not None:
            self._ahead.close()
        self._ahead = Ahead(self._source, *self._options, initial_state, self._work)

    def next(self) -> Any:
        assert self._ahead is not None
        return next(self._ahead)

    def get_state(self) -> dict[str, Any]:
        assert self._ahead is not None
        return self._ahead.state()


class _EachOf:
    """A function of lists, which a process can be sent."""

    def __init__(self, map_fn: Callable[[Any], Any]) -> None:
        self._map_fn = map_fn

    def __call__(self, items: list[Any]) -> list[Any]:
        return [self._map_fn(item) for item in items]


class _Threads:
    """Threads that apply a function."""

    def __init__(self, map_fn: Callable[[Any], Any], count: int) -> None:
        self._map_fn, self._count = map_fn, count

    def __call__(self, flow: Flow) -> tuple[Submit, list[threading.Thread], Callable[[], None]]:
        tasks: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        threads = [
            threading.Thread(
                target=_apply, args=(flow, tasks, self._map_fn), name=f"node {i}", daemon=True
            )
            for i in range(self._count)
        ]

        def close() -> None:
            for _ in threads:
                tasks.put(None)

        return (lambda number, item: tasks.put((number, item))), threads, close


def _apply(flow: Flow, tasks: queue.SimpleQueue[Any], map_fn: Callable[[Any], Any]) -> None:
    while (task := tasks.get()) is not None and not flow.stopped:
        number, item = task
        try:
            flow.put(number, map_fn(item))
        except BaseException as error:
            flow.fail(number, error)


class _Processes:
    """Processes that apply a function, each with a thread that hands it elements."""

    def __init__(self, map_fn: Callable[[Any], Any], count: int, context: Any) -> None:
        self._map_fn, self._count, self._context = map_fn, count, context

    def __call__(self, flow: Flow) -> tuple[Submit, list[threading.Thread], Callable[[], None]]:
        tasks: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        threads, processes = [], []
        for i in range(self._count):
            ours, theirs = self._context.Pipe()
            # The function goes along at the start: a process that is forked need not unpickle it.
            process = self._context.Process(
                target=_serve, args=(theirs, self._map_fn, os.getpid()), daemon=True
            )
            process.start()
            theirs.close()  # so that ours ends with the process
            processes.append(process)
            threads.append(
                threading.Thread(
                    target=_hand_over,
                    args=(flow, tasks, process, ours),
                    name=f"node {i}",
                    daemon=True,
                )
            )

        def close() -> None:
            for process in processes:
                tasks.put(None)
                process.kill()  # one that hangs or is stopped ends too
            for process in processes:
                process.join()

        return (lambda number, item: tasks.put((number, item))), threads, close


def _hand_over(flow: Flow, tasks: queue.SimpleQueue[Any], process: Any, connection: Any) -> None:
    """Give elements to a process, one at a time; once it is dead, fail them."""
    dead: str | None = None
    with connection:
        while (task := tasks.get()) is not None and not flow.stopped:
            number, item = task
            try:
                if dead is None:
                    connection.send(item)
                    result, error = connection.recv()
                else:
                    result, error = None, RuntimeError(dead)
            except (EOFError, OSError):
                process.join()
                text = f"pid {process.pid}, exit code {process.exitcode}"
                dead = f"ParallelMapper worker process ({text}) exited unexpectedly"
                result, error = None, RuntimeError(dead)
            except Exception as raised:  # an element that cannot be pickled
                result, error = None, raised
            if error is None:
                flow.put(number, result)
            else:
                flow.fail(number, error)


def _serve(connection: Any, map_fn: Callable[[Any], Any], parent: int) -> None:
    """A process: answers until the other side is gone."""
    try:
        while True:
            while not connection.poll(5.0):
                if os.getppid() != parent:
                    return
            item = connection.recv()
            try:
                answer: Any = map_fn(item), None
                connection.send(answer)
            except Exception as error:
                connection.send((None, _with_traceback(error)))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _with_traceback(error: Exception) -> Exception:
    """An exception that can be sent, with its traceback as a note."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(str(error))
    error.add_note(f"in a ParallelMapper worker process:\n{text}")
    return error


def _check_frequency(name: str, frequency: int) -> None:
    if isinstance(frequency, bool) or not isinstance(frequency, int) or frequency < 1:
        raise ValueError(f"{name}: expected a positive snapshot_frequency, got {frequency!r}")
