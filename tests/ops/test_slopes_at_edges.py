"""Derivatives at zeros, bounds, infinities and NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
inf, nan = math.inf, math.nan


def slope(f, x, dtype=torch.float32, g=1.0):
    x = torch.tensor(x, dtype=dtype, requires_grad=True)
    y = f(x)
    return torch.autograd.grad(y, x, torch.full_like(y, g))[0].tolist()


@pytest.mark.parametrize("way", [lambda f: f, torch.compile])
@pytest.mark.parametrize("dtype, large", [(torch.float32, 1e30), (torch.float64, 1e300)])
def test_exponential_units_have_a_slope_where_their_exponential_overflows(dtype, large, way):
    points = [large, 800.0, 90.0, 1.0]
    assert slope(way(lambda x: F.elu(x, 0.5)), points, dtype) == [1, 1, 1, 1]
    assert slope(way(lambda x: F.celu(x, 2.0)), points, dtype) == [1, 1, 1, 1]
    np.testing.assert_allclose(slope(way(F.selu), points, dtype), 1.0507009873554805, rtol=1e-6)


def test_exponential_units_keep_their_small_slopes():
    x = [-20.0, -40.0]
    np.testing.assert_allclose(slope(F.elu, x, torch.float64), np.exp(x), rtol=1e-12)
    np.testing.assert_allclose(
        slope(lambda t: F.celu(t, 2.0), x), np.exp(np.array(x) / 2), rtol=1e-5
    )


def test_the_angle_of_nothing_has_no_slope():
    zero = torch.zeros(2, requires_grad=True)
    other = torch.tensor([0.0, 1e-30], requires_grad=True)
    torch.atan2(zero, other).sum().backward()
    assert zero.grad.tolist() == [0, 0] and other.grad.tolist() == [0, 0]
    assert slope(torch.angle, [1e-30, -1e-30, 0.0]) == [0, 0, 0]


def test_bounds_and_steps():
    assert slope(F.softshrink, [-0.5, 0.5, 0.6, 0.0]) == [0, 0, 1, 0]
    assert slope(torch.relu, [0.0, -0.0, 1.0, nan]) == [0, 0, 1, 1]
    assert slope(F.relu6, [0.0, 6.0, 3.0, nan]) == [0, 0, 1, 1]
    assert slope(F.hardtanh, [-1.0, 1.0, 0.5, nan]) == [0, 0, 1, 1]
    outside = slope(torch.logit, [-1.0, 2.0, 0.5], torch.float64)
    assert math.isnan(outside[0]) and math.isnan(outside[1]) and outside[2] == 4


@pytest.mark.parametrize("g", [inf, nan])
def test_steps_take_no_part_in_what_comes_after_them(g):
    for f in (torch.round, torch.floor, torch.ceil, torch.trunc, torch.sign):
        assert slope(f, [0.3, -2.5], g=g) == [0, 0]


def test_the_greater_of_a_number_and_nan_has_both_slopes():
    a = torch.tensor([1.0, nan, 2.0, 1.0], requires_grad=True)
    b = torch.tensor([nan, 1.0, 1.0, 1.0], requires_grad=True)
    for f, first in ((torch.maximum, 1.0), (torch.minimum, 0.0)):
        ga, gb = torch.autograd.grad(f(a, b).sum(), [a, b])
        assert ga.tolist() == [1, 1, first, 0.5] and gb.tolist() == [1, 1, 1 - first, 0.5]


def test_an_infinite_leg_makes_an_infinite_triangle():
    a = torch.tensor([inf, nan, -inf, nan, 3.0])
    b = torch.tensor([nan, -inf, 1.0, 2.0, 4.0])
    got = torch.hypot(a, b).tolist()
    assert got[:3] == [inf, inf, inf] and math.isnan(got[3]) and got[4] == 5
