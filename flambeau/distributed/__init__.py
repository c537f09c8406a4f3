"""`distributed`: several processes that work on one job.

Processes meet on a store, form groups, and exchange tensors: those of one machine through shared
memory, others over TCP. Owns the names and what is available.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from . import _collectives, _messages, _objects, _store, constants
from ._collectives import *  # noqa: F403
from ._group import (
    Backend,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    _dump_fr_trace_json,  # noqa: F401
    _make_nccl_premul_sum,  # noqa: F401
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from ._messages import *  # noqa: F403
from ._objects import *  # noqa: F403
from ._reducer import GradBucket
from ._store import *  # noqa: F403
from ._work import Work
from .constants import default_pg_timeout
from .device_mesh import DeviceMesh, init_device_mesh
from .rendezvous import register_rendezvous_handler, rendezvous

__all__ = [
    "Backend",
    "DeviceMesh",
    "GradBucket",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "constants",
    "default_pg_timeout",
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "register_rendezvous_handler",
    "rendezvous",
    "split_group",
    *_collectives.__all__,
    *_messages.__all__,
    *_objects.__all__,
    *_store.__all__,
]


def is_available() -> bool:
    """Whether process groups can be made.

    >>> torch.distributed.is_available()
    True
    """
    return True


def is_backend_available(backend: str) -> bool:
    """Whether an engine can be asked for: "gloo" and "shm"."""
    return backend.lower() in ("gloo", "shm")


def is_gloo_available() -> bool:
    """Whether `init_process_group("gloo")` works: always."""
    return True


def is_nccl_available() -> bool:
    """Whether GPUs can be joined: no."""
    return False


def is_mpi_available() -> bool:
    """Whether MPI is built in: no."""
    return False


def is_ucc_available() -> bool:
    """Whether UCC is built in: no."""
    return False


def is_xccl_available() -> bool:
    """Whether Intel GPUs can be joined: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def __getattr__(name: str) -> Any:
    if name in ("nn", "algorithms", "distributed_c10d", "optim", "tensor"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
