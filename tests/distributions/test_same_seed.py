"""The same seed draws the same numbers as PyTorch: figures recorded with seed 0."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import distributions as D

#: family, parameters, the first three numbers
RECORDED = [
    (D.Normal, (0.5, 2.0), [3.58199, -0.0868578, -3.85758]),
    (D.Gamma, (0.7, 2.0), [0.00351025, 0.0521967, 0.241747]),
    (D.Beta, (0.5, 1.5), [0.00224778, 0.0301675, 0.177255]),
    (D.StudentT, (3.0,), [1.37114, -0.30946, -3.37113]),
    (D.Laplace, (0.0, 1.0), [-0.00751493, 0.768827, -1.73186]),
    (D.Poisson, (20.0,), [19.0, 22.0, 15.0]),
    (D.Gumbel, (0.0, 1.0), [0.355729, 1.33303, -0.885835]),
    (D.VonMises, (0.5, 2.0), [0.161893, -0.0873351, 0.300612]),
    (D.Geometric, (0.2,), [3.0, 1.0, 10.0]),
    (D.FisherSnedecor, (3.0, 5.0), [9.03813, 1.15072, 0.352264]),
    (D.NegativeBinomial, (5.0, 0.4), [5.0, 3.0, 1.0]),
    (D.Binomial, (50, 0.4), [20.0, 22.0, 16.0]),
    (D.Cauchy, (0.0, 1.0), [10.5977, 0.764767, -0.128299]),
    (D.HalfNormal, (1.0,), [1.541, 0.293429, 2.17879]),
    (D.Exponential, (2.0,), [1.75416, 0.615192, 0.307522]),
    (D.Weibull, (1.0, 2.0), [1.87305, 1.10923, 0.784247]),
    (D.Kumaraswamy, (2.0, 3.0), [0.456383, 0.29007, 0.744581]),
    (D.Pareto, (1.0, 3.0), [3.2202, 1.50701, 1.22754]),
    (D.InverseGamma, (2.0, 1.0), [0.219654, 0.759978, 1.60766]),
    (D.LogNormal, (0.0, 1.0), [4.66924, 0.745702, 0.113178]),
    (D.Uniform, (0.0, 2.0), [0.992513, 1.53644, 0.176955]),
    (D.Bernoulli, (0.3,), [0.0, 0.0, 1.0]),
    (D.ContinuousBernoulli, (0.3,), [0.393583, 0.682175, 0.0612316]),
    (D.GeneralizedPareto, (0.0, 1.0, 0.5), [0.817898, 2.15426, 0.0948179]),
]


@pytest.mark.parametrize(("family", "parameters", "numbers"), RECORDED, ids=lambda v: str(v)[:40])
def test_numbers(family, parameters, numbers):
    d = family(*[p if isinstance(p, int) else torch.tensor(p) for p in parameters])
    torch.manual_seed(0)
    np.testing.assert_allclose(d.sample((3,)).numpy(), numbers, rtol=5e-6)


def test_vectors():
    weights = torch.tensor([1.0, 2.0, 3.0])
    for d, shape, expected in [
        (D.Dirichlet(weights), (), [0.5282043814659119, 0.24112464487552643, 0.2306709587574005]),
        (D.Categorical(weights), (8,), [2, 2, 1, 2, 2, 2, 1, 1]),
        (D.LKJCholesky(2, 1.5), (), [[1, 0], [-0.17368808388710022, 0.9848006963729858]]),
        (
            D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2)),
            (),
            [1.2475671768188477, -0.6377933025360107],
        ),
        (D.Multinomial(9, weights), (), [0, 3, 6]),
    ]:
        torch.manual_seed(0)
        np.testing.assert_allclose(d.sample(shape).numpy(), expected, rtol=5e-6)
