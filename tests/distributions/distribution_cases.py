"""Families with parameters, and the same distributions of SciPy."""

import math

from flambeau.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
from scipy import stats

import flambeau as torch
from flambeau import distributions as D


def continuous():
    """(family, parameters by name, frozen SciPy distribution)."""
    rows = []

    def add(family, frozen, **parameters):
        rows.append((family, parameters, frozen))

    add(D.Normal, stats.norm(0.3, 2.0), loc=0.3, scale=2.0)
    add(D.Normal, stats.norm(-5.0, 1e-3), loc=-5.0, scale=1e-3)
    add(D.Laplace, stats.laplace(0.3, 2.0), loc=0.3, scale=2.0)
    add(D.Cauchy, stats.cauchy(0.3, 2.0), loc=0.3, scale=2.0)
    add(D.StudentT, stats.t(3.5, 0.3, 2.0), df=3.5, loc=0.3, scale=2.0)
    add(D.StudentT, stats.t(1.5), df=1.5)
    add(D.Uniform, stats.uniform(-1.0, 3.0), low=-1.0, high=2.0)
    add(D.Exponential, stats.expon(scale=0.5), rate=2.0)
    add(D.Gamma, stats.gamma(2.5, scale=0.5), concentration=2.5, rate=2.0)
    add(D.Gamma, stats.gamma(0.3), concentration=0.3, rate=1.0)
    add(D.Gamma, stats.gamma(150.0), concentration=150.0, rate=1.0)
    add(D.Chi2, stats.chi2(3.0), df=3.0)
    add(D.FisherSnedecor, stats.f(5.0, 7.0), df1=5.0, df2=7.0)
    add(D.GeneralizedPareto, stats.genpareto(0.2, 1.0, 2.0), loc=1.0, scale=2.0, concentration=0.2)
    add(D.GeneralizedPareto, stats.genpareto(-0.4, 1.0), loc=1.0, scale=1.0, concentration=-0.4)
    add(D.GeneralizedPareto, stats.genpareto(0.0), loc=0.0, scale=1.0, concentration=0.0)
    add(D.Beta, stats.beta(2.0, 3.5), concentration1=2.0, concentration0=3.5)
    add(D.Beta, stats.beta(0.5, 0.7), concentration1=0.5, concentration0=0.7)
    add(D.LogNormal, stats.lognorm(0.5, scale=math.exp(0.3)), loc=0.3, scale=0.5)
    add(D.HalfNormal, stats.halfnorm(scale=2.0), scale=2.0)
    add(D.HalfCauchy, stats.halfcauchy(scale=2.0), scale=2.0)
    add(D.Gumbel, stats.gumbel_r(0.3, 2.0), loc=0.3, scale=2.0)
    add(D.Pareto, stats.pareto(3.0, scale=2.0), scale=2.0, alpha=3.0)
    add(D.Weibull, stats.weibull_min(1.5, scale=2.0), scale=2.0, concentration=1.5)
    add(D.InverseGamma, stats.invgamma(3.5, scale=2.0), concentration=3.5, rate=2.0)
    add(D.Kumaraswamy, Kumaraswamy(2.0, 3.0), concentration1=2.0, concentration0=3.0)
    add(D.VonMises, stats.vonmises(1.5, 0.3), loc=0.3, concentration=1.5)
    add(D.ContinuousBernoulli, stats.truncexpon(math.log(4), scale=1 / math.log(4)), probs=0.2)
    add(D.ContinuousBernoulli, stats.uniform(0.0, 1.0), probs=0.5)
    logit = math.log(0.3 / 0.7)
    add(LogitRelaxedBernoulli, stats.logistic(logit / 0.5, 2.0), temperature=0.5, probs=0.3)
    return rows


class Kumaraswamy(stats.rv_continuous):
    """By its distribution function."""

    def __new__(cls, a, b):
        class Law(stats.rv_continuous):
            def _cdf(self, x):
                return 1 - (1 - x**a) ** b

            def _pdf(self, x):
                return a * b * x ** (a - 1) * (1 - x**a) ** (b - 1)

        return Law(a=0.0, b=1.0, name="kumaraswamy")()


def discrete():
    """(family, parameters by name, frozen SciPy distribution)."""
    return [
        (D.Bernoulli, {"probs": 0.3}, stats.bernoulli(0.3)),
        (D.Bernoulli, {"logits": 2.0}, stats.bernoulli(1 / (1 + math.exp(-2.0)))),
        (D.Binomial, {"total_count": 7, "probs": 0.3}, stats.binom(7, 0.3)),
        (D.Binomial, {"total_count": 200, "probs": 0.7}, stats.binom(200, 0.7)),
        (D.Geometric, {"probs": 0.3}, stats.geom(0.3, loc=-1)),
        (D.NegativeBinomial, {"total_count": 3.5, "probs": 0.3}, stats.nbinom(3.5, 0.7)),
        (D.Poisson, {"rate": 2.5}, stats.poisson(2.5)),
        (D.Poisson, {"rate": 50.0}, stats.poisson(50.0)),
    ]


def made(family, parameters, dtype=torch.float64, shape=()):
    """The distribution, with its parameters and their tensors (counts of trials have none)."""
    tensors = {
        k: torch.full(shape, float(v), dtype=dtype, requires_grad=k != "total_count")
        for k, v in parameters.items()
    }
    return family(**tensors), tensors


def label(row):
    numbers = ", ".join(f"{k}={v}" for k, v in row[1].items())
    return f"{row[0].__name__}({numbers})"
