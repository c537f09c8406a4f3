"""Random faults of a loader's workers: each must end in a clear error, in time, and leave nothing.

    python -m tools.loader_faults --count 1000 --seed 1

Each trial begins a pass with worker processes and at a random moment kills one (SIGKILL, SIGSEGV,
`os._exit`, `sys.exit`), stops one (SIGSTOP), lets it hang, lets its memory run out or raises an
exception. The error must name the cause, within the time limit; then no process, no descriptor and
no file in /dev/shm may be left.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import random
import re
import resource
import signal
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from typing import Any

from flambeau.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

TIMEOUT = 1.0
SLACK = 8.0  # seconds beyond the time limit that a busy machine may take

#: fault -> (class of the error, what it says)
FAULTS: dict[str, tuple[type[Exception], str]] = {
    "kill": (RuntimeError, r"exited unexpectedly[\s\S]*killed by SIGKILL"),
    "kill from outside": (RuntimeError, r"exited unexpectedly[\s\S]*killed by SIGKILL"),
    "crash": (RuntimeError, r"exited unexpectedly[\s\S]*killed by SIGSEGV[\s\S]*_go_wrong"),
    "exit": (RuntimeError, r"exited unexpectedly[\s\S]*exit code 3"),
    "system exit": (RuntimeError, r"exited unexpectedly[\s\S]*exit code 4[\s\S]*_go_wrong"),
    "stop": (RuntimeError, r"timed out after 1.0 seconds[\s\S]*stopped by a signal"),
    "stop from outside": (RuntimeError, r"timed out after 1.0 seconds[\s\S]*stopped by a signal"),
    "hang": (RuntimeError, r"timed out after 1.0 seconds[\s\S]*at work[\s\S]*_go_wrong"),
    "memory": (MemoryError, r"Caught MemoryError in DataLoader worker[\s\S]*_go_wrong"),
    "exception": (KeyError, r"Caught KeyError in DataLoader worker[\s\S]*_go_wrong"),
}


def _go_wrong(fault: str) -> None:
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fault == "exit":
        os._exit(3)
    elif fault == "system exit":
        sys.exit(4)
    elif fault == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault == "hang":
        time.sleep(600)
    elif fault == "memory":
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        bytearray(1 << 34)
    elif fault == "exception":
        raise KeyError("as asked")


@dataclass
class Trial:
    """What is drawn for one trial."""

    fault: str
    iterable: bool
    moment: float  # of a fault from outside: seconds
    sample: int  # of one from inside
    options: dict[str, Any]
    large: bool


class Keys(Dataset[Any]):
    """Samples by key, one of which goes wrong."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, i: int) -> Any:
        if i == self.trial.sample:
            _go_wrong(self.trial.fault)
        return bytes(50_000) if self.trial.large else i


class Stream(IterableDataset[Any]):
    """The same as a stream."""

    def __init__(self, trial: Trial) -> None:
        self.keys = Keys(trial)

    def __iter__(self) -> Any:
        info = get_worker_info()
        assert info is not None
        for i in range(info.id, 100_000, info.num_workers):
            yield self.keys[i]


def draw(rng: random.Random) -> Trial:
    """One trial."""
    fault = rng.choice(list(FAULTS))
    options = {
        "batch_size": rng.choice([None, 1, 4]),
        "num_workers": rng.choice([1, 2]),
        "prefetch_factor": rng.choice([1, 2, 5]),
        "persistent_workers": rng.random() < 0.3,
        "in_order": rng.random() < 0.8,
        # Dead workers are noticed without a time limit as well.
        "timeout": TIMEOUT if "stop" in fault or fault == "hang" or rng.random() < 0.5 else 0,
    }
    inside = rng.randrange(60) if "outside" not in fault else -1
    return Trial(
        fault, rng.random() < 0.4, rng.random() * 0.05, inside, options, rng.random() < 0.3
    )


def _from_outside(trial: Trial, pid: int) -> threading.Timer:
    number = signal.SIGKILL if trial.fault.startswith("kill") else signal.SIGSTOP
    timer = threading.Timer(trial.moment, os.kill, (pid, number))
    timer.start()
    return timer


def run(trial: Trial) -> str:
    """What is wrong with how a trial ended; empty if nothing is."""
    dataset: Any = Stream(trial) if trial.iterable else Keys(trial)
    loader = DataLoader(dataset, collate_fn=_same, **trial.options)
    kind, text = FAULTS[trial.fault]
    began = time.monotonic()
    batches: Any = iter(loader)
    pids = [process.pid for process in batches._workers]
    timer = None
    if "outside" in trial.fault:
        timer = _from_outside(trial, random.choice(pids))
    waited, wrong = began, ""
    try:
        while True:
            waited = time.monotonic()
            next(batches)
    except kind as error:
        if not re.search(text, str(error)):
            wrong = f"the error does not say {text!r}: {error}"
    except BaseException as error:
        wrong = f"expected {kind.__name__}, got {type(error).__name__}: {error}"
    took = time.monotonic() - waited
    limit = trial.options["timeout"] or 0.5
    if took > limit + SLACK:
        wrong = f"the error came after {took:.1f} s"
    if timer is not None:
        timer.join()
    del batches, loader
    gc.collect()
    left = [pid for pid in pids if _runs(pid)]
    return wrong or (f"processes are left: {left}" if left else "")


def _same(batch: Any) -> Any:
    return batch


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _surroundings() -> tuple[set[str], int]:
    shared = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    return shared, len(os.listdir("/proc/self/fd"))


def left_by_nobody(names: set[str]) -> set[str]:
    """Those of the files in /dev/shm that stay there for a second and that no other process uses.

    Other processes make theirs at any time, and take a semaphore's name away at once.
    """
    for _ in range(10):
        names = {name for name in names if os.path.exists(f"/dev/shm/{name}")}
        for pid in os.listdir("/proc") if names else []:
            if not pid.isdigit() or int(pid) == os.getpid():
                continue
            with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as maps:
                mapped = maps.read()
                names -= {name for name in names if f"/dev/shm/{name}" in mapped}
        if not names:
            break
        time.sleep(0.1)
    return names


def main(count: int, seed: int) -> int:
    """Run trials; returns how many went wrong, each of which is printed."""
    rng = random.Random(seed)
    warnings.simplefilter("ignore")
    wrong, slowest = 0, 0.0
    run(draw(random.Random(0)))  # what is loaded and opened once
    shared, descriptors = _surroundings()
    for number in range(count):
        trial = draw(rng)
        began = time.monotonic()
        text = run(trial)
        slowest = max(slowest, time.monotonic() - began)
        now = _surroundings()
        if not text and now[1] > descriptors:
            text = f"descriptors are left: {descriptors} before, {now[1]} now"
        left = left_by_nobody(now[0] - shared)
        if not text and left:
            text = f"files are left in /dev/shm: {left}"
        if text:
            wrong += 1
            print(f"{number}: {trial}\n  {text}", flush=True)
    print(f"{count} faults, {wrong} ended badly, the slowest took {slowest:.1f} s")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.exit(1 if main(given.count, given.seed) else 0)
