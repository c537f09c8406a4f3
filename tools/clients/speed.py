"""Speed of the cases beside PyTorch's: two workers build a case, then run rounds by turns.

Invariant: what is compared was measured within the same moments, ours and PyTorch's round by round,
and a case's ratio is the median of the ratios of its rounds. Judged is the processor's time with
one thread, where another program's load counts least, and the clock's with more. Both caches of
compiled code are empty when a worker starts. Knows no case by name.
"""

from __future__ import annotations

import json
import math
import random
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import pool
from .registry import Case

#: above this a case is one that is slower than PyTorch, not one that noise put there
SLOW = 1.2
#: what programs run in; the cases name float64 for the sake of equal digits alone
DTYPE = "float32"
#: seconds that a round should take
ROUND = 0.03
CLOCKS = ("processor", "wall")
#: imports the library, and makes torchvision ready where its native part is another build's
PREPARE = "from tools.clients.worker import without_native_vision as w; w(); "

Record = dict[str, Any]


def geometric(values: Iterable[float]) -> float:
    """The geometric mean, NaN of nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios of rounds that followed each other."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


def spread(cases: list[Case], count: int) -> list[Case]:
    """`count` cases, each package's in turn, the same at every run; in the order of `cases`."""
    by_package: dict[str, list[Case]] = {}
    for entry in cases:
        by_package.setdefault(entry.package, []).append(entry)
    draw = random.Random(0)
    lists = [draw.sample(entries, len(entries)) for entries in by_package.values()]
    longest = max(map(len, lists), default=0)
    turns = [entries[at] for at in range(longest) for entries in lists if at < len(entries)]
    taken = {entry.name for entry in turns[:count]}
    return [entry for entry in cases if entry.name in taken]


class Side:
    """The worker of one library; one that died or hung is started anew."""

    def __init__(self, command: list[str], threads: int) -> None:
        self.command, self.threads = command, threads
        self.worker: pool.Worker | None = None
        self.caches: tempfile.TemporaryDirectory[str] | None = None

    def ask(self, seconds: float, **request: Any) -> Record:
        try:
            if self.worker is None:
                self.start()
            assert self.worker is not None
            return self.worker.ask(json.dumps(request), seconds)
        except pool.Died as reason:
            self.close()
            return {"error": str(reason)}

    def start(self) -> None:
        self.caches = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        places = {
            variable: f"{self.caches.name}/{variable.lower()}"
            for variable in ("FLAMBEAU_CACHE", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
        }
        self.worker = pool.Worker(self.command, "speed", self.threads, places)
        self.worker.read(pool.START)

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()
        if self.caches is not None:
            self.caches.cleanup()
        self.worker = self.caches = None


def compare(sides: list[Side], rounds: int, seconds: float, request: Record) -> Record:
    """Ratios of one part of a case, or which side could not run it."""
    built = [side.ask(seconds, **request) for side in sides]
    counts = [max(1, math.ceil(ROUND / max(b.get("call", 1.0), 1e-9))) for b in built]
    measured: list[list[Record]] = [[], []]
    for _ in range(rounds):
        if any("error" in entry for entry in built):
            break
        for at, side in enumerate(sides):
            built[at] = {**built[at], **side.ask(seconds, round=counts[at])}
            measured[at].append(built[at])
    for who, entry in zip(("ours", "PyTorch"), built, strict=True):
        if "error" in entry:
            return {**request, "error": f"{who}: {entry['error']}"}
    times = {clock: [[entry[clock] for entry in side] for side in measured] for clock in CLOCKS}
    return {
        **request,
        **{clock: ratio(*times[clock]) for clock in CLOCKS},
        "milliseconds": [1e3 * statistics.median(side) for side in times["wall"]],
        "first": built[0]["first"] / built[1]["first"],
        "first_seconds": [entry["first"] for entry in built],
    }


def measure(
    cases: list[Case],
    commands: list[list[str]],
    threads: int,
    compiled: bool,
    rounds: int,
    seconds: float,
) -> Iterator[Record]:
    """A record of every part of every case, as they are measured."""
    sides = [Side(command, threads) for command in commands]
    try:
        for entry in cases:
            for part in ("infer", "train") if entry.train else ("infer",):
                request = {"name": entry.name, "part": part, "compiled": compiled}
                request["dtype"] = DTYPE
                yield compare(sides, rounds, seconds, request)
    finally:
        for side in sides:
            side.close()


def group(name: str) -> list[str]:
    """The rows of the table that a case counts in."""
    package, _, rest = name.partition(".")
    return [package, *(["generate()"] if rest.startswith("generate") else []), "all"]


def table(records: list[Record], clock: str) -> list[str]:
    """Geometric means by package and part, what is above the bar, and the ten worst."""
    good = [record for record in records if "error" not in record]
    rows = sorted({row for record in records for row in group(record["name"])} - {"all"})
    compiled = any(record["compiled"] for record in records)
    columns: list[tuple[str, Callable[[Record], float | None]]] = [
        ("infer", lambda record: record[clock] if record["part"] == "infer" else None),
        ("train", lambda record: record[clock] if record["part"] == "train" else None),
    ]
    if compiled:
        columns.append(("compile", lambda record: record["first"]))
    lines = ["", f"{'package':28} parts" + "".join(f"{name:>9}" for name, _ in columns)]
    lines[-1] += f"   >{SLOW} errors"
    for row in [*rows, "all"]:
        members = [record for record in good if row in group(record["name"])]
        failed = sum(row in group(r["name"]) for r in records) - len(members)
        means = [geometric(x for r in members if (x := get(r)) is not None) for _, get in columns]
        slow = sum(record[clock] > SLOW for record in members)
        cells = "".join(f"{mean:9.3f}" for mean in means)
        lines.append(f"{row:28} {len(members):5}{cells} {slow:6} {failed:6}")
    for other in CLOCKS:
        lines.append(f"all parts by {other} time: {geometric(r[other] for r in good):.3f}")
    lines.append("worst:")
    for record in sorted(good, key=lambda record: -record[clock])[:10]:
        lines.append("  " + line(record, clock))
    return lines


def line(record: Record, clock: str) -> str:
    what = f"{record['name']} {record['part']}"
    if "error" in record:
        who, _, text = record["error"].partition(": ")
        last = (text.strip().splitlines() or [""])[-1]
        return f"{what}: {who}: {last[:200]}"
    mine, other = record["milliseconds"]
    said = f"{what}: {record[clock]:.3f} ({mine:.2f} and {other:.2f} ms"
    if record["compiled"]:
        mine, other = record["first_seconds"]
        said += f", compiled in {mine:.2f} and {other:.2f} s: {record['first']:.3f}"
    return said + ")"


def run_once(command: list[str]) -> tuple[float, float]:
    """Seconds of a process, on the clock and of the processor."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise ValueError(f"import: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, spent


def imports(modules: list[str], starts: list[list[str]], rounds: int) -> Iterator[str]:
    """A line for every module: how long a process lasts that imports it, by turns."""
    for module in modules:
        code = f"{PREPARE}import {module}"
        found: list[list[tuple[float, float]]] = [[], []]
        try:
            for turn in range(rounds + 1):
                for at, start in enumerate(starts):
                    once = run_once([*start, "-c", code])
                    if turn:  # the first writes byte code
                        found[at].append(once)
        except ValueError as error:
            yield f"{module}: {'PyTorch' if at else 'ours'}: {error}"
            continue
        wall, spent = ([[once[i] for once in side] for side in found] for i in (0, 1))
        least, middle = ([f"{how(side):.2f}" for side in wall] for how in (min, statistics.median))
        yield (
            f"{module}: processor {ratio(*spent):.3f}, wall {ratio(*wall):.3f} "
            f"(least {least[0]} and {least[1]} s, median {middle[0]} and {middle[1]} s)"
        )
