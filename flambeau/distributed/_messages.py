"""Messages between two processes: send, recv, their asynchronous forms, and lists of them.

Owns ranks, tags and the copying of messages that are not contiguous. A small message may be on its
way before the other side asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import Tensor

from ._arguments import Dense, members, root, tensor
from ._group import ProcessGroup, group_of
from ._work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _peer(op: str, name: str, group: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    number = root(op, name, group, rank, group_rank)
    if number == group.rank():
        raise ValueError(f"{op}: expected the rank of another process, got this one's, {rank}")
    return number


def _message(
    group: ProcessGroup, sends: bool, value: Tensor, peer: int, tag: int, async_op: bool
) -> tuple[Any, int]:
    """The core's work, or for a receive that has ended the sender; and what is recorded of it."""
    time = group._milliseconds
    call = group._recorder.begin_message(sends, value, peer, time)
    try:
        core = group._core.message(sends, value, peer, tag, time, async_op)
    except BaseException as error:
        group._failed(call, error)
        raise
    if not async_op:
        group._recorder.ended = call
    return core, call


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begin to send a tensor to `dst`; it may not be changed before the Work has ended."""
    return _send("isend", tensor, dst, group, tag, group_dst, True)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to `dst`, where `recv` with the same tag takes it."""
    _send("send", tensor, dst, group, tag, group_dst, False)


def _send(
    op: str,
    value: Tensor,
    dst: int | None,
    group: Any,
    tag: int,
    group_dst: int | None,
    async_op: bool,
) -> Work | None:
    tensor(op, "tensor", value)
    if (found := members(op, group)) is None:
        return None
    if dst is None and group_dst is None:
        raise ValueError(f"{op}: expected dst or group_dst, got neither")
    to = _peer(op, "dst", found, dst, group_dst)
    given = Dense().source(value)
    core, call = _message(found, True, given, to, tag, async_op)
    if not async_op:
        return None
    return Work(core, [value], ranks=found._ranks, group=found, call=call)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begin to receive a tensor, from any process where neither `src` nor `group_src` is given."""
    found = _recv("irecv", tensor, src, group, tag, group_src, True)
    return found if isinstance(found, Work) else None


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor, from any process where neither `src` nor `group_src` is given.

    Returns:
        The rank of the sender among all processes; -1 outside of the group.

    Raises:
        DistBackendError: the message has another size, or its sender died or did not send in time.
    """
    found = _recv("recv", tensor, src, group, tag, group_src, False)
    return found if isinstance(found, int) else -1


def _recv(
    op: str,
    value: Tensor,
    src: int | None,
    group: Any,
    tag: int,
    group_src: int | None,
    async_op: bool,
) -> Work | int | None:
    tensor(op, "tensor", value)
    if (found := members(op, group)) is None:
        return None
    anybody = src is None and group_src is None
    source = -1 if anybody else _peer(op, "src", found, src, group_src)
    dense = Dense()
    out = dense.target(value)
    core, call = _message(found, False, out, source, tag, async_op)
    finish = dense.finish()
    if not isinstance(core, int):
        return Work(core, [value], finish, found._ranks, found, call)
    if finish is not None:
        finish()
    return found._ranks[core]


class P2POp:
    """A message for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: what is sent or received.
        peer: the other process, among all.
        group, tag: as of `isend`.
        group_peer: the other process's number in the group, instead of `peer`.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        found = group_of(group)
        if found is None:
            raise ValueError("P2POp: expected a group that this process is in")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        if peer is None and group_peer is None:
            raise ValueError("P2POp: expected peer or group_peer, got neither")
        self.group_peer = _peer("P2POp", "peer", found, peer, group_peer)
        self.peer = found._ranks[self.group_peer]


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all the messages of a list, in whatever order the other processes have theirs.

    Returns:
        A Work for each.
    """
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv: expected a list of P2POp, got an empty one")
    for each in p2p_op_list:
        if not isinstance(each, P2POp):
            raise ValueError(
                f"batch_isend_irecv: expected a list of P2POp, got {type(each).__name__} in it"
            )
    works = []
    for each in p2p_op_list:
        given = {"dst" if each.op is isend else "src": each.peer}
        works.append(each.op(each.tensor, group=each.group, tag=each.tag, **given))
    return works
