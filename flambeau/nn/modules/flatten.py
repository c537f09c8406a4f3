"""Joining and splitting of neighbouring dimensions."""

from __future__ import annotations

from typing import Any

from flambeau import Tensor

from ._fields import fields
from .module import Module

__all__ = ["Flatten", "Unflatten"]


@fields
class Flatten(Module):
    """Join a range of dimensions into one.

    Args:
        start_dim: first dimension of the range.
        end_dim: last dimension of the range.

    Example:
        >>> import flambeau as fb
        >>> fb.nn.Flatten()(fb.zeros(32, 1, 5, 5)).shape
        torch.Size([32, 25])
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        """Flatten."""
        return input.flatten(self.start_dim, self.end_dim)


@fields
class Unflatten(Module):
    """Split one dimension into several.

    Args:
        dim: the dimension.
        unflattened_size: sizes it is split into; one of them may be -1.
    """

    dim: int
    unflattened_size: Any

    def _settle(self) -> None:
        unflattened_size = self.unflattened_size
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, "
                f"but found type {type(unflattened_size).__name__}"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, "
                    f"but found element of type {type(size).__name__} at pos {i}"
                )

    def forward(self, input: Tensor) -> Tensor:
        """Unflatten."""
        return input.unflatten(self.dim, self.unflattened_size)
