"""A function run in several processes, each with its rank, and what becomes of them.

Owns the processes of one `start_processes` call. Invariant: the first that fails, whatever its
rank, ends the others and its traceback is raised in the parent. Tracebacks come through one pipe
per process, so nothing lies in the file system. Must not know tensors.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_GRACE_SECONDS = 30.0


class ProcessException(Exception):
    """A process that `spawn` started has failed.

    Attributes:
        error_index: its rank.
        error_pid: its number.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised; the message holds its traceback."""


class ProcessExitedException(ProcessException):
    """The process ended by a signal or with an exit status of its own.

    Attributes:
        exit_code: the status; negative numbers are signals.
        signal_name: of the signal, or None.
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)
        return type(self), fields


def _end_with_parent() -> None:
    """Asks the system to interrupt this process when its parent dies; Linux alone can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGINT)


def _wrap(fn: Callable[..., Any], i: int, args: tuple[Any, ...], report: Any) -> None:
    _end_with_parent()
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too, or is gone
    except Exception:
        report.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes of one `start_processes` call, in the order of their ranks."""

    def __init__(self, processes: list[Any], reports: list[Any]) -> None:
        self.processes = processes
        self.sentinels = {process.sentinel: rank for rank, process in enumerate(processes)}
        self._reports = dict(zip(reports, range(len(reports)), strict=True))
        self._tracebacks: dict[int, str] = {}

    def pids(self) -> list[int]:
        """Numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends; call it until it says True.

        Args:
            timeout: seconds to wait at most.
            grace_period: when one has failed, seconds that the others have to end by themselves
                before they are terminated, and again before they are killed.

        Returns:
            True once all have ended well, False while some run.

        Raises:
            ProcessRaisedException: the function raised in one of them.
            ProcessExitedException: one of them ended otherwise than well.
        """
        if not self.sentinels:
            return True
        failed = self._wait(timeout)
        if failed is None:
            return not self.sentinels
        self._end_all(grace_period)
        raise self._error(failed)

    def _wait(self, timeout: float | None) -> int | None:
        """The rank of a process that has failed, once any has ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            rest = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            ready = connection.wait([*self.sentinels, *self._reports], rest)
            for each in ready:
                # A traceback longer than the pipe holds its sender up until it is read.
                if each in self._reports:
                    self._read(each)
            ended = [self.sentinels.pop(each) for each in ready if each in self.sentinels]
            for rank in ended:
                self.processes[rank].join()
            for rank in ended:
                if self.processes[rank].exitcode != 0:
                    return rank
            if ended or not ready:
                return None

    def _read(self, report: Any) -> None:
        rank = self._reports.pop(report)
        with contextlib.suppress(EOFError, OSError):
            self._tracebacks[rank] = report.recv()
        report.close()

    def _join_all(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._join_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._join_all(_GRACE_SECONDS if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()
        self.sentinels.clear()
        for report in list(self._reports):
            self._read(report)

    def _error(self, rank: int) -> ProcessException:
        process = self.processes[rank]
        if rank in self._tracebacks:
            text = f"\n\n-- Process {rank} terminated with the following error:\n"
            return ProcessRaisedException(text + self._tracebacks[rank], rank, process.pid)
        code = process.exitcode
        if code >= 0:
            text = f"process {rank} terminated with exit code {code}"
            return ProcessExitedException(text, rank, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        text = f"process {rank} terminated with signal {name}"
        return ProcessExitedException(text, rank, process.pid, code, name)


class SpawnContext(ProcessContext):
    """The former name of ProcessContext."""


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run fn(rank, *args) in `nprocs` processes.

    Args:
        fn: what to run; importable by name where processes are fresh interpreters.
        args: its arguments after the rank.
        nprocs: how many processes.
        join: wait for all of them.
        daemon: they end with this process.
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        The processes, or None after waiting for them.

    Raises:
        ProcessException: one failed; the others are ended.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, reports = [], []
    for rank in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_wrap, args=(fn, rank, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        reports.append(receiver)
    started = ProcessContext(processes, reports)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` with fresh interpreters."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
