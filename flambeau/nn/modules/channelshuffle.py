"""Interleaving of groups of channels (Zhang et al., 2018)."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F

from ._fields import fields
from .module import Module

__all__ = ["ChannelShuffle"]


@fields
class ChannelShuffle(Module):
    """Reorder the channels of (N, C, *) so that each group's are spread evenly.

    Args:
        groups: number of groups; divides C.
    """

    groups: int

    def forward(self, input: Tensor) -> Tensor:
        """Shuffle."""
        return F.channel_shuffle(input, self.groups)
