"""Times the plain factorisations beside those out of OpenBLAS.

`python bench/plain_lapack.py [n ...]`. For each routine and element type: milliseconds by
OpenBLAS, by the plain routines, and how many times longer the latter take; the best of several
runs. The bar is 10 times at 512.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import flambeau as torch

L = torch.linalg


def best(run: Callable[[], object], least: float = 0.2) -> float:
    """Seconds of the best of at least three runs."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < least and len(times) < 50):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print a row per routine, size and element type."""
    use = torch._C._linalg._linalg_use_builtin
    torch.manual_seed(0)
    for n in [int(x) for x in sys.argv[1:]] or [512]:
        for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
            a, b = torch.randn(n, n, dtype=dtype), torch.randn(n, n, dtype=dtype)
            positive = a @ a.mH + n * torch.eye(n, dtype=dtype)
            routines = {
                "solve": lambda a=a, b=b: L.solve(a, b),
                "inv": lambda a=a: L.inv(a),
                "qr": lambda a=a: L.qr(a),
                "cholesky": lambda p=positive: L.cholesky(p),
                "svd": lambda a=a: L.svd(a),
                "svdvals": lambda a=a: L.svdvals(a),
                "eigh": lambda p=positive: L.eigh(p),
                "eigvalsh": lambda p=positive: L.eigvalsh(p),
                "lstsq": lambda a=a, b=b: L.lstsq(a, b),
            }
            for name, run in routines.items():
                run()
                lapack = best(run)
                before = use(True)
                plain = best(run)
                use(before)
                print(
                    f"{name:9} {n:5} {str(dtype)[-10:]:10} OpenBLAS {lapack * 1e3:8.2f} ms  "
                    f"plain {plain * 1e3:8.2f} ms  {plain / lapack:6.1f} times",
                    flush=True,
                )


if __name__ == "__main__":
    main()
