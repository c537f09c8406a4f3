"""Random zeroing of elements or channels while training; the draws are those of `F.*dropout*`."""

from __future__ import annotations

from typing import ClassVar

from flambeau import Tensor
from flambeau.nn import functional as F

from ._fields import fields
from .module import Module

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


@fields
class _DropoutNd(Module):
    """Zero at random with probability p, and scale the rest by 1 / (1 - p); nothing in evaluation.

    Args:
        p: the probability.
        inplace: write into the input.
    """

    _op: ClassVar[str]  # the function of nn.functional
    p: float = 0.5
    inplace: bool = False

    def _settle(self) -> None:
        if self.p < 0 or self.p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def forward(self, input: Tensor) -> Tensor:
        """Drop."""
        return getattr(F, self._op)(input, self.p, self.training, self.inplace)


class Dropout(_DropoutNd):
    """Zero single elements (Hinton et al., 2012); see `_DropoutNd`.

    Example:
        >>> import flambeau as fb
        >>> fb.nn.Dropout(0.2).eval()(fb.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Drop."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zero whole channels of (N, C, L) or (C, L); see `_DropoutNd`."""

    _op = "dropout1d"


class Dropout2d(_DropoutNd):
    """Zero whole channels of (N, C, H, W) or (N, C, L); see `_DropoutNd`."""

    _op = "dropout2d"


class Dropout3d(_DropoutNd):
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W); see `_DropoutNd`."""

    _op = "dropout3d"


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance after `SELU` (Klambauer et al., 2017)."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop."""
        return F.feature_alpha_dropout(input, self.p, self.training)
