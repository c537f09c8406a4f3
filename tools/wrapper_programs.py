"""Functions in many wrappers, compiled at any of them and held against eager:
`python -m tools.wrapper_programs --count 5000 --seed 1`.

Drawn by `_wrapper_draw`, judged by `_wrapper_check`, in worker processes. One that fails is made
smaller while it fails in the same way, and printed as a script. Kinds that are known stand in
`wrapper_programs.txt`, with the reason; they are counted, and so is what is refused.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from ._known import known
from ._wrapper_check import failure
from ._wrapper_draw import Program, generate

KNOWN = Path(__file__).with_name("wrapper_programs.txt")
LIMIT = 1800  # seconds for a worker


def outcome(why: str) -> str:
    """Of what `failure` says: agree, both (raise), refused or fail."""
    word = why.partition(":")[0]
    return word if word in ("both", "refused") else ("fail" if why else "agree")


def kind(why: str) -> str:
    """What stays the same while a program is made smaller."""
    words = why.partition(": ")[2].partition(";")[0]
    return " ".join(re.sub(r"[\[(].*|\d+", "", words).split()[:7])


def small(p: Program, why: str) -> tuple[Program, str]:
    """A smaller program that fails in the same way, and what is wrong with it."""
    smaller = True
    while smaller:
        smaller = False
        for trial in p.smaller():
            said = failure(trial.text())
            if outcome(said) == "fail" and kind(said) == kind(why):
                p, why, smaller = trial, said, True
                break
    return p, why


def script(p: Program, why: str) -> str:
    body = p.text().partition("\ndef setup")
    return (
        f"# seed {p.seed}: {why}\nTEXT = '''\n{body[1].strip()}{body[2]}'''\n"
        "from tools._wrapper_check import failure\nfrom tools._wrapper_draw import HEAD\n"
        "print(failure(HEAD + TEXT))\n"
    )


def found(p: Program, patterns: list[re.Pattern[str]], as_drawn: bool = False) -> tuple[str, str]:
    """The outcome of a program, and the script where it fails."""
    why = failure(p.text())
    if outcome(why) != "fail":
        return outcome(why), ""
    if not as_drawn:
        p, why = small(p, why)
    text = script(p, why)
    return ("known", "") if any(x.search(text) for x in patterns) else ("fail", text)


def work(a: argparse.Namespace) -> int:
    """Programs [start, stop): a line of JSON for each that fails, one of counts at the end."""
    counts: collections.Counter[str] = collections.Counter()
    patterns = known(KNOWN)
    for k in range(a.start, a.stop):
        end, text = found(generate(a.seed * 1_000_000 + k, a.layers), patterns, a.as_drawn)
        counts[end] += 1
        if text:
            print(json.dumps(text), flush=True)
    print(json.dumps(counts), flush=True)
    return 0


def supervise(a: argparse.Namespace) -> int:
    """Shares the programs out to workers and prints what they find."""
    print(f"seed {a.seed}", flush=True)
    begun = time.monotonic()
    bounds = [a.count * k // a.jobs for k in range(a.jobs + 1)]
    command = [sys.executable, "-m", "tools.wrapper_programs", "--seed", str(a.seed)]
    command += ["--layers", str(a.layers), *(["--as-drawn"] if a.as_drawn else [])]
    workers = [
        subprocess.Popen(
            [*command, "--start", str(bounds[k]), "--stop", str(bounds[k + 1])],
            stdout=subprocess.PIPE, text=True,
        )
        for k in range(a.jobs)
    ]  # fmt: skip
    counts: collections.Counter[str] = collections.Counter()
    ended = 0
    for worker in workers:
        try:
            out, _ = worker.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            worker.kill()
            out, _ = worker.communicate()
        ended += worker.returncode != 0
        if worker.returncode:
            print(f"a worker ended with exit status {worker.returncode}")
        for line in map(json.loads, out.splitlines()):
            if isinstance(line, str):
                print(line, flush=True)
            else:
                counts.update(line)
    print(
        f"{a.count} programs of wrappers in {time.monotonic() - begun:.0f} s: {counts['fail']} "
        f"fail, {counts['agree']} agree, {counts['both']} raise the same in both, "
        f"{counts['refused']} are refused, {counts['known']} fail in known ways"
    )
    return 1 if counts["fail"] or ended else 0


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--layers", type=int, default=5, help="at most, around a function")
    p.add_argument("--as-drawn", action="store_true", help="do not make failing programs smaller")
    p.add_argument("--start", type=int, help=argparse.SUPPRESS)
    p.add_argument("--stop", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    return work(a) if a.start is not None else supervise(a)


if __name__ == "__main__":
    sys.exit(main())
