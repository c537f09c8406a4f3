"""Families that are transforms of normal and Cauchy numbers: log-normal, logistic normal,
half-normal, half-Cauchy.

Invariant: density, distribution function and samples follow from base and transforms; here stand
moments and entropies. Formulas: Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import constraints
from ._location_scale import Cauchy, Normal
from .distribution import family
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform, ExpTransform, StickBreakingTransform


@family()
class LogNormal(TransformedDistribution):
    """Numbers whose logarithm is normal.

    Args:
        loc: mean of the logarithm.
        scale: standard deviation of the logarithm.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.LogNormal(0.0, 1.0).log_prob(torch.tensor(1.0))
        tensor(-0.9189)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """Mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """Standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        s2 = self.scale.pow(2)
        return s2.expm1() * (2 * self.loc + s2).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


@family()
class LogisticNormal(TransformedDistribution):
    """Points of the simplex whose stick-breaking coordinates are normal.

    Args:
        loc: shape (..., size - 1), means of the coordinates.
        scale: their standard deviations.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.LogisticNormal(torch.zeros(2), torch.ones(2)).event_shape
        torch.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """Means of the coordinates."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """Standard deviations of the coordinates."""
        return self.base_dist.base_dist.scale


class _Half(TransformedDistribution):
    """The absolute value of a number that is symmetric about zero."""

    arg_constraints: Any = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    @property
    def scale(self) -> Tensor:
        """Width."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return fb.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        value = fb.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        if self._validate_args:
            self._validate_sample(value)
        return fb.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


@family()
class HalfNormal(_Half):
    """The absolute value of a normal number of mean zero.

    Args:
        scale: standard deviation of the normal number.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.HalfNormal(1.0).mean
        tensor(0.7979)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)


@family()
class HalfCauchy(_Half):
    """The absolute value of a Cauchy number about zero.

    Args:
        scale: its median.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.HalfCauchy(1.0).cdf(torch.tensor(1.0))
        tensor(0.5000)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return fb.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
