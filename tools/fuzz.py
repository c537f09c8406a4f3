"""Random calls of every public operation: `python -m tools.fuzz --calls 200000 --seed 1`.

Calls are drawn by `_fuzz_draw`, judged by `_fuzz_check`, and run in worker processes, so that a
crash or a hang is a finding and not the end. A finding is printed as a line that repeats it. Under
the sanitizers (`scripts/asan.sh fuzz`) reads and writes out of bounds are findings too.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import flambeau as torch

from ._fuzz_check import environment, finding
from ._fuzz_draw import Call, Drawer, Target, targets

_STATE = struct.Struct("<qdd")  # the call in progress, when it began, processor time till then
LIMIT = 30.0  # processor seconds for one call with all its checks
IDLE = 600.0  # seconds for it on a machine however busy: what waits longer waits for ever
MEMORY = 4 << 30  # bytes of a worker


def draw(seed: int, number: int, pool: list[Target]) -> tuple[Call, float]:
    """The call of that number, and its share (which checks it gets)."""
    name = f"{seed}/{number}"
    r = random.Random(name)
    target = r.choice(pool)
    return Drawer(name + "/call", target).call(), r.random()


def work(a: argparse.Namespace) -> int:
    """Runs the calls [start, stop), noting each before it is made."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    pool = [t for t in targets() if a.only in (None, t.name)]
    state = None
    if a.state:
        with open(a.state, "r+b") as file:
            state = mmap.mmap(file.fileno(), _STATE.size)
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # there the allocator has its own limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    refused = 0
    for i in range(a.start, a.stop):
        if state:
            state[:] = _STATE.pack(i, time.monotonic(), time.process_time())
        call, share = draw(a.seed, i, pool)
        if a.trace:
            print(i, call.text, file=sys.stderr, flush=True)
        try:
            found = finding(call, share)
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            found = f"while checking: {type(e).__name__}: {e}"
        if found:
            print(json.dumps({"call": i, "found": found}), flush=True)
    if state:
        state[:] = _STATE.pack(a.stop, time.monotonic(), time.process_time())
    return refused


def _processor_time(pid: int) -> float:
    """Seconds of processor time that a process has taken, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Worker:
    """A process that runs a range of calls, restarted behind a call that killed it."""

    seed: int
    start: int
    stop: int
    options: list[str]
    folder: Path
    process: subprocess.Popen[str] | None = None
    lines: list[tuple[int, str]] = field(default_factory=list)

    def launch(self) -> None:
        self.state, self.out, self.err = (
            self.folder / f"{self.stop}.{x}" for x in ("state", "out", "err")
        )
        self.state.write_bytes(_STATE.pack(self.start, time.monotonic(), 0.0))
        span = ["--start", str(self.start), "--stop", str(self.stop), "--state", str(self.state)]
        command = [sys.executable, "-m", "tools.fuzz", "--seed", str(self.seed), *span]
        command += self.options
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, text=True)

    def poll(self) -> bool:
        """True when all calls are done."""
        assert self.process is not None
        at, since, used = _STATE.unpack(self.state.read_bytes())
        code = self.process.poll()
        slow = code is None and (
            time.monotonic() - since > IDLE or _processor_time(self.process.pid) - used > LIMIT
        )
        if code is None and not slow:
            return False
        if slow:
            self.process.kill()
            code = self.process.wait()
        for line in self.out.read_text().splitlines():
            found = json.loads(line)
            self.lines.append((found["call"], found["found"]))
        if code == 0:
            return True
        why = f"hang: no answer after {LIMIT:.0f} s" if slow else f"crash: exit status {code}"
        self.lines.append((at, f"{why}\n{self._report()}"))
        self.start = at + 1
        if self.start >= self.stop:
            return True
        self.launch()
        return False

    def _report(self) -> str:
        lines = self.err.read_text(errors="replace").splitlines()
        first = next(
            (i for i, x in enumerate(lines) if "ERROR:" in x or "runtime error" in x),
            max(len(lines) - 12, 0),
        )
        return "\n".join("    " + x[:200] for x in lines[first : first + 14])


def supervise(a: argparse.Namespace) -> int:
    """Shares the calls out to workers and prints what they find."""
    print(f"seed {a.seed}", flush=True)
    begun = time.monotonic()
    options = [*(["--only", a.only] if a.only else []), *(["--trace"] if a.trace else [])]
    pool = [t for t in targets() if a.only in (None, t.name)]
    findings: Counter[str] = Counter()
    size = -(-a.calls // (a.jobs * 4))
    ranges = [(i, min(i + size, a.calls)) for i in range(0, a.calls, size)]
    with tempfile.TemporaryDirectory() as folder:
        running: list[Worker] = []
        while ranges or running:
            while ranges and len(running) < a.jobs:
                start, stop = ranges.pop(0)
                worker = Worker(a.seed, start, stop, options, Path(folder))
                worker.launch()
                running.append(worker)
            time.sleep(0.2)
            for worker in list(running):
                done = worker.poll()
                for number, found in worker.lines:
                    findings[found.split(":")[0]] += 1
                    call, _ = draw(a.seed, number, pool)
                    line = f'python -c "from tools.fuzz import *; {call.text}"'
                    print(f"call {number}: {found}\n  {line}", flush=True)
                worker.lines.clear()
                if done:
                    running.remove(worker)
    kinds = ", ".join(f"{n} {k}" for k, n in findings.items()) or "no findings"
    print(f"{a.calls} calls of {len(pool)} functions in {time.monotonic() - begun:.0f} s: {kinds}")
    return 1 if findings else 0


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--calls", type=int, default=20000)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--only", help="functions of this name alone")
    p.add_argument("--call", type=int, help="make this call of the seed alone, in this process")
    p.add_argument(
        "--trace", action="store_true", help="workers write each call to stderr before they make it"
    )
    p.add_argument("--start", type=int, help=argparse.SUPPRESS)
    p.add_argument("--stop", type=int, help=argparse.SUPPRESS)
    p.add_argument("--state", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.call is not None:
        call, share = draw(a.seed, a.call, [t for t in targets() if a.only in (None, t.name)])
        print(call.text, flush=True)
        print(finding(call, share) or "no finding")
        return 0
    return work(a) if a.start is not None else supervise(a)


globals().update(environment())
__all__ = [*environment(), "main"]

if __name__ == "__main__":
    sys.exit(main())
