"""`torchdata.nodes`: iterators that are put together, and saved and put back exactly.

Owns the public names, which are torchdata's and four of its later ones (`CSVReader`, `Cycler`,
`Filter`, `Header`). Each node is saved as its own place and its source's state; how nodes read
ahead is `_ahead`'s.
"""

from .adapters import IterableWrapper, MapStyleWrapper, SamplerWrapper
from .base_node import BaseNode, T
from .batch import Batcher, Unbatcher
from .csv_reader import CSVReader
from .loader import Loader
from .map import Mapper, ParallelMapper
from .pin_memory import PinMemory
from .prefetch import Prefetcher
from .samplers.multi_node_weighted_sampler import MultiNodeWeightedSampler
from .samplers.stop_criteria import StopCriteria
from .selecting import Cycler, Filter, Header
from .types import Stateful

__all__ = [
    "BaseNode",
    "Batcher",
    "CSVReader",
    "Cycler",
    "Filter",
    "Header",
    "IterableWrapper",
    "Loader",
    "MapStyleWrapper",
    "Mapper",
    "MultiNodeWeightedSampler",
    "ParallelMapper",
    "PinMemory",
    "Prefetcher",
    "SamplerWrapper",
    "Stateful",
    "StopCriteria",
    "T",
    "Unbatcher",
]
