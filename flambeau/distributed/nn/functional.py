"""Collectives that return tensors, through which gradients flow.

Of one process each returns what it was given; its derivative is the identity. The checks are those
of the collectives in place.
"""

from __future__ import annotations

from typing import Any

from flambeau import Tensor

from .._collectives import _one, _reduces, _tensor
from .._group import ReduceOp, check_rank, group, member

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _given(op: str, tensor: Any, members: Any) -> Tensor:
    member(members)
    return _tensor(op, "tensor", tensor).clone()


def broadcast(tensor: Tensor, src: int, group: Any = group.WORLD) -> Tensor:
    """The tensor of `src`."""
    check_rank("broadcast", "src", src)
    return _given("broadcast", tensor, group)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = group.WORLD) -> Tensor:
    """The processes' tensors, joined."""
    _reduces("all_reduce", op)
    return _given("all_reduce", tensor, group)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = group.WORLD) -> Tensor:
    """The processes' tensors, joined at `dst`."""
    check_rank("reduce", "dst", dst)
    return all_reduce(tensor, op, group)


def all_gather(tensor: Tensor, group: Any = group.WORLD) -> tuple[Tensor, ...]:
    """The processes' tensors."""
    return (_given("all_gather", tensor, group),)


def gather(tensor: Tensor, dst: int = 0, group: Any = group.WORLD) -> tuple[Tensor, ...]:
    """The processes' tensors, at `dst`."""
    check_rank("gather", "dst", dst)
    return all_gather(tensor, group)


def scatter(tensors: list[Tensor], src: int = 0, group: Any = group.WORLD) -> Tensor:
    """This process's part of the list of `src`."""
    check_rank("scatter", "src", src)
    return _given("scatter", _one("scatter", "tensors", tensors), group)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = group.WORLD
) -> Tensor:
    """This process's part of the lists, joined."""
    _reduces("reduce_scatter", op)
    return _given("reduce_scatter", _one("reduce_scatter", "input_list", input_list), group)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = group.WORLD
) -> tuple[Tensor, ...]:
    """What each process has for this one."""
    _one("all_to_all", "output_tensor_list", output_tensor_list)
    return (_given("all_to_all", _one("all_to_all", "input", input_tensor_list), group),)
