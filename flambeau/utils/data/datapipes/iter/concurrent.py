"""Pipes that apply a function to several samples at once: in batches, in threads, as coroutines.

Owns the order, which is the source's, and how many calls are open. Threads and loops of events
end with the pass.
"""

from __future__ import annotations

import inspect
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from .._late import Late
from ..datapipe import IterDataPipe
from ..utils.common import (
    _check_unpickable_fn,
    length_like,
    on_columns,
    on_sample,
    single_column,
    validate_input_col,
    with_column,
)

__all__ = [
    "BatchAsyncMapperIterDataPipe",
    "BatchMapperIterDataPipe",
    "ThreadPoolMapperIterDataPipe",
]


asyncio: Any = Late("asyncio")
futures: Any = Late("concurrent.futures")


@functional_datapipe("map_batches")
class BatchMapperIterDataPipe(IterDataPipe[Any]):
    """The elements of what a function makes of each batch (functional name: `map_batches`).

    Args:
        datapipe: source.
        fn: function of a list of samples, or of columns, to something iterable.
        batch_size: samples per call.
        input_col: index or key of the samples, or a list of them, that `fn` gets.

    Raises:
        AssertionError: `batch_size` is not positive.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).map_batches(lambda xs: [sum(xs)], batch_size=2))
        [1, 5, 4]
    """

    def __init__(
        self, datapipe: Any, fn: Callable[[Any], Any], batch_size: int, input_col: Any = None
    ) -> None:
        _check_unpickable_fn(fn)
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.fn = fn
        self.batch_size = batch_size
        self.input_col = input_col

    def _apply_fn(self, batch: list[Any]) -> Any:
        columns = self.input_col
        if isinstance(columns, list | tuple):
            batch = [[data[column] for column in columns] for data in batch]
        elif columns is not None:
            batch = [data[columns] for data in batch]
        return self.fn(batch)

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for data in self.datapipe:
            batch.append(data)
            if len(batch) == self.batch_size:
                yield from self._apply_fn(batch)
                batch = []
        if batch:
            yield from self._apply_fn(batch)

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__}'s length relies on the output of its function.")


class _Task:
    """A sample, then what became of it; the lock is let go when that is there."""

    __slots__ = ("done", "error", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def result(self) -> Any:
        self.done.acquire()
        if self.error is not None:
            raise self.error
        return self.value


class _Threads:
    """Threads that apply one function. A task costs a lock; a Future costs several, and more."""

    def __init__(
        self,
        apply: Callable[[Any], Any],
        max_workers: int | None,
        thread_name_prefix: str = "threadpool_map",
        initializer: Callable[..., Any] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        self._apply = apply
        self._most = max_workers or min(32, (os.cpu_count() or 1) + 4)
        self._prefix = thread_name_prefix
        self._initializer, self._initargs = initializer, initargs
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._stopped = False

    def submit(self, data: Any) -> _Task:
        task = _Task(data)
        self._tasks.put(task)
        if len(self._threads) < self._most:
            name = f"{self._prefix}_{len(self._threads)}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return task

    def _run(self) -> None:
        failed: BaseException | None = None
        if self._initializer is not None:
            try:
                self._initializer(*self._initargs)
            except BaseException as error:
                failed = error
        take, apply = self._tasks.get, self._apply
        while (task := take()) is not None:
            try:
                if failed is not None:
                    raise failed
                if not self._stopped:
                    task.value = apply(task.value)
            except BaseException as error:
                task.error = error
            task.done.release()
            task = None

    def stop(self) -> None:
        """Let calls that run end; those that wait are not made."""
        self._stopped = True
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()


@functional_datapipe("threadpool_map")
class ThreadPoolMapperIterDataPipe(IterDataPipe[Any]):
    """Each sample after a function that runs in threads (functional name: `threadpool_map`).

    Args:
        source_datapipe: source; the order is kept.
        fn: function of a sample, or of the columns that `input_col` names.
        input_col: as for `map`.
        output_col: as for `map`.
        scheduled_tasks: samples that are ahead of the one handed out.
        max_workers: threads.
        **threadpool_kwargs: `thread_name_prefix`, `initializer` and `initargs`, as
            `ThreadPoolExecutor` takes them.

    Raises:
        ValueError: `scheduled_tasks` or `max_workers` is not positive; the columns are wrong.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(4)).threadpool_map(lambda x: x * x, max_workers=2))
        [0, 1, 4, 9]
    """

    def __init__(
        self,
        source_datapipe: Any,
        fn: Callable[..., Any],
        input_col: Any = None,
        output_col: Any = None,
        scheduled_tasks: int = 128,
        max_workers: int | None = None,
        **threadpool_kwargs: Any,
    ) -> None:
        super().__init__()
        _check_unpickable_fn(fn)
        for name, number in (("scheduled_tasks", scheduled_tasks), ("max_workers", max_workers)):
            if number is not None and number <= 0:
                raise ValueError(f"'{name}' is required to be a positive integer.")
        self.datapipe = source_datapipe
        self.fn = fn
        self.scheduled_tasks = scheduled_tasks
        self.max_workers = max_workers
        self.threadpool_kwargs = threadpool_kwargs
        self.input_col = input_col
        self.output_col = single_column(input_col, output_col)
        validate_input_col(fn, input_col)

    def __iter__(self) -> Iterator[Any]:
        apply = on_sample(self.fn, self.input_col, self.output_col)
        threads = _Threads(apply, self.max_workers, **self.threadpool_kwargs)
        try:
            tasks: deque[_Task] = deque()
            for data in self.datapipe:
                tasks.append(threads.submit(data))
                if len(tasks) > self.scheduled_tasks:
                    yield tasks.popleft().result()
            while tasks:
                yield tasks.popleft().result()
        finally:
            threads.stop()

    def __len__(self) -> int:
        return length_like(self, self.datapipe)


class _BatchAsyncMapperIterDataPipe(IterDataPipe[Any]):
    """Batches after a coroutine per sample."""

    def __init__(
        self,
        source_datapipe: Any,
        async_fn: Callable[..., Any],
        input_col: Any = None,
        output_col: Any = None,
        max_concurrency: int = 32,
    ) -> None:
        if not inspect.iscoroutinefunction(async_fn):
            raise ValueError(
                "Expected a coroutine function with an async def syntax, but got a "
                f"{type(async_fn)}"
            )
        if max_concurrency <= 0:
            raise ValueError(
                f"async_map_batches: expected max_concurrency larger than 0, got {max_concurrency}"
            )
        self.source_datapipe = source_datapipe
        self.async_fn = async_fn
        self.input_col = input_col
        self.output_col = single_column(input_col, output_col)
        self.max_concurrency = max_concurrency

    async def _processed(self, batch: list[Any]) -> list[Any]:
        turns = asyncio.Semaphore(self.max_concurrency)
        apply = on_columns(self.async_fn, self.input_col)

        async def one(data: Any) -> Any:
            async with turns:
                return await apply(data)

        results = await asyncio.gather(*map(one, batch))
        if self.input_col is None:
            return results
        return [
            with_column(data, result, self.input_col, self.output_col)
            for data, result in zip(batch, results, strict=True)
        ]

    def __iter__(self) -> Iterator[Any]:
        # In a thread, for the caller may be a coroutine itself, as a cell of a notebook is.
        runner = asyncio.Runner()
        with futures.ThreadPoolExecutor(max_workers=1) as thread:
            try:
                for batch in self.source_datapipe:
                    yield thread.submit(runner.run, self._processed(batch)).result()
            finally:
                thread.submit(runner.close).result()

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


@functional_datapipe("async_map_batches")
class BatchAsyncMapperIterDataPipe(IterDataPipe[Any]):
    """Each sample after a coroutine, those of a batch at once (functional name:
    `async_map_batches`).

    Args:
        source_datapipe: source; the order is kept.
        async_fn: coroutine function of a sample, or of the columns that `input_col` names.
        batch_size: samples per batch.
        input_col: as for `map`.
        output_col: as for `map`.
        max_concurrency: coroutines that run at once.
        flatten: hand out samples; batches, if False.

    Raises:
        ValueError: `async_fn` is no coroutine function; the columns are wrong.

    Example:
        >>> import asyncio
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> async def later(x):
        ...     await asyncio.sleep(0)
        ...     return x + 1
        >>> list(IterableWrapper(range(4)).async_map_batches(later, batch_size=2))
        [1, 2, 3, 4]
    """

    def __new__(
        cls,
        source_datapipe: Any,
        async_fn: Callable[..., Any],
        batch_size: int,
        input_col: Any = None,
        output_col: Any = None,
        max_concurrency: int = 32,
        flatten: bool = True,
    ) -> Any:
        pipe: Any = _BatchAsyncMapperIterDataPipe(
            source_datapipe.batch(batch_size), async_fn, input_col, output_col, max_concurrency
        )
        if flatten:
            pipe = pipe.flatmap()
            try:
                pipe = pipe.set_length(len(source_datapipe))
            except (TypeError, NotImplementedError):
                pass
        return pipe
