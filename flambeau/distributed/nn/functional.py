"""Collectives that return tensors, through which gradients flow.

Owns each one's derivative, which is a collective too: every process that went forward has to go
backward. The checks are those of the collectives in place.
"""

from __future__ import annotations

from typing import Any

from flambeau import Tensor, autograd, empty_like, zeros_like

from .. import _collectives as plain
from .._arguments import members, root, tensor
from .._group import ProcessGroup, ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _members(op: str, given: Any) -> ProcessGroup:
    found = members(op, given)
    if found is None:
        raise ValueError(f"{op}: expected a group that this process is in")
    return found


class _Broadcast(autograd.Function):
    @staticmethod
    def forward(ctx: Any, source: int, group: Any, x: Tensor) -> Tensor:
        ctx.source, ctx.group = source, group
        y = x.clone()
        plain.broadcast(y, group=group, group_src=source)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        total = _Reduce.apply(ctx.source, ReduceOp.SUM, ctx.group, grad)
        return None, None, total if ctx.source == ctx.group.rank() else zeros_like(grad)


class _Reduce(autograd.Function):
    @staticmethod
    def forward(ctx: Any, to: int, op: ReduceOp, group: Any, x: Tensor) -> Tensor:
        ctx.to, ctx.group = to, group
        y = x.clone()
        plain.reduce(y, op=op, group=group, group_dst=to)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.to, ctx.group, grad)


class _AllReduce(autograd.Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, x: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        y = x.clone()
        plain.all_reduce(y, op, group)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _AllGather(autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, x: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        out = [empty_like(x) for _ in range(group.size())]
        plain.all_gather(out, x, group)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, *grads)


class _ReduceScatter(autograd.Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, *xs: Tensor) -> Tensor:
        ctx.group = group
        out = empty_like(xs[group.rank()])
        plain.reduce_scatter(out, list(xs), op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, *_AllGather.apply(ctx.group, grad)


class _Gather(autograd.Function):
    @staticmethod
    def forward(ctx: Any, to: int, group: Any, x: Tensor) -> tuple[Tensor, ...]:
        ctx.to, ctx.group = to, group
        out = [zeros_like(x) for _ in range(group.size())]
        plain.gather(x, out if to == group.rank() else None, group=group, group_dst=to)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.to, ctx.group, *grads)


class _Scatter(autograd.Function):
    @staticmethod
    def forward(ctx: Any, source: int, group: Any, *xs: Tensor) -> Tensor:
        ctx.source, ctx.group = source, group
        out = zeros_like(xs[0])
        here = source == group.rank()
        plain.scatter(out, list(xs) if here else None, group=group, group_src=source)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.source, ctx.group, grad)


class _AllToAll(autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, shapes: Any, *xs: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.shapes = group, [x.shape for x in xs]
        out = [xs[0].new_empty(shape) for shape in shapes]
        plain.all_to_all(out, list(xs), group)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *grads)


class _AllToAllSingle(autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, shape: Any, to: Any, of: Any, x: Tensor) -> Tensor:
        ctx.group, ctx.shape, ctx.to, ctx.of = group, x.shape, to, of
        out = x.new_empty(shape)
        plain.all_to_all_single(out, x.contiguous(), of, to, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        back = _AllToAllSingle.apply(ctx.group, ctx.shape, ctx.of, ctx.to, grad)
        return None, None, None, None, back


class _AllGatherBase(autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, shape: Any, x: Tensor) -> Tensor:
        ctx.group, ctx.shape = group, x.shape
        out = x.new_empty(shape)
        plain.all_gather_into_tensor(out, x.contiguous(), group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        parts = grad.contiguous().view(ctx.group.size(), *ctx.shape)
        return None, None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, *parts)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of `src`."""
    found = _members("broadcast", group)
    return _Broadcast.apply(root("broadcast", "src", found, src, None), found, _given(tensor))


def _given(value: Any) -> Tensor:
    return tensor("distributed.nn", "tensor", value)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The processes' tensors, joined."""
    return _AllReduce.apply(op, _members("all_reduce", group), _given(tensor))


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The processes' tensors, joined at `dst`."""
    found = _members("reduce", group)
    return _Reduce.apply(root("reduce", "dst", found, dst, None), op, found, _given(tensor))


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The processes' tensors."""
    return _AllGather.apply(_members("all_gather", group), _given(tensor))


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The processes' tensors, at `dst`; zeros elsewhere."""
    found = _members("gather", group)
    return _Gather.apply(root("gather", "dst", found, dst, None), found, _given(tensor))


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This process's part of the list of `src`."""
    found = _members("scatter", group)
    return _Scatter.apply(root("scatter", "src", found, src, None), found, *tensors)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """This process's part of the lists, joined."""
    return _ReduceScatter.apply(op, _members("reduce_scatter", group), *input_list)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """What each process has for this one, in the shapes of the output list."""
    shapes = [each.shape for each in output_tensor_list]
    return _AllToAll.apply(_members("all_to_all", group), shapes, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """What each process has for this one, one after another along the first dimension.

    Args:
        output: gives the shape of the result.
        input: what goes to the processes, one after another.
        output_split_sizes, input_split_sizes: rows of each process; None for equal ones.
        group: of the processes.
    """
    found = _members("all_to_all_single", group)
    splits = input_split_sizes, output_split_sizes
    return _AllToAllSingle.apply(found, output.shape, *splits, _given(input))


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Any = None) -> Tensor:
    """The processes' tensors, in a tensor of the shape of `output_tensor`."""
    found = _members("all_gather_into_tensor", group)
    return _AllGatherBase.apply(found, output_tensor.shape, _given(input_tensor))
