"""Tasks of `fork`: they run on threads of their own, or where they are waited for.

Owns the threads, as many as `get_num_interop_threads`, and what a task takes along of the thread
that forks it: modes of gradients, inference and autocast. Invariant: a task that no thread has
begun is run by who waits for it, so that tasks that wait for each other never lock.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flambeau
from flambeau import _C
from flambeau.autograd import forward_ad
from flambeau.futures import Future

#: of this process: its number, the number of threads, and they
_threads: tuple[int, int, ThreadPoolExecutor] | None = None


def _executor() -> ThreadPoolExecutor:
    global _threads
    wanted = (os.getpid(), flambeau.get_num_interop_threads())
    if _threads is None or _threads[:2] != wanted:  # a child of a fork has none of them
        _threads = (*wanted, ThreadPoolExecutor(wanted[1], "flambeau_fork"))
    return _threads[2]


class Task(Future[Any]):
    """What a function gives, once a thread has come to it."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        super().__init__()
        self._work: Any = (function, args, _Modes())

    def begin(self) -> None:
        """Run the function, unless a thread has begun to."""
        work = self.__dict__.pop("_work", None)  # one thread gets it
        if work is None:
            return
        function, args, modes = work
        try:
            value = modes.call(function, args)
        except Exception as error:
            self.set_exception(error)
        else:
            self.set_result(value)

    def wait(self) -> Any:
        """The value; who waits for a task that is not begun runs it."""
        self.begin()
        return super().wait()


class Forked(Future[Any]):
    """A task of the machine that has gone out to Python; it tells when it is done."""

    def __init__(self, handle: _C._ScriptTask) -> None:
        super().__init__()
        self._handle = handle

    def _arrive(self, value: Any, error: BaseException | None) -> None:
        if error is None:
            self.set_result(value)
        else:
            self.set_exception(error)

    def wait(self) -> Any:
        """The value; who waits for a task that is not begun runs it."""
        if not self.done():
            self._handle.join()
        return super().wait()


class _Modes:
    """What a thread has set, for another to run in."""

    def __init__(self) -> None:
        self.grad = flambeau.is_grad_enabled()
        self.inference = flambeau.is_inference_mode_enabled()
        on = flambeau.is_autocast_enabled("cpu")
        self.autocast = flambeau.get_autocast_dtype("cpu") if on else None

    def call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """What the function gives in them."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(flambeau.inference_mode(self.inference))
            # Set inside, for inference mode sets it too.
            stack.callback(flambeau.set_grad_enabled, flambeau.is_grad_enabled())
            flambeau.set_grad_enabled(self.grad)
            if self.autocast is not None:
                stack.enter_context(flambeau.autocast("cpu", self.autocast))
            return function(*args)


def fork(function: Callable[..., Any], *args: Any) -> Future[Any]:
    """Begin a task; transforms of functions see what their own thread does, so inside of one it is
    run at once."""
    task = Task(function, args)
    if _C._func_inside() or forward_ad._current_level >= 0:
        task.begin()
    else:
        _executor().submit(task.begin)
    return task
