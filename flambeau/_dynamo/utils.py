"""What programs ask the compiler about its work: what it counted, and for which devices it works.

Owns the counts of the process; `flambeau._capture.config` adds to them. `reset` leaves them, and
`counters.clear()` begins anew.
"""

from __future__ import annotations

import collections

__all__ = ["counters", "is_compile_supported"]

#: By group, then by what is counted: "frames" ("total" that were followed, "ok" that became
#: compiled code), "stats" ("unique_graphs", "calls_captured": operations in them), "graph_break"
#: (by reason), "recompiles" (by function).
counters: collections.defaultdict[str, collections.Counter[str]] = collections.defaultdict(
    collections.Counter
)


def is_compile_supported(device_type: str) -> bool:
    """Whether code for a kind of device is compiled: the CPU's.

    >>> torch._dynamo.utils.is_compile_supported("cpu")
    True
    """
    return device_type == "cpu"
