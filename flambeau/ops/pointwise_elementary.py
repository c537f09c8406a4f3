"""Exponential and trigonometric functions."""

from __future__ import annotations

from flambeau.ops._lang import *


@pointwise(promote="float")
def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent.

    >>> torch.tanh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    return s.tanh(input)


@pointwise(promote="float")
def sin(input: Tensor) -> Tensor:
    """Sine.

    >>> torch.sin(torch.tensor([0.0]))
    tensor([0.])
    """
    return s.sin(input)


@pointwise(promote="float")
def exp(input: Tensor) -> Tensor:
    """Exponential.

    >>> torch.exp(torch.tensor([0.0]))
    tensor([1.])
    """
    return s.exp(input)
