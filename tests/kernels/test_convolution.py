"""Convolutions against a direct sum in NumPy, and the three maps against finite differences."""

import itertools

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional


def direct(x, w, b, stride, padding, dilation, groups):
    """Convolution by its definition."""
    axes = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    kernel = w.shape[2:]
    size = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *size), np.result_type(x, w))
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for g in range(groups):
        xs = x[:, g * per_in : (g + 1) * per_in]
        ws = w[g * per_out : (g + 1) * per_out]
        for tap in itertools.product(*map(range, kernel)):
            at = tuple(
                slice(t * d, t * d + s * (n - 1) + 1, s)
                for t, d, s, n in zip(tap, dilation, stride, size, strict=True)
            )
            part = np.tensordot(
                xs[(slice(None), slice(None), *at)],
                ws[(slice(None), slice(None), *tap)],
                ([1], [1]),
            )
            out[:, g * per_out : (g + 1) * per_out] += np.moveaxis(part, -1, 1)
    return out if b is None else out + b.reshape(1, -1, *[1] * axes)


CASES = [
    # size, kernel, stride, padding, dilation, groups
    ((11,), (3,), (1,), (0,), (1,), 1),
    ((12,), (4,), (3,), (2,), (2,), 2),
    ((9, 8), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((9, 40), (3, 2), (2, 1), (1, 0), (1, 2), 1),
    ((14, 13), (7, 7), (2, 2), (3, 3), (1, 1), 1),
    ((6, 7), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((6, 7), (1, 1), (2, 2), (0, 0), (1, 1), 1),
    ((8, 8), (3, 3), (1, 1), (1, 1), (1, 1), 4),
    ((4, 5, 6), (2, 3, 2), (1, 2, 1), (1, 0, 1), (1, 1, 2), 2),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "dtype,tolerance", [("float32", 1e-4), ("float64", 1e-11), ("complex128", 1e-11)]
)
def test_against_the_definition(case, dtype, tolerance):
    size, kernel, stride, padding, dilation, groups = case
    rng = np.random.default_rng(0)

    def draw(*shape):
        x = rng.standard_normal(shape)
        return (x + 1j * rng.standard_normal(shape) if dtype == "complex128" else x).astype(dtype)

    x, w, b = draw(3, 4, *size), draw(8, 4 // groups, *kernel), draw(8)
    f = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(size)]
    got = f(*map(torch.from_numpy, (x, w, b)), stride, padding, dilation, groups).numpy()
    want = direct(x, w, b, stride, padding, dilation, groups)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_gradients(case):
    size, kernel, stride, padding, dilation, groups = case
    if np.prod(size) > 100:
        size = tuple(min(n, 8) for n in size)
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((1, 4, *size))).requires_grad_()
    w = torch.from_numpy(rng.standard_normal((4, 4 // groups, *kernel))).requires_grad_()
    f = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(size)]

    def run(x, w):
        return f(x, w, None, stride, padding, dilation, groups)

    assert torch.autograd.gradcheck(run, (x, w), fast_mode=True)
    assert torch.autograd.gradgradcheck(run, (x, w), fast_mode=True)


def test_transposed_is_the_adjoint():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((2, 4, 9, 8)))
    w = torch.from_numpy(rng.standard_normal((6, 2, 3, 2)))
    y = F.conv2d(x, w, None, 2, 1, 1, 2)
    g = torch.from_numpy(rng.standard_normal(tuple(y.shape)))
    back = F.conv_transpose2d(g, w, None, 2, 1, (0, 0), 2)
    back = F.pad(back, (0, x.shape[3] - back.shape[3], 0, x.shape[2] - back.shape[2]))
    assert abs(float((g * y).sum() - (back * x).sum())) < 1e-10


def test_layouts_batches_and_names():
    x, w = torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3)
    want = F.conv2d(x, w, padding=1)
    last = F.conv2d(x.to(memory_format=torch.channels_last), w, padding=1)
    assert torch.equal(last, want)
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(F.conv2d(x[0], w, padding=1), want[0], atol=1e-5)
    assert torch.allclose(F.conv2d(x, w, padding="same"), want, atol=1e-5)
    assert F.conv1d(torch.ones(1, 1, 5), torch.ones(1, 1, 4), padding="same").shape == (1, 1, 5)


def test_refusals():
    with pytest.raises(RuntimeError, match="to have 3 channels, but got 2 channels instead"):
        F.conv2d(torch.ones(1, 2, 4, 4), torch.ones(1, 3, 2, 2))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        F.conv2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 3, 3))
    with pytest.raises(RuntimeError, match="not supported for strided convolutions"):
        F.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2), stride=2, padding="same")
