"""Collectives of a group of one: each has the result that its definition gives for one process.

Owns the checks of their arguments. Sums, means, products and extremes of one value are that value;
gathering gives one part; sending to oneself is refused, as with more processes.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, NoReturn

from flambeau import Tensor, no_grad

from ._group import ReduceOp, Work, check_rank, member

__all__ = [
    "P2POp",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]


def _end(async_op: bool, result: Any = None) -> Work | None:
    return Work(result) if async_op else None


def _tensor(op: str, name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{op}: expected {name} to be a Tensor, got {type(value).__name__}")
    return value


def _one(op: str, name: str, values: Sequence[Any] | None) -> Any:
    if values is None or len(values) != 1:
        got = "none" if values is None else len(values)
        raise ValueError(f"{op}: expected one entry of {name} for one process, got {got}")
    return values[0]


def _copy(op: str, target: Any, source: Any) -> list[Tensor]:
    """What this process has arrives where the result is expected."""
    target, source = _tensor(op, "output", target), _tensor(op, "input", source)
    if target.numel() != source.numel() or target.dtype != source.dtype:
        raise ValueError(
            f"{op}: expected an output of {source.numel()} {source.dtype}, got {target.numel()} "
            f"{target.dtype}"
        )
    with no_grad():
        target.copy_(source.reshape(target.shape))
    return [target]


def _reduces(op: str, how: Any) -> None:
    if not isinstance(how, ReduceOp):
        raise TypeError(f"{op}: expected a ReduceOp, got {type(how).__name__}")
    if how is ReduceOp.PREMUL_SUM:
        raise NotImplementedError(f"{op}: ReduceOp.PREMUL_SUM is not built yet")


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Join the processes' tensors, in place; of one process the tensor stays as it is."""
    _tensor("all_reduce", "tensor", tensor)
    _reduces("all_reduce", op)
    return _end(async_op, [tensor]) if member(group) else None


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Join the processes' tensors at `dst`."""
    check_rank("reduce", "dst", dst if group_dst is None else group_dst)
    return all_reduce(tensor, op, group, async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send the tensor of `src` to all."""
    _tensor("broadcast", "tensor", tensor)
    check_rank("broadcast", "src", src if group_src is None else group_src)
    return _end(async_op, [tensor]) if member(group) else None


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gather the processes' tensors in a list."""
    if not member(group):
        return None
    out = _copy("all_gather", _one("all_gather", "tensor_list", tensor_list), tensor)
    return _end(async_op, out)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gather the processes' tensors in one."""
    if not member(group):
        return None
    return _end(async_op, _copy("all_gather_into_tensor", output_tensor, input_tensor))


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gather the processes' tensors at `dst`."""
    check_rank("gather", "dst", dst if group_dst is None else group_dst)
    if not member(group):
        return None
    return _end(async_op, _copy("gather", _one("gather", "gather_list", gather_list), tensor))


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send each process its part of the list of `src`."""
    check_rank("scatter", "src", src if group_src is None else group_src)
    if not member(group):
        return None
    return _end(async_op, _copy("scatter", tensor, _one("scatter", "scatter_list", scatter_list)))


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Join the processes' lists and send each its part."""
    _reduces("reduce_scatter", op)
    if not member(group):
        return None
    found = _copy("reduce_scatter", output, _one("reduce_scatter", "input_list", input_list))
    return _end(async_op, found)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Join the processes' tensors and send each its part."""
    _reduces("reduce_scatter_tensor", op)
    return _end(async_op, _copy("reduce_scatter_tensor", output, input)) if member(group) else None


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process its entry, and receive one from each."""
    if not member(group):
        return None
    target = _one("all_to_all", "output_tensor_list", output_tensor_list)
    source = _one("all_to_all", "input_tensor_list", input_tensor_list)
    return _end(async_op, _copy("all_to_all", target, source))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process its rows, and receive some from each."""
    for sizes, tensor in ((output_split_sizes, output), (input_split_sizes, input)):
        if sizes and _one("all_to_all_single", "split sizes", sizes) != tensor.shape[0]:
            raise ValueError(
                f"all_to_all_single: expected split sizes that sum to {tensor.shape[0]}, "
                f"got {sizes}"
            )
    return _end(async_op, _copy("all_to_all_single", output, input)) if member(group) else None


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait for all processes: this one is here."""
    return _end(async_op) if member(group) else None


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait for all processes: this one is here."""
    member(group)


def _through_bytes(obj: Any) -> Any:
    """As it arrives: a copy, by pickling."""
    return pickle.loads(pickle.dumps(obj))


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Gather the processes' objects, which are copied."""
    if member(group):
        _one("all_gather_object", "object_list", object_list)
        object_list[0] = _through_bytes(obj)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Gather the processes' objects at `dst`."""
    check_rank("gather_object", "dst", dst if group_dst is None else group_dst)
    if member(group):
        _one("gather_object", "object_gather_list", object_gather_list)
        assert object_gather_list is not None
        object_gather_list[0] = _through_bytes(obj)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Send the objects of `src` to all; its own stay as they are."""
    check_rank("broadcast_object_list", "src", src if group_src is None else group_src)
    member(group)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Send each process its object of the list of `src`."""
    check_rank("scatter_object_list", "src", src if group_src is None else group_src)
    if member(group):
        given = _one("scatter_object_list", "scatter_object_input_list", scatter_object_input_list)
        if len(scatter_object_output_list) < 1:
            raise ValueError("scatter_object_list: expected an output list with an entry, got none")
        scatter_object_output_list[0] = _through_bytes(given)


def _to_oneself(op: str) -> NoReturn:
    raise ValueError(f"{op}: expected the rank of another process; there is this one alone")


def send(tensor: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: there is nobody to send to."""
    _to_oneself("send")


def recv(tensor: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: there is nobody to receive from."""
    _to_oneself("recv")


def isend(tensor: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: there is nobody to send to."""
    _to_oneself("isend")


def irecv(tensor: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: there is nobody to receive from."""
    _to_oneself("irecv")


class P2POp:
    """A message between two processes; there is one process alone."""

    def __init__(self, op: Any, tensor: Tensor, *args: Any, **kwargs: Any) -> None:
        _to_oneself("P2POp")


def batch_isend_irecv(p2p_op_list: list[Any]) -> NoReturn:
    """Refuse: there is nobody to exchange with."""
    _to_oneself("batch_isend_irecv")
