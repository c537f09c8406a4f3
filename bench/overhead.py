"""Time per call of a few common operations, beside NumPy's on the same machine.

Owns a quick look, not a judgement: for that, see the ladder that ``make bench TOOLS=...`` runs.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

import numpy as np

import flambeau as fb


def seconds_per_call(call: Callable[[], object]) -> float:
    """The best of five runs of at least 0.05 s each."""
    timer = timeit.Timer(call)
    number, _ = timer.autorange()
    return min(timer.repeat(5, max(1, number // 4))) / max(1, number // 4)


def rows() -> list[tuple[str, Callable[[], object], Callable[[], object]]]:
    """(name, flambeau's call, NumPy's call)."""
    small, large = fb.ones(4), fb.ones(1 << 24)
    small_np, large_np = np.ones(4, np.float32), np.ones(1 << 24, np.float32)
    square, square_np = fb.ones(512, 512), np.ones((512, 512), np.float32)
    return [
        ("add, 4 elements", lambda: small + small, lambda: small_np + small_np),
        ("add, 16 M elements", lambda: large + large, lambda: large_np + large_np),
        ("sum, 16 M elements", lambda: large.sum(), lambda: large_np.sum()),
        ("exp, 16 M elements", lambda: large.exp(), lambda: np.exp(large_np)),
        ("matmul, 512 x 512", lambda: square @ square, lambda: square_np @ square_np),
    ]


def main() -> None:
    print(f"{'operation':24}{'flambeau':>14}{'NumPy':>14}{'ratio':>9}")
    for name, ours, theirs in rows():
        a, b = seconds_per_call(ours), seconds_per_call(theirs)
        print(f"{name:24}{a * 1e6:11.2f} µs{b * 1e6:11.2f} µs{a / b:9.2f}")


if __name__ == "__main__":
    main()
