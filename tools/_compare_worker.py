"""The process of one way in compare_models: LIBRARY e|c CASE infer|train THREADS LADDER.

Prints a number made of the first result, then for every count that it reads the milliseconds of
the median of so many calls. Must not know of other ways.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

WARM = 4  # calls before the first reading: compilation, memory, threads


class Small:
    """A model of ours, for where no ladder is: two layers, on 64 rows."""

    def __init__(self, torch: Any) -> None:
        torch.manual_seed(0)
        nn = torch.nn
        self.torch = torch
        self.model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.x, self.y = torch.randn(64, 64), torch.arange(64) % 10

    def infer(self, model: Any) -> Callable[[], Any]:
        def run() -> Any:
            with self.torch.no_grad():
                return model(self.x)

        return run

    def step(self, model: Any) -> Callable[[], Any]:
        def run() -> Any:
            self.optimizer.zero_grad()
            loss = self.torch.nn.functional.cross_entropy(model(self.x), self.y)
            loss.backward()
            self.optimizer.step()
            return loss

        return run


class Call:
    """Statements with `;` between them, of which the last is an expression: that is run."""

    def __init__(self, torch: Any, code: str) -> None:
        torch.manual_seed(0)
        *before, call = (part.strip() for part in code.split(";"))
        names = {"torch": torch, "F": torch.nn.functional}
        exec("\n".join(before), names)
        self.model = eval(f"lambda: {call}", names)

    def infer(self, model: Callable[[], Any]) -> Callable[[], Any]:
        return model


def case(torch: Any, library: str, name: str, ladder: str) -> Any:
    """The model with its batch, loss and optimiser; the ladder's import what LADDER_LIB says."""
    if name == "small":
        return Small(torch)
    if not name.isidentifier():
        return Call(torch, name)
    if not ladder:
        raise SystemExit(f"model {name}: --ladder says where it is defined")
    os.environ["LADDER_LIB"] = library
    sys.path.insert(0, ladder)
    return importlib.import_module("rungs.train").CASES[name](torch)


def main() -> None:
    library, how, name, mode, threads, ladder = sys.argv[1:]
    torch = importlib.import_module(library)
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    chosen = case(torch, library, name, ladder)
    make = chosen.infer if mode == "infer" else chosen.step
    run = make(torch.compile(chosen.model) if how == "c" else chosen.model)
    print(float(run().detach().abs().mean()), flush=True)
    for _ in range(WARM):
        run()
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = perf_counter()
            run()
            times.append(1e3 * (perf_counter() - start))
        print(median(times), flush=True)


if __name__ == "__main__":
    main()
