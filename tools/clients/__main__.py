"""The command line of the clients: references, runs and reports.

    python -m tools.clients reference [NAMES]     measure under PyTorch and keep the numbers
    python -m tools.clients run [NAMES]           measure under this library, eager and compiled
    python -m tools.clients speed [NAMES] --peer PYTHON     time beside PyTorch's in that PYTHON
    python -m tools.clients speed --import MODULES --peer PYTHON      time of imports beside its
    python -m tools.clients breaks [NAMES] --peer PYTHON    breaks of graphs beside PyTorch's
    python -m tools.clients list [NAMES]

NAMES are parts of names of cases; without any all are taken. `run` prints one line per case that is
not equal to its reference and a table of packages, and exits with 1 if there is such a case that
`tools/clients/known.txt` does not list, or a listed one that is equal. `speed` exits with 1 if a
case is slower than PyTorch by more than the bar, or does not run under this library; `breaks` if
there are more than under PyTorch.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from . import compare, pool, registry, speed

HERE = Path(__file__).parent
REFERENCES = HERE / "references.json.gz"
KNOWN = HERE / "known.txt"
WORKER = ["-m", "tools.clients.worker"]
ALIAS = [sys.executable, "-m", "flambeau.as_torch"]


def references() -> dict[str, Any]:
    if not REFERENCES.exists():
        return {}
    with gzip.open(REFERENCES, "rt") as file:
        found: dict[str, Any] = json.load(file)
    return found


def known_failures(text: str) -> dict[tuple[str, str], str]:
    """Reasons by case and mode, of lines `case mode: reason`; `#` starts a comment line."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        head, colon, reason = line.partition(": ")
        words = head.split()
        if not colon or len(words) != 2 or not reason.strip():
            raise ValueError(
                f"known.txt: expected `case mode: reason`, got {line!r} in line {number}"
            )
        found[words[0], words[1]] = reason.strip()
    return found


def unexpected(
    said: dict[str, list[str]], mode: str, known: dict[tuple[str, str], str]
) -> list[str]:
    """Cases that fail and are not listed, and listed ones that pass."""
    return [name for name, lines in said.items() if bool(lines) != ((name, mode) in known)]


def rounded(value: Any) -> Any:
    """Numbers with the digits that a judgement needs."""
    if isinstance(value, float):
        return float(f"{value:.13g}")
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    return value


def make_references(cases: list[registry.Case], options: argparse.Namespace) -> int:
    found = references() if options.names or options.new else {}
    failed = 0

    def done(name: str, record: dict[str, Any]) -> None:
        nonlocal failed
        if record["errors"]:
            failed += 1
            print(f"{name}: no reference: {compare.last_lines(record)}", flush=True)
            return
        record["conditions"] = compare.conditions(record)
        del record["nudged"], record["errors"]
        found[name] = rounded(record)
        print(f"{name}: {record['seconds']} s", flush=True)

    pool.run([entry.name for entry in cases], "reference", None, options.workers, 300, 1, done)
    known = {entry.name for entry in registry.load()}
    kept = {name: found[name] for name in sorted(found) if name in known}
    data = json.dumps(kept, separators=(",", ":")).encode()
    REFERENCES.write_bytes(gzip.compress(data, 9, mtime=0))
    print(f"{len(kept)} references, {REFERENCES.stat().st_size} bytes, {failed} failed")
    return 1 if failed else 0


def own_worker() -> list[str]:
    return shlex.split(os.environ.get("CLIENTS_WORKER", "")) or [*ALIAS, *WORKER]


def judge_all(
    cases: list[registry.Case], mode: str, options: argparse.Namespace
) -> dict[str, list[str]]:
    """What differs by case; an empty list where all is equal."""
    stored = references()
    said: dict[str, list[str]] = {}
    by_name = {entry.name: entry for entry in cases}
    details: dict[str, Any] = {}

    def done(name: str, record: dict[str, Any]) -> None:
        if name in stored:
            said[name] = compare.judge(record, stored[name], by_name[name].train)
        else:
            said[name] = ["no reference"]
        details[name] = record
        state = "equal" if not said[name] else "; ".join(said[name])
        print(f"{mode} {name} {record.get('seconds', 0):.1f} s: {state}", flush=True)

    command = own_worker()
    names = [entry.name for entry in cases if mode == "eager" or entry.compiled]
    pool.run(names, mode, command, options.workers, options.seconds, 1, done)
    if options.out:
        Path(options.out).mkdir(parents=True, exist_ok=True)
        path = Path(options.out) / f"{mode}.json"
        kept = json.loads(path.read_text()) if path.exists() else {}
        kept.update({name: {"said": said[name], **details[name]} for name in said})
        path.write_text(json.dumps(kept))
    return said


def table(said: dict[str, list[str]]) -> None:
    equal, wrong, error = Counter[str](), Counter[str](), Counter[str]()
    for name, lines in said.items():
        package = name.partition(".")[0]
        if not lines:
            equal[package] += 1
        elif any(line.startswith(("error", "no reference")) for line in lines):
            error[package] += 1
        else:
            wrong[package] += 1
    print(f"\n{'package':28} equal differing error")
    for package in sorted({name.partition(".")[0] for name in said}):
        print(f"{package:28} {equal[package]:5} {wrong[package]:9} {error[package]:5}")
    print(f"{'all':28} {equal.total():5} {wrong.total():9} {error.total():5}")


def time_all(cases: list[registry.Case], options: argparse.Namespace) -> int:
    """Prints times beside the peer's; the number of parts that are slower, or fail."""
    peer = shlex.split(options.peer)
    if options.modules:
        for line in speed.imports(options.modules.split(","), [ALIAS, peer], options.rounds):
            print(line, flush=True)
        return 0
    if options.sample:
        cases = speed.spread(cases, options.sample)
    bad = 0
    kept = []
    for mode, threads in itertools.product(options.mode.split(","), options.threads.split(",")):
        compiled, clock = mode == "compiled", speed.CLOCKS[threads != "1"]
        records = []
        wanted = [c for c in cases if not compiled or c.compiled]
        commands = [own_worker(), [*peer, *WORKER]]
        for record in speed.measure(
            wanted, commands, int(threads), compiled, options.rounds, options.seconds
        ):
            records.append(record)
            print(f"{mode} {threads} {speed.line(record, clock)}", flush=True)
        print(*speed.table(records, clock), sep="\n", flush=True)
        bad += sum(
            r.get(clock, 0.0) > speed.SLOW or "ours" in r.get("error", "")[:4] for r in records
        )
        kept += [{"threads": int(threads), **record} for record in records]
    if options.out:
        Path(options.out).mkdir(parents=True, exist_ok=True)
        (Path(options.out) / "speed.json").write_text(json.dumps(kept))
    return bad


def count_breaks(cases: list[registry.Case], options: argparse.Namespace) -> int:
    """Prints graph breaks beside the peer's; 1 where there are more."""
    commands = {"flambeau": own_worker(), "peer": [*shlex.split(options.peer), *WORKER]}
    cases = [entry for entry in cases if entry.compiled]
    names = [c.name for c in (speed.spread(cases, options.sample) if options.sample else cases)]
    found = {
        who: pool.run(names, "breaks", command, options.workers, options.seconds, 1)
        for who, command in commands.items()
    }
    totals, counted, failed = Counter[str](), 0, Counter[str]()
    for name in names:
        for section in ("infer", "train"):
            counts = {w: found[w][name].get(section) for w in commands}
            failed.update(w for w, c in counts.items() if c is None)
            if None in counts.values():
                continue
            counted += 1
            sums = {w: sum(c.values()) for w, c in counts.items() if c is not None}
            totals.update(sums)
            if sums["flambeau"] != sums["peer"]:
                print(f"{name} {section}: {sums['flambeau']} breaks, the peer {sums['peer']}")
                print(f"    {counts['flambeau']}\n    {counts['peer']}")
        for who in commands:
            for section, text in found[who][name]["errors"].items():
                print(f"{name} {section}, {who}: {text.strip().splitlines()[-1][:200]}")
    ours, theirs = totals["flambeau"], totals["peer"]
    print(f"\n{counted} programs that run in both: {ours} breaks, peer {theirs}")
    print(f"not counted: {failed['flambeau']}, peer {failed['peer']}")
    return int(ours > theirs)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.clients")
    parser.add_argument("what", choices=["reference", "run", "speed", "breaks", "list"])
    parser.add_argument("names", nargs="*", help="parts of names of cases")
    parser.add_argument("--mode", default="eager,compiled")
    parser.add_argument("--quick", action="store_true", help="the cases of `make test` alone")
    parser.add_argument("--new", action="store_true", help="cases without a reference alone")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120, help="limit of a case")
    parser.add_argument("--peer", help="speed, breaks: a command that starts Python with PyTorch")
    parser.add_argument("--threads", default="1", help="speed: numbers of threads")
    parser.add_argument("--rounds", type=int, default=7, help="speed: turns of a case")
    parser.add_argument("--sample", type=int, help="speed, breaks: so many cases of all packages")
    parser.add_argument("--import", dest="modules", help="speed: modules whose import is timed")
    parser.add_argument("--out", help="a folder for the records, with tracebacks")
    options = parser.parse_intermixed_args()
    cases = [c for c in registry.load(options.names) if c.quick or not options.quick]
    if options.new:
        stored = references()
        cases = [c for c in cases if c.name not in stored]
    if options.what == "list":
        for entry in cases:
            print(entry.name)
        return 0
    if options.what in ("speed", "breaks"):
        if not options.peer:
            parser.error(f"{options.what}: expected --peer, a Python in which PyTorch is installed")
        if options.what == "breaks":
            return count_breaks(cases, options)
        return 1 if time_all(cases, options) else 0
    if options.what == "reference":
        return make_references(cases, options)
    known = known_failures(KNOWN.read_text()) if KNOWN.exists() else {}
    bad = 0
    for mode in options.mode.split(","):
        said = judge_all(cases, mode, options)
        table(said)
        for name in unexpected(said, mode, known):
            bad += 1
            what = "fails and is not listed" if said[name] else "is listed and passes"
            print(f"{name} {mode}: {what} in known.txt")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
