"""`python tools/compile_memory.py [--compiles 200]`: memory that compiling and forgetting leaves.

Compiles functions that change, forgets each, and reads the resident memory after a warm-up. Exits
with 1 where it grew by more than `BOUND` kilobytes in all, or where a library stays open. The bound
is for the pools of the allocators, which fill in the beginning, and for what stays unexplained.
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
BOUND = 2048.0  # kB by which memory may grow afterwards, however many compilations follow


def resident() -> float:
    """Resident memory of this process in kB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1024


def libraries() -> int:
    """How many compiled libraries of the cache are in memory."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    cache = os.environ["FLAMBEAU_CACHE"]
    return len({x.split()[-1] for x in lines if cache in x})


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
    """kB of resident memory left by compilations after the first ones."""
    for k in range(warm):
        compile_and_forget(k)
    gc.collect()
    before = resident()
    for k in range(warm, warm + compiles):
        compile_and_forget(k)
    gc.collect()
    return resident() - before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiles", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flambeau-memory-") as cache:
        os.environ["FLAMBEAU_CACHE"] = cache
        os.environ["FLAMBEAU_CACHE_SIZE"] = "500K"  # listing a cache takes memory too
        left = growth(args.compiles)
        still = libraries()
    print(
        f"{args.compiles} compilations: {left:.0f} kB left (at most {BOUND:.0f}), {still} libraries"
    )
    return int(left > BOUND or still > 0)


if __name__ == "__main__":
    sys.exit(main())
