"""How a tensor lies over several processes: the words for it.

Tensors that lie over processes are not built yet; what describes them is.
"""

from __future__ import annotations

from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
