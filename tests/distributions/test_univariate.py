"""Families over numbers against SciPy: densities, moments, entropies, samples, derivatives."""

import numpy as np
import pytest
from distribution_cases import continuous, discrete, label, made
from scipy import stats

import flambeau as torch

CONTINUOUS, DISCRETE = continuous(), discrete()
ALL = CONTINUOUS + DISCRETE
DTYPES = [torch.float32, torch.float64]


def available(get):
    try:
        return get()
    except NotImplementedError:
        return None


def points(row):
    """Values all over the support."""
    frozen = row[2]
    p = np.array([1e-3, 0.02, 0.2, 0.5, 0.7, 0.95, 0.999])
    return np.unique(frozen.ppf(p)) if row in DISCRETE else frozen.ppf(p)


def log_density(row, x):
    return row[2].logpmf(x) if row in DISCRETE else row[2].logpdf(x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("row", ALL, ids=label)
def test_log_prob_cdf_and_icdf(row, dtype):
    d, _ = made(row[0], row[1], dtype)
    x = torch.tensor(points(row), dtype=dtype)
    exact = x.double().numpy()
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == torch.float64 else {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(d.log_prob(x).detach().numpy(), log_density(row, exact), **close)
    assert d.log_prob(x).dtype == dtype
    cdf = available(lambda: d.cdf(x))
    if cdf is not None:
        np.testing.assert_allclose(cdf.detach().numpy(), row[2].cdf(exact), **close)
    p = torch.tensor([0.01, 0.3, 0.5, 0.9], dtype=dtype)
    icdf = available(lambda: d.icdf(p))
    if icdf is not None:
        np.testing.assert_allclose(
            icdf.detach().numpy(), row[2].ppf(p.double().numpy()), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("row", ALL, ids=label)
def test_moments_and_entropy(row):
    d, _ = made(row[0], row[1])
    mean, variance = available(lambda: d.mean), available(lambda: d.variance)
    heavy = row[0].__name__ in ("Cauchy", "HalfCauchy")  # infinite or none, SciPy has either
    angles = row[0].__name__ == "VonMises"  # variance on the circle
    if mean is not None and not heavy and not angles:
        expected = row[2].mean()
        np.testing.assert_allclose(mean.item(), expected, rtol=1e-6)
        if np.isfinite(row[2].var()):
            np.testing.assert_allclose(variance.item(), row[2].var(), rtol=1e-5)
            np.testing.assert_allclose(d.stddev.item(), row[2].std(), rtol=1e-5)
    entropy = available(d.entropy)
    if entropy is not None:
        np.testing.assert_allclose(entropy.item(), row[2].entropy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(d.perplexity().item(), np.exp(entropy.item()))


@pytest.mark.parametrize("row", ALL, ids=label)
def test_the_mode_has_the_greatest_density(row):
    d, _ = made(row[0], row[1])
    mode = available(lambda: d.mode)
    if mode is None or not bool(mode.isfinite()):
        return
    near = torch.tensor(points(row))
    with np.errstate(divide="ignore"):
        top = log_density(row, mode.item())
    assert top >= log_density(row, near.numpy()).max() - 1e-9


@pytest.mark.parametrize("row", CONTINUOUS, ids=label)
def test_samples_follow_the_distribution_function(row):
    d, _ = made(row[0], row[1])
    torch.manual_seed(7)
    x = d.sample((4000,))
    assert not x.requires_grad
    assert bool(d.support.check(x).all())
    assert stats.kstest(x.numpy(), row[2].cdf).pvalue > 1e-3


@pytest.mark.parametrize("row", DISCRETE, ids=label)
def test_counts_follow_the_probabilities(row):
    d, _ = made(row[0], row[1])
    torch.manual_seed(7)
    x = d.sample((4000,)).numpy()
    values = np.arange(x.max() + 1)
    expected = row[2].pmf(values) * x.size
    seen = np.array([(x == v).sum() for v in values])
    common = expected >= 5
    rest = [max(x.size - expected[common].sum(), 1e-9)], [x.size - seen[common].sum()]
    if rest[0][0] < 1:
        expected, seen = expected[common], seen[common]
    else:
        expected = np.concatenate([expected[common], rest[0]])
        seen = np.concatenate([seen[common], rest[1]])
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-3


MOVING = [r for r in CONTINUOUS if r[0].has_rsample is not False]


@pytest.mark.parametrize("row", MOVING, ids=label)
def test_samples_move_with_parameters_at_fixed_probability(row):
    """dx/da is -(dF/da) / density; F, which agrees with SciPy, differenced in a."""
    family, parameters, frozen = row
    d, tensors = made(family, parameters)
    torch.manual_seed(3)
    x = d.rsample((8,))
    for name, value in parameters.items():
        (slope,) = zip(
            *[torch.autograd.grad(x[i], [tensors[name]], retain_graph=True) for i in range(8)],
            strict=True,
        )
        slope = np.array([s.item() for s in slope])
        h = 1e-6 * min(max(abs(value), 0.1), 1.0)
        above, _ = made(family, {**parameters, name: value + h})
        below, _ = made(family, {**parameters, name: value - h})
        cdf = available(lambda d=above: d.cdf(x.detach()))
        if cdf is None:
            continue  # tested through the gamma and Dirichlet functions
        moved = (above.cdf(x.detach()) - below.cdf(x.detach())).detach().numpy() / (2 * h)
        expected = -moved / frozen.pdf(x.detach().numpy())
        np.testing.assert_allclose(slope, expected, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("row", ALL, ids=label)
def test_batches_expand_and_broadcast(row):
    d, _ = made(row[0], row[1], shape=(3,))
    assert d.batch_shape == (3,)
    assert d.event_shape == ()
    wide = d.expand((2, 3))
    assert wide.batch_shape == (2, 3)
    torch.manual_seed(1)
    x = wide.sample((5,))
    assert x.shape == (5, 2, 3)
    np.testing.assert_array_equal(wide.log_prob(x).detach().numpy(), d.log_prob(x).detach().numpy())
    assert type(wide) is type(d)
