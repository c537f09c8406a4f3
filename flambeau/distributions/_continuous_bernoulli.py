"""The continuous Bernoulli distribution.

Invariant: near a probability of one half, where the formulas cancel, series take over, and neither
branch gives a gradient that is not finite. Must not know other families.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import constraints
from ._counts import _ByOdds, _cross_entropy
from .distribution import family
from .exp_family import ExponentialFamily
from .utils import clamp_probs


@family("probs", "logits")
class ContinuousBernoulli(_ByOdds, ExponentialFamily):
    """Numbers x of [0, 1] with density proportional to probs**x (1 - probs)**(1 - x).

    Near a probability of one half, where the formulas cancel, series take over.

    Args:
        probs: parameter in (0, 1); not the mean.
        logits: its log odds, instead.
        lims: where the series are used.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: unless exactly one of ``probs`` and ``logits`` is given.

    Source: Loaiza-Ganem & Cunningham, The continuous Bernoulli (2019).

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.ContinuousBernoulli(torch.tensor(0.5)).mean
        tensor(0.5000)
    """

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _shared = ("_is_logits", "_lims")

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._set_odds(probs, logits)
        if not self._is_logits:
            if validate_args is not None and validate_args:
                valid = constraints.unit_interval.check(self.probs)
                if not bool(valid.all()):
                    raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def _regular(self) -> Tensor:
        """Where the formulas do not cancel."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    @property
    def _safe(self) -> Tensor:
        """The probability, and something harmless where the series are used."""
        return fb.where(self._regular, self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """Logarithm of what makes the density integrate to one."""
        p = self._safe
        # 2 artanh(1 - 2 p) / (1 - 2 p)
        norm = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x2 = (self.probs - 0.5) ** 2
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x2) * x2
        return fb.where(self._regular, norm, series)

    @property
    def mean(self) -> Tensor:
        p = self._safe
        mean = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return fb.where(self._regular, mean, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        p = self._safe
        odds = (-p).log1p() - p.log()
        variance = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / odds**2
        x2 = (self.probs - 0.5) ** 2
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x2) * x2
        return fb.where(self._regular, variance, series)

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(fb.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -_cross_entropy(self.logits, value) + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._safe
        inside = value.clamp(min=0.0, max=1.0)
        rise = (p**inside * (1.0 - p) ** (1.0 - inside) + p - 1.0) / (2.0 * p - 1.0)
        return fb.where(self._regular, rise, inside)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._safe
        base = (-p).log1p()
        position = ((-p + value * (2.0 * p - 1.0)).log1p() - base) / (p.log() - base)
        return fb.where(self._regular, position, value)

    def entropy(self) -> Tensor:
        log0, log1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log0 - log1) - self._cont_bern_log_norm() - log0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """log of (exp(x) - 1) / x."""
        small = x.abs() < 1e-2
        safe = fb.where(small, 1.0, x)
        series = x * (0.5 + x / 24.0)
        return fb.where(small, series, (safe.expm1() / safe).log())
