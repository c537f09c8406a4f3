"""Random programs over Python state, compiled and held against plain Python:
`python -m tools.state_programs --count 20000 --seed 1`.

Drawn by `_state_draw`, judged by `_state_check`, in worker processes. One that fails is made
smaller while it fails in the same way, and printed as a script.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from ._state_check import failure
from ._state_draw import Program, generate, nodes

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


def work(seed: int, start: int, stop: int, length: int, small: bool) -> list[str]:
    """Scripts of the programs of a range that fail."""
    out = []
    for k in range(start, stop):
        program = generate(seed * 1_000_000 + k, length)
        why = judged(program, k)
        if why:
            want = kind(why)
            if small:
                program = shrunk(program, lambda p: kind(judged(p, k)) == want)  # noqa: B023
                why = judged(program, k)
            out.append(script(program, k, why))
    return out


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=2000)
    p.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    p.add_argument("--first", type=int, default=0, help="number of the first program")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--length", type=int, default=10, help="statements of a program")
    p.add_argument("--as-drawn", action="store_true", help="do not make failing programs smaller")
    a = p.parse_args()
    print(f"seed {a.seed}", flush=True)
    begun, failed = time.monotonic(), 0
    last = a.first + a.count
    with ProcessPoolExecutor(a.jobs, max_tasks_per_child=4) as pool:
        parts = [
            pool.submit(work, a.seed, k, min(k + 50, last), a.length, not a.as_drawn)
            for k in range(a.first, last, 50)
        ]
        for part in parts:
            for text in part.result():
                failed += 1
                print(text, flush=True)
    seconds = time.monotonic() - begun
    print(f"{a.count} programs over state in {seconds:.0f} s: {a.count - failed} agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
