"""Arguments of collectives: checked, translated to ranks of the group, and made contiguous.

Owns the errors that one rank can see by itself; what only all of them together can see is the
core's. Must not know which collective follows what.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from flambeau import Tensor, no_grad
from flambeau.compiler._marks import reaches_others

from ._group import ProcessGroup, ReduceOp, _Default, group_of
from ._work import Work

#: numbers of csrc/distributed/engine.h, in order
KINDS = (
    "nothing all_reduce broadcast reduce all_gather gather scatter reduce_scatter all_to_all "
    "barrier monitored_barrier"
).split()
_NUMBERS = {name: i for i, name in enumerate(KINDS)}
_JOINING = ("all_reduce", "reduce", "reduce_scatter")


def members(op: str, group: Any) -> ProcessGroup | None:
    """The group; None, with a warning, where this process is no member."""
    reaches_others(op)
    found = group_of(group)
    if found is None:
        default = _Default.default
        rank = -1 if default is None else default.rank()
        warnings.warn(
            f"Running {op} on global rank {rank} which does not belong to the given group.",
            stacklevel=3,
        )
    return found


def tensor(op: str, name: str, value: Any) -> Tensor:
    """A tensor, or a TypeError."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{op}: expected {name} to be a Tensor, got {type(value).__name__}")
    return value


def tensors(op: str, name: str, values: Any, count: int, dtype: Any = None) -> list[Tensor]:
    """A list of `count` tensors of one dtype."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{op}: expected {name} to be a list, got {type(values).__name__}")
    if len(values) != count:
        raise ValueError(
            f"{op}: expected {name} to have an entry for each of {count} ranks, got {len(values)}"
        )
    found = [tensor(op, f"{name}[{i}]", v) for i, v in enumerate(values)]
    dtype = dtype or found[0].dtype
    for i, each in enumerate(found):
        if each.dtype != dtype:
            raise ValueError(f"{op}: expected {name}[{i}] of {dtype}, got {each.dtype}")
    return found


def same_size(op: str, name: str, value: Tensor, like: Tensor, what: str) -> None:
    """As many elements as another tensor has."""
    if value.numel() != like.numel():
        raise ValueError(
            f"{op}: expected {name} of {like.numel()} elements as {what} has, got {value.numel()}"
        )


def root(op: str, name: str, group: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    """A rank of the group, from its number among all processes or in the group."""
    if group_rank is not None:
        if rank is not None:
            raise ValueError(f"{op}: expected {name} or group_{name}, got both")
        if not 0 <= group_rank < group.size():
            raise ValueError(
                f"{op}: expected group_{name} of 0 to {group.size() - 1}, got {group_rank}"
            )
        return group_rank
    number = 0 if rank is None else rank
    if number not in group._ranks:
        raise ValueError(
            f"{op}: expected {name} to be a rank of the group, {group._ranks}, got {number}"
        )
    return group._ranks.index(number)


def reduces(op: str, how: Any) -> int:
    """The number of an operator.

    Raises:
        TypeError: it is none.
        RuntimeError: it is PREMUL_SUM, which belongs to NCCL.
    """
    if not isinstance(how, ReduceOp):
        raise TypeError(f"{op}: expected a ReduceOp, got {type(how).__name__}")
    if how is ReduceOp.PREMUL_SUM:
        raise RuntimeError(
            f"Cannot use ReduceOp.PREMUL_SUM with Gloo: {op} has no factor; multiply before it"
        )
    return how.value


class Dense:
    """Contiguous stand-ins for tensors: results are copied back when the collective has ended."""

    def __init__(self) -> None:
        self._back: list[tuple[Tensor, Tensor]] = []

    def source(self, value: Tensor) -> Tensor:
        """One that is read."""
        return value if value.is_contiguous() else value.detach().contiguous()

    def target(self, value: Tensor, read: bool = False) -> Tensor:
        """One that is written; `read`: and read before."""
        if value.is_contiguous():
            return value
        made = value.detach().contiguous() if read else value.detach().new_empty(value.shape)
        self._back.append((value, made))
        return made

    def finish(self) -> Callable[[], None] | None:
        """What copies the results back, where that is needed."""
        back = self._back
        if not back:
            return None

        def copy() -> None:
            with no_grad():
                for value, made in back:
                    value.detach().copy_(made)

        return copy


def run(
    kind: str,
    group: ProcessGroup,
    out: Sequence[Tensor],
    given: Sequence[Tensor],
    *,
    how: int = 0,
    root: int = -1,
    async_op: bool = False,
    dense: Dense | None = None,
    result: Any = None,
    timeout: int | None = None,
) -> Work | None:
    """Run a collective of the core."""
    finish = None if dense is None else dense.finish()
    time = group._milliseconds if timeout is None else timeout
    recorder = group._recorder
    joins = how if kind in _JOINING else None
    call = recorder.begin(kind, out, given, root, joins, time)
    try:
        core = group._core.collective(_NUMBERS[kind], out, given, how, root, time, bool(async_op))
    except BaseException as error:
        group._failed(call, error)
        raise
    if async_op:
        return Work(core, result, finish, group=group, call=call)
    recorder.ended = call
    if finish is not None:
        finish()
    return None
