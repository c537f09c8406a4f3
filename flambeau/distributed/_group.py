"""Process groups: which processes belong together, the default group, and joining it.

Owns what this process is a member of. Invariant: every process of a job makes its groups in the
same order, so their names agree. How ranks exchange memory is csrc/distributed's; must not know
what is exchanged.
"""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from flambeau import Tensor
from flambeau._C import _distributed as _core

from ._engine import join
from ._recorder import Recorder, explain, size_from_environment, trace
from ._store import HashStore, PrefixStore, milliseconds
from .constants import default_pg_timeout
from .rendezvous import rendezvous

__all__ = ["Backend", "GroupMember", "ProcessGroup", "ReduceOp", "group"]


class Backend(str):
    """Name of the engine that joins processes."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    SHM = "shm"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, SHM]

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        if name.lower() == "tcp":
            raise ValueError(
                "TCP backend has been deprecated. Please use Gloo or MPI backend for collective "
                "operations on CPU tensors."
            )
        return super().__new__(cls, name.lower())


def available(backend: Any) -> Backend:
    """The engine for tensors on the CPU that a name asks for: "gloo", "shm" or "cpu:gloo".

    Raises:
        ValueError: there is no such engine.
        RuntimeError: it is not part of this build.
    """
    for part in Backend(backend).split(","):
        name = part.rpartition(":")[2]
        if name in (Backend.NCCL, Backend.MPI, Backend.UCC, Backend.XCCL):
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
        if name not in (Backend.GLOO, Backend.SHM):
            raise ValueError(f"Invalid backend: '{name}'; expected 'gloo' or 'shm'")
    return Backend(name)


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


def _make_nccl_premul_sum(factor: Any) -> ReduceOp:
    """An operator of NCCL, which the engines here refuse, as PyTorch's Gloo does."""
    if not isinstance(factor, (float, Tensor)):
        raise TypeError(
            f"_make_nccl_premul_sum: expected factor to be float or Tensor, got "
            f"{type(factor).__name__}"
        )
    return ReduceOp.PREMUL_SUM


class ProcessGroup:
    """Some of a job's processes, this one among them.

    Made by `init_process_group` and `new_group`. Ranks of one machine exchange data through shared
    memory, which has no name in any file system and is gone with the processes; ranks of several
    machines over TCP.
    """

    _operators = [op.name for op in ReduceOp]

    def __init__(
        self,
        backend: Any,
        ranks: Sequence[int],
        store: Any,
        timeout: timedelta,
        name: str,
        rank: int,
        description: str = "undefined",
    ) -> None:
        self._backend, self._ranks, self._store = Backend(backend), list(ranks), store
        self._timeout, self.group_name, self.group_desc = timeout, name, description
        self._rank = self._ranks.index(rank)
        self._milliseconds = milliseconds("process group", timeout)
        self._recorder = Recorder(size_from_environment())
        size = len(self._ranks)
        self._core, self._engine = join(self._backend, self._rank, size, name, store, timeout)

    def rank(self) -> int:
        """This process's number in the group."""
        return self._rank

    def size(self) -> int:
        """Number of processes."""
        return len(self._ranks)

    def name(self) -> str:
        """Name of the engine."""
        return str(self._backend)

    def shutdown(self) -> None:
        """Leave the group: what is under way fails, and so do those that wait for this process."""
        self._core.shutdown()

    def _failed(self, call: int, error: BaseException) -> None:
        """Record how a call ended, and write down all of them where others have a part in it."""
        if not call:
            return
        if isinstance(error, (TypeError, ValueError)) or type(error) is RuntimeError:
            self._recorder.refused(call)
        elif self._recorder.failed(call, error) and isinstance(error, _core.DistBackendError):
            explain(self, self._ranks[self._rank], _Default.all or [self], error)

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._milliseconds, self._timeout = milliseconds("process group", timeout), timeout

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r}: rank {self._rank} of {self.size()}>"


class _Default(type):
    default: ProcessGroup | None = None
    store: Any = None
    made: dict[str, int]  # how many groups were made, by the kind of their names
    all: list[ProcessGroup]

    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group; None before `init_process_group`."""
        return _Default.default

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        _Default.default = value


_Default.made, _Default.all = {}, []


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


def _time(timeout: Any) -> timedelta:
    time = default_pg_timeout if timeout is None else timeout
    if not isinstance(time, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    return time


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
    """Join the default group, together with all processes of the job.

    Args:
        backend: name of the engine: "gloo" (the default), which joins processes of one machine
            through shared memory and others over TCP, or "shm", which joins those of one machine
            alone.
        init_method: where processes meet: env:// (the default: RANK, WORLD_SIZE, MASTER_ADDR and
            MASTER_PORT in the environment), tcp://host:port or file:///path.
        timeout: how long to wait for the others, here and in each collective.
        world_size: number of processes.
        rank: this process's number.
        store: where processes meet, instead of `init_method`.
        group_name: ignored, as PyTorch does.
        pg_options, device_id: None; there is no engine with options or devices.

    Raises:
        ValueError: a group is there already, the engine is not known, or rank or size are not.
        RuntimeError: the engine is not part of this build.
        DistNetworkError, DistStoreError, DistBackendError: the others did not come in time, or are
            on another machine and cannot be joined.

    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0, init_method="tcp://a:0")
    >>> torch.distributed.get_world_size()
    1
    >>> torch.distributed.destroy_process_group()
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if init_method is not None and store is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    engine, time = available(backend or "gloo"), _time(timeout)
    _no_options("init_process_group", pg_options, device_id)
    if 0 < world_size <= rank:  # known before anybody is waited for
        raise ValueError(
            f"init_process_group: expected a rank of 0 to {world_size - 1}, got {rank}"
        )
    found, number, size = _meet(init_method, store, rank, world_size, time)
    if not 0 <= number < size:
        raise ValueError(f"init_process_group: expected a rank of 0 to {size - 1}, got {number}")
    # A later default group may meet on the same store: its keys are others.
    count = _Default.made["default"] = _Default.made.get("default", 0) + 1
    prefixed = PrefixStore(f"default_pg/{count}", found)
    made = ProcessGroup(engine, range(size), prefixed, time, "0", number, "default_pg")
    _Default.store = prefixed
    _Default.default = made
    _Default.all.append(made)


def _no_options(op: str, pg_options: Any, device_id: Any) -> None:
    if pg_options is not None:
        raise ValueError(f"{op}: expected pg_options=None, got {pg_options!r}; no engine takes any")
    if device_id is not None and str(device_id) != "cpu":
        raise ValueError(f"{op}: expected device_id=None, got {device_id!r}; groups are of the CPU")


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; without one, or of the default group, all groups."""
    default = _default()
    if group is None or group is default:
        for each in reversed(_Default.all):
            each.shutdown()
        _Default.all.clear()
        _Default.default = _Default.store = None
        _Default.made = {k: n for k, n in _Default.made.items() if k == "default"}
    elif isinstance(group, ProcessGroup):
        if group not in _Default.all:
            raise ValueError("Invalid process group specified or has been destroyed.")
        _Default.all.remove(group)
        group.shutdown()


def _default() -> ProcessGroup:
    if _Default.default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _Default.default


def group_of(group: Any) -> ProcessGroup | None:
    """The group that is meant; None where this process is no member.

    Raises:
        ValueError: no group has been made, or this one was destroyed.
        TypeError: it is no group.
    """
    if group is None:
        return _default()
    if group == GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"expected group to be a ProcessGroup, got {type(group).__name__}")
    return group


def _dump_fr_trace_json() -> str:
    """The flight recorder of this process as JSON: the last calls of all its groups."""
    return json.dumps(trace(_default().rank(), _Default.all, None))


def get_rank(group: Any = None) -> int:
    """This process's number in the group; -1 outside of it."""
    found = group_of(group)
    return -1 if found is None else found.rank()


def get_world_size(group: Any = None) -> int:
    """Number of processes in the group; -1 outside of it."""
    found = group_of(group)
    return -1 if found is None else found.size()


def get_backend(group: Any = None) -> str:
    """Name of the group's engine."""
    found = group_of(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return found.name()


def get_process_group_ranks(group: Any = None) -> list[int]:
    """Numbers of the group's processes among all."""
    found = group_of(group)
    return [] if found is None else list(found._ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The number that a member of the group has among all processes."""
    ranks = get_process_group_ranks(group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The number that a process has in the group."""
    ranks = get_process_group_ranks(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine, as LOCAL_RANK says."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment, and no fallback_rank is given")
    return int(fallback_rank)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Make a group of some of the processes.

    Every process of the job calls this, members or not, in the same order; with
    `use_local_synchronization` members alone do.

    Args:
        ranks: the members; None for all.
        timeout: how long its collectives wait; by default as long as the default group's.
        backend: the engine; by default the default group's.
        group_desc: what it is for, as `group_desc` tells.
        pg_options, device_id: None.

    Returns:
        The group, or GroupMember.NON_GROUP_MEMBER where this process is not in it.

    Raises:
        ValueError: a rank is not one of the job's.
        DistBackendError: a member did not come.
    """
    default = _default()
    engine = available(backend or default.name())
    _no_options("new_group", pg_options, device_id)
    time = default._timeout if timeout is None else _time(timeout)
    members = list(range(default.size())) if ranks is None else sorted(ranks)
    for rank in members:
        if not 0 <= rank < default.size():
            raise ValueError(
                "The new group's rank should be within the world_size set by init_process_group: "
                f"expected 0 to {default.size() - 1}, got {rank}"
            )
    if len(set(members)) != len(members):
        raise ValueError(f"new_group: expected each rank once, got {members}")
    kind = "-".join(map(str, members)) if use_local_synchronization else ""
    count = _Default.made[kind] = _Default.made.get(kind, 0) + 1
    if default.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    name = f"{kind}:{count}" if kind else str(count)
    store = PrefixStore(f"group {name}", _Default.store)
    made = ProcessGroup(
        engine, members, store, time, name, default.rank(), group_desc or "undefined"
    )
    _Default.all.append(made)
    return made


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make groups that have no rank in common.

    Returns:
        This process's group (None where it is in none), and all of them.

    Raises:
        ValueError: a rank is in two of them.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: set[int] = set()
    for ranks in ranks_per_subgroup_list:
        if again := seen & set(ranks):
            raise ValueError(f"Rank {min(again)} has appeared in two subgroups")
        seen |= set(ranks)
    groups = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    mine = [g for g in groups if isinstance(g, ProcessGroup)]
    return (mine[0] if mine else None), groups


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Cut the processes of a group in groups of `group_size` each, in the order of their ranks.

    Raises:
        ValueError: the number of processes is no multiple of it, or it is not given.
    """
    ranks = get_process_group_ranks(group)
    if group_size is None:
        raise ValueError("new_subgroups: expected group_size, got None; there are no GPUs to count")
    if group_size <= 0 or len(ranks) % group_size:
        raise ValueError(
            f"The world size must be divisible by group_size, got {len(ranks)} and {group_size}"
        )
    parts = [ranks[i : i + group_size] for i in range(0, len(ranks), group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def split_group(
    parent_pg: Any = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> Any:
    """Cut a group in parts. All members of the group call it, and no others.

    Args:
        parent_pg: the group that is cut; None for the default one.
        split_ranks: the parts, as lists of ranks in that group.

    Returns:
        The part with this process, or None.

    Raises:
        ValueError: a rank is in two parts or in none of the group's.
    """
    parent = group_of(parent_pg)
    if parent is None:
        raise ValueError("split_group: expected a group that this process is in")
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    every = [rank for part in split_ranks for rank in part]
    if len(set(every)) != len(every) or not all(0 <= r < parent.size() for r in every):
        raise ValueError(
            f"split_group: expected ranks of 0 to {parent.size() - 1}, each once, got {split_ranks}"
        )
    for part in split_ranks:
        if parent.rank() in part:
            ranks = [parent._ranks[r] for r in part]
            return new_group(
                ranks, timeout or parent._timeout, parent.name(), pg_options, True, group_desc
            )
    return None
