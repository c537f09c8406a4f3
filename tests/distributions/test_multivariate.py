"""Families over vectors and matrices against SciPy, sums and integrals."""

import itertools
import math

import numpy as np
import pytest
from flambeau.distributions.multivariate_normal import _batch_mahalanobis, _precision_to_scale_tril
from scipy import integrate, stats

import flambeau as torch
from flambeau import distributions as D

F = torch.float64


def t(x):
    return torch.tensor(x, dtype=F)


COVARIANCE = [[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 1.5]]


@pytest.mark.parametrize("name", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_multivariate_normal(name):
    c = np.array(COVARIANCE)
    given = {
        "covariance_matrix": c,
        "precision_matrix": np.linalg.inv(c),
        "scale_tril": np.linalg.cholesky(c),
    }
    mean = np.array([1.0, -1.0, 0.5])
    d = D.MultivariateNormal(t(mean), **{name: t(given[name])})
    law = stats.multivariate_normal(mean, c)
    x = law.rvs(5, random_state=0)
    np.testing.assert_allclose(d.log_prob(t(x)).numpy(), law.logpdf(x))
    np.testing.assert_allclose(d.entropy().item(), law.entropy())
    for other, value in given.items():
        np.testing.assert_allclose(getattr(d, other).numpy(), value, atol=1e-12)
    np.testing.assert_allclose(d.variance.numpy(), np.diag(c))
    torch.manual_seed(0)
    samples = d.sample((20000,)).numpy()
    np.testing.assert_allclose(np.cov(samples.T), c, atol=0.06)


def test_low_rank_is_the_full_one():
    rng = np.random.default_rng(0)
    w, diagonal, loc = t(rng.normal(size=(4, 2))), t(rng.uniform(0.5, 2, 4)), t(rng.normal(size=4))
    low = D.LowRankMultivariateNormal(loc, w, diagonal)
    full = D.MultivariateNormal(loc, w @ w.T + diagonal.diag())
    x = t(rng.normal(size=(3, 4)))
    np.testing.assert_allclose(low.log_prob(x).numpy(), full.log_prob(x).numpy())
    np.testing.assert_allclose(low.entropy().numpy(), full.entropy().numpy())
    for name in ("covariance_matrix", "precision_matrix", "scale_tril", "variance"):
        np.testing.assert_allclose(
            getattr(low, name).numpy(), getattr(full, name).numpy(), atol=1e-12
        )
    torch.manual_seed(0)
    np.testing.assert_allclose(
        np.cov(low.sample((20000,)).numpy().T), full.covariance_matrix.numpy(), atol=0.15
    )


@pytest.mark.parametrize("batch", [(), (2,), (1, 2)])
@pytest.mark.parametrize("extra", [(), (5,), (4, 5)])
def test_distances_broadcast(batch, extra):
    rng = np.random.default_rng(0)
    factor = np.linalg.cholesky(np.array(COVARIANCE)) * rng.uniform(1, 2, (*batch, 1, 1))
    x = rng.normal(size=(*extra, *batch, 3))
    inverse = np.linalg.inv(factor @ np.swapaxes(factor, -1, -2))
    expected = np.einsum("...i,...ij,...j->...", x, inverse, x)
    np.testing.assert_allclose(_batch_mahalanobis(t(factor), t(x)).numpy(), expected)
    root = _precision_to_scale_tril(t(inverse)).numpy()
    np.testing.assert_allclose(root, factor, atol=1e-12)


def test_dirichlet_and_beta():
    c = np.array([0.7, 2.0, 3.5])
    d, law = D.Dirichlet(t(c)), stats.dirichlet(c)
    x = law.rvs(5, random_state=0)
    np.testing.assert_allclose(d.log_prob(t(x)).numpy(), [law.logpdf(v) for v in x])
    np.testing.assert_allclose(d.entropy().item(), law.entropy())
    np.testing.assert_allclose(d.mean.numpy(), law.mean())
    np.testing.assert_allclose(d.variance.numpy(), law.var())
    torch.manual_seed(0)
    first = d.sample((4000,))[:, 0].numpy()
    assert stats.kstest(first, stats.beta(0.7, 5.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("a", "b"), [(0.1, 0.5), (1.0, 1.0), (3.0, 0.4), (2.0, 80.0), (900.0, 700.0)]
)
def test_beta_numbers_move_with_their_shapes(a, b):
    u = np.array([0.05, 0.3, 0.6, 0.95])
    x = stats.beta(a, b).ppf(u)
    h = 1e-5 * a
    expected = (stats.beta(a + h, b).ppf(u) - stats.beta(a - h, b).ppf(u)) / (2 * h)
    slope = torch._dirichlet_grad(t(x), t([a] * 4), t([a + b] * 4)).numpy() * (1 - x)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("a", [1e-2, 0.3, 1.0, 7.0, 300.0, 1e5, 1e7])
def test_gamma_numbers_move_with_their_shape(a):
    u = np.array([0.02, 0.3, 0.6, 0.95])
    x = stats.gamma(a).ppf(u)
    h = 1e-6 * a if a < 1 else 1e-4 * math.sqrt(a)
    expected = (stats.gamma(a + h).ppf(u) - stats.gamma(a - h).ppf(u)) / (2 * h)
    slope = torch._standard_gamma_grad(t([a] * 4), t(x)).numpy()
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_dirichlet_points_have_the_gradient_of_their_mean():
    """The mean of the pathwise gradient is the gradient of the mean."""
    c = t([0.8, 1.5, 3.0]).requires_grad_()
    torch.manual_seed(0)
    points = D.Dirichlet(c).rsample((40000,))
    weights = t([1.0, -2.0, 0.5])
    (slope,) = torch.autograd.grad((points @ weights).mean(), c)
    mean = (c / c.sum()) @ weights
    (expected,) = torch.autograd.grad(mean, c)
    np.testing.assert_allclose(slope.numpy(), expected.numpy(), atol=5e-3)
    with pytest.raises(NotImplementedError, match="_dirichlet_grad is not implemented"):
        p = D.Dirichlet(c).rsample()
        (g,) = torch.autograd.grad(p[0], c, create_graph=True)
        g.sum().backward()


def test_multinomial_and_categories():
    p = np.array([0.2, 0.3, 0.5])
    d, law = D.Multinomial(4, t(p)), stats.multinomial(4, p)
    every = [v for v in itertools.product(range(5), repeat=3) if sum(v) == 4]
    log_p = d.log_prob(t(every)).numpy()
    np.testing.assert_allclose(log_p, law.logpmf(every))
    np.testing.assert_allclose(d.entropy().item(), law.entropy())
    torch.manual_seed(0)
    counts = d.sample((5000,)).numpy()
    assert (counts.sum(-1) == 4).all()
    np.testing.assert_allclose(counts.mean(0), 4 * p, atol=0.05)
    c = D.Categorical(logits=t(np.log(p) + 3.0))
    np.testing.assert_allclose(c.log_prob(c.enumerate_support()).numpy(), np.log(p))
    np.testing.assert_allclose(c.entropy().item(), stats.entropy(p))
    assert c.mode.item() == 2
    torch.manual_seed(0)
    drawn = c.sample((5000,)).numpy()
    assert stats.chisquare(np.bincount(drawn), p * 5000).pvalue > 1e-3
    h = D.OneHotCategorical(t(p))
    np.testing.assert_allclose(h.log_prob(h.enumerate_support()).numpy(), np.log(p))
    assert D.Categorical(t([0.0, 1.0])).entropy().item() == pytest.approx(0, abs=1e-12)


def test_straight_through_passes_the_gradient_of_the_probabilities():
    p = t([0.2, 0.3, 0.5]).requires_grad_()
    x = D.OneHotCategoricalStraightThrough(p).rsample()
    assert x.detach().sum().item() == pytest.approx(1)
    (slope,) = torch.autograd.grad((x * t([1.0, 2.0, 3.0])).sum(), p)
    np.testing.assert_allclose(slope.numpy(), np.array([1.0, 2.0, 3.0]) - 2.3)  # of p / sum(p)


def test_relaxed_categories_integrate_to_one():
    d = D.RelaxedOneHotCategorical(t(0.7), t([0.3, 0.7]))

    def density(x):
        return d.log_prob(t([x, 1 - x])).exp().item()

    assert integrate.quad(density, 0, 1)[0] == pytest.approx(1, rel=1e-4)


def test_wishart():
    scale, df = np.array(COVARIANCE), 5.5
    d, law = D.Wishart(t(df), covariance_matrix=t(scale)), stats.wishart(df, scale)
    x = law.rvs(4, random_state=0)
    expected = [law.logpdf(v) for v in x]
    np.testing.assert_allclose(d.log_prob(t(x)).numpy(), expected)
    np.testing.assert_allclose(d.entropy().item(), law.entropy())
    np.testing.assert_allclose(d.mean.numpy(), law.mean())
    np.testing.assert_allclose(d.variance.numpy(), law.var())
    torch.manual_seed(0)
    samples = d.sample((20000,)).numpy()
    np.testing.assert_allclose(samples.mean(0), law.mean(), atol=0.15)
    np.testing.assert_allclose(samples.var(0), law.var(), rtol=0.06)


@pytest.mark.parametrize("concentration", [0.5, 1.0, 3.0])
def test_correlations_of_two_follow_a_beta_law(concentration):
    """Of two variables, (1 + correlation) / 2 has shapes equal to the concentration."""
    d = D.LKJCholesky(2, t(concentration))
    torch.manual_seed(0)
    r = d.sample((4000,))[:, 1, 0].numpy()
    law = stats.beta(concentration, concentration)
    assert stats.kstest((1 + r) / 2, law.cdf).pvalue > 1e-3
    x = np.array([-0.9, -0.2, 0.0, 0.7])
    factors = np.zeros((4, 2, 2))
    factors[:, 0, 0], factors[:, 1, 0], factors[:, 1, 1] = 1, x, np.sqrt(1 - x**2)
    np.testing.assert_allclose(d.log_prob(t(factors)).numpy(), law.logpdf((1 + x) / 2) - np.log(2))


def test_mixtures():
    weights, means = np.array([0.3, 0.7]), np.array([-1.0, 2.0])
    d = D.MixtureSameFamily(D.Categorical(t(weights)), D.Normal(t(means), t([1.0, 0.5])))
    x = np.linspace(-3, 4, 7)
    laws = [stats.norm(-1, 1), stats.norm(2, 0.5)]
    mixed = sum(w * law.pdf(x) for w, law in zip(weights, laws, strict=True))
    np.testing.assert_allclose(d.log_prob(t(x)).exp().numpy(), mixed)
    np.testing.assert_allclose(
        d.cdf(t(x)).numpy(), sum(w * law.cdf(x) for w, law in zip(weights, laws, strict=True))
    )
    torch.manual_seed(0)
    samples = d.sample((20000,)).numpy()
    assert samples.mean() == pytest.approx(d.mean.item(), abs=0.03)
    assert samples.var() == pytest.approx(d.variance.item(), rel=0.03)
    vectors = D.MixtureSameFamily(
        D.Categorical(torch.ones(2, 3)), D.Independent(D.Normal(torch.zeros(2, 3, 4), 1.0), 1)
    )
    assert vectors.sample((5,)).shape == (5, 2, 4)
    assert vectors.expand((6, 2)).log_prob(torch.zeros(4)).shape == (6, 2)


def test_logistic_normal_is_the_log_odds_of_two():
    d = D.LogisticNormal(t([0.3]), t([1.5]))
    p = np.array([0.1, 0.5, 0.8])
    law = stats.norm(0.3, 1.5)
    expected = law.logpdf(np.log(p / (1 - p))) - np.log(p * (1 - p))
    np.testing.assert_allclose(d.log_prob(t(np.stack([p, 1 - p], -1))).numpy(), expected)
