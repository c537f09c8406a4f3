"""Trading channels for resolution, and back (Shi et al., 2016)."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F

from ._fields import fields
from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


@fields
class PixelShuffle(Module):
    """Move channels into space: (*, C r^2, H, W) to (*, C, H r, W r).

    Args:
        upscale_factor: the factor r.
    """

    upscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        """Shuffle."""
        return F.pixel_shuffle(input, self.upscale_factor)


@fields
class PixelUnshuffle(Module):
    """Move space into channels: (*, C, H r, W r) to (*, C r^2, H, W).

    Args:
        downscale_factor: the factor r.
    """

    downscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        """Unshuffle."""
        return F.pixel_unshuffle(input, self.downscale_factor)
