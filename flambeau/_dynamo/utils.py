"""What programs count of the compiler's work: `counters`.

Owns the counts of the process; `flambeau._capture.config` adds to them. `reset` leaves them, and
`counters.clear()` begins anew.
"""

from __future__ import annotations

import collections

#: By group, then by what is counted: "frames" ("total" that were followed, "ok" that became
#: compiled code), "stats" ("unique_graphs", "calls_captured": operations in them), "graph_break"
#: (by reason), "recompiles" (by function).
counters: collections.defaultdict[str, collections.Counter[str]] = collections.defaultdict(
    collections.Counter
)
