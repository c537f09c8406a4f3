"""Interleaving of groups of channels (Zhang et al., 2018)."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F

from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Reorder the channels of (N, C, *) so that each group's are spread evenly.

    Args:
        groups: number of groups; divides C.
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Shuffle."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
