"""Process groups of one process, and the default one.

Owns whether the process has joined a group. Invariant: a group has this process alone; more than
one is refused, for no engine connects them yet. Must not know of tensors.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ._store import HashStore, PrefixStore
from .constants import default_pg_timeout
from .rendezvous import rendezvous

__all__ = ["Backend", "GroupMember", "ProcessGroup", "ReduceOp", "Work", "group"]


class Backend(str):
    """Name of the engine that joins processes."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        if name.lower() == "tcp":
            raise ValueError(
                "TCP backend has been deprecated. Please use Gloo or MPI backend for collective "
                "operations on CPU tensors."
            )
        return super().__new__(cls, name.lower())


class ReduceOp(enum.Enum):
    """How values of the processes are joined."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


class ProcessGroup:
    """This process, as a group."""

    def __init__(self, backend: str = "gloo", group_name: str = "") -> None:
        self._backend, self.group_name = Backend(backend), group_name

    def rank(self) -> int:
        """This process's number in the group."""
        return 0

    def size(self) -> int:
        """Number of processes."""
        return 1

    def name(self) -> str:
        """Name of the engine."""
        return str(self._backend)


class Work:
    """A collective that has ended already, as all do in a group of one."""

    def __init__(self, result: Any = None) -> None:
        self._result = result

    def is_completed(self) -> bool:
        """True."""
        return True

    def is_success(self) -> bool:
        """True."""
        return True

    def exception(self) -> None:
        """None."""

    def wait(self, timeout: Any = None) -> bool:
        """Return at once."""
        return True

    def synchronize(self) -> None:
        """Return at once."""

    def result(self) -> Any:
        """The tensors of the collective."""
        return self._result


class _Default(type):
    default: ProcessGroup | None = None
    store: Any = None

    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group; None before `init_process_group`."""
        return _Default.default

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        _Default.default = value


class group(metaclass=_Default):
    """Holds the default group as `group.WORLD`."""


class GroupMember(metaclass=_Default):
    """The same, and what stands for not being a member."""

    NON_GROUP_MEMBER = -100


def is_initialized() -> bool:
    """Whether this process has joined a group.

    >>> torch.distributed.is_initialized()
    False
    """
    return _Default.default is not None


def _meet(
    init_method: str | None, store: Any, rank: int, world_size: int, timeout: timedelta
) -> tuple[Any, int, int]:
    """The store on which the processes meet, this one's rank, and how many they are."""
    if store is not None:
        if world_size < 1:
            raise ValueError("world_size must be positive if using store")
        if rank < 0:
            raise ValueError("rank must be non-negative if using store")
        store.set_timeout(timeout)
        return store, rank, world_size
    url = init_method or "env://"
    number = world_size if world_size >= 0 else int(os.environ.get("WORLD_SIZE", "-1"))
    if url == "env://" and number == 1 and "MASTER_ADDR" not in os.environ:
        # One process needs no address to meet itself.
        given = rank if rank >= 0 else int(os.environ.get("RANK", "-1"))
        return (HashStore(), given, 1) if given >= 0 else next(rendezvous(url, timeout=timeout))
    return next(rendezvous(url, rank, world_size, timeout=timeout))


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the default group.

    Args:
        backend: name of the engine.
        init_method: where processes meet: env:// (the default: RANK, WORLD_SIZE, MASTER_ADDR and
            MASTER_PORT in the environment), tcp://host:port or file:///path.
        timeout: how long to wait for the others, here and in the group.
        world_size: number of processes.
        rank: this process's number.
        store: where processes meet, instead of `init_method`.
        group_name, pg_options, device_id: of no meaning for these engines.

    Raises:
        ValueError: a group is there already, the engine is not known, or rank or size are not.
        DistNetworkError, DistStoreError: the others did not come in time.
        NotImplementedError: the group would have more than one process.

    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0, init_method="tcp://a:0")
    >>> torch.distributed.get_world_size()
    1
    >>> torch.distributed.destroy_process_group()
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if init_method is not None and store is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    engine = Backend(backend or "gloo")
    time = default_pg_timeout if timeout is None else timeout
    if not isinstance(time, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    if 0 < world_size <= rank:  # known before anybody is waited for
        raise ValueError(
            f"init_process_group: expected a rank of 0 to {world_size - 1}, got {rank}"
        )
    found, number, size = _meet(init_method, store, rank, world_size, time)
    if not 0 <= number < size:
        raise ValueError(f"init_process_group: expected a rank of 0 to {size - 1}, got {number}")
    if size != 1:
        raise NotImplementedError(
            f"init_process_group: expected world_size=1, got {size}; several processes are not "
            "connected yet"
        )
    _Default.store = PrefixStore("default_pg", found)
    _Default.default = ProcessGroup(engine, group_name or "0")


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; without one, the default group."""
    if group is None or group is _Default.default:
        _default()
        _Default.default = _Default.store = None


def _default() -> ProcessGroup:
    if _Default.default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _Default.default


def member(group: Any) -> bool:
    """Whether this process is in the group: it is, but for NON_GROUP_MEMBER."""
    if group is None:
        _default()
    return bool(group != GroupMember.NON_GROUP_MEMBER)


def check_rank(op: str, what: str, rank: int | None) -> None:
    """A rank of the group, of which there is one."""
    if rank not in (None, 0):
        raise ValueError(f"{op}: expected {what}=0 in a group of one process, got {rank}")


def get_rank(group: Any = None) -> int:
    """This process's number in the group; -1 outside of it."""
    return 0 if member(group) else -1


def get_world_size(group: Any = None) -> int:
    """Number of processes in the group; -1 outside of it."""
    return 1 if member(group) else -1


def get_backend(group: Any = None) -> str:
    """Name of the group's engine."""
    return (group or _default()).name()


def get_process_group_ranks(group: Any = None) -> list[int]:
    """Numbers of the group's processes."""
    return [0] if member(group) else []


def get_global_rank(group: Any, group_rank: int) -> int:
    """The number that a member of the group has among all processes."""
    check_rank("get_global_rank", "group_rank", group_rank)
    return 0


def get_group_rank(group: Any, global_rank: int) -> int:
    """The number that a process has in the group."""
    check_rank("get_group_rank", "global_rank", global_rank)
    return 0


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine, as LOCAL_RANK says."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment, and no fallback_rank is given")
    return int(fallback_rank)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Make a group of some of the processes: of this one, or of none."""
    default = _default()
    for rank in ranks or ():
        check_rank("new_group", "ranks", rank)
    if ranks is not None and len(ranks) == 0:
        return GroupMember.NON_GROUP_MEMBER
    return ProcessGroup(backend or default.name(), group_desc or "group")
