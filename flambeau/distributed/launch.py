"""`python -m flambeau.distributed.launch`: the former name of `run`."""

from __future__ import annotations

from .run import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
