"""Sliding blocks of an image as columns (Unfold), and their sum back (Fold)."""

from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.nn import functional as F

from ._fields import fields
from .module import Module

__all__ = ["Fold", "Unfold"]


@fields
class Unfold(Module):
    """Take every block of an image as a column.

    Args:
        kernel_size: size of a block.
        dilation: distance between the elements of a block.
        padding: zeros on both sides of the image.
        stride: step between blocks.

    Shape: (N, C, *spatial) to (N, C * prod(kernel_size), number of blocks).
    """

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1

    def forward(self, input: Tensor) -> Tensor:
        """Unfold."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


@fields
class Fold(Module):
    """Sum blocks into an image; the adjoint of `Unfold`.

    Args:
        output_size: spatial size of the image.
        kernel_size, dilation, padding, stride: as for `Unfold`.

    Shape: (N, C * prod(kernel_size), number of blocks) to (N, C, *output_size).
    """

    output_size: Any
    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1

    def forward(self, input: Tensor) -> Tensor:
        """Fold."""
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )
