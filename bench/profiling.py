"""What a profile costs: nanoseconds per small operation without one, with one, and per range.

    python bench/profiling.py [MODULE]

MODULE is flambeau by default; torch measures PyTorch where that is installed. Each figure is the
best of several turns.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

CALLS, TURNS = 2000, 15


def per_call(run: Callable[[], None]) -> float:
    """Nanoseconds for one of the calls of `run`, once."""
    began = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - began) / CALLS


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "flambeau"
    library: Any = importlib.import_module(name)
    profiler: Any = importlib.import_module(f"{name}.autograd.profiler")
    x = library.ones(4)

    def adds() -> None:
        for _ in range(CALLS):
            x + x  # noqa: B018

    def ranges() -> None:
        for _ in range(CALLS):
            with profiler.record_function("range"):
                pass

    plain = min(per_call(adds) for _ in range(TURNS))
    empty = min(per_call(ranges) for _ in range(TURNS))
    print(f"{name}: ns per call            off       on")
    for label, run, off, options in (
        ("add", adds, plain, {}),
        ("add, record_shapes", adds, plain, {"record_shapes": True}),
        ("add, profile_memory", adds, plain, {"profile_memory": True}),
        ("add, with_stack", adds, plain, {"with_stack": True}),
        ("record_function", ranges, empty, {}),
    ):
        best = float("inf")
        for _ in range(TURNS):
            prof = profiler.profile(**options)
            with prof:
                best = min(best, per_call(run))
        print(f"  {label:24}{off:9.0f}{best:9.0f}")
    with profiler.profile() as prof:
        adds()
    began = time.perf_counter_ns()
    prof.key_averages()
    print(f"  events and averages: {(time.perf_counter_ns() - began) / CALLS:.0f} ns per event")


if __name__ == "__main__":
    main()
