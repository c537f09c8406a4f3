"""Comparison, extremes, choice."""

from __future__ import annotations

from flambeau.ops._lang import *


@pointwise(conditions=("condition",), inplace=False)
def where(condition: Tensor, input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Elements of `input` where the condition holds, else those of `other`.

    >>> torch.where(torch.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    return input if condition else other


@pointwise(dtypes="bif", aliases=("greater",), label="gt_cpu")
def gt(input: Tensor, other: Tensor | Number) -> Tensor:
    """Is `input` greater than `other`?

    >>> torch.gt(torch.tensor([1, 2]), 1)
    tensor([False,  True])
    """
    return input > other
