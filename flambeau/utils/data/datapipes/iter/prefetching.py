"""Pipes that read ahead in a thread, prefetch and pin_memory; fullsync, which ends ranks alike.

Owns the thread, which lives as long as the pass: it ends with the iterator, and a new pass ends
the one before it. An exception in the thread is raised where the elements are asked for.
"""

from __future__ import annotations

import datetime
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import flambeau as fb

from ..._utils.tuning import Tuned
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils import pin_memory_fn
from ..utils.common import length_like

__all__ = [
    "FullSyncIterDataPipe",
    "PinMemoryIterDataPipe",
    "PrefetchTimeoutError",
    "PrefetcherIterDataPipe",
]

_DEFAULT_TIMEOUT_SECONDS = 30 * 60


class _Ahead:
    """A thread that fills a buffer of some elements, and the buffer."""

    def __init__(self, source: Iterator[Any], size: int | Tuned) -> None:
        self._source = source
        self._tuned = size if isinstance(size, Tuned) else None
        self._size: int = size if isinstance(size, int) else size.size
        self._buffer: deque[Any] = deque()
        self._changed = threading.Condition()
        self._stopped = self._ended = self._paused = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._fill, daemon=True)
        self._thread.start()

    def _fill(self) -> None:
        changed = self._changed
        try:
            while True:
                with changed:
                    while not self._stopped and (self._paused or len(self._buffer) >= self._size):
                        changed.wait()
                    if self._stopped:
                        return
                element = next(self._source)
                with changed:
                    self._buffer.append(element)
                    changed.notify_all()
        except StopIteration:
            pass
        except BaseException as error:
            self._error = error
        finally:
            with changed:
                self._ended = True
                changed.notify_all()

    def __iter__(self) -> Iterator[Any]:
        changed = self._changed
        while True:
            with changed:
                if self._tuned is not None and not self._ended:
                    self._tuned.took(len(self._buffer))
                    self._size = self._tuned.size
                while not (self._buffer or self._ended):
                    changed.wait()
                if not self._buffer:
                    break
                element = self._buffer.popleft()
                changed.notify_all()
            yield element
        if self._error is not None:
            raise self._error

    def pause(self, paused: bool) -> None:
        with self._changed:
            self._paused = paused
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join()


@functional_datapipe("prefetch")
class PrefetcherIterDataPipe(IterDataPipe[Any]):
    """Reads ahead in a thread (functional name: `prefetch`).

    Args:
        source_datapipe: source.
        buffer_size: elements that may wait; "auto" finds out while reading, and `choice` says what
            was chosen and why.

    Raises:
        ValueError: `buffer_size` is neither positive nor "auto".

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).prefetch(2))
        [0, 1, 2, 3, 4]
        >>> pipe = IterableWrapper(range(5)).prefetch("auto")
        >>> pipe.choice()
        'chose buffer_size=2 to begin with'
    """

    _run: _Ahead | None = None

    def __init__(self, source_datapipe: Any, buffer_size: int | str = 10) -> None:
        self.source_datapipe = source_datapipe
        if buffer_size == "auto":
            self._chooses = Tuned("buffer_size")
        elif isinstance(buffer_size, str) or buffer_size <= 0:
            raise ValueError("'buffer_size' is required to be a positive integer, or 'auto'.")
        self.buffer_size = buffer_size

    def choice(self) -> str:
        """How large the buffer is, and where "auto" chose that, why."""
        tuned = self.__dict__.get("_chooses")
        return f"buffer_size={self.buffer_size} was given" if tuned is None else str(tuned)

    def _source(self) -> Iterator[Any]:
        return iter(self.source_datapipe)

    def __iter__(self) -> Iterator[Any]:
        size = self.__dict__.get("_chooses", self.buffer_size)
        run = self._run = _Ahead(self._source(), size)
        try:
            yield from run
        finally:
            run.stop()

    def reset(self) -> None:
        self.shutdown()

    def pause(self) -> None:
        """Let the thread wait; what is in the buffer can be read."""
        if self._run is not None:
            self._run.pause(True)

    def resume(self) -> None:
        """Let the thread go on."""
        if self._run is not None:
            self._run.pause(False)

    def shutdown(self) -> None:
        """End the thread, and with it the pass."""
        run, self._run = self._run, None
        if run is not None:
            run.stop()

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


@functional_datapipe("pin_memory")
class PinMemoryIterDataPipe(PrefetcherIterDataPipe):
    """Elements with their tensors in page-locked memory, copied in a thread (functional name:
    `pin_memory`).

    Args:
        source_datapipe: source.
        device: the device that the copies are for; the current one by default.
        pin_memory_fn: function of (element, device).

    Raises:
        RuntimeError: there is no CUDA.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper([torch.zeros(2)])
        >>> pipe.pin_memory() if not torch.cuda.is_available() else pipe.no_such_name
        Traceback (most recent call last):
        ...
        RuntimeError: ``pin_memory`` can only be used when CUDA is available.
    """

    def __init__(
        self,
        source_datapipe: Any,
        device: Any = None,
        pin_memory_fn: Callable[[Any, Any], Any] = pin_memory_fn,
    ) -> None:
        if not fb.cuda.is_available():
            raise RuntimeError("``pin_memory`` can only be used when CUDA is available.")
        super().__init__(source_datapipe, buffer_size=2)
        self.device = fb.cuda.current_device() if device is None else device
        self.pin_memory_fn = pin_memory_fn

    def _source(self) -> Iterator[Any]:
        return (self.pin_memory_fn(element, self.device) for element in self.source_datapipe)

    def is_replicable(self) -> bool:
        """False: the pipe belongs into the process that trains."""
        return False


class PrefetchTimeoutError(RuntimeError):
    """Nothing came in time.

    Args:
        timeout: the seconds that were waited.
    """

    def __init__(self, timeout: float) -> None:
        super().__init__(f"Fail to fetch data within {timeout} seconds")
        self.timeout = timeout


@functional_datapipe("fullsync")
class FullSyncIterDataPipe(IterDataPipe[Any]):
    """Ends in all ranks of a job when it ends in the first (functional name: `fullsync`).

    Ranks with uneven shares would otherwise wait for one another for ever. Each element costs a sum
    over the ranks.

    Args:
        datapipe: source.
        timeout: seconds that ranks wait for one another.

    Raises:
        RuntimeError: while iterating, this process is not part of a job.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1]).fullsync())
        Traceback (most recent call last):
        ...
        RuntimeError: Torch Distributed is required to be initialized to use `FullSync`...
    """

    def __init__(self, datapipe: Any, timeout: float = _DEFAULT_TIMEOUT_SECONDS) -> None:
        self.datapipe = datapipe
        self.timeout = timeout

    def __iter__(self) -> Iterator[Any]:
        from flambeau import distributed as dist

        if not (dist.is_available() and dist.is_initialized()):
            raise RuntimeError("Torch Distributed is required to be initialized to use `FullSync`.")
        world_size = dist.get_world_size()
        if world_size == 1:
            yield from self.datapipe
            return
        limit = datetime.timedelta(seconds=self.timeout)
        group = dist.new_group(backend="gloo", timeout=limit)
        nothing = object()
        source = iter(self.datapipe)
        while True:
            element = next(source, nothing)
            have = fb.tensor([int(element is not nothing)], dtype=fb.int32)
            dist.all_reduce(have, op=dist.ReduceOp.SUM, group=group)
            if int(have.item()) < world_size:
                return
            yield element

    def is_replicable(self) -> bool:
        """False: the pipe belongs into the process that trains."""
        return False
