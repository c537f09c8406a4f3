"""When a node that draws from several sources ends."""

from __future__ import annotations

__all__ = ["StopCriteria"]


class StopCriteria:
    """Ends of a pass over several sources.

    - `CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED`: when each has ended once; those that ended begin again.
    - `ALL_DATASETS_EXHAUSTED`: when each has ended; those that ended are left out.
    - `FIRST_DATASET_EXHAUSTED`: when one has.
    - `CYCLE_FOREVER`: never.
    """

    CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED = "CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED"
    ALL_DATASETS_EXHAUSTED = "ALL_DATASETS_EXHAUSTED"
    FIRST_DATASET_EXHAUSTED = "FIRST_DATASET_EXHAUSTED"
    CYCLE_FOREVER = "CYCLE_FOREVER"
