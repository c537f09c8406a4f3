"""Random functions, differentiated in every way: `python -m tools.derivative_programs --count N`.

Drawn by `_derivative_draw`, judged by `_derivative_check`, in worker processes. One that fails is
made smaller while it fails in the same way, and printed as a script.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any

import flambeau as torch

from ._derivative_check import Checked, layouts, refused
from ._derivative_draw import Program, generate


def checked(text: str, shapes: list[tuple[int, ...]], seed: int) -> str:
    """What is wrong with the derivatives of a program, "" when nothing is."""
    space: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    exec(compile(text, f"<program {seed}>", "exec"), space)
    f = space["build"]()
    torch.manual_seed(seed % 100_003)
    xs = [torch.randn(s, dtype=torch.float64) for s in shapes]
    vs = [torch.randn(s, dtype=torch.float64) for s in shapes]
    vs = [layouts(v, (seed + k) % 4) for k, v in enumerate(vs)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Checked(f, xs, vs, compiled=seed % 10 == 0).failure()


def judged(p: Program) -> str:
    try:
        return checked(p.text(), p.shapes, p.seed)
    except SyntaxError as error:
        return f"program: {error}"


def kind(why: str) -> str:
    """What stays the same while a program is made smaller."""
    return ":".join(why.split(":")[:2])


def shrunk(p: Program, why: str) -> Program:
    """A smaller program that fails in the same way."""
    smaller = True
    while smaller:
        smaller = False
        for trial in p.smaller():
            if kind(judged(trial)) == kind(why):
                p, smaller = trial, True
                break
    return p


def script(p: Program, why: str) -> str:
    return (
        f"# seed {p.seed}: {why}\nTEXT = '''\n{p.text()}'''\n"
        "from tools.derivative_programs import checked\n"
        f"print(checked(TEXT, {p.shapes}, {p.seed}))\n"
    )


def work(a: argparse.Namespace) -> int:
    """Programs [start, stop): a line of JSON for each that fails, one of counts at the end."""
    void = 0
    for k in range(a.start, a.stop):
        p = generate(a.seed * 1_000_000 + k, a.length)
        why = judged(p)
        void += why.startswith("program:")
        if why and not why.startswith("program:"):
            small = p if a.as_drawn else shrunk(p, why)
            print(json.dumps(script(small, judged(small))), flush=True)
    print(json.dumps({"void": void, "refused": refused}), flush=True)
    return 0


def supervise(a: argparse.Namespace) -> int:
    """Shares the programs out to workers and prints what they find."""
    print(f"seed {a.seed}", flush=True)
    begun = time.monotonic()
    bounds = [a.count * k // a.jobs for k in range(a.jobs + 1)]
    command = [sys.executable, "-m", "tools.derivative_programs", "--seed", str(a.seed)]
    command += ["--length", str(a.length), *(["--as-drawn"] if a.as_drawn else [])]
    workers = [
        subprocess.Popen(
            [*command, "--start", str(bounds[k]), "--stop", str(bounds[k + 1])],
            stdout=subprocess.PIPE, text=True,
        )
        for k in range(a.jobs)
    ]  # fmt: skip
    failed = void = 0
    refusals: dict[str, int] = {}
    for worker in workers:
        out, _ = worker.communicate()
        if worker.returncode:
            failed += 1
            print(f"a worker ended with exit status {worker.returncode}")
        for line in map(json.loads, out.splitlines()):
            if isinstance(line, str):
                failed += 1
                print(line, flush=True)
            else:
                void += line["void"]
                for what, n in line["refused"].items():
                    refusals[what] = refusals.get(what, 0) + n
    if a.verbose:
        for what, n in sorted(refusals.items(), key=lambda item: -item[1]):
            print(f"{n:7} refused, {what}")
    seconds = time.monotonic() - begun
    print(
        f"{a.count} programs differentiated in {seconds:.0f} s: {failed} fail, {void} are no "
        f"program, {sum(refusals.values())} derivatives are refused"
    )
    return 1 if failed else 0


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--length", type=int, default=8, help="statements of a program")
    p.add_argument("--as-drawn", action="store_true", help="do not make failing programs smaller")
    p.add_argument("--verbose", action="store_true", help="tell what was refused")
    p.add_argument("--start", type=int, help=argparse.SUPPRESS)
    p.add_argument("--stop", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    return work(a) if a.start is not None else supervise(a)


if __name__ == "__main__":
    sys.exit(main())
