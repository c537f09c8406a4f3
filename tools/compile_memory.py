"""`python tools/compile_memory.py [--compiles 200]`: memory that compiling and forgetting leaves.

Compiles functions that change, forgets each, and reads the resident memory after a warm-up. Exits
with 1 where it grew by more than `BOUND` kilobytes for each compilation. What stays are the two
libraries of each, about 20 kB: programs hold addresses in them, so they are never closed.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flambeau as torch

WARM = 30  # compilations before memory is read: tables, imports, pools
BOUND = 64.0  # kB that a compilation may leave


def resident() -> float:
    """Resident memory of this process in kB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1024


def function(k: int) -> Callable[[Any], Any]:
    """A function that no other resembles, with a derivative."""
    return lambda x: (torch.softmax(x * (k + 1), -1) + torch.sin(x + k)).sum(0)


def compile_and_forget(k: int) -> None:
    f = function(k)
    x = torch.linspace(-1, 1, 64).view(4, 16).requires_grad_()
    y = torch.compile(f)(x)
    y.sum().backward()
    assert torch.allclose(y, f(x), atol=1e-5), f"function({k}): compiled and eager differ"
    torch.compiler.reset()


def growth(compiles: int, warm: int = WARM) -> float:
    """kB of resident memory left by each compilation after the first ones."""
    for k in range(warm):
        compile_and_forget(k)
    gc.collect()
    before = resident()
    for k in range(warm, warm + compiles):
        compile_and_forget(k)
    gc.collect()
    return (resident() - before) / compiles


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiles", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flambeau-memory-") as cache:
        os.environ["FLAMBEAU_CACHE"] = cache
        left = growth(args.compiles)
    print(f"{args.compiles} compilations: {left:.1f} kB left by each (at most {BOUND:.0f})")
    return int(left > BOUND)


if __name__ == "__main__":
    sys.exit(main())
