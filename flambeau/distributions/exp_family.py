"""Exponential families: the entropy by Bregman divergence of the log normaliser.

Invariant: a subclass that gives natural parameters and log normaliser, and the mean of its carrier
measure, has an entropy. Must not know any family.
"""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A density h(x) exp(<t(x), theta> - A(theta)).

    Subclasses give ``_natural_params`` (theta), ``_log_normalizer`` (A) and
    ``_mean_carrier_measure`` (the mean of log h).

    Source: Nielsen & Nock, Entropies and cross-entropies of exponential families (2010).

    Example:
        >>> import flambeau as torch
        >>> isinstance(torch.distributions.Exponential(1.0), torch.distributions.ExponentialFamily)
        True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} does not implement _natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not implement _log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not implement _mean_carrier_measure")

    def entropy(self) -> Tensor:
        """A(theta) - <theta, grad A(theta)> - mean of log h. Shape: batch_shape."""
        given = self._natural_params
        theta = [p if p.requires_grad else p.detach().requires_grad_() for p in given]
        with fb.enable_grad():
            log_normalizer = self._log_normalizer(*theta)
            slopes = fb.autograd.grad(log_normalizer.sum(), theta, create_graph=True)
        result = log_normalizer - self._mean_carrier_measure
        for p, slope in zip(theta, slopes, strict=True):
            product = p * slope
            result = result - product.reshape(self._batch_shape + (-1,)).sum(-1)
        return result if any(p.requires_grad for p in given) else result.detach()
