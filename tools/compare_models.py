"""Models and calls under PyTorch and Flambeau, eager and compiled, by processes that take turns.

    python -m tools.compare_models --ladder FOLDER --model gpt,resnet18 --mode infer,train
    python -m tools.compare_models --ways te,fe --call 'x = torch.randn(4096, 4096); x.sum(1)'

One process per way (`te` PyTorch eager, `tc` torch.compile, `fe`, `fc` Flambeau's). Each runs a few
calls while the others wait, and so on in turn: slices of some 60 ms lie so close together that the
clock of the machine is the same for all. Per round and way the median call counts; printed are the
median over rounds, and of its ratio to the first way's in the same round, with quartiles.

Models are the ladder's (`FOLDER` holds ladder.py), or without it `small`, which is ours; of a call
what stands before the last `;` is run once. The first results of all ways must agree.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import median, quantiles

WAYS = {"te": "torch", "tc": "torch", "fe": "flambeau", "fc": "flambeau"}
TOLERANCE = 0.02  # between first results, as of the ladder
ROOT = Path(__file__).parent.parent


class Worker:
    """A process that holds the model and runs calls of it when it is asked to."""

    def __init__(self, way: str, model: str, mode: str, ladder: str, threads: int) -> None:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-m", "tools._compare_worker", WAYS[way], way[1], model, mode]
        self.way = way
        self.process = subprocess.Popen(
            [*command, str(threads), ladder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": path},
        )

    def answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.way}: ended with {self.process.wait()}")
        return line

    def run(self, calls: int) -> float:
        """Milliseconds of the median call."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{calls}\n")
        self.process.stdin.flush()
        return float(self.answer())

    def close(self) -> None:
        self.process.communicate()


@dataclass(frozen=True)
class Reading:
    """Milliseconds per call, and per round the ratio to the first way."""

    ms: float
    ratios: list[float]

    def __str__(self) -> str:
        low, _, high = quantiles(self.ratios, n=4, method="inclusive")
        return f"{self.ms:8.3f} ms {median(self.ratios):5.2f} ({low:.2f}-{high:.2f})"


def take_turns(workers: list[Worker], rounds: int, calls: int) -> dict[str, Reading]:
    """`calls` per slice; with 0 as many as take some 60 ms."""
    each = [calls or max(1, round(60 / w.run(3))) for w in workers]
    times = [[w.run(n) for w, n in zip(workers, each, strict=True)] for _ in range(rounds)]
    return {
        w.way: Reading(median(row[k] for row in times), [row[k] / row[0] for row in times])
        for k, w in enumerate(workers)
    }


def compare(
    model: str, mode: str, ways: list[str], ladder: str, threads: int, rounds: int, calls: int
) -> dict[str, Reading]:
    """One row of the table."""
    workers: list[Worker] = []
    try:
        firsts = []
        for way in ways:
            workers.append(Worker(way, model, mode, ladder, threads))
            firsts.append(float(workers[-1].answer()))
        for way, first in zip(ways, firsts, strict=True):
            if not abs(first - firsts[0]) <= TOLERANCE * abs(firsts[0]):
                raise SystemExit(f"{model} {mode}: {way} gives {first}, {ways[0]} {firsts[0]}")
        return take_turns(workers, rounds, calls)
    finally:
        for w in workers:
            w.close()


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="", help="with commas between several")
    parser.add_argument("--call", action="append", default=[], help="Python; may be repeated")
    parser.add_argument("--mode", default="infer,train")
    parser.add_argument("--ways", default="fe,fc", help="te,tc,fe,fc; ratios are to the first")
    parser.add_argument("--ladder", default="", help="folder of ladder.py")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=0, help="of a slice; some 60 ms if not given")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    args = options(arguments)
    ways = args.ways.split(",")
    logs: dict[str, list[float]] = {way: [] for way in ways}
    models = (args.model or ("" if args.call else "small")).split(",")
    cases = [(m, mode) for m in models if m for mode in args.mode.split(",")]
    for case, mode in [*cases, *((call, "infer") for call in args.call)]:
        row = compare(case, mode, ways, args.ladder, args.threads, args.rounds, args.calls)
        text = "  ".join(f"{way} {reading}" for way, reading in row.items())
        print(f"{case.split(';')[-1].strip():10} {mode:5}  {text}", flush=True)
        for way, reading in row.items():
            logs[way].append(log(median(reading.ratios)))
    means = "  ".join(f"{way} {exp(sum(v) / len(v)):.2f}" for way, v in logs.items())
    print(f"geometric mean: {means}")


if __name__ == "__main__":
    main()
