"""Beta and Dirichlet distributions.

Invariant: a beta number is the first entry of a Dirichlet point of two; derivatives are pathwise.
Formulas: Kotz, Balakrishnan & Johnson, Continuous Multivariate Distributions (2000), chapter 49.
"""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import _C, Tensor

from . import constraints
from .distribution import family
from .exp_family import ExponentialFamily
from .utils import broadcast_all


@family(concentration=1)
class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution over the simplex.

    Args:
        concentration: shape (..., size).
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: if ``concentration`` has no dim.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        excess = (self.concentration - 1).clamp(min=0)
        mode = excess / excess.sum(-1, True)
        corner = fb.nn.functional.one_hot(mode.argmax(-1), mode.shape[-1]).to(mode.dtype)
        return fb.where((self.concentration < 1).all(-1, keepdim=True), corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return _C._sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        c = self.concentration
        return fb.xlogy(c - 1.0, value).sum(-1) + fb.lgamma(c.sum(-1)) - fb.lgamma(c).sum(-1)

    def entropy(self) -> Tensor:
        c = self.concentration
        total = c.sum(-1)
        return (
            fb.lgamma(c).sum(-1)
            - fb.lgamma(total)
            - (c.size(-1) - total) * fb.digamma(total)
            - ((c - 1.0) * fb.digamma(c)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return fb.lgamma(x).sum(-1) - fb.lgamma(x.sum(-1))


@family("_dirichlet")
class Beta(ExponentialFamily):
    """The beta distribution over [0, 1].

    Args:
        concentration1: shape at one, often called alpha.
        concentration0: shape at zero, often called beta.
        validate_args: whether parameters and values are checked.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Beta(1.0, 3.0).mean
        tensor(0.2500)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        both = fb.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """Shape at one."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """Shape at zero."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        return self._dirichlet.variance[..., 0]

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(fb.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return fb.lgamma(x) + fb.lgamma(y) - fb.lgamma(x + y)
