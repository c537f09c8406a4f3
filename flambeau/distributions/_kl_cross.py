"""Divergences between different families.

Each is minus the entropy of p, less the mean of q's log density under p; that mean needs only a few
moments of p: of x, x**2, log x, exp(-t x). Invariant: infinite where p has probability outside q's
support.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor

from ._continuous_bernoulli import ContinuousBernoulli
from ._counts import Bernoulli, Binomial, Poisson
from ._extremes import Gumbel, Pareto
from ._location_scale import Laplace, Normal, Uniform
from ._positive import Exponential, Gamma
from ._simplex import Beta
from .kl import Formula, register_kl
from .utils import euler_constant


def _mean_log(p: Any) -> Tensor:
    """Mean of log x."""
    if isinstance(p, Beta):
        total = p.concentration1 + p.concentration0
        return fb.digamma(p.concentration1) - fb.digamma(total)
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Gamma):
        return fb.digamma(p.concentration) - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return _mean_log_between(p.low, p.high)


def _mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    """Mean of log x over the interval."""
    return (fb.xlogy(high, high) - fb.xlogy(low, low)) / (high - low) - 1


def _log_laplace(p: Any, t: Tensor) -> Tensor:
    """Logarithm of the mean of exp(-t x), for positive t."""
    if isinstance(p, Exponential):
        return -(t / p.rate).log1p()
    if isinstance(p, Gamma):
        return -p.concentration * (t / p.rate).log1p()
    if isinstance(p, Normal):
        return -t * p.loc + (t * p.scale).pow(2) / 2
    if isinstance(p, Gumbel):
        return -t * p.loc + fb.lgamma(1 + t * p.scale)
    width = t * (p.high - p.low)
    return -t * p.low + (-(-width).expm1() / width).log()


def _outside(p: Any, low: Any, high: Any = math.inf) -> Any:
    """Where p reaches beyond the interval."""
    if isinstance(p, Uniform):
        return (p.low < low) | (p.high > high)
    if isinstance(p, Beta | ContinuousBernoulli):
        return (fb.as_tensor(low) > 0) | (fb.as_tensor(high) < 1)
    return fb.as_tensor(low) > 0


def _unless(outside: Any, value: Tensor) -> Tensor:
    return fb.where(outside, math.inf, value)


def _register(q: type, *families: type) -> Callable[[Formula], Formula]:
    """Register one formula for several families p."""

    def decorate(formula: Formula) -> Formula:
        for p in families:
            register_kl(p, q)(formula)
        return formula

    return decorate


@_register(Exponential, Beta, ContinuousBernoulli, Gamma, Pareto, Uniform)
def _to_exponential(p: Any, q: Any) -> Tensor:
    return _unless(_outside(p, 0.0), -p.entropy() - q.rate.log() + q.rate * p.mean)


@_register(Gamma, Beta, Exponential, Pareto, Uniform)
def _to_gamma(p: Any, q: Any) -> Tensor:
    c = q.concentration
    mean = fb.xlogy(c, q.rate) - fb.lgamma(c) + (c - 1) * _mean_log(p) - q.rate * p.mean
    return _unless(_outside(p, 0.0), -p.entropy() - mean)


@_register(Normal, Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)
def _to_normal(p: Any, q: Any) -> Tensor:
    squares = (p.variance + (p.mean - q.loc).pow(2)) / (2 * q.scale.pow(2))
    result = -p.entropy() + squares + q.scale.log() + 0.5 * math.log(2 * math.pi)
    # a Pareto number of infinite mean has no finite second moment either
    return fb.where(p.mean.isfinite(), result, math.inf)


@_register(Uniform, Beta, ContinuousBernoulli)
def _to_uniform(p: Any, q: Any) -> Tensor:
    return _unless(_outside(p, q.low, q.high), -p.entropy() + (q.high - q.low).log())


@_register(ContinuousBernoulli, Beta, Uniform)
def _to_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    start = (-q.probs).log1p() + q._cont_bern_log_norm()  # log density at zero
    return _unless(_outside(p, 0.0, 1.0), -p.entropy() - p.mean * q.logits - start)


@register_kl(Uniform, Beta)
def _uniform_to_beta(p: Any, q: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    mean = (a - 1) * _mean_log(p) + (b - 1) * _mean_log_between(1 - p.high, 1 - p.low)
    log_beta = fb.lgamma(a) + fb.lgamma(b) - fb.lgamma(a + b)
    return _unless(_outside(p, 0.0, 1.0), -p.entropy() - mean + log_beta)


@register_kl(Uniform, Pareto)
def _uniform_to_pareto(p: Any, q: Any) -> Tensor:
    mean = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)
    return _unless(_outside(p, q.scale), -p.entropy() - mean)


@_register(Gumbel, Exponential, Gamma, Gumbel, Normal, Uniform)
def _to_gumbel(p: Any, q: Any) -> Tensor:
    t = q.scale.reciprocal()
    tail = (t * q.loc + _log_laplace(p, t)).exp()
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) * t + tail


@register_kl(Normal, Laplace)
def _normal_to_laplace(p: Any, q: Any) -> Tensor:
    z = (p.loc - q.loc) / (p.scale * math.sqrt(2))
    distance = p.scale * math.sqrt(2) * (z * fb.erf(z) + (-z.pow(2)).exp() / math.sqrt(math.pi))
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


def _infinite(p: Any, q: Any) -> Tensor:
    """p always reaches beyond the support of q."""
    like = p.mean
    return fb.full(
        fb.broadcast_shapes(p.batch_shape, q.batch_shape),
        math.inf,
        dtype=like.dtype,
        device=like.device,
    )


_BOUNDED = (Beta, ContinuousBernoulli, Uniform)
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (*_BOUNDED, Pareto),
    Gamma: (*_BOUNDED, Pareto),
    Gumbel: (*_BOUNDED, Pareto, Exponential, Gamma),
    Laplace: (*_BOUNDED, Pareto, Exponential, Gamma),
    Normal: (*_BOUNDED, Pareto, Exponential, Gamma),
    Pareto: _BOUNDED,
    Poisson: (Bernoulli, Binomial),
}
for _p, _qs in _INFINITE.items():
    for _q in _qs:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_to_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - fb.xlogy(p.probs, q.rate) + q.rate
