"""Collectives on Python objects, which travel pickled: only from processes that one trusts.

Owns how bytes of different lengths travel as tensors. Every object that arrives is a copy.
"""

from __future__ import annotations

import pickle
from typing import Any

import flambeau as fb
from flambeau import Tensor

from ._arguments import members, root
from ._collectives import all_gather, broadcast, gather, scatter
from ._group import ProcessGroup
from ._messages import recv, send

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _over(memory: bytearray) -> Tensor:
    """A tensor over the bytes."""
    return fb.frombuffer(memory, dtype=fb.uint8) if memory else fb.empty(0, dtype=fb.uint8)


def _bytes_of(obj: Any) -> Tensor:
    return _over(bytearray(pickle.dumps(obj)))


def _object_of(data: Tensor) -> Any:
    memory = bytearray(data.numel())
    _over(memory).copy_(data)
    return pickle.loads(memory)


def _lengths(group: ProcessGroup, length: int) -> list[int]:
    """How many bytes each rank has."""
    every = [fb.zeros(1, dtype=fb.int64) for _ in range(group.size())]
    all_gather(every, fb.tensor([length]), group)
    return [int(n) for n in every]


def _empty(length: int) -> Tensor:
    return fb.empty(length, dtype=fb.uint8)


def _needs(op: str, name: str, values: Any, count: int) -> None:
    if values is None or len(values) < count:
        got = "None" if values is None else f"{len(values)} entries"
        raise ValueError(
            f"{op}: expected {name} with an entry for each of {count} ranks, got {got}"
        )


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Gather the processes' objects in a list, which has an entry for each."""
    if (found := members("all_gather_object", group)) is None:
        return
    _needs("all_gather_object", "object_list", object_list, found.size())
    mine = _bytes_of(obj)
    parts = [_empty(n) for n in _lengths(found, len(mine))]
    all_gather(parts, mine, found)
    for i, part in enumerate(parts):
        object_list[i] = _object_of(part)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Gather the processes' objects in the list of `dst`."""
    if (found := members("gather_object", group)) is None:
        return
    to = root("gather_object", "dst", found, dst, group_dst)
    here = to == found.rank()
    if here:
        _needs("gather_object", "object_gather_list", object_gather_list, found.size())
    mine = _bytes_of(obj)
    lengths = _lengths(found, len(mine))
    padded = _empty(max(lengths))
    padded[: len(mine)] = mine
    parts = [_empty(max(lengths)) for _ in lengths] if here else None
    gather(padded, parts, group=found, group_dst=to)
    if here and object_gather_list is not None and parts is not None:
        for i, (part, length) in enumerate(zip(parts, lengths, strict=True)):
            object_gather_list[i] = _object_of(part[:length])


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Send the objects of `src` to all, whose lists are as long; its own stay as they are."""
    if (found := members("broadcast_object_list", group)) is None:
        return
    source = root("broadcast_object_list", "src", found, src, group_src)
    here = source == found.rank()
    sent = [_bytes_of(each) for each in object_list] if here else []
    lengths = fb.tensor([len(each) for each in sent] or [0] * len(object_list), dtype=fb.int64)
    broadcast(lengths, group=found, group_src=source)
    data = fb.cat(sent) if sent else _empty(int(lengths.sum()))
    broadcast(data, group=found, group_src=source)
    if not here:
        for i, part in enumerate(data.split(lengths.tolist())):
            object_list[i] = _object_of(part)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Put the entry that `src`'s list has for this process in the output list's first place."""
    op = "scatter_object_list"
    if (found := members(op, group)) is None:
        return
    source = root(op, "src", found, src, group_src)
    if len(scatter_object_output_list) < 1:
        raise ValueError(f"{op}: expected an output list with an entry, got none")
    sent: list[Tensor] | None = None
    lengths = fb.zeros(found.size(), dtype=fb.int64)
    if source == found.rank():
        given = scatter_object_input_list
        if given is None or len(given) != found.size():
            got = "None" if given is None else len(given)
            raise ValueError(
                f"{op}: expected scatter_object_input_list with an entry for each of "
                f"{found.size()} ranks, got {got}"
            )
        sent = [_bytes_of(each) for each in given]
        lengths = fb.tensor([len(each) for each in sent])
    broadcast(lengths, group=found, group_src=source)
    longest = int(lengths.max())
    if sent is not None:
        sent = [fb.cat([each, _empty(longest - len(each))]) for each in sent]
    mine = _empty(longest)
    scatter(mine, sent, group=found, group_src=source)
    scatter_object_output_list[0] = _object_of(mine[: int(lengths[found.rank()])])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to `dst`, where `recv_object_list` takes them."""
    if members("send_object_list", group) is None:
        return
    parts = [_bytes_of(each) for each in object_list]
    send(fb.tensor([len(each) for each in parts], dtype=fb.int64), dst, group, 0, group_dst)
    send(fb.cat(parts), dst, group, 0, group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive as many objects as the list is long; the rank of their sender."""
    if members("recv_object_list", group) is None:
        return -1
    lengths = fb.zeros(len(object_list), dtype=fb.int64)
    sender = recv(lengths, src, group, 0, group_src)
    data = _empty(int(lengths.sum()))
    recv(data, sender, group)
    for i, part in enumerate(data.split(lengths.tolist())):
        object_list[i] = _object_of(part)
    return sender
