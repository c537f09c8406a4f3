"""Arithmetic, element by element."""

from __future__ import annotations

from flambeau.ops._lang import *


@pointwise(alias_methods=("__add__",))
def add(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Sum of `input` and `alpha` times `other`.

    >>> torch.add(torch.tensor([1.0, 2.0]), 10)
    tensor([11., 12.])
    """
    if alpha == 1:
        return input + other
    return input + alpha * other


@pointwise()
def mul(input: Tensor, other: Tensor | Number) -> Tensor:
    """Product.

    >>> torch.mul(torch.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """
    return input * other
