"""Sliding blocks of an image as columns (Unfold), and their sum back (Fold)."""

from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.nn import functional as F

from .module import Module

__all__ = ["Fold", "Unfold"]


class _Blocks(Module):
    """The geometry of the blocks."""

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Unfold(_Blocks):
    """Take every block of an image as a column.

    Args:
        kernel_size: size of a block.
        dilation: distance between the elements of a block.
        padding: zeros on both sides of the image.
        stride: step between blocks.

    Shape: (N, C, *spatial) to (N, C * prod(kernel_size), number of blocks).
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def forward(self, input: Tensor) -> Tensor:
        """Unfold."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(_Blocks):
    """Sum blocks into an image; the adjoint of `Unfold`.

    Args:
        output_size: spatial size of the image.
        kernel_size, dilation, padding, stride: as for `Unfold`.

    Shape: (N, C * prod(kernel_size), number of blocks) to (N, C, *output_size).
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Fold."""
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"
