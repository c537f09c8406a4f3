"""Transforms: round trips, Jacobians by autograd, caches, shapes, and the registries."""

import pickle

import numpy as np
import pytest

import flambeau as torch
from flambeau import distributions as D
from flambeau.distributions import biject_to, constraints, transform_to
from flambeau.distributions import transforms as T

F = torch.float64
NORMAL = D.Normal(torch.tensor(0.5, dtype=F), torch.tensor(2.0, dtype=F))
TWO = torch.tensor([1.0, 2.0], dtype=F)
ALL_SIGMOID = T.IndependentTransform(T.SigmoidTransform(), 1)
#: transform, shape of one argument
BIJECTIONS = [
    (T.ExpTransform(), ()),
    (T.PowerTransform(torch.tensor(1.7, dtype=F)), ()),
    (T.PowerTransform(torch.tensor(-1.0, dtype=F)), ()),
    (T.SigmoidTransform(), ()),
    (T.SoftplusTransform(), ()),
    (T.TanhTransform(), ()),
    (T.AffineTransform(1.0, -2.0), ()),
    (T.AffineTransform(TWO, TWO - 4.0, 1), (2,)),
    (T.CumulativeDistributionTransform(NORMAL), ()),
    (T.StickBreakingTransform(), (3,)),
    (T.CorrCholeskyTransform(), (6,)),
    (T.ReshapeTransform((2, 3), (6,)), (2, 3)),
    (T.IndependentTransform(T.ExpTransform(), 1), (3,)),
    (T.ComposeTransform([T.AffineTransform(0.5, 2.0), T.TanhTransform(), T.ExpTransform()]), ()),
    (T.ComposeTransform([ALL_SIGMOID, T.StickBreakingTransform()]), (3,)),
    (T.ComposeTransform([]), ()),
    (T.CatTransform([T.ExpTransform(), T.SigmoidTransform()], -1, [1, 2]), (3,)),
    (T.StackTransform([T.ExpTransform(), T.TanhTransform()], -1), (2,)),
]  # fmt: skip


def argument(t, shape, batch=(4,)):
    torch.manual_seed(0)
    x = torch.randn((*batch, *shape), dtype=F)
    return x.exp() if isinstance(t, T.PowerTransform) else x


def name(value):
    return type(value).__name__ if isinstance(value, T.Transform) else str(value)


@pytest.mark.parametrize("cache_size", [0, 1])
@pytest.mark.parametrize(("t", "shape"), BIJECTIONS, ids=name)
def test_round_trips(t, shape, cache_size):
    t = t.with_cache(cache_size)
    x = argument(t, shape)
    y = t(x)
    assert t.inv.inv is t
    assert y.shape == t.forward_shape(x.shape)
    assert x.shape == t.inverse_shape(y.shape)
    back = t.inv(y)
    if cache_size and t.inv.__class__.__name__ == "_InverseTransform":
        assert back is x
    np.testing.assert_allclose(back.numpy(), x.numpy(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(t.inv.inv(x).numpy(), y.numpy())
    copied = pickle.loads(pickle.dumps(t))
    np.testing.assert_allclose(copied(x).numpy(), y.numpy())
    if not isinstance(t, T.CatTransform | T.StackTransform):
        assert bool(t.codomain.check(y).all())


def degrees(t, y):
    """The entries of a value that are free, as many as the argument has."""
    if isinstance(t, T.CorrCholeskyTransform):
        return D.utils.tril_matrix_to_vec(y, diag=-1)
    last = t.parts[-1] if isinstance(t, T.ComposeTransform) and t.parts else t
    return y[:-1] if isinstance(last, T.StickBreakingTransform) else y


@pytest.mark.parametrize(("t", "shape"), BIJECTIONS, ids=name)
def test_log_jacobians(t, shape):
    whole = argument(t, shape, batch=(4,))
    result = t.log_abs_det_jacobian(whole, t(whole)).numpy()
    for i in range(4):
        x = whole[i]
        size = x.numel()
        jacobian = torch.autograd.functional.jacobian(
            lambda v: degrees(t, t(v.reshape(shape))).reshape(-1), x.reshape(size)
        )
        expected = np.linalg.slogdet(jacobian.numpy())[1]
        assert np.sum(result[i]) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    back = t.inv.log_abs_det_jacobian(t(whole), whole)
    np.testing.assert_allclose(back.numpy(), -result)


def test_transforms_that_forget():
    x = argument(T.SoftmaxTransform(), (3,))
    y = T.SoftmaxTransform()(x)
    np.testing.assert_allclose(T.SoftmaxTransform()(T.SoftmaxTransform().inv(y)).numpy(), y.numpy())
    assert T.AbsTransform()(torch.tensor([-2.0])).item() == 2
    m = argument(T.LowerCholeskyTransform(), (3, 3))
    factor = T.LowerCholeskyTransform()(m)
    assert bool(constraints.lower_cholesky.check(factor).all())
    np.testing.assert_allclose(T.LowerCholeskyTransform().inv(factor).numpy(), m.tril().numpy())
    p = T.PositiveDefiniteTransform()(m)
    assert bool(constraints.positive_definite.check(p).all())
    np.testing.assert_allclose(T.PositiveDefiniteTransform().inv(p).numpy(), m.tril().numpy())


def test_signs_and_equality():
    assert T.ExpTransform().sign == 1
    assert T.AffineTransform(0.0, -1.0).sign == -1
    assert T.ExpTransform() == T.ExpTransform()
    assert T.ExpTransform() != T.SigmoidTransform()
    assert T.AffineTransform(0.0, 1.0) == T.AffineTransform(torch.zeros(()), torch.ones(()))
    assert T.AffineTransform(0.0, 1.0) != T.AffineTransform(0.0, 2.0)
    assert T.ExpTransform().inv == T.ExpTransform().inv
    assert T.ComposeTransform([T.ExpTransform()]) == T.ComposeTransform([T.ExpTransform()])
    with pytest.raises(ValueError, match="cache_size"):
        T.ExpTransform(cache_size=2)
    with pytest.raises(ValueError, match="different numbers of elements"):
        T.ReshapeTransform((2,), (3,))


SETS = [
    (constraints.real, ()),
    (constraints.positive, ()),
    (constraints.greater_than(2.0), ()),
    (constraints.greater_than_eq(-1.0), ()),
    (constraints.less_than(2.0), ()),
    (constraints.unit_interval, ()),
    (constraints.interval(-2.0, 5.0), ()),
    (constraints.half_open_interval(-2.0, 5.0), ()),
    (constraints.simplex, (3,)),
    (constraints.real_vector, (3,)),
    (constraints.lower_cholesky, (3, 3)),
    (constraints.corr_cholesky, (3,)),
    (constraints.positive_definite, (3, 3)),
    (constraints.independent(constraints.positive, 1), (3,)),
    (constraints.cat([constraints.positive, constraints.unit_interval], -1, [1, 2]), (3,)),
    (constraints.stack([constraints.positive, constraints.unit_interval], -1), (2,)),
]


@pytest.mark.parametrize("registry", [biject_to, transform_to], ids=["biject_to", "transform_to"])
@pytest.mark.parametrize(("constraint", "shape"), SETS, ids=str)
def test_numbers_reach_every_set(registry, constraint, shape):
    torch.manual_seed(0)
    x = torch.randn((5, *shape), dtype=F)
    y = registry(constraint)(x)
    assert bool(constraint.check(y).all())
    if registry is biject_to and registry(constraint).bijective:
        np.testing.assert_allclose(registry(constraint).inv(y).numpy(), x.numpy(), atol=1e-7)


def test_what_is_not_registered_is_refused():
    with pytest.raises(NotImplementedError, match="Boolean"):
        biject_to(constraints.boolean)
    with pytest.raises(TypeError, match="Expected constraint"):
        biject_to.register(int, lambda c: c)


def test_distributions_of_transformed_numbers():
    """A normal number through exp and an affine map, by hand."""
    base = D.Normal(torch.zeros(3, dtype=F), 1.0)
    d = D.TransformedDistribution(base, [T.ExpTransform(), T.AffineTransform(1.0, -2.0)])
    y = torch.tensor([-1.0, 0.0, 0.9], dtype=F)
    x = ((y - 1) / -2).log()
    np.testing.assert_allclose(d.log_prob(y).numpy(), (base.log_prob(x) - x - np.log(2)).numpy())
    np.testing.assert_allclose(d.cdf(y).numpy(), 1 - base.cdf(x).numpy())
    np.testing.assert_allclose(d.icdf(d.cdf(y)).numpy(), y.numpy())
    stick = D.TransformedDistribution(base, [T.StickBreakingTransform()])
    assert stick.event_shape == (4,)
    assert stick.batch_shape == ()
    assert stick.expand((2,)).sample((5,)).shape == (5, 2, 4)
    with pytest.raises(ValueError, match="must be a Transform or list"):
        D.TransformedDistribution(base, 3)
