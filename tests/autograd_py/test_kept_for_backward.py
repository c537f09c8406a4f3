"""What backward keeps: a change of anything else, before it runs, is allowed."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch


def _gradient(f):
    """The gradient of `f`, applied to a copy of what it is taken to."""
    x = torch.tensor([0.3, -0.7, 1.4], dtype=torch.float64, requires_grad=True)
    f(x * 1).sum().backward()
    return x.grad.numpy()


X = np.array([0.3, -0.7, 1.4])


@pytest.mark.parametrize(
    "change, slope",
    [
        (lambda y: y.square_(), 2 * X),
        (lambda y: y.clamp_(-0.5, 1.0), np.array([1.0, 0.0, 0.0])),
        (lambda y: y.clamp_(torch.tensor(-0.5), torch.tensor(1.0)), np.array([1.0, 0.0, 0.0])),
        (lambda y: y.nan_to_num_(), np.ones(3)),
        (lambda y: y.float_power_(2), 2 * X),
        (lambda y: y.cumsum_(0), np.array([3.0, 2.0, 1.0])),
        (lambda y: y.sin_().square_(), np.sin(2 * X)),
    ],
)
def test_a_change_in_place_keeps_what_its_own_derivative_reads(change, slope):
    np.testing.assert_allclose(_gradient(change), slope, rtol=1e-12)


@pytest.mark.parametrize(
    "use, slope",
    [
        (lambda y: torch.cat([y, y * 1]), np.full(3, 2.0)),
        (lambda y: torch.stack([y, y]), np.full(3, 2.0)),
        (lambda y: y.mean(), np.full(3, 1 / 3)),
        (lambda y: y.max(0).values, np.array([0.0, 0.0, 1.0])),
        (lambda y: y.min(0)[0], np.array([0.0, 1.0, 0.0])),
        (lambda y: y.kthvalue(2).values, np.array([1.0, 0.0, 0.0])),
        (lambda y: y.median(0).values, np.array([1.0, 0.0, 0.0])),
        (lambda y: y.gather(0, torch.tensor([0, 0])), np.array([2.0, 0.0, 0.0])),
        (lambda y: torch.fft.rfft(y).real, np.array([2.0, 0.5, 0.5])),
    ],
)
def test_shapes_alone_are_kept_of_what_is_only_rearranged_or_summed(use, slope):
    def f(y):
        out = use(y)
        y.mul_(3)
        return out

    np.testing.assert_allclose(_gradient(f), slope, rtol=1e-12)


@pytest.mark.parametrize(
    "f, slope",
    [
        (torch.sinc, (np.cos(np.pi * X) - np.sinc(X)) / X),
        (lambda y: torch.logaddexp(y, y * 0), np.exp(X) / (1 + np.exp(X))),
        (lambda y: torch.erfinv(y * 0.5), None),
    ],
)
def test_results_may_be_changed_where_the_derivative_reads_arguments(f, slope):
    def changed(y):
        out = f(y)
        kept = out * 1
        out.zero_()
        return kept

    want = slope if slope is not None else _gradient(f)
    np.testing.assert_allclose(_gradient(changed), want, rtol=1e-12)


@pytest.mark.parametrize("way", [lambda f: f, torch.compile])
def test_a_copy_of_itself_changes_nothing(way):
    def f(x):
        y = x * 1
        z = y * y
        y.copy_(y)
        x.copy_(x)
        return z.sum()

    x = torch.ones(3, requires_grad=True)
    way(f)(x).backward()  # neither a leaf nor what z keeps was written
    assert x.grad.tolist() == [2, 2, 2]
    row = torch.ones(3).expand(2, 3)
    assert row.copy_(row) is row


def test_comparisons_ask_for_no_history():
    x = torch.randn(2, 4, requires_grad=True) * 1
    half = x.chunk(2, 1)[0]
    x.mul_(2)
    assert (half > 0).shape == (2, 2)
    with pytest.raises(RuntimeError, match="is a view and its base or another view"):
        half + 1


F = torch.nn.functional


@pytest.mark.parametrize(
    "f",
    [
        lambda y: torch.lerp(y, y.flip(0), 0.3),
        lambda y: y.lerp(torch.ones(3, dtype=torch.float64), 2),
        lambda y: F.affine_grid(torch.cat([y, -y]).reshape(1, 2, 3), (1, 1, 2, 3)),
        lambda y: F.affine_grid(y.repeat(4).reshape(1, 3, 4), (1, 1, 2, 1, 3), align_corners=True),
    ],
)
@pytest.mark.filterwarnings("ignore:Default grid_sample")
def test_backward_runs_again_where_nothing_is_kept(f):
    x = torch.tensor([0.3, -0.7, 1.4], dtype=torch.float64, requires_grad=True)
    y = f(x + 0)
    g = torch.arange(float(y.numel()), dtype=torch.float64).reshape(y.shape)
    (once,) = torch.autograd.grad(y, x, g)
    (again,) = torch.autograd.grad(y, x, g)
    assert once.equal(again) and once.abs().sum() > 0


def test_a_weight_of_lerp_that_is_a_tensor_is_freed():
    x = torch.ones(2, requires_grad=True)
    y = torch.lerp(x, x * 2, torch.tensor(0.5)).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("space", [(3, 4), (1, 5), (2, 3, 4), (2, 1, 1)])
def test_affine_grid_is_the_map_of_the_places(space, corners):
    n = len(space)
    rng = np.random.default_rng(1)
    theta = rng.standard_normal((2, n, n + 1))
    lines = [
        np.linspace(-1, 1, k) * (1.0 if corners else (k - 1) / k) if k > 1 else np.zeros(1)
        for k in space
    ]
    places = np.stack([*np.meshgrid(*lines, indexing="ij")][::-1] + [np.ones(space)], -1)
    want = np.einsum("nij,...j->n...i", theta, places)
    got = F.affine_grid(torch.tensor(theta), (2, 1, *space), align_corners=corners)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
    assert got.is_contiguous()
