"""Dual numbers: tangents of operations, views, changes in place; forward over reverse."""

import math

import numpy as np
import pytest

import flambeau as torch
import flambeau.autograd.forward_ad as fw


def dual(primal, tangent):
    return fw.make_dual(
        torch.tensor(primal, dtype=torch.float64), torch.tensor(tangent, dtype=torch.float64)
    )


def tangent(x):
    return fw.unpack_dual(x).tangent


def same(tensor, want):
    np.testing.assert_allclose(np.array(tensor.tolist()), want, rtol=1e-12)


def test_arithmetic():
    with fw.dual_level():
        x, y = dual([2.0, 3.0], [1.0, 10.0]), dual([5.0, 7.0], [2.0, 0.0])
        same(tangent(x + y), [3.0, 10.0])
        same(tangent(x * y), [9.0, 70.0])
        same(tangent(x / 2), [0.5, 5.0])
        same(tangent(x.sin()), [math.cos(2.0), 10 * math.cos(3.0)])
        same(tangent((x * x).sum()), 64.0)
        assert tangent(x > 1) is None
        assert tangent(torch.ones(2) * 2) is None


def test_matrix_product():
    rng = np.random.default_rng(0)
    a, b, ta, tb = (rng.normal(size=(3, 3)) for _ in range(4))
    with fw.dual_level():
        out = dual(a.tolist(), ta.tolist()) @ dual(b.tolist(), tb.tolist())
        same(tangent(out), ta @ b + a @ tb)


def test_views_and_changes_in_place():
    with fw.dual_level():
        x = dual([1.0, 2.0, 3.0], [1.0, 10.0, 100.0])
        same(tangent(x[1:]), [10.0, 100.0])
        y = x * 1
        y[0] = 5.0
        y[1:].mul_(2)
        same(fw.unpack_dual(y).primal, [5.0, 4.0, 6.0])
        same(tangent(y), [0.0, 20.0, 200.0])
        z = torch.zeros(2, dtype=torch.float64)
        z[1] = x[2]
        same(tangent(z), [0.0, 100.0])


def test_tangents_end_with_the_level():
    with fw.dual_level():
        x = dual([1.0], [1.0])
        y = x * 2
    assert fw.unpack_dual(y) == (y, None)
    with fw.dual_level():
        assert tangent(y) is None
        assert tangent(y * 2) is None


def test_detach_and_switch():
    with fw.dual_level():
        x = dual([1.0], [1.0])
        assert tangent(x.detach()) is None
        with fw._set_fwd_grad_enabled(False):
            assert tangent(x * 2) is None
        with torch.no_grad():
            same(tangent(x * 2), [2.0])


def test_unpacked_primal_has_no_tangent():
    with fw.dual_level():
        primal, t = fw.unpack_dual(dual([1.0], [3.0]))
        assert tangent(primal) is None
        same(t, [3.0])


def test_reverse_over_forward():
    with fw.dual_level():
        p = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
        x = fw.make_dual(p, torch.ones(1, dtype=torch.float64))
        (h,) = torch.autograd.grad(tangent(x**3).sum(), p)
        same(h, [12.0])


def test_errors():
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(torch.ones(1), torch.ones(1))
    with fw.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            fw.enter_dual_level()
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
            fw.make_dual(torch.ones(1, dtype=torch.int64), torch.ones(1))
        with pytest.raises(RuntimeError):
            fw.make_dual(torch.ones(1), torch.ones(2))
