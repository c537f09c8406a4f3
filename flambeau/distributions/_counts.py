"""Families of truths and counts: Bernoulli, binomial, geometric, negative binomial, Poisson.

Invariant: of probabilities and logits the one that was given is stored, the other computed when
asked for. Formulas: Johnson, Kemp & Kotz, Univariate Discrete Distributions (2005).
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from . import constraints
from ._positive import Gamma
from .distribution import Distribution, family
from .exp_family import ExponentialFamily
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def _cross_entropy(logits: Tensor, probs: Tensor) -> Tensor:
    """-probs log sigmoid(logits) - (1 - probs) log sigmoid(-logits), elementwise."""
    logits, probs = broadcast_all(logits, probs)
    return binary_cross_entropy_with_logits(logits, probs, reduction="none")


class _ByOdds(Distribution):
    """Families with a probability or its log odds as parameter."""

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _set_odds(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Store the one that is given; the other parameters, expanded together with it."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._is_logits = probs is None
        given, *rest = broadcast_all(probs if logits is None else logits, *others)
        if self._is_logits:
            self.logits = given
        else:
            self.probs = given
        return tuple(rest)

    _shared: tuple[str, ...] = ("_is_logits",)

    @lazy_property
    def logits(self) -> Tensor:
        """Log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """Probability."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Tensor:
        name = "logits" if self._is_logits else "probs"
        return self.__dict__[name]

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter that was given."""
        return self._param.shape


@family("probs", "logits")
class Bernoulli(_ByOdds, ExponentialFamily):
    """One with probability ``probs``, else zero.

    Args:
        probs: probability of one.
        logits: its log odds, instead.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: unless exactly one of ``probs`` and ``logits`` is given.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Bernoulli(torch.tensor(0.25)).log_prob(torch.tensor(1.0)).exp()
        tensor(0.2500)
    """

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_odds(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return fb.where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        with fb.no_grad():
            return fb.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -_cross_entropy(self.logits, value)

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = fb.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (fb.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp().log1p()


@family("probs", "logits", "total_count")
class Binomial(_ByOdds):
    """Successes in ``total_count`` trials.

    Args:
        total_count: number of trials.
        probs: probability of success.
        logits: its log odds, instead.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: unless exactly one of ``probs`` and ``logits`` is given.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Binomial(2, torch.tensor(0.5)).log_prob(torch.tensor(1.0)).exp()
        tensor(0.5000)
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, **_ByOdds.arg_constraints}
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._set_odds(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return fb.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with fb.no_grad():
            return fb.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        ways = fb.lgamma(n + 1) - fb.lgamma(value + 1) - fb.lgamma(n - value + 1)
        # n log(1 + exp(logits)), which does not overflow
        norm = n * (logits.clamp(min=0) + (-logits.abs()).exp().log1p())
        return value * logits + ways - norm

    def _homogeneous_count(self, op: str) -> int:
        count = int(self.total_count.max())
        if float(self.total_count.min()) != count:
            raise NotImplementedError(
                f"{op}: Inhomogeneous total count not supported by `{op}`, got {self.total_count}"
            )
        return count

    def entropy(self) -> Tensor:
        """Entropy, as a sum over the support; for one number of trials."""
        self._homogeneous_count("entropy")
        with_values = self.log_prob(self.enumerate_support(False))
        return -(with_values.exp() * with_values).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._homogeneous_count("enumerate_support")
        values = fb.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


@family("probs", "logits")
class Geometric(_ByOdds):
    """Failures before the first success.

    Args:
        probs: probability of success, above 0.
        logits: its log odds, instead.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: unless exactly one of ``probs`` and ``logits`` is given; if success is
            impossible.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Geometric(torch.tensor(0.25)).mean
        tensor(3.)
    """

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_odds(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape "
                f"{tuple(self.probs.shape)}) of distribution {self!r} to be positive but found "
                f"invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return fb.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with fb.no_grad():
            u = self.probs.new_empty(shape).uniform_(fb.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        return fb.special.xlog1py(value, -probs) + probs.log()

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs) / self.probs


@family("probs", "logits", "total_count")
class NegativeBinomial(_ByOdds):
    """Successes before ``total_count`` failures, which need be no whole number.

    Args:
        total_count: number of failures.
        probs: probability of success, below 1.
        logits: its log odds, instead.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: unless exactly one of ``probs`` and ``logits`` is given.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.NegativeBinomial(2.0, torch.tensor(0.5)).mean
        tensor(2.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._set_odds(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / fb.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        rate = (-self.logits).exp()
        return Gamma(self.total_count, rate, validate_args=False)

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        with fb.no_grad():
            return fb.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        powers = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = fb.lgamma(n + value) - fb.lgamma(1.0 + value) - fb.lgamma(n)
        return powers + ways.masked_fill(n + value == 0.0, 0.0)


@family("rate")
class Poisson(ExponentialFamily):
    """Counts of events that happen independently.

    Args:
        rate: mean count.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Poisson(torch.tensor(2.0)).log_prob(torch.tensor(0.0))
        tensor(-2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        with fb.no_grad():
            return fb.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return fb.xlogy(value, rate) - rate - fb.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp()
