"""Constraints, validation, printing, subclasses, module names."""

import math
import pickle
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau import distributions as D
from flambeau.distributions import constraints as C
from flambeau.distributions import utils

EYE = [[1.0, 0.0], [0.0, 1.0]]
#: constraint, values inside, values outside
SETS = [
    (C.boolean, [0, 1], [2, -1]),
    (C.real, [1.0, -math.inf], [math.nan]),
    (C.positive, [1e-30], [0.0, -1.0]),
    (C.nonnegative, [0.0], [-1e-30]),
    (C.greater_than(1.0), [1.1], [1.0]),
    (C.less_than(1.0), [0.9], [1.0]),
    (C.unit_interval, [0.0, 1.0], [-0.1, 1.1]),
    (C.half_open_interval(0.0, 1.0), [0.0], [1.0]),
    (C.integer_interval(1, 3), [1, 3], [0, 2.5, 4]),
    (C.nonnegative_integer, [0, 5], [-1, 0.5]),
    (C.positive_integer, [1], [0, 1.5]),
    (C.simplex, [[0.4, 0.6]], [[0.5, 0.6], [-0.1, 1.1]]),
    (C.one_hot, [[0, 1]], [[1, 1], [0, 0], [0.5, 0.5]]),
    (C.multinomial(3), [[1, 2], [0, 0]], [[2, 2], [-1, 1]]),
    (C.real_vector, [[0.0, 1.0]], [[0.0, math.nan]]),
    (C.independent(C.positive, 1), [[1.0, 2.0]], [[1.0, -2.0]]),
    (C.lower_triangular, [EYE], [[[1.0, 1.0], [0.0, 1.0]]]),
    (C.lower_cholesky, [EYE], [[[1.0, 1.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]]),
    (C.corr_cholesky, [EYE, [[1.0, 0.0], [0.6, 0.8]]], [[[1.0, 0.0], [0.6, 0.9]]]),
    (C.symmetric, [EYE, [[1.0, 2.0], [2.0, 1.0]]], [[[1.0, 2.0], [0.0, 1.0]]]),
    (C.positive_semidefinite, [EYE, [[1.0, 0.0], [0.0, 0.0]]], [[[1.0, 2.0], [2.0, 1.0]]]),
    (C.positive_definite, [EYE], [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]]]),
    (C.cat([C.positive, C.boolean], -1), [[2.0, 1.0]], []),
    (C.MixtureSameFamilyConstraint(C.positive), [1.0], [-1.0]),
]


@pytest.mark.parametrize(("constraint", "inside", "outside"), SETS, ids=lambda v: str(v)[:40])
def test_membership(constraint, inside, outside):
    for value in inside:
        assert bool(constraint.check(torch.tensor(value)).all())
    for value in outside:
        assert not bool(constraint.check(torch.tensor(value)).all())


def test_dims_and_kinds():
    assert C.independent(C.real, 2).event_dim == 2
    assert C.stack([C.real, C.boolean], -1).is_discrete
    assert C.square.check(torch.ones(4, 2, 3)).tolist() == [False] * 4
    with pytest.raises(NotImplementedError, match="cannot be determined statically"):
        _ = C.dependent.event_dim
    assert C.dependent(event_dim=1).event_dim == 1
    assert D.Uniform.support.event_dim == 0
    assert C.is_dependent(D.Uniform.support)
    assert not C.is_dependent(D.Uniform(0.0, 1.0).support)
    with pytest.raises(ValueError, match="dependent"):
        C.dependent.check(torch.ones(1))


def test_printing():
    assert repr(C.positive) == "GreaterThan(lower_bound=0.0)"
    assert repr(C.real_vector) == "IndependentConstraint(Real(), 1)"
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Normal(torch.zeros(2), 1.0)) == (
        "Normal(loc: torch.Size([2]), scale: torch.Size([2]))"
    )
    assert repr(D.Bernoulli(logits=0.0)) == "Bernoulli(logits: 0.0)"
    assert repr(D.Independent(D.Normal(torch.zeros(2), 1.0), 1)) == (
        "Independent(Normal(loc: torch.Size([2]), scale: torch.Size([2])), 1)"
    )


def test_parameters_and_values_are_checked():
    with pytest.raises(ValueError, match="Expected parameter scale .* GreaterThan"):
        D.Normal(0.0, -1.0)
    D.Normal(0.0, -1.0, validate_args=False)
    with pytest.raises(ValueError, match="within the support"):
        D.Exponential(1.0).log_prob(torch.tensor(-1.0))
    assert D.Exponential(1.0, validate_args=False).log_prob(torch.tensor(-1.0)).item() == 1
    with pytest.raises(ValueError, match="must be a Tensor"):
        D.Normal(0.0, 1.0).log_prob(0.0)
    with pytest.raises(ValueError, match="not broadcastable"):
        D.Normal(torch.zeros(3), 1.0).log_prob(torch.zeros(2))
    with pytest.raises(ValueError, match="right-most size"):
        D.Dirichlet(torch.ones(3)).log_prob(torch.ones(2) / 2)
    with pytest.raises(ValueError, match="not both"):
        D.Bernoulli()
    with pytest.raises(ValueError, match="not both"):
        D.Categorical(probs=torch.ones(2), logits=torch.ones(2))
    with pytest.raises(ValueError, match="Expected parameter low"):
        D.Uniform(1.0, 0.0)
    with pytest.raises(ValueError, match="positive_definite|PositiveDefinite"):
        D.MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="expected a bool"):
        D.Distribution.set_default_validate_args("no")


def test_subclasses():
    class Own(D.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="custom .expand"):
        Own().expand((2,))

    class Plain(D.Normal):
        pass

    assert type(Plain(0.0, 1.0).expand((2,))) is Plain

    class Bare(D.Distribution):
        pass

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Bare()
    assert "arg_constraints" in str(caught[0].message)
    for get in ("mean", "mode", "variance", "support"):
        with pytest.raises(NotImplementedError):
            getattr(Bare(validate_args=False), get)


def test_lazy_attributes_are_computed_once():
    d = D.Bernoulli(probs=torch.tensor([0.25]))
    assert "logits" not in d.__dict__
    assert d.logits is d.logits
    assert isinstance(D.Bernoulli.logits, utils.lazy_property)
    again = pickle.loads(pickle.dumps(d))
    np.testing.assert_array_equal(again.logits.numpy(), d.logits.numpy())


def test_vectors_of_triangles():
    m = torch.arange(9.0).reshape(3, 3).tril()
    for diag in (-2, -1, 0):
        v = utils.tril_matrix_to_vec(m, diag)
        back = utils.vec_to_tril_matrix(v, diag)
        np.testing.assert_array_equal(back.numpy(), m.tril(diag).numpy())
    with pytest.raises(ValueError, match="lower triangular"):
        utils.vec_to_tril_matrix(torch.ones(4))
    with pytest.raises(ValueError, match="Number or Tensor"):
        utils.broadcast_all("x", 1.0)


def test_names_of_modules():
    from flambeau.distributions.multivariate_normal import _batch_mv
    from flambeau.distributions.normal import Normal
    from flambeau.distributions.studentT import StudentT

    assert Normal is D.Normal
    assert StudentT is D.StudentT
    assert _batch_mv(torch.eye(2), torch.ones(2)).tolist() == [1, 1]


def test_under_transforms_and_the_compiler():
    def loss(loc, x):
        return D.Normal(loc, 1.0, validate_args=False).log_prob(x).sum()

    locs, x = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.5, 1.5])
    each = torch.vmap(loss, (0, None))(locs, x)
    np.testing.assert_allclose(each.numpy(), [loss(v, x).item() for v in locs], rtol=1e-6)
    slope = torch.func.grad(loss)(locs[0], x)
    assert slope.item() == pytest.approx(2.0)
    compiled = torch.compile(loss)
    assert compiled(locs[1], x).item() == pytest.approx(loss(locs[1], x).item())
    gammas = torch.vmap(
        lambda c: D.Gamma(c, 1.0, validate_args=False).rsample((3,)), randomness="different"
    )(torch.ones(4))
    assert gammas.shape == (4, 3)
