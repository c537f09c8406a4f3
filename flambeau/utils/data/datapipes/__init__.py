"""Pipes: datasets that are built from one another by name.

    IterableWrapper(range(100)).shuffle().sharding_filter().map(f).batch(8).collate()

Owns the package: `iter` and `map` hold the pipes of either kind, `utils` what they share. To load
it is to load all of them, so that every functional name is known.
"""

from __future__ import annotations

from . import iter, map, utils
from ._decorator import functional_datapipe
from .datapipe import DataChunk

__all__ = ["DataChunk", "functional_datapipe", "iter", "map", "utils"]
