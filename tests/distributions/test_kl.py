"""Divergences against integrals and sums of SciPy's densities, samples, and each other."""

import math

import numpy as np
import pytest
from distribution_cases import made
from scipy import integrate, stats

import flambeau as torch
from flambeau import distributions as D
from flambeau.distributions import kl_divergence
from flambeau.distributions.kl import _KL_REGISTRY

#: per family two pairs of parameters and SciPy's laws
LAWS = {
    D.Bernoulli: [({"probs": p}, stats.bernoulli(p)) for p in (0.3, 0.6)],
    D.Beta: [
        ({"concentration1": a, "concentration0": b}, stats.beta(a, b))
        for a, b in ((2.0, 3.0), (1.5, 1.2))
    ],
    D.Binomial: [({"total_count": 5, "probs": p}, stats.binom(5, p)) for p in (0.3, 0.6)],
    D.Cauchy: [({"loc": a, "scale": b}, stats.cauchy(a, b)) for a, b in ((0.2, 1.0), (1.0, 2.0))],
    D.ContinuousBernoulli: [
        ({"probs": p}, stats.truncexpon(math.log(1 / p - 1), scale=1 / math.log(1 / p - 1)))
        for p in (0.2, 0.4)
    ],
    D.Exponential: [({"rate": r}, stats.expon(scale=1 / r)) for r in (2.0, 0.7)],
    D.Gamma: [
        ({"concentration": a, "rate": r}, stats.gamma(a, scale=1 / r))
        for a, r in ((2.0, 1.0), (1.5, 2.0))
    ],
    D.Geometric: [({"probs": p}, stats.geom(p, loc=-1)) for p in (0.3, 0.6)],
    D.Gumbel: [({"loc": a, "scale": b}, stats.gumbel_r(a, b)) for a, b in ((0.2, 1.0), (1.0, 1.5))],
    D.HalfNormal: [({"scale": s}, stats.halfnorm(scale=s)) for s in (1.0, 2.0)],
    D.Laplace: [({"loc": a, "scale": b}, stats.laplace(a, b)) for a, b in ((0.2, 1.0), (1.0, 2.0))],
    D.Normal: [({"loc": a, "scale": b}, stats.norm(a, b)) for a, b in ((0.2, 1.0), (1.0, 2.0))],
    D.Pareto: [
        ({"scale": s, "alpha": a}, stats.pareto(a, scale=s)) for s, a in ((0.5, 4.0), (0.3, 3.0))
    ],
    D.Poisson: [({"rate": r}, stats.poisson(r)) for r in (2.0, 3.5)],
    D.Uniform: [
        ({"low": a, "high": b}, stats.uniform(a, b - a)) for a, b in ((0.4, 0.8), (0.1, 1))
    ],
    D.LogNormal: [
        ({"loc": a, "scale": b}, stats.lognorm(b, scale=math.exp(a)))
        for a, b in ((0.2, 1.0), (0.5, 2.0))
    ],
}
DISCRETE = (D.Bernoulli, D.Binomial, D.Geometric, D.Poisson)
ABSTRACT = {"ExponentialFamily", "TransformedDistribution", "Independent"}
VECTORS = {"Categorical", "OneHotCategorical", "Dirichlet"}
GAUSSIAN = {"MultivariateNormal", "LowRankMultivariateNormal"}
PAIRS = [
    pair
    for pair in _KL_REGISTRY
    if not {c.__name__ for c in pair} & (ABSTRACT | VECTORS | GAUSSIAN)
]


def reference(p, q, discrete):
    """Sum or integral of p log(p / q); infinite where q vanishes and p does not."""
    if discrete:
        x = np.arange(400)
        x = x[p.pmf(x) > 0]
        return float((p.pmf(x) * (p.logpmf(x) - q.logpmf(x))).sum())
    probe = p.ppf([1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
    if not np.isfinite(q.logpdf(probe)).all():
        return math.inf
    # over probabilities, so that tails are no trouble; the integrand's ends are only singular
    value, _ = integrate.quad(
        lambda u: p.logpdf(p.ppf(u)) - q.logpdf(p.ppf(u)), 0, 1, limit=400, epsabs=1e-9
    )
    return value


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("pair", [*PAIRS, (D.LogNormal, D.LogNormal)], ids=lambda c: str(c))
def test_registered_pairs(pair):
    (p_parameters, p_law), (q_parameters, q_law) = LAWS[pair[0]][0], LAWS[pair[1]][1]
    p, _ = made(pair[0], p_parameters, shape=(2,))
    q, _ = made(pair[1], q_parameters, shape=(2,))
    result = kl_divergence(p, q).detach().numpy()
    assert result.shape == (2,)
    expected = reference(p_law, q_law, pair[0] in DISCRETE)
    np.testing.assert_allclose(result, [expected] * 2, rtol=1e-4, atol=1e-6)


def test_vectors():
    a, b = torch.tensor([0.2, 0.3, 0.5]).double(), torch.tensor([0.5, 0.4, 0.1]).double()
    expected = stats.entropy(a.numpy(), b.numpy())
    for family in (D.Categorical, D.OneHotCategorical):
        assert kl_divergence(family(a), family(b)).item() == pytest.approx(expected)
    p, q = D.Dirichlet(10 * a), D.Dirichlet(3 * b)
    torch.manual_seed(0)
    x = p.sample((40000,))
    monte_carlo = (p.log_prob(x) - q.log_prob(x)).mean().item()
    assert kl_divergence(p, q).item() == pytest.approx(monte_carlo, rel=0.02)
    zero = torch.tensor([0.0, 1.0])
    assert kl_divergence(D.Categorical(zero), D.Categorical(1 - zero)).item() == math.inf
    assert kl_divergence(D.Categorical(zero), D.Categorical(zero)).item() == 0


def test_gaussians_in_any_form():
    rng = np.random.default_rng(0)
    loc, w, d = (torch.tensor(rng.normal(size=s)) for s in ((2, 3), (2, 3, 1), (2, 3)))
    d = d.exp()
    low = [D.LowRankMultivariateNormal(loc[i], w[i], d[i]) for i in range(2)]
    full = [D.MultivariateNormal(x.loc, x.covariance_matrix) for x in low]
    s0, s1 = (x.covariance_matrix.numpy() for x in low)
    m = (loc[1] - loc[0]).numpy()
    inverse = np.linalg.inv(s1)
    expected = 0.5 * (
        np.trace(inverse @ s0) + m @ inverse @ m - 3
        + np.log(np.linalg.det(s1) / np.linalg.det(s0))
    )  # fmt: skip
    for p in (low[0], full[0]):
        for q in (low[1], full[1]):
            assert kl_divergence(p, q).item() == pytest.approx(expected)


def test_bregman_agrees_with_the_closed_form():
    formula = _KL_REGISTRY[D.ExponentialFamily, D.ExponentialFamily]
    for family in (D.Normal, D.Gamma, D.Beta, D.Exponential, D.Poisson, D.Bernoulli):
        p, tensors = made(family, LAWS[family][0][0])
        q, _ = made(family, LAWS[family][1][0])
        a, b = formula(p, q), kl_divergence(p, q)
        assert a.item() == pytest.approx(b.item())
        for x, y in zip(
            torch.autograd.grad(a, list(tensors.values())),
            torch.autograd.grad(b, list(tensors.values())),
            strict=True,
        ):
            assert x.item() == pytest.approx(y.item())


def test_independent_sums_and_unknown_pairs_are_refused():
    p, q = D.Normal(torch.zeros(2, 3), 1.0), D.Normal(torch.ones(2, 3), 1.0)
    summed = kl_divergence(D.Independent(p, 1), D.Independent(q, 1))
    np.testing.assert_allclose(summed.numpy(), [1.5, 1.5])
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented"):
        kl_divergence(p, D.Cauchy(0.0, 1.0))
    with pytest.raises(TypeError, match="type_p"):
        D.register_kl(3, D.Normal)


def test_a_mixin_can_be_registered():
    class Mixin:
        pass

    class Mine(D.Normal):
        pass

    class Other(D.Cauchy, Mixin):
        pass

    D.register_kl(Mine, Mixin)(lambda p, q: torch.tensor(7.0))
    assert kl_divergence(Mine(0.0, 1.0), Other(0.0, 1.0)).item() == 7
    D.register_kl(D.Normal, Other)(lambda p, q: torch.tensor(8.0))
    with pytest.warns(RuntimeWarning, match="Ambiguous"):
        kl_divergence(Mine(0.0, 1.0), Other(0.0, 1.0))
