"""Random programs over Python state, compiled and held against plain Python:
`python -m tools.state_programs --count 20000 --seed 1`.

Drawn by `_state_draw`, judged by `_state_check`, in worker processes. One that fails is made
smaller while it fails in the same way, and printed as a script.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

from ._state_check import failure
from ._state_draw import Program, generate, nodes

LIMIT = 900  # seconds for a chunk
NATIVE = 50  # one program in so many is compiled to native code


def way(number: int) -> tuple[str, bool]:
    """The back end of a program, and whether its state is looked at after each call."""
    return ("inductor" if number % NATIVE == NATIVE - 1 else "eager"), bool(number % 3)


def judged(program: Program, number: int) -> str:
    try:
        return failure(program.text(), *way(number))
    except Exception as error:  # plain Python cannot set it up
        return f"program: {type(error).__name__}: {error}"


def kind(why: str) -> str:
    """What stays the same while a program is made smaller."""
    words = why.partition(": ")[2]
    return "differs" if words.startswith("got") else words.partition(":")[0]


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A smaller program that still fails: lines left out, blocks opened."""
    smaller = True
    while smaller:
        smaller = False
        at = 0
        while True:
            places = list(nodes(program))
            if at >= len(places):
                break
            for opened in (False, True):
                trial = copy.deepcopy(program)
                items, k = list(nodes(trial))[at]
                if opened and not items[k].body:
                    continue
                items[k : k + 1] = items[k].body if opened else []
                if fails(trial):
                    program, smaller = trial, True
                    break
            else:
                at += 1
    return program


def script(program: Program, number: int, why: str) -> str:
    backend, every = way(number)
    return (
        f"# seed {program.seed}, {why}\nTEXT = r'''\n{program.text()}'''\n"
        "from tools._state_check import failure\n"
        f"print(failure(TEXT, {backend!r}, {every}))\n"
    )


def work(a: argparse.Namespace) -> int:
    """Programs [start, stop): a line of JSON for each that fails, one at the end."""
    for k in range(a.start, a.stop):
        program = generate(a.seed * 1_000_000 + k, a.length)
        why = judged(program, k)
        if why:
            want = kind(why)
            if not a.as_drawn:
                program = shrunk(program, lambda p: kind(judged(p, k)) == want)  # noqa: B023
                why = judged(program, k)
            print(json.dumps(script(program, k, why)), flush=True)
    print("null", flush=True)
    return 0


def _run(a: argparse.Namespace, start: int, stop: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tools.state_programs", "--seed", str(a.seed)]
    command += ["--start", str(start), "--stop", str(stop), "--length", str(a.length)]
    command += ["--as-drawn"] if a.as_drawn else []
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def supervise(a: argparse.Namespace) -> int:
    """Shares the programs out to workers and prints what they find."""
    print(f"seed {a.seed}", flush=True)
    begun, agreed, done = time.monotonic(), 0, 0
    last = a.first + a.count
    ranges = [(k, min(k + a.chunk, last)) for k in range(a.first, last, a.chunk)]
    running: list[tuple[subprocess.Popen[str], int, int]] = []
    while ranges or running:
        while ranges and len(running) < a.jobs:
            start, stop = ranges.pop(0)
            running.append((_run(a, start, stop), start, stop))
        process, start, stop = running.pop(0)
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        found = [json.loads(line) for line in out.splitlines()]
        ended = bool(found) and found[-1] is None
        if not ended and stop - start > 1:  # one of them ended the process: which?
            middle = (start + stop) // 2
            ranges = [(start, middle), (middle, stop), *ranges]
            continue
        if not ended:
            print(f"program {start}: exit status {process.returncode}\n{err[-1500:]}", flush=True)
        failed = [text for text in found if text is not None]
        for text in failed:
            print(text, flush=True)
        agreed += stop - start - len(failed) - (not ended)
        done += stop - start
        if a.verbose:
            print(f"{done} done, {agreed} agree, {time.monotonic() - begun:.0f} s", flush=True)
    seconds = time.monotonic() - begun
    print(f"{a.count} programs over state in {seconds:.0f} s: {agreed} agree")
    return 0 if agreed == a.count else 1


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=2000)
    p.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    p.add_argument("--first", type=int, default=0, help="number of the first program")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--length", type=int, default=10, help="statements of a program")
    p.add_argument("--chunk", type=int, default=200, help="programs of one worker process")
    p.add_argument("--as-drawn", action="store_true", help="do not make failing programs smaller")
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--start", type=int, help=argparse.SUPPRESS)
    p.add_argument("--stop", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    return work(a) if a.start is not None else supervise(a)


if __name__ == "__main__":
    sys.exit(main())
