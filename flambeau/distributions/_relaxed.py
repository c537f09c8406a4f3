"""Relaxed forms of Bernoulli and one-hot variables: continuous, with pathwise derivatives.

Invariant: as the temperature falls, samples approach those of the discrete family. Source:
Maddison, Mnih & Teh, The concrete distribution (2017); Jang, Gu & Poole (2017).
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import constraints
from ._categories import Categorical, _OverCategorical
from ._counts import _ByOdds
from .distribution import family
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform
from .utils import broadcast_all, clamp_probs


@family("probs", "logits")
class LogitRelaxedBernoulli(_ByOdds):
    """The log odds of a relaxed Bernoulli variable.

    Args:
        temperature: nearness to zero and one.
        probs: probability of one.
        logits: its log odds, instead.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: unless exactly one of ``probs`` and ``logits`` is given.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
        >>> one, half = torch.tensor(1.0), torch.tensor(0.5)
        >>> LogitRelaxedBernoulli(one, half).log_prob(torch.tensor(0.0))
        tensor(-1.3863)
    """

    support = constraints.real
    has_rsample = True
    _shared = ("_is_logits", "temperature")

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set_odds(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(fb.rand(shape, dtype=probs.dtype, device=probs.device))
        noise = u.log() - (-u).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value * self.temperature
        log_temperature = fb.as_tensor(self.temperature).log()
        return log_temperature + diff - 2 * fb.nn.functional.softplus(diff)


@family()
class RelaxedBernoulli(TransformedDistribution):
    """A number of (0, 1) near a Bernoulli variable.

    Args:
        temperature: nearness to zero and one.
        probs: probability of one.
        logits: its log odds, instead.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> d = torch.distributions.RelaxedBernoulli(torch.tensor(1.0), torch.tensor(0.5))
        >>> d.log_prob(torch.tensor(0.5))
        tensor(0.)
    """

    arg_constraints = _ByOdds.arg_constraints
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """Nearness to zero and one."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """Probability of one."""
        return self.base_dist.probs


@family("_categorical")
class ExpRelaxedCategorical(_OverCategorical):
    """The logarithm of a relaxed one-hot variable.

    Args:
        temperature: nearness to a corner.
        probs: shape (..., classes), nonnegative; normalised to sum one.
        logits: unnormalised log probabilities, instead.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions.relaxed_categorical import ExpRelaxedCategorical
        >>> d = ExpRelaxedCategorical(torch.tensor(1.0), torch.ones(2))
        >>> d.rsample().exp().sum().isclose(torch.tensor(1.0))
        tensor(True)
    """

    support = constraints.real_vector  # whose exponentials have sum one
    has_rsample = True
    _shared = ("temperature",)

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(fb.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-(u.log())).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        log_temperature = fb.as_tensor(self.temperature, dtype=logits.dtype).log()
        score = logits - value * self.temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + (math.lgamma(k) + (k - 1) * log_temperature)


@family()
class RelaxedOneHotCategorical(TransformedDistribution):
    """A point of the simplex near a corner.

    Args:
        temperature: nearness to a corner.
        probs: shape (..., classes), nonnegative; normalised to sum one.
        logits: unnormalised log probabilities, instead.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> d = torch.distributions.RelaxedOneHotCategorical(torch.tensor(1.0), torch.ones(3))
        >>> d.event_shape
        torch.Size([3])
    """

    arg_constraints = _OverCategorical.arg_constraints
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """Nearness to a corner."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self.base_dist.probs
