"""Divergences of a family from itself.

Invariant: infinite where q gives no probability to what p does. Formulas: Nielsen & Nock (2010) for
exponential families; Chyzak & Nielsen (2019) for Cauchy; else by integration of the densities.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional import softplus

from ._categories import Categorical, OneHotCategorical
from ._continuous_bernoulli import ContinuousBernoulli
from ._counts import Bernoulli, Binomial, Geometric, Poisson
from ._derived import HalfNormal
from ._extremes import Pareto
from ._gaussian import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    _batch_lowrank_mahalanobis,
    _batch_mahalanobis,
)
from ._location_scale import Cauchy, Laplace, Normal, Uniform
from ._positive import Exponential, Gamma
from ._simplex import Beta, Dirichlet
from .exp_family import ExponentialFamily
from .independent import Independent
from .kl import kl_divergence, register_kl
from .transformed_distribution import TransformedDistribution
from .utils import _sum_rightmost


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = fb.where(p.probs == 0, 0.0, fb.where(q.probs == 0, math.inf, one))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zero = fb.where(p.probs == 1, 0.0, fb.where(q.probs == 1, math.inf, zero))
    return one + zero


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    each = _bernoulli(p, q)
    return fb.where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = fb.where(p.probs == 0, 0.0, fb.where(q.probs == 0, math.inf, terms))
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    def start(d: Any) -> Tensor:  # log density at zero
        return d._cont_bern_log_norm() + (-d.probs).log1p()

    return p.mean * (p.logits - q.logits) + start(p) - start(q)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norms = fb.lgamma(total) - fb.lgamma(b.sum(-1)) + (fb.lgamma(b) - fb.lgamma(a)).sum(-1)
    slopes = fb.digamma(a) - fb.digamma(total).unsqueeze(-1)
    return norms + ((a - b) * slopes).sum(-1)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    """Bregman divergence of the log normaliser, from its gradient."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    given = p._natural_params
    theta = [x if x.requires_grad else x.detach().requires_grad_() for x in given]
    with fb.enable_grad():
        log_norm = p._log_normalizer(*theta)
        slopes = fb.autograd.grad(log_norm.sum(), theta, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - log_norm
    for a, b, slope in zip(theta, q._natural_params, slopes, strict=True):
        result = result - _sum_rightmost((b - a) * slope, len(q.event_shape))
    tracked = any(x.requires_grad for x in (*given, *q._natural_params))
    return result if tracked else result.detach()


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + fb.lgamma(b)
        - fb.lgamma(a)
        + (a - b) * fb.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    apart = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return apart.log() - (4 * p.scale * q.scale).log()


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return fb.where(p.scale < q.scale, math.inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return fb.xlogy(p.rate, p.rate) - fb.xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return fb.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two multivariate normals with different event shapes cannot be "
            f"computed: {p.event_shape} and {q.event_shape}"
        )
    trace = sum(_trace_of_solved(q, root) for root in _roots(p))
    dim = p.event_shape[0]
    return 0.5 * (_log_det(q) - _log_det(p) + trace + _distance(q, p.loc - q.loc) - dim)


def _roots(d: Any) -> list[Tensor]:
    """Matrices whose products with their transposes add up to the covariance."""
    if isinstance(d, MultivariateNormal):
        return [d._unbroadcasted_scale_tril]
    return [d._unbroadcasted_cov_factor, d._unbroadcasted_cov_diag.sqrt().diag_embed()]


def _log_det(d: Any) -> Tensor:
    if isinstance(d, MultivariateNormal):
        return 2 * d._log_volume()
    return d._log_det()


def _distance(d: Any, x: Tensor) -> Tensor:
    """x' covariance^-1 x."""
    if isinstance(d, MultivariateNormal):
        return _batch_mahalanobis(d._unbroadcasted_scale_tril, x)
    factor, diagonal = d._unbroadcasted_cov_factor, d._unbroadcasted_cov_diag
    return _batch_lowrank_mahalanobis(factor, diagonal, x, d._capacitance_tril)


def _trace_of_solved(d: Any, root: Tensor) -> Tensor:
    """Trace of covariance^-1 root root'."""
    if isinstance(d, MultivariateNormal):
        solved = fb.linalg.solve_triangular(d._unbroadcasted_scale_tril, root, upper=False)
        return solved.pow(2).sum([-2, -1])
    scaled = d._unbroadcasted_cov_factor.mT / d._unbroadcasted_cov_diag.unsqueeze(-2)
    inner = fb.linalg.solve_triangular(d._capacitance_tril, scaled @ root, upper=False)
    whole = (root.pow(2) / d._unbroadcasted_cov_diag.unsqueeze(-1)).sum([-2, -1])
    return whole - inner.pow(2).sum([-2, -1])


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: Independent distributions with different reinterpreted_batch_ndims "
            f"({p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims})"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    """The same transform leaves the divergence as it is."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "kl_divergence: distributions with different transforms or event shapes"
        )
    extra = len(p.event_shape) - len(p.base_dist.event_shape)
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), extra)
