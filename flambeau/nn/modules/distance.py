"""Distances and similarities between rows; the arithmetic is in `nn.functional`."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F

from ._fields import fields, option
from .module import Module

__all__ = ["PairwiseDistance", "CosineSimilarity"]


@fields(shown=False)
class PairwiseDistance(Module):
    """p-norm of the difference of two batches of vectors.

    Args:
        p: the norm; may be negative.
        eps: added to each difference.
        keepdim: keep the last dimension, with size 1.
    """

    norm: float = option(default=2.0, alias="p")
    eps: float = 1e-6
    keepdim: bool = False

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Distances of the rows of (N, D) and (N, D)."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


@fields(shown=False)
class CosineSimilarity(Module):
    """Cosine of the angle between vectors along a dimension.

    Args:
        dim: the dimension.
        eps: smallest product of norms that is divided by.
    """

    dim: int = 1
    eps: float = 1e-8

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Similarities."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
