"""Padding of the last one, two or three dimensions.

Owns the padding amounts; the arithmetic is `F.pad`. Invariant: `padding` is a tuple of two numbers
per dimension, last dimension first.
"""

from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.nn import functional as F

from .module import Module
from .utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(Module):
    """Padding by a rule of `F.pad`.

    Args:
        padding: how much; one number, or (left, right, top, bottom, ...).
    """

    __constants__ = ["padding"]
    _mode: str
    _nd: int

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._nd)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Pad."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    """Continue with the values of the other end; see `_PadNd`."""

    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Pad (N, C, *spatial) or (C, *spatial)."""
        nd = self._nd
        if input.dim() not in (nd + 1, nd + 2):
            raise ValueError(f"expected {nd + 1}D or {nd + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class _ReflectionPadNd(_PadNd):
    """Mirror the input at its edge, which is not repeated; see `_PadNd`."""

    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    """Repeat the value at the edge; see `_PadNd`."""

    _mode = "replicate"


class _ConstantPadNd(_PadNd):
    """Continue with one value.

    Args:
        padding: how much; one number, or (left, right, top, bottom, ...). Negative numbers crop.
        value: what with.
    """

    __constants__ = ["padding", "value"]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Pad."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    """Continue with zeros; see `_PadNd`."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class CircularPad1d(_CircularPadNd):
    """Circular padding of the last dimension; see `_PadNd`."""

    _nd = 1


class CircularPad2d(_CircularPadNd):
    """Circular padding of the last two dimensions; see `_PadNd`."""

    _nd = 2


class CircularPad3d(_CircularPadNd):
    """Circular padding of the last three dimensions; see `_PadNd`."""

    _nd = 3


class ConstantPad1d(_ConstantPadNd):
    """Padding of the last dimension by a value; see `_ConstantPadNd`."""

    _nd = 1


class ConstantPad2d(_ConstantPadNd):
    """Padding of the last two dimensions by a value; see `_ConstantPadNd`."""

    _nd = 2


class ConstantPad3d(_ConstantPadNd):
    """Padding of the last three dimensions by a value; see `_ConstantPadNd`."""

    _nd = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Mirroring at the ends of the last dimension; see `_PadNd`."""

    _nd = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Mirroring at the ends of the last two dimensions; see `_PadNd`."""

    _nd = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Mirroring at the ends of the last three dimensions; see `_PadNd`."""

    _nd = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Repetition of the edge values of the last dimension; see `_PadNd`."""

    _nd = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repetition of the edge values of the last two dimensions; see `_PadNd`."""

    _nd = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repetition of the edge values of the last three dimensions; see `_PadNd`."""

    _nd = 3


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Zero padding of the last dimension; see `_PadNd`."""


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Zero padding of the last two dimensions; see `_PadNd`."""


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Zero padding of the last three dimensions; see `_PadNd`."""
