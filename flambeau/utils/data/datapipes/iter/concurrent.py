"""Pipes that apply a function to several samples at once: in batches, in threads, as coroutines.

Owns the order, which is the source's, and how many calls are open. Threads and loops of events
end with the pass.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import (
    _check_unpickable_fn,
    length_like,
    on_columns,
    single_column,
    validate_input_col,
    with_column,
)

__all__ = [
    "BatchAsyncMapperIterDataPipe",
    "BatchMapperIterDataPipe",
    "ThreadPoolMapperIterDataPipe",
]


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
        **threadpool_kwargs: more arguments of `ThreadPoolExecutor`.

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

    def _apply_fn(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        result = on_columns(self.fn, self.input_col)(data)
        return with_column(data, result, self.input_col, self.output_col)

    def __iter__(self) -> Iterator[Any]:
        executor = ThreadPoolExecutor(max_workers=self.max_workers, **self.threadpool_kwargs)
        try:
            tasks: deque[Future[Any]] = deque()
            for data in self.datapipe:
                tasks.append(executor.submit(self._apply_fn, data))
                if len(tasks) > self.scheduled_tasks:
                    yield tasks.popleft().result()
            while tasks:
                yield tasks.popleft().result()
        finally:
            executor.shutdown(cancel_futures=True)

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
        with ThreadPoolExecutor(max_workers=1) as thread:
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
