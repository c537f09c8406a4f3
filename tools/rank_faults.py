"""Random faults of ranks: each must end every survivor in time, with an error that says where.

    python -m tools.rank_faults --count 100 --seed 1

Each trial begins 2 to 4 processes, which call random collectives, send messages and train with
DistributedDataParallel. At a random moment one is killed (SIGKILL) or stopped (SIGSTOP), calls with
another shape or something else, or does not come. All others must end within their time limit, with
an error that names a rank and what was called; one of them names the rank that went wrong. Then no
process, no descriptor and no file in /dev/shm may be left.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import flambeau as torch

dist = torch.distributed

SHORT, LONG = 1.5, 12.0  # seconds that calls wait, where that must pass and where it must not
SLACK = 8.0  # seconds beyond that a busy machine may take
STEPS = 40

FAULTS = ("kill", "kill from outside", "stop", "stop from outside", "shape", "order", "missing")
WAITED_OUT = ("stop", "stop from outside", "missing", "order")  # nobody may tell before time ends

#: what an error says of the calls that it is about
CALLED = r"\((group '\d+|\w+)|different collectives|making group|group '\d+'"


@dataclass
class Trial:
    """What is drawn for one trial."""

    fault: str
    size: int
    victim: int
    step: int  # of a fault from inside; -1: before the group is made
    moment: float  # of one from outside: seconds
    seed: int  # of what is called
    own_group: bool

    @property
    def limit(self) -> float:
        """Seconds that each call waits."""
        return SHORT if self.fault in WAITED_OUT or self.step < 0 else LONG


def draw(rng: random.Random) -> Trial:
    """One trial."""
    fault, size = rng.choice(FAULTS), rng.randint(2, 4)
    early = fault in ("kill", "missing") and rng.random() < 0.2
    step = -1 if early else rng.randrange(STEPS)
    victim = rng.randrange(size)
    return Trial(
        fault, size, victim, step, rng.random() * 0.4, rng.getrandbits(30), rng.random() < 0.3
    )


class _Calls:
    """What a rank calls, the same on all ranks but for the fault."""

    def __init__(self, trial: Trial, rank: int, group: Any) -> None:
        self.rng = random.Random(trial.seed)
        self.rank, self.size, self.group = rank, trial.size, group
        self.extra = 0  # elements that a wrong shape has more
        torch.manual_seed(trial.seed)
        layers = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Linear(64, 4))
        self.net = torch.nn.parallel.DistributedDataParallel(
            layers, process_group=group, bucket_cap_mb=1e-3
        )

    def _ones(self) -> Any:
        return torch.ones(self.count + self.extra)

    def all_reduce(self) -> None:
        """Waited for."""
        dist.all_reduce(self._ones(), group=self.group)

    def later(self) -> None:
        """Several that are waited for later."""
        works: list[Any] = [
            dist.all_reduce(self._ones(), group=self.group, async_op=True) for _ in range(3)
        ]
        for work in works:
            work.wait()

    def broadcast(self) -> None:
        """From a rank that changes."""
        dist.broadcast(self._ones(), self.count % self.size, group=self.group)

    def all_gather(self) -> None:
        """Into a list."""
        parts = [self._ones() for _ in range(self.size)]
        dist.all_gather(parts, self._ones(), group=self.group)

    def reduce_scatter(self) -> None:
        """Of a list."""
        parts = [self._ones() for _ in range(self.size)]
        dist.reduce_scatter(self._ones(), parts, group=self.group)

    def all_to_all(self) -> None:
        """One part for each."""
        parts = [self._ones() for _ in range(self.size)]
        dist.all_to_all([self._ones() for _ in parts], parts, group=self.group)

    def ring(self) -> None:
        """A message to the next rank."""
        work = dist.isend(self._ones(), group=self.group, group_dst=(self.rank + 1) % self.size)
        before = (self.rank - 1) % self.size
        dist.recv(self._ones(), group=self.group, group_src=before)
        assert work is not None
        work.wait()

    def objects(self) -> None:
        """Python's values."""
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, [self.rank] * (1 + self.extra), self.group)

    def train(self) -> None:
        """A step of training."""
        self.net(torch.ones(2, 8)).sum().backward()

    def one(self) -> Callable[[], None]:
        """The next call, of a size that is drawn."""
        self.count = int(10 ** self.rng.uniform(0, 5.5))
        names = ("all_reduce", "later", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
                 "ring", "objects", "train")  # fmt: skip
        found: Callable[[], None] = getattr(self, self.rng.choice(names))
        return found


def _go_wrong(trial: Trial, calls: _Calls | None) -> None:
    """The fault of the rank itself."""
    if trial.fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif trial.fault == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif trial.fault == "missing":
        time.sleep(3600)
    elif trial.fault == "shape" and calls is not None:
        calls.extra = 1  # from now on, where a call has a shape
    elif trial.fault == "order" and calls is not None:
        dist.barrier(calls.group)


def _rank(trial: Trial, rank: int, folder: str) -> None:
    """A process: its end goes to a file."""
    warnings.simplefilter("ignore")
    began, doing, error = time.monotonic(), "init_process_group", ""
    torch.set_num_threads(1)
    try:
        if rank == trial.victim and trial.step < 0:
            _go_wrong(trial, None)
        limit = timedelta(seconds=trial.limit)
        dist.init_process_group(
            init_method=f"file://{folder}/store", rank=rank, world_size=trial.size, timeout=limit
        )
        doing = "new_group"
        group = dist.new_group(timeout=limit) if trial.own_group else dist.group.WORLD
        doing = "DistributedDataParallel"
        calls = _Calls(trial, rank, group)
        for step in range(STEPS):
            call = calls.one()
            began, doing = time.monotonic(), call.__name__
            if step == trial.step and rank == trial.victim:
                _go_wrong(trial, calls)
            call()
        doing = "the end"
        while True:  # until the moment has come, or the others notice
            began = time.monotonic()
            calls.all_reduce()
    except RuntimeError as caught:
        error = f"{type(caught).__name__}: {caught}"
        if not isinstance(caught, dist.DistError):
            error += traceback.format_exc()
    except BaseException:
        error = traceback.format_exc()
    ended = {"error": error, "took": time.monotonic() - began, "doing": doing}
    part = os.path.join(folder, f"part{rank}")
    with open(part, "w", encoding="utf-8") as file:
        json.dump(ended, file)
    os.replace(part, os.path.join(folder, f"rank{rank}"))
    os._exit(0)


def _survivors(trial: Trial) -> list[int]:
    """Ranks that must end by themselves."""
    if trial.fault in ("shape", "order"):
        return list(range(trial.size))
    return [r for r in range(trial.size) if r != trial.victim]


def judge(trial: Trial, ends: dict[int, dict[str, Any]]) -> str:
    """What is wrong with how the ranks ended; empty where nothing is."""
    named = False
    for rank, end in ends.items():
        text, where = end["error"], f"rank {rank} in {end['doing']}"
        if not text:
            return f"{where}: it ended well"
        if not re.match(r"Dist(Backend|Store|Network)Error: ", text):
            return f"{where}: another error: {text}"
        if not re.search(r"rank \d", text) or not re.search(CALLED, text):
            return f"{where}: the error names no rank or no call: {text}"
        named = named or bool(re.search(rf"rank {trial.victim}\b", text))
        if end["took"] > trial.limit + SLACK:
            return f"{where}: the error came after {end['took']:.1f} s"
        joined = "has not joined" not in text and "did not come" not in text
        if joined and trial.limit == LONG and end["took"] > LONG - 2:
            return f"{where}: the time limit had to pass: {text}"
    return "" if named else f"no error names rank {trial.victim}: {ends}"


def run(trial: Trial) -> str:
    """One trial; what is wrong with how it ended."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_rank, args=(trial, rank, folder)) for rank in range(trial.size)
        ]
        for process in processes:
            process.start()
        try:
            if "outside" in trial.fault:
                time.sleep(trial.moment)
                number = signal.SIGKILL if trial.fault.startswith("kill") else signal.SIGSTOP
                os.kill(processes[trial.victim].pid or 0, number)
            ends = {}
            until = time.monotonic() + trial.limit + 2 * SLACK
            for rank in _survivors(trial):
                processes[rank].join(max(0.1, until - time.monotonic()))
                if processes[rank].exitcode is None:
                    return f"rank {rank} goes on"
                path = os.path.join(folder, f"rank{rank}")
                if not os.path.exists(path):
                    return f"rank {rank} crashed: exit code {processes[rank].exitcode}"
                with open(path, encoding="utf-8") as file:
                    ends[rank] = json.load(file)
            return judge(trial, ends)
        finally:
            for process in processes:
                if process.exitcode is None and process.pid:
                    os.kill(process.pid, signal.SIGKILL)
                process.join()
                process.close()


def _surroundings() -> tuple[set[str], int]:
    shared = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    return shared, len(os.listdir("/proc/self/fd"))


def main(count: int, seed: int) -> int:
    """Run trials; returns how many went wrong, each of which is printed."""
    rng = random.Random(seed)
    wrong, slowest = 0, 0.0
    run(draw(random.Random(0)))  # what is loaded and opened once
    before = _surroundings()
    for number in range(count):
        trial = draw(rng)
        began = time.monotonic()
        text = run(trial)
        slowest = max(slowest, time.monotonic() - began)
        now = _surroundings()
        if not text and now[1] > before[1]:
            text = f"descriptors are left: {before[1]} before, {now[1]} now"
        if not text and now[0] - before[0]:
            text = f"files are left in /dev/shm: {now[0] - before[0]}"
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
