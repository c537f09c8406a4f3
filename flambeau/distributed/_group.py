"""Process groups of one process, and the default one.

Owns whether the process has joined a group. Invariant: a group has this process alone; more than
one is refused, for no engine connects them yet. Must not know of tensors.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from typing import Any

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


def _number(given: int, variable: str, init_method: str | None) -> int:
    if given >= 0:
        return given
    if init_method in (None, "env://"):
        if variable not in os.environ:
            raise ValueError(
                "Error initializing torch.distributed using env:// rendezvous: "
                f"environment variable {variable} expected, but not set"
            )
        return int(os.environ[variable])
    raise ValueError(f"init_process_group: expected {variable.lower()}=, got none")


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the default group, which has this process alone.

    Args:
        backend: name of the engine; none is needed for one process.
        init_method: where processes meet; by default the environment says RANK and WORLD_SIZE.
        world_size: number of processes: 1.
        rank: this process's number: 0.
        timeout, store, group_name, pg_options, device_id: nothing is waited for, nor sent.

    Raises:
        ValueError: a group is there already, or rank or size are not known.
        NotImplementedError: the group would have more than one process.

    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0, init_method="tcp://a:1")
    >>> torch.distributed.get_world_size()
    1
    >>> torch.distributed.destroy_process_group()
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if init_method is not None and store is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    source = init_method if store is None else "store"
    size = _number(world_size, "WORLD_SIZE", source)
    if size != 1:
        raise NotImplementedError(
            f"init_process_group: expected world_size=1, got {size}; several processes are not "
            "connected yet"
        )
    if (number := _number(rank, "RANK", source)) != 0:
        raise ValueError(f"init_process_group: expected rank 0 of 1, got {number}")
    _Default.default = ProcessGroup(backend or "gloo", group_name or "0")


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; without one, the default group."""
    if group is None or group is _Default.default:
        _default()
        _Default.default = None


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
