"""`Work`: what an asynchronous collective or message hands back.

Owns the copying of results to where they are wanted, once, when the core has ended. Must not know
which collective it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flambeau.futures import Future

from ._store import milliseconds

__all__ = ["Work"]


class Work:
    """A collective or message under way.

    Its tensors are not to be read or written before `wait`, or before `is_completed` says True.
    """

    def __init__(
        self,
        core: Any,
        result: Any = None,
        finish: Callable[[], None] | None = None,
        ranks: list[int] | None = None,
        group: Any = None,
        call: int = 0,
    ) -> None:
        self._group, self._call = group, call
        if group is not None:
            group._recorder.waits(call, core)
        self._core, self._result, self._finish, self._ranks = core, result, finish, ranks
        self._lock = threading.Lock()
        if core is not None and finish is not None:
            core.then(self._end)

    def _end(self) -> None:
        """Put results where they are wanted, once."""
        with self._lock:
            finish, self._finish = self._finish, None
            if finish is not None and (self._core is None or self._core.fault() is None):
                finish()

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        if self._core is not None and not self._core.done():
            return False
        self._end()
        return True

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """What it ended with; None where it ended well, or has not."""
        fault = None if self._core is None else self._core.fault()
        return fault if isinstance(fault, BaseException) else None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it has ended.

        Args:
            timeout: for how long; None or zero: as long as the collective itself waits.

        Returns:
            True.

        Raises:
            DistBackendError: it failed, or the time is over.
        """
        if self._core is not None:
            try:
                self._core.wait(milliseconds("wait", timeout) if timeout else None)
            except Exception as error:
                if self._core.done():
                    self._group._failed(self._call, error)
                raise
        self._end()
        return True

    def synchronize(self) -> None:
        """Wait."""
        self.wait()

    def result(self) -> Any:
        """The tensors that it filled."""
        return self._result

    def source_rank(self) -> int:
        """The process that sent the message which was received."""
        source = -1 if self._core is None else self._core.source()
        return source if self._ranks is None or source < 0 else self._ranks[source]

    _source_rank = source_rank

    def get_future(self) -> Future[Any]:
        """A future whose value are the tensors."""
        future: Future[Any] = Future()

        def end() -> None:
            fault = self.exception()
            if fault is None:
                self._end()
                future.set_result(self._result)
            else:
                future.set_exception(fault)

        if self._core is None:
            end()
        else:
            self._core.then(end)
        return future
