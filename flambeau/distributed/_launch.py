"""The processes that a launcher has on its machine: started, watched and ended together.

Owns the workers of one attempt, their variables and where their output goes. Invariant: when one
fails, or the launcher is told to stop, all are ended, by force where they are deaf; none outlives
the launcher. Where there are launchers on other machines, `_nodes` tells of them. Must not know the
command line.
"""

from __future__ import annotations

import ctypes
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from ._nodes import Meeting, Nodes, OtherNodeFailed, restarts
from ._store import TCPStore
from .elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
OUT, ERR = 1, 2


@dataclass
class Plan:
    """What to launch.

    Attributes:
        command: the program and its arguments.
        processes: how many.
        name: of the program, for errors.
        host, port: where the processes meet; port 0 is a free one.
        run_id, role: names that the processes see.
        max_restarts: how often all are started again after a failure.
        shutdown_timeout: seconds that processes have to end before they are killed.
        log_dir: where redirected output goes; None for a temporary folder.
        redirects, tee: by local rank, OUT and ERR that go to files alone, and to both.
        shown: local ranks whose output is shown; None for all.
        signals: those that end the workers, and the launcher with them.
        meeting: where launchers of several machines meet; None where there is one.
    """

    command: Sequence[str]
    processes: int
    name: str
    host: str = "127.0.0.1"
    port: int = 0
    run_id: str = "none"
    role: str = "default"
    max_restarts: int = 0
    shutdown_timeout: float = 30.0
    log_dir: str | None = None
    redirects: dict[int, int] = field(default_factory=dict)
    tee: dict[int, int] = field(default_factory=dict)
    shown: set[int] | None = None
    signals: Sequence[signal.Signals] = (
        signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT,
    )  # fmt: skip
    meeting: Meeting | None = None


class Stopped(Exception):
    """The launcher was told to stop by a signal, and has ended its workers."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


def _dies_with_parent() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # found before the fork: after it little may be called
    return lambda: prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


@dataclass
class _Place:
    """Where this machine's processes are among all: of the only machine, or one of several."""

    port: int
    world: int
    first: int = 0
    node: int = 0
    nodes: int = 1


def _environment(
    plan: Plan, local: int, place: _Place, attempt: int, error_file: str
) -> dict[str, str]:
    size, rank = plan.processes, place.first + local
    given = {
        "LOCAL_RANK": local, "RANK": rank, "GROUP_RANK": place.node, "ROLE_RANK": rank,
        "LOCAL_WORLD_SIZE": size, "WORLD_SIZE": place.world, "GROUP_WORLD_SIZE": place.nodes,
        "ROLE_WORLD_SIZE": place.world, "ROLE_NAME": plan.role, "MASTER_ADDR": plan.host,
        "MASTER_PORT": place.port,
        "TORCHELASTIC_RESTART_COUNT": attempt, "TORCHELASTIC_MAX_RESTARTS": plan.max_restarts,
        "TORCHELASTIC_RUN_ID": plan.run_id, "TORCHELASTIC_USE_AGENT_STORE": True,
        "TORCHELASTIC_ERROR_FILE": error_file,
    }  # fmt: skip
    made = {**os.environ, **{name: str(value) for name, value in given.items()}}
    if size > 1:
        made.setdefault("OMP_NUM_THREADS", "1")  # each a core, and no more threads than cores
    return made


class _Workers:
    """The processes of one attempt."""

    def __init__(self, plan: Plan, attempt: int, folder: str, events: Any, place: _Place) -> None:
        self.plan, self.events, self.folder, self.place = plan, events, folder, place
        self.threads: list[threading.Thread] = []
        self.files: list[IO[Any]] = []
        self.processes: list[subprocess.Popen[str]] = []
        self.failures: dict[int, ProcessFailure] = {}
        self.left = plan.processes
        for rank in range(plan.processes):
            own = os.path.join(folder, f"attempt_{attempt}", str(rank))
            os.makedirs(own)
            env = _environment(plan, rank, place, attempt, os.path.join(own, "error.json"))
            out, err = (self._sink(rank, own, kind) for kind in (OUT, ERR))
            process = subprocess.Popen(
                plan.command, env=env, stdout=out, stderr=err, text=True, errors="replace",
                preexec_fn=_dies_with_parent(),  # noqa: PLW1509
            )  # fmt: skip
            self.processes.append(process)
            for kind, pipe in ((OUT, process.stdout), (ERR, process.stderr)):
                if pipe is not None:
                    self._thread(self._copy, rank, own, kind, pipe)
            self._thread(self._wait, attempt, rank, own)

    def _thread(self, run: Callable[..., None], *args: Any) -> None:
        self.threads.append(threading.Thread(target=run, args=args, daemon=True))
        self.threads[-1].start()

    def _path(self, own: str, kind: int) -> str:
        return os.path.join(own, "stdout.log" if kind == OUT else "stderr.log")

    def _sink(self, rank: int, own: str, kind: int) -> Any:
        """Where a stream of a process goes: None is where the launcher's own goes."""
        if self.plan.tee.get(rank, 0) & kind:
            return subprocess.PIPE
        if self.plan.redirects.get(rank, 0) & kind:
            self.files.append(open(self._path(own, kind), "w"))  # noqa: SIM115
            return self.files[-1]
        hidden = self.plan.shown is not None and rank not in self.plan.shown
        return subprocess.DEVNULL if hidden else None

    def _copy(self, rank: int, own: str, kind: int, pipe: IO[str]) -> None:
        """To a file, and to the launcher's own stream with the rank before each line."""
        shown = self.plan.shown is None or rank in self.plan.shown
        stream = sys.stdout if kind == OUT else sys.stderr
        with pipe, open(self._path(own, kind), "w", encoding="utf-8") as file:
            for line in pipe:
                file.write(line)
                if shown:
                    stream.write(f"[{self.plan.role}{self.place.first + rank}]:{line}")
                    stream.flush()

    def _wait(self, attempt: int, rank: int, own: str) -> None:
        process = self.processes[rank]
        status = process.wait()
        failure = None
        if status != 0:
            error_file = os.path.join(own, "error.json")
            failure = ProcessFailure(rank, process.pid, status, error_file)
        self.events.put((attempt, rank, failure))

    def ended(self, rank: int, failure: ProcessFailure | None) -> None:
        """Take note of one."""
        self.left -= 1
        if failure is not None:
            self.failures[self.place.first + rank] = failure

    def end(self, number: int) -> None:
        """End all, by force those that have not ended in time."""
        deadline = time.monotonic() + self.plan.shutdown_timeout
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)
        for process in self.processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.close()

    def close(self) -> None:
        """Wait for what is still to be written."""
        for thread in self.threads:
            thread.join(5)
        for file in self.files:
            file.close()


def _attempt(plan: Plan, attempt: int, folder: str, events: Any, place: _Place) -> None:
    """Start all and wait for them.

    Raises:
        ChildFailedError: one failed, and all are ended.
        OtherNodeFailed: on another machine, and all are ended.
        Stopped: by a signal, and all are ended.
    """
    workers = _Workers(plan, attempt, folder, events, place)
    try:
        while workers.left:
            which, rank, failure = events.get()
            if which == "signal":
                workers.end(rank)
                raise Stopped(rank)
            if which == ("node", attempt):
                workers.end(signal.SIGTERM)
                raise OtherNodeFailed(rank)
            if which != attempt:
                continue  # of one that was ended before
            workers.ended(rank, failure)
            if failure is not None:
                break
        else:
            workers.close()
            return
    except BaseException:
        workers.end(signal.SIGKILL)
        raise
    workers.end(signal.SIGTERM)
    # Those that failed by themselves before they were told to end.
    first = dict(workers.failures)
    while not events.empty():
        which, rank, failure = events.get()
        if which == attempt and failure is not None and failure.exitcode != -signal.SIGTERM:
            first[place.first + rank] = failure
    raise ChildFailedError(plan.name, first)


def _alone(plan: Plan, folder: str, events: Any) -> None:
    for attempt in range(plan.max_restarts + 1):
        # The launcher serves the store: a rank 0 that dies silences nobody.
        store = TCPStore(plan.host, plan.port, plan.processes, True, wait_for_workers=False)
        try:
            _attempt(plan, attempt, folder, events, _Place(store.port, plan.processes))
        except ChildFailedError as error:
            if attempt == plan.max_restarts:
                raise
            _say_again(plan, attempt, error)
        else:
            return


def _say_again(plan: Plan, attempt: int, why: object) -> None:
    sys.stderr.write(f"{why}\nstarted again, {attempt + 1} of {plan.max_restarts}\n")


def _among_nodes(plan: Plan, nodes: Nodes, folder: str, events: Any) -> None:
    """The same attempts as on all other machines, until one goes well on all of them."""
    place = _Place(nodes.port, sum(nodes.sizes), nodes.first, nodes.rank, nodes.count)
    for attempt in range(plan.max_restarts + 1):
        nodes.begin(attempt, lambda word, a=attempt: events.put((("node", a), word, None)))
        last = attempt == plan.max_restarts
        try:
            _attempt(plan, attempt, folder, events, place)
            nodes.end(attempt)
            while not nodes.all_ended(attempt):
                _hear(events, attempt)
            return
        except ChildFailedError as error:
            first, failure = error.get_first_failure()
            nodes.fail(attempt, f"failed: rank {first} ended with {failure.exitcode}", not last)
            if last:
                raise
            _say_again(plan, attempt, error)
        except OtherNodeFailed as error:
            again, text = restarts(str(error))
            if last or not again:
                raise OtherNodeFailed(f"{text}; the processes of this machine were ended") from None
            _say_again(plan, attempt, text)
        except BaseException as error:
            nodes.fail(attempt, str(error) or type(error).__name__, again=False)
            raise
        finally:
            nodes.rest()


def _hear(events: Any, attempt: int) -> None:
    """Word of other machines or a signal, while this one has nothing to do; waits a moment."""
    try:
        which, what, _ = events.get(timeout=0.05)
    except queue.Empty:
        return
    if which == "signal":
        raise Stopped(what)
    if which == ("node", attempt):
        raise OtherNodeFailed(what)


def launch(plan: Plan) -> None:
    """Run a program in several processes of this machine, until all have ended.

    Where launchers of other machines belong to the run, all of them do, and end together.

    Raises:
        ChildFailedError: one failed; the others were ended. It shows the first.
        OtherNodeFailed: one on another machine failed, or its launcher.
        Stopped: a signal came; all were ended.
        ValueError: the launchers of the machines do not fit.
    """
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    temporary = plan.log_dir is None
    base = plan.log_dir or tempfile.gettempdir()
    os.makedirs(base, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=f"{plan.run_id}_", dir=base)
    main = threading.current_thread() is threading.main_thread()

    def stop(number: int, frame: Any) -> None:
        events.put(("signal", number, None))

    nodes = None
    before: dict[Any, Any] = {}
    try:
        if plan.meeting is not None:
            nodes = Nodes(plan.meeting, plan.run_id, plan.processes, plan.max_restarts)
        before = {s: signal.signal(s, stop) for s in plan.signals} if main else {}
        if nodes is None:
            _alone(plan, folder, events)
        else:
            _among_nodes(plan, nodes, folder, events)
    finally:
        if nodes is not None:
            nodes.leave()
        for number, handler in before.items():
            signal.signal(number, handler)
        if temporary:
            shutil.rmtree(folder, ignore_errors=True)
