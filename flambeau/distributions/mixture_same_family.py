"""Mixtures whose components are of one family.

Invariant: the last batch dim of the components numbers them. Must not know the family.
"""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import constraints
from ._categories import Categorical
from .distribution import Distribution
from .utils import sizes

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A sample of one of several components, which is drawn first.

    Args:
        mixture_distribution: categorical, over the components.
        component_distribution: batch_shape + (components,).
        validate_args: whether values are checked.

    Raises:
        ValueError: if the shapes do not fit.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions import Categorical, MixtureSameFamily, Normal
        >>> components = Normal(torch.tensor([-1.0, 1.0]), 1.0)
        >>> d = MixtureSameFamily(Categorical(torch.ones(2)), components)
        >>> d.mean, d.variance
        (tensor(0.), tensor(2.))
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(
        self,
        mixture_distribution: Any,
        component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of "
                "torch.distributions.Distribution"
            )
        weights, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for i, j in zip(reversed(weights), reversed(batch), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
                    f"`component_distribution.batch_shape` ({batch})"
                )
        count = mixture_distribution.logits.shape[-1]
        if count != component_distribution.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` "
                f"({component_distribution.batch_shape[-1]})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = count
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = sizes(batch_shape)
        new._component_distribution = self._component_distribution.expand(
            fb.Size((*batch_shape, self._num_component))
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """Over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The components, along the last batch dim."""
        return self._component_distribution

    @property
    def _weights(self) -> Tensor:
        """Probabilities of the components, with dims for the event."""
        probs = self.mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return (self._weights * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        """Mean of the components' variances, and variance of their means."""
        dim = -1 - self._event_ndims
        inside = (self._weights * self.component_distribution.variance).sum(dim)
        centred = self.component_distribution.mean - self.mean.unsqueeze(dim)
        return inside + (self._weights * centred.pow(2.0)).sum(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def cdf(self, value: Tensor) -> Tensor:
        value = self._pad(value)
        return (self.component_distribution.cdf(value) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        each = self.component_distribution.log_prob(self._pad(value))
        return (each + fb.log_softmax(self.mixture_distribution.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        with fb.no_grad():
            sample_shape = sizes(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            index = index.expand((*drawn.shape[:dim], 1, *drawn.shape[dim + 1 :]))
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        parts = f"{self.mixture_distribution},\n  {self.component_distribution}"
        return f"{type(self).__name__}(\n  {parts})"
