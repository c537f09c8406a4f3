"""Types that scripts are annotated with.

Owns the `BroadcastingList` family: a list of a fixed length that also takes one number; a script
takes it for a list.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

__all__ = ["Dict", "List", "Optional", "Tuple", "Union"]


class _BroadcastingList:
    """`BroadcastingList2[int]` is the type of a list."""

    def __getitem__(self, types: Any) -> Any:
        return List[types]  # noqa: UP006


BroadcastingList1 = _BroadcastingList()
BroadcastingList2 = _BroadcastingList()
BroadcastingList3 = _BroadcastingList()
BroadcastingList4 = _BroadcastingList()
BroadcastingList5 = _BroadcastingList()
BroadcastingList6 = _BroadcastingList()
