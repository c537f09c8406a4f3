"""Datasets, samplers and the loader that turns them into batches.

Owns the public names of ``flambeau.utils.data``; each family lives in a file of its own. The order
of random numbers drawn here is part of the behaviour: see Note [Random calls of a data loader].
"""

from __future__ import annotations

import importlib
from typing import Any

from .dataloader import DataLoader, _DatasetKind, default_collate, default_convert, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DFIterDataPipe",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "PackedList",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "argument_validation",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "random_split",
    "runtime_validation",
    "runtime_validation_disabled",
]

# Pipes are loaded when a program names them: most programs have none.
_LATE = dict.fromkeys(
    ("DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"), "datapipes.datapipe"
) | dict.fromkeys(
    (
        "argument_validation",
        "functional_datapipe",
        "guaranteed_datapipes_determinism",
        "non_deterministic",
        "runtime_validation",
        "runtime_validation_disabled",
    ),
    "datapipes._decorator",
)
_LATE["PackedList"] = "_utils.packed_list"
_LATE_PACKAGES = ("datapipes", "graph", "graph_settings", "nodes", "stateful_dataloader")


def __getattr__(name: str) -> Any:
    if name in _LATE:
        value = getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
        globals()[name] = value
        return value
    if name in _LATE_PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE, *_LATE_PACKAGES})
