"""`futures`: a value that arrives later, and what is done with it then.

The public face of `csrc/python/future_object.cpp`, which owns the order of callbacks.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from flambeau import _C

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(_C._Future, Generic[T]):
    """A value that arrives later.

    Callbacks run in the thread that sets the value, in the order in which they came; those that come
    after it run at once.

    Args:
        devices: devices of the value; without effect for values on the CPU.

    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda f: 2 * f.value())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """The future of a list of futures, all of them done; its error is the first of theirs.

    Raises:
        TypeError: something in the list is no future.

    >>> first, second = torch.futures.Future(), torch.futures.Future()
    >>> both = torch.futures.collect_all([first, second])
    >>> second.set_result(2)
    >>> both.done()
    False
    >>> first.set_result(1)
    >>> [f.value() for f in both.wait()]
    [1, 2]
    """
    made: Future[list[Future[Any]]] = _C._collect_futures(futures)
    return made


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all; return their values, or raise the first error."""
    return [future.wait() for future in futures]
