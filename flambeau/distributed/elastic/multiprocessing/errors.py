"""How a launched program reports its failure, and what the launcher makes of it.

Owns the file in which a process leaves its exception, named by TORCHELASTIC_ERROR_FILE, and the
exception that shows the first failure. Must not know how processes are started.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["ChildFailedError", "ProcessFailure", "record"]

_F = TypeVar("_F", bound=Callable[..., Any])
_FILE = "TORCHELASTIC_ERROR_FILE"


def write_error(error: BaseException) -> None:
    """Leave an exception in the file that the launcher has named, where it has."""
    path = os.environ.get(_FILE)
    if not path:
        return
    text = "".join(traceback.format_exception(error))
    extra = {"py_callstack": text, "timestamp": str(int(time.time()))}
    message = {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"message": message}, file)


@dataclass
class ProcessFailure:
    """A process that ended otherwise than well.

    Attributes:
        local_rank: its number on this machine.
        pid: its process.
        exitcode: its status; a negative one is a signal's.
        error_file: where it may have left its exception.
        timestamp: when that was seen, in seconds of the epoch.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    timestamp: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.error_file_data: dict[str, Any] = {}
        try:
            with open(self.error_file, encoding="utf-8") as file:
                self.error_file_data = json.load(file)
        except (OSError, ValueError):
            self.message = self._ending()
            return
        found = self.error_file_data["message"]
        self.message = found["extraInfo"]["py_callstack"] if isinstance(found, dict) else found

    def _ending(self) -> str:
        if self.exitcode < 0:
            return f"{self.signal_name()} (signal {-self.exitcode}) ended it"
        return (
            "its traceback is above; decorate its main function with "
            "flambeau.distributed.elastic.multiprocessing.errors.record to have it here"
        )

    def signal_name(self) -> str:
        """Of the signal that ended it; "<N/A>" where none did."""
        if self.exitcode >= 0:
            return "<N/A>"
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return f"<signal {-self.exitcode}>"


class ChildFailedError(Exception):
    """Processes that a launcher has started failed.

    Attributes:
        name: of the program.
        failures: by rank, the first to fail foremost.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise ValueError("ChildFailedError: expected a failure, got none")
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        return min(self.failures.items(), key=lambda item: item[1].timestamp)

    def format_msg(self) -> str:
        """The first failure with its traceback, and a line for each other."""
        first, failure = self.get_first_failure()
        lines = [f"{self.name} failed", "first: " + _line(first, failure)]
        lines += ["  " + text for text in failure.message.rstrip().splitlines()]
        others = [_line(r, f) for r, f in self.failures.items() if r != first]
        return "\n".join(lines + [f"then: {text}" for text in others])


def _line(rank: int, failure: ProcessFailure) -> str:
    return (
        f"rank {rank} (local rank {failure.local_rank}, process {failure.pid}) ended with "
        f"{failure.exitcode}"
    )


def record(fn: _F, error_handler: Any = None) -> _F:
    """Report the function's exceptions to the launcher, which shows the first of all processes.

    Args:
        fn: a program's main function.
        error_handler: an object whose `record_exception(error)` is called instead.
    """

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except SystemExit as error:
            if error.code not in (0, None):
                report(error)
            raise
        except Exception as error:
            report(error)
            raise

    report = write_error if error_handler is None else error_handler.record_exception
    return run  # type: ignore[return-value]
