"""Normalisations against their formulas in double precision where numbers are unfriendly: equal,
far from 0, with a first entry far from the others."""

import numpy as np
import pytest

import flambeau as fb

F = fb.nn.functional
EPS = 1e-5

CASES = {
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (0, 2, 3), (6, 3, 40, 50)),
    "channels_last": (
        lambda x: F.batch_norm(x.to(memory_format=fb.channels_last), None, None, training=True),
        (0, 2, 3),
        (6, 3, 40, 50),
    ),
    "columns": (lambda x: F.batch_norm(x, None, None, training=True), (0,), (500, 40)),
    "instance_norm": (F.instance_norm, (2, 3), (6, 3, 40, 50)),
    "group_norm": (lambda x: F.group_norm(x, 1), (1, 2, 3), (6, 4, 40, 50)),
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[1:]), (1,), (50, 3000)),
}


def numbers(shape, first, mean, deviation):
    a = np.random.default_rng(5).standard_normal(shape) * deviation + mean
    a[0], a[:, 0] = first, first
    a[..., 0] = first
    return a.astype(np.float32)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "first, mean, deviation", [(0, 0, 1), (0, 1000, 1), (1000, 0, 0.01), (50, 50, 0.5)]
)
def test_values_and_gradient(case, first, mean, deviation):
    norm, dims, shape = CASES[case]
    a = numbers(shape, first, mean, deviation)
    g = np.random.default_rng(6).standard_normal(shape)
    wide = a.astype(np.float64)
    rstd = 1 / np.sqrt(wide.var(dims, keepdims=True) + EPS)
    hat = (wide - wide.mean(dims, keepdims=True)) * rstd
    slope = g - g.mean(dims, keepdims=True) - hat * (g * hat).mean(dims, keepdims=True)

    x = fb.tensor(a, requires_grad=True)
    y = norm(x)
    y.backward(fb.tensor(g.astype(np.float32)))
    np.testing.assert_allclose(y.detach().numpy(), hat, rtol=0, atol=1e-6 * np.abs(hat).max())
    ref = slope * rstd
    np.testing.assert_allclose(x.grad.numpy(), ref, rtol=0, atol=1e-6 * np.abs(ref).max())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_equal_entries_become_zero(case, dtype):
    norm, _, shape = CASES[case]
    for value in [0.1, 100.0, -7.3]:
        assert norm(fb.full(shape, value, dtype=getattr(fb, dtype))).eq(0).all(), value


def test_evaluation_at_the_running_mean():
    mean = fb.tensor([100.1, -3e4])
    x = mean.view(1, 2, 1, 1).expand(2, 2, 5, 7)
    for y in (x.contiguous(), x.contiguous(memory_format=fb.channels_last)):
        out = F.batch_norm(y, mean, fb.tensor([1e-6, 0.0]), bias=fb.tensor([0.5, 0.25]))
        assert out[:, 0].eq(0.5).all()
        assert out[:, 1].eq(0.25).all()


def test_distances_keep_nan():
    x = fb.rand(40, 4)
    x[1, 2] = fb.inf
    x[3, 0] = fb.nan
    together = fb.cdist(x, x.flip(0))
    assert together[1].isnan().all()
    assert together[3].isnan().all()
    assert together.isnan().sum() == 4 * 40 - 4


def test_the_slope_in_evaluation_does_not_depend_on_the_input():
    statistics = fb.tensor([0.5, -2.0]), fb.tensor([4.0, 0.25])
    for layout in (fb.contiguous_format, fb.channels_last):
        x = fb.full((2, 2, 3, 5), fb.inf).contiguous(memory_format=layout).requires_grad_()
        F.batch_norm(x, *statistics, weight=fb.tensor([3.0, 1.0]), eps=0.0).sum().backward()
        assert x.grad[:, 0].eq(1.5).all()
        assert x.grad[:, 1].eq(2).all()
