"""Random programs, compiled and held against eager: `python -m tools.random_programs --count 5000`.

Each program is run by eager, as captured, as functional graphs and in native code, forward and
backward; even ones with sizes fixed, odd ones with sizes varying, at two sizes. Programs are drawn
by `_program_draw`, judged by `_program_check`, and run in worker processes, many to a call of the
C++ compiler. One that fails is made smaller while it fails, and printed as a script.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import Any

from ._program_check import Trial, check, failure, optimised
from ._program_draw import Program, generate, shrunk

LIMIT = 1200  # seconds for a chunk


def _is_dynamic(number: int) -> tuple[bool, ...]:
    return (bool(number % 2),)


def work(a: argparse.Namespace) -> int:
    """Programs [start, stop): a line of JSON for each failure, one at the end."""
    counts: Counter[str] = Counter()
    numbers = list(range(a.start, a.stop))
    programs = [generate(a.seed * 1_000_000 + k, a.length) for k in numbers]
    with optimised(a.level):
        trials: list[Trial] = []
        for way in (False, True):
            mine = [p for k, p in zip(numbers, programs, strict=True) if (way,) == _is_dynamic(k)]
            trials += check(mine, (way,))
        for t in trials:
            counts["programs"] += 1
            counts["agreed"] += not t.failure
            counts["compiled again at other sizes"] += t.recompiled
            if t.failure:
                found = {"failure": t.failure, "script": script(small(t), t.dynamic)}
                print(json.dumps(found), flush=True)
    print(json.dumps({"counts": counts}), flush=True)
    return 0


def kind(why: str) -> str:
    """What stays the same while a program is made smaller."""
    head = [x for x in why.split(":")[:3] if not any(c.isdigit() for c in x)]
    return ":".join(head)


def small(t: Trial) -> Program:
    """A smaller program that fails like this."""
    want = kind(t.failure)
    with optimised("-O0"):
        if kind(failure(t.program, (t.dynamic,))) != want:
            return t.program
        return shrunk(t.program, lambda p: kind(failure(p, (t.dynamic,))) == want)


def script(program: Program, dynamic: bool) -> str:
    """The program as a script that shows the failure."""
    return (
        f"# seed {program.seed}\n"
        "import flambeau as torch\n"
        "from tools._program_check import failure\n"
        "from tools._program_draw import Input, Program, Step\n"
        f"p = Program({program.seed}, {program.inputs}, {program.steps}, {program.returns}, "
        f"{program.tolerance}, {program.numbers})\n"
        f"print(p.text(), failure(p, ({dynamic},)))\n"
        + "".join(f"#   {line}\n" for line in program.text().splitlines())
    )


def _run(a: argparse.Namespace, start: int, stop: int, folder: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tools.random_programs", "--seed", str(a.seed)]
    command += ["--start", str(start), "--stop", str(stop), "--length", str(a.length)]
    command += [f"--level={a.level}"]
    env = {**os.environ, "FLAMBEAU_CACHE": folder}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )


def supervise(a: argparse.Namespace) -> int:
    """Shares the programs out to workers and prints what they find."""
    print(f"seed {a.seed}", flush=True)
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    first, last = a.first, a.first + a.count
    ranges = [(i, min(i + a.chunk, last)) for i in range(first, last, a.chunk)]
    with tempfile.TemporaryDirectory() as folder:
        running: list[tuple[Any, int, int]] = []
        while ranges or running:
            while ranges and len(running) < a.jobs:
                start, stop = ranges.pop(0)
                running.append((_run(a, start, stop, folder), start, stop))
            process, start, stop = running.pop(0)
            try:
                out, err = process.communicate(timeout=LIMIT)
                code = process.returncode
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                code = -1
            if code and stop - start > 1:  # one of them ended the process: which?
                middle = (start + stop) // 2
                ranges = [(start, middle), (middle, stop), *ranges]
                continue
            if code:
                counts["programs"] += 1
                print(f"program {start}: exit status {code}\n{err[-1500:]}", flush=True)
            for line in out.splitlines():
                found = json.loads(line)
                if "counts" in found:
                    counts.update(found["counts"])
                else:
                    print(f"{found['failure']}\n{found['script']}", flush=True)
            if a.verbose:
                print(f"to {stop}: {dict(counts)}, {time.monotonic() - begun:.0f} s", flush=True)
    print(
        f"{counts['programs']} programs in {time.monotonic() - begun:.0f} s: {counts['agreed']} "
        f"agree; {counts['compiled again at other sizes']} compiled again at other sizes"
    )
    return 0 if counts["agreed"] == counts["programs"] == a.count else 1


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    p.add_argument("--first", type=int, default=0, help="number of the first program")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--length", type=int, default=12, help="steps of a program")
    p.add_argument("--chunk", type=int, default=40, help="programs of one worker process")
    p.add_argument("--level", default="-O3", help="how much the C++ compiler optimises")
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--start", type=int, help=argparse.SUPPRESS)
    p.add_argument("--stop", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    return work(a) if a.start is not None else supervise(a)


if __name__ == "__main__":
    sys.exit(main())
