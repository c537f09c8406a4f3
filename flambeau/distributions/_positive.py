"""Families over positive numbers: exponential, gamma, chi-squared, Fisher-Snedecor, and the
generalized Pareto over what exceeds a threshold.

Invariant: gamma numbers move with their shape at a fixed value of the distribution function, so all
derivatives are pathwise. Formulas: Johnson, Kotz & Balakrishnan, Continuous Univariate
Distributions (1994, 1995).
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import _C, Tensor

from . import constraints
from .distribution import Distribution, family
from .exp_family import ExponentialFamily
from .utils import broadcast_all


@family("rate")
class Exponential(ExponentialFamily):
    """The exponential distribution: waiting times.

    Args:
        rate: events per time.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Exponential(2.0).mean
        tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return fb.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -(-x).log()


def _standard_gamma(concentration: Tensor) -> Tensor:
    """Gamma numbers of rate one."""
    return _C._standard_gamma(concentration)


@family("concentration", "rate")
class Gamma(ExponentialFamily):
    """The gamma distribution.

    Args:
        concentration: shape.
        rate: inverse of the scale.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Gamma(2.0, 1.0).log_prob(torch.tensor(1.0))
        tensor(-1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=fb.finfo(value.dtype).tiny)  # zero has no finite log density
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = fb.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            fb.xlogy(self.concentration, self.rate)
            + fb.xlogy(self.concentration - 1, value)
            - self.rate * value
            - fb.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return fb.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c - self.rate.log() + fb.lgamma(c) + (1.0 - c) * fb.digamma(c)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return fb.lgamma(x + 1) - (x + 1) * (-y).log()


@family("concentration", "rate")
class Chi2(Gamma):
    """The chi-squared distribution: sums of ``df`` squared normal numbers.

    Args:
        df: degrees of freedom.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2


@family("df1", "df2", "_gamma1", "_gamma2")
class FisherSnedecor(Distribution):
    """The F distribution: the ratio of two mean squares.

    Args:
        df1: degrees of freedom of the numerator.
        df2: degrees of freedom of the denominator.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.FisherSnedecor(1.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = fb.where(self.df2 > 2, self.df2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return fb.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self) -> Tensor:
        df1, df2 = self.df1, fb.where(self.df2 > 4, self.df2, math.nan)
        return 2 * df2**2 * (df1 + df2 - 2) / (df1 * (df2 - 2) ** 2 * (df2 - 4))

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above = self._gamma1.rsample(sample_shape).view(shape)
        below = self._gamma2.rsample(sample_shape).view(shape)
        tiny = fb.finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2 = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        return (
            fb.lgamma(half1 + half2)
            - fb.lgamma(half1)
            - fb.lgamma(half2)
            + half1 * ratio.log()
            + fb.xlogy(half1 - 1, value)
            - (half1 + half2) * (ratio * value).log1p()
        )


@family("loc", "scale", "concentration")
class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, of what exceeds a threshold.

    Exponential for concentration 0, with a heavy tail above, bounded below it.

    Args:
        loc: threshold.
        scale: width.
        concentration: tail index.
        validate_args: whether parameters and values are checked.

    Source: Pickands, Statistical inference using extreme order statistics (1975).

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
        tensor(2.)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        bounded = self.concentration < 0
        end = self.loc - self.scale / fb.where(bounded, self.concentration, -1.0)
        return constraints.interval(self.loc, fb.where(bounded, end, math.inf))

    @property
    def _exponential(self) -> Tensor:
        """Where the concentration is so small that the tail is exponential."""
        return self.concentration.abs() < fb.finfo(self.loc.dtype).tiny ** 0.5

    @property
    def _tail(self) -> Tensor:
        """The concentration, 1 where the tail is exponential."""
        return fb.where(self._exponential, 1.0, self.concentration)

    def _log_survival(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        series = -z + self.concentration * z.pow(2) / 2  # so that the derivative is right too
        return fb.where(self._exponential, series, -(self._tail * z).log1p() / self._tail)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return fb.where(c < 1, self.loc + self.scale / (1 - fb.where(c < 1, c, 0.0)), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = fb.where(self.concentration < 0.5, self.concentration, 0.0)
        finite = self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))
        return fb.where(self.concentration < 0.5, finite, math.inf)

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(fb.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_survival = self._log_survival(value)
        return (1 + self.concentration) * log_survival - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Logarithm of the probability of more than ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        return self._log_survival(value)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Logarithm of the distribution function."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        rest = (-value).log1p()
        series = -rest + self.concentration * rest.pow(2) / 2
        z = fb.where(self._exponential, series, (-self._tail * rest).expm1() / self._tail)
        return self.loc + self.scale * z

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
