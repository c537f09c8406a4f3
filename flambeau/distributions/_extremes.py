"""Families that are powers, logarithms and exponentials of uniform, exponential and gamma numbers:
Gumbel, Pareto, Weibull, Kumaraswamy, inverse gamma.

Invariant: density, distribution function and samples follow from base and transforms; here stand
moments and entropies. Formulas: Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import constraints
from ._location_scale import Uniform
from ._positive import Exponential, Gamma
from .distribution import family
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import broadcast_all, euler_constant


@family("loc", "scale")
class Gumbel(TransformedDistribution):
    """The Gumbel distribution, of largest values.

    Args:
        loc: mode.
        scale: width.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Gumbel(0.0, 1.0).log_prob(torch.tensor(0.0))
        tensor(-1.)
    """

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = fb.finfo(self.loc.dtype)
        low, high = fb.full_like(self.loc, info.tiny), fb.full_like(self.loc, 1 - info.eps)
        base = Uniform(low, high, validate_args=validate_args)
        steps = [
            ExpTransform().inv,
            AffineTransform(0, -fb.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc, -self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        super()._expand_parts(new, batch_shape)
        new.transforms = [*self.transforms[:-1], AffineTransform(new.loc, -new.scale)]

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


@family("scale", "alpha")
class Pareto(TransformedDistribution):
    """The Pareto distribution, with a tail like a power.

    Args:
        scale: least value.
        alpha: exponent of the tail.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Pareto(1.0, 3.0).mean
        tensor(1.5000)
    """

    arg_constraints: Any = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        steps = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


@family("scale", "concentration", "concentration_reciprocal")
class Weibull(TransformedDistribution):
    """The Weibull distribution: powers of waiting times.

    Args:
        scale: width.
        concentration: shape.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints: Any = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(fb.ones_like(self.scale), validate_args=validate_args)
        steps = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * fb.lgamma(1 + self.concentration_reciprocal).exp()

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k).clamp(min=0).pow(self.concentration_reciprocal)

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        second = fb.lgamma(1 + 2 * r).exp()
        return self.scale.pow(2) * (second - (2 * fb.lgamma(1 + r)).exp())

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1


@family("concentration1", "concentration0")
class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution over [0, 1], like a beta with an explicit inverse.

    Args:
        concentration1: shape at zero.
        concentration0: shape at one.
        validate_args: whether parameters and values are checked.

    Source: Kumaraswamy, A generalized probability density function (1980).

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Kumaraswamy(1.0, 1.0).mean
        tensor(0.5000)
    """

    arg_constraints: Any = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            fb.full_like(self.concentration0, 0),
            fb.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )
        steps = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_beta = fb.lgamma(1 + n / a) + fb.lgamma(b) - fb.lgamma(1 + n / a + b)
        return b * log_beta.exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """Where the density is largest; NaN unless both shapes are at least 1."""
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return fb.where((a < 1) | (b < 1), math.nan, mode)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = fb.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


@family()
class InverseGamma(TransformedDistribution):
    """Inverses of gamma numbers.

    Args:
        concentration: shape.
        rate: rate of the gamma numbers, the scale of their inverses.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.InverseGamma(3.0, 2.0).mean
        tensor(1.)
    """

    arg_constraints: Any = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        power = PowerTransform(exponent=-base.rate.new_ones(()))
        super().__init__(base, power, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """Shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """Rate of the gamma numbers."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return fb.where(c > 1, self.rate / (fb.where(c > 1, c, 2.0) - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        c = fb.where(self.concentration > 2, self.concentration, 3.0)
        finite = self.rate.square() / ((c - 1).square() * (c - 2))
        return fb.where(self.concentration > 2, finite, math.inf)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + fb.lgamma(c) - (1 + c) * fb.digamma(c)
