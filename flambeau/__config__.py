"""What this build was made with, as text."""

from __future__ import annotations

import flambeau

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Libraries and instruction set of the build, a line each."""
    facts = flambeau._C._build_info()
    return "\n".join(
        ["Flambeau built with:", *(f"  - {name}: {value}" for name, value in facts.items())]
    )


def parallel_info() -> str:
    """Number of threads of an operation."""
    return f"Threads: {flambeau.get_num_threads()}"
