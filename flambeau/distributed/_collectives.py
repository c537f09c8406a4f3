"""Collectives on tensors: every process of the group calls the same one.

Owns which tensors each of them reads and writes. Ranks that call different collectives, or with
different sizes, all get the same error from the core, and the group goes on.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from flambeau import Tensor
from flambeau.compiler._marks import reaches_others

from ._arguments import Dense, members, reduces, root, run, same_size, tensor, tensors
from ._group import ReduceOp, group_of
from ._store import milliseconds
from ._work import Work

__all__ = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Join the processes' tensors, in place: all get the same bits.

    Args:
        tensor: of any dtype, with the same number of elements on all ranks. Half formats are
            summed in float32 and rounded once.
        op: how values are joined. AVG is for floats and complex numbers, MIN and MAX for real ones,
            BAND, BOR and BXOR for whole numbers and truth values.
        group: the processes; None for all.
        async_op: return a Work instead of waiting.

    Returns:
        The Work, or None.

    Raises:
        RuntimeError: values of the dtype cannot be joined so.
        DistBackendError: another rank died, did not come in time, or calls something else.
    """
    _tensor("all_reduce", tensor)
    how = reduces("all_reduce", op)
    if (found := members("all_reduce", group)) is None:
        return None
    dense = Dense()
    given = [dense.target(tensor, read=True)]
    return run(
        "all_reduce", found, (), given, how=how, async_op=async_op, dense=dense, result=[tensor]
    )


def _tensor(op: str, value: Any) -> Tensor:
    return tensor(op, "tensor", value)


def all_reduce_coalesced(
    tensors: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of each tensor of a list."""
    if not tensors:
        raise ValueError("all_reduce_coalesced: expected tensors, got an empty list")
    works = [all_reduce(each, op, group, async_op) for each in tensors]
    return works[-1]  # they run one after another


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Join the processes' tensors at `dst`; the others keep theirs."""
    _tensor("reduce", tensor)
    how = reduces("reduce", op)
    if (found := members("reduce", group)) is None:
        return None
    to = root("reduce", "dst", found, dst, group_dst)
    dense = Dense()
    given = [dense.target(tensor, read=True)]
    return run(
        "reduce", found, (), given, how=how, root=to, async_op=async_op, dense=dense,
        result=[tensor],
    )  # fmt: skip


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send the tensor of `src` to all."""
    _tensor("broadcast", tensor)
    if (found := members("broadcast", group)) is None:
        return None
    source = root("broadcast", "src", found, src, group_src)
    dense = Dense()
    given = [dense.target(tensor, read=True)]
    return run(
        "broadcast", found, (), given, root=source, async_op=async_op, dense=dense, result=[tensor]
    )


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gather the processes' tensors in a list, which may be of different sizes.

    Args:
        tensor_list: for each rank a tensor with as many elements as that rank's `tensor` has.
        tensor: this rank's.
    """
    _tensor("all_gather", tensor)
    if (found := members("all_gather", group)) is None:
        return None
    outputs = tensors("all_gather", "tensor_list", tensor_list, found.size(), tensor.dtype)
    mine = outputs[found.rank()]
    same_size("all_gather", f"tensor_list[{found.rank()}]", mine, tensor, "tensor")
    dense = Dense()
    out = [dense.target(each) for each in outputs]
    return run(
        "all_gather", found, out, [dense.source(tensor)], async_op=async_op, dense=dense,
        result=tensor_list,
    )  # fmt: skip


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`all_gather` of each tensor of a list."""
    if not input_tensor_list or len(output_tensor_lists) != len(input_tensor_list):
        raise ValueError(
            "all_gather_coalesced: expected a list of outputs for each input, got "
            f"{len(output_tensor_lists)} and {len(input_tensor_list)}"
        )
    pairs = zip(output_tensor_lists, input_tensor_list, strict=True)
    works = [all_gather(out, given, group, async_op) for out, given in pairs]
    return works[-1]


def _parts(op: str, name: str, value: Tensor, count: int, like: Tensor) -> list[Tensor]:
    """A contiguous tensor, cut in parts that are as large as another one."""
    if value.dtype != like.dtype:
        raise ValueError(f"{op}: expected {name} of {like.dtype}, got {value.dtype}")
    if value.numel() != count * like.numel():
        raise ValueError(
            f"{op}: expected {name} of {count} times {like.numel()} elements, got {value.numel()}"
        )
    flat, n = value.detach().view(-1), like.numel()
    return [flat[i * n : (i + 1) * n] for i in range(count)]


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gather the processes' tensors in one, end to end or along a new first dimension."""
    op = "all_gather_into_tensor"
    output, given = tensor(op, "output_tensor", output_tensor), tensor(op, "input", input_tensor)
    if (found := members(op, group)) is None:
        return None
    dense = Dense()
    out = _parts(op, "output_tensor", dense.target(output), found.size(), given)
    return run(
        "all_gather", found, out, [dense.source(given)], async_op=async_op, dense=dense,
        result=[output_tensor],
    )  # fmt: skip


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gather the processes' tensors at `dst`, where `gather_list` has one for each rank."""
    _tensor("gather", tensor)
    if (found := members("gather", group)) is None:
        return None
    to = root("gather", "dst", found, dst, group_dst)
    dense = Dense()
    out: list[Tensor] = []
    if to == found.rank():
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        lists = tensors("gather", "gather_list", gather_list, found.size(), tensor.dtype)
        for i, each in enumerate(lists):
            same_size("gather", f"gather_list[{i}]", each, tensor, "tensor")
        out = [dense.target(each) for each in lists]
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    return run(
        "gather", found, out, [dense.source(tensor)], root=to, async_op=async_op, dense=dense,
        result=gather_list,
    )  # fmt: skip


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send each process its part of `scatter_list`, which `src` alone has."""
    _tensor("scatter", tensor)
    if (found := members("scatter", group)) is None:
        return None
    source = root("scatter", "src", found, src, group_src)
    dense = Dense()
    given: list[Tensor] = []
    if source == found.rank():
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        lists = tensors("scatter", "scatter_list", scatter_list, found.size(), tensor.dtype)
        for i, each in enumerate(lists):
            same_size("scatter", f"scatter_list[{i}]", each, tensor, "tensor")
        given = [dense.source(each) for each in lists]
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return run(
        "scatter", found, [dense.target(tensor)], given, root=source, async_op=async_op,
        dense=dense, result=[tensor],
    )  # fmt: skip


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Join the processes' lists, entry by entry, and send each rank its entry."""
    tensor("reduce_scatter", "output", output)
    how = reduces("reduce_scatter", op)
    if (found := members("reduce_scatter", group)) is None:
        return None
    lists = tensors("reduce_scatter", "input_list", input_list, found.size(), output.dtype)
    mine = lists[found.rank()]
    same_size("reduce_scatter", "output", output, mine, f"input_list[{found.rank()}]")
    dense = Dense()
    given = [dense.source(each) for each in lists]
    return run(
        "reduce_scatter", found, [dense.target(output)], given, how=how, async_op=async_op,
        dense=dense, result=[output],
    )  # fmt: skip


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Join the processes' tensors and send each rank its part, of equal sizes."""
    name = "reduce_scatter_tensor"
    tensor(name, "output", output), tensor(name, "input", input)
    how = reduces(name, op)
    if (found := members(name, group)) is None:
        return None
    dense = Dense()
    given = _parts(name, "input", dense.source(input), found.size(), output)
    return run(
        "reduce_scatter", found, [dense.target(output)], given, how=how, async_op=async_op,
        dense=dense, result=[output],
    )  # fmt: skip


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send each rank its entry, and receive one from each; entries may be of different sizes."""
    op = "all_to_all"
    if (found := members(op, group)) is None:
        return None
    inputs = tensors(op, "input_tensor_list", input_tensor_list, found.size())
    dtype = inputs[0].dtype
    outputs = tensors(op, "output_tensor_list", output_tensor_list, found.size(), dtype)
    dense = Dense()
    given = [dense.source(each) for each in inputs]
    out = [dense.target(each) for each in outputs]
    return run(op, found, out, given, async_op=async_op, dense=dense, result=output_tensor_list)


def _rows(op: str, name: str, value: Tensor, sizes: list[int] | None, count: int) -> list[Tensor]:
    """A contiguous tensor, cut along its first dimension."""
    length = value.shape[0] if value.dim() else 0
    if not sizes:
        if length % count:
            raise ValueError(
                f"{op}: expected {name} whose first dimension {count} divides, got {length}"
            )
        sizes = [length // count] * count
    if len(sizes) != count or min(sizes) < 0 or sum(sizes) != length:
        raise ValueError(
            f"{op}: expected {count} split sizes of {name} that sum to {length}, got {sizes}"
        )
    value, parts, at = value.detach(), [], 0
    for size in sizes:
        parts.append(value[at : at + size])
        at += size
    return parts


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send each rank some rows, and receive some from each; by default as many for all."""
    op = "all_to_all_single"
    tensor(op, "output", output), tensor(op, "input", input)
    if output.dtype != input.dtype:
        raise ValueError(f"{op}: expected output of {input.dtype}, got {output.dtype}")
    if (found := members(op, group)) is None:
        return None
    dense, n = Dense(), found.size()
    given = _rows(op, "input", dense.source(input), input_split_sizes, n)
    out = _rows(op, "output", dense.target(output), output_split_sizes, n)
    return run("all_to_all", found, out, given, async_op=async_op, dense=dense, result=[output])


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes of the group are here."""
    if (found := members("barrier", group)) is None:
        return None
    if device_ids is not None:
        raise RuntimeError(
            f"Function argument device_ids not supported for the selected backend {found.name()}"
        )
    return run("barrier", found, (), (), async_op=async_op)


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all processes of the group are here; an error names those that are not.

    Args:
        timeout: for how long, by default as long as the group's collectives wait.
        wait_all_ranks: all that are missing are named in any case.
    """
    reaches_others("monitored_barrier")
    found = group_of(group)
    if found is not None:
        time = None if timeout is None else milliseconds("monitored_barrier", timeout)
        run("monitored_barrier", found, (), (), timeout=time)
