"""Worker processes that measure cases: a crash or a hang ends the worker, not the run.

Owns processes and clocks; knows neither what a case is nor what the numbers mean. A worker that
died or passed its time is replaced, and its case gets a record that says so.
"""

from __future__ import annotations

import json
import os
import queue
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO, Any

#: seconds that starting a worker may take: packages are imported by the cases, not by then
START = 120


class Died(Exception):
    """A worker that ended or passed its time, with the reason."""


class Worker:
    def __init__(
        self, command: list[str], mode: str, threads: int, extra: dict[str, str] | None = None
    ) -> None:
        self.noise: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [*command, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.noise,
            text=True,
            env={
                **os.environ,
                "OMP_NUM_THREADS": str(threads),
                "TOKENIZERS_PARALLELISM": "false",
                **(extra or {}),
            },
        )
        self.selector = selectors.DefaultSelector()
        assert self.process.stdout is not None
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def read(self, seconds: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        if not self.selector.select(seconds):
            raise Died(f"no answer within {seconds:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            self.noise.seek(0, os.SEEK_END)
            self.noise.seek(max(0, self.noise.tell() - 3000))
            said = self.noise.read().decode(errors="replace")
            raise Died(f"ended with {code}\n{said}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, name: str, seconds: float) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Died("ended before the case") from None
        return self.read(seconds)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.selector.close()
        for stream in (self.process.stdin, self.process.stdout, self.noise):
            if stream is not None:
                stream.close()


def run(
    names: list[str],
    mode: str,
    command: list[str] | None = None,
    workers: int = 2,
    seconds: float = 120,
    threads: int = 1,
    done: Callable[[str, dict[str, Any]], None] | None = None,
) -> dict[str, dict[str, Any]]:
    """Records by name. `command` starts a worker; `seconds` is the limit of one case."""
    command = command or [sys.executable, "-m", "tools.clients.worker"]
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        todo.put(name)
    records: dict[str, dict[str, Any]] = {}
    lock = threading.Lock()

    def serve() -> None:
        worker: Worker | None = None
        while True:
            try:
                name = todo.get_nowait()
            except queue.Empty:
                break
            begin = time.perf_counter()
            try:
                if worker is None:
                    worker = Worker(command, mode, threads)
                    worker.read(START)
                record = worker.ask(name, seconds)["record"]
            except Died as reason:
                record = {
                    "errors": {"process": str(reason)},
                    "seconds": time.perf_counter() - begin,
                }
                if worker is not None:
                    worker.close()
                worker = None
            with lock:
                records[name] = record
                if done is not None:
                    done(name, record)
        if worker is not None:
            worker.close()

    group = [threading.Thread(target=serve) for _ in range(min(workers, len(names)))]
    for thread in group:
        thread.start()
    for thread in group:
        thread.join()
    return records
