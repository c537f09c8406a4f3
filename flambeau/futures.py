"""`futures`: a value that arrives later, and what is done with it then.

Owns the order: callbacks run in the thread that sets the value, in the order in which they came;
those that come after it run at once. Must not know who computes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that arrives later.

    Args:
        devices: devices of the value; without effect for values on the CPU.

    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda f: 2 * f.value())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    # Most futures have neither who waits nor callbacks: what those need is made for them.
    _done = False
    _value: Any = None
    _error: BaseException | None = None
    _waited: threading.Event | None = None
    _callbacks: list[Callable[[Future[T]], Any]] | None = None

    def __init__(self, *, devices: Any = None) -> None:
        self._lock = threading.Lock()

    def done(self) -> bool:
        """Whether the value, or an error, is there."""
        return self._done

    def wait(self) -> T:
        """Wait for the value; raise its error."""
        if not self._done:
            with self._lock:
                if not self._done and self._waited is None:
                    self._waited = threading.Event()
            if not self._done and self._waited is not None:
                self._waited.wait()
        return self._outcome()

    def value(self) -> T:
        """The value, which must be there."""
        if not self._done:
            raise RuntimeError("Future.value: expected a future that is done; call wait()")
        return self._outcome()

    def _outcome(self) -> T:
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value

    def _end(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._done:
                raise RuntimeError("Future can only be set once: it is marked completed already")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, None
        if self._waited is not None:
            self._waited.set()
        if callbacks is not None:
            for callback in callbacks:
                callback(self)

    def set_result(self, result: T) -> None:
        """Give the value, once."""
        self._end(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give the error, once."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._end(None, result)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function with this future once it is done."""
        with self._lock:
            if not self._done:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The future of what a function makes of this future once it is done."""
        out: Future[S] = Future()

        def run(future: Future[T]) -> None:
            try:
                value = callback(future)
            except BaseException as error:
                out.set_exception(error)
            else:
                out.set_result(value)

        self.add_done_callback(run)
        return out


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """The future of a list of futures, all of them done."""
    out: Future[list[Future[Any]]] = Future()
    left, lock = [len(futures)], threading.Lock()

    def one(_: Future[Any]) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            out.set_result(futures)

    if not futures:
        out.set_result(futures)
    for future in futures:
        future.add_done_callback(one)
    return out


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all; return their values, or raise the first error."""
    return [future.wait() for future in futures]
