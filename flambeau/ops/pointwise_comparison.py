"""Comparison, extremes, choice."""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_number


@composite(namespaces=(), method=False)
def _check_condition(condition: Tensor) -> None:
    """What where asks of its condition."""
    check(
        condition.dtype == bool_ or condition.dtype == uint8,
        "where expected condition to be a boolean tensor, but got a tensor with dtype "
        f"{scalar_type_name(condition.dtype)}",
    )
    if condition.dtype == uint8:
        warn("where: a condition of uint8 is deprecated: use one of bool")


@pointwise(conditions=("condition",), inplace=False)
def where(condition: Tensor, input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Elements of `input` where the condition holds, else those of `other`.

    >>> torch.where(torch.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    _check_condition(condition)
    _check_number("where", "input", input, other, True)
    _check_number("where", "other", other, input, True)
    return input if condition else other


@where.overload(kind="composite", method=False, conditions=(), differentiable=False)
def where(condition: Tensor) -> Tensors:
    """Places of entries that are not zero, one int64 vector per dim: `nonzero(as_tuple=True)`.

    >>> torch.where(torch.tensor([0, 3, 4]))
    (tensor([1, 2]),)
    """
    return nonzero(condition.reshape([1]) if condition.ndim == 0 else condition).unbind(1)


@pointwise(dtypes="bif", aliases=("greater",), label="gt_cpu")
def gt(input: Tensor, other: Tensor | Number) -> Tensor:
    """Is `input` greater than `other`?

    >>> torch.gt(torch.tensor([1, 2]), 1)
    tensor([False,  True])
    """
    return input > other
