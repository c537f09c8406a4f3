"""`python -m torch.utils.collect_env`: what a report of an error should say of the machine.

Owns the listing. Reads versions alone, and runs no program.
"""

from __future__ import annotations

import platform
import sys

import flambeau

__all__ = ["get_pretty_env_info"]


def get_pretty_env_info() -> str:
    """Versions of Flambeau, Python and what they run on, a line each."""
    import numpy

    lines = {
        "Flambeau version": flambeau.__version__,
        "Python version": sys.version.replace("\n", " "),
        "Python platform": platform.platform(),
        "CPU": platform.machine(),
        "Threads": flambeau.get_num_threads(),
        "CUDA available": flambeau.cuda.is_available(),
        "NumPy version": numpy.__version__,
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items())


def main() -> None:
    """Print it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
