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
    with pytest.warns(UserWarning, match="pads a copy"):
        same = F.conv1d(torch.ones(1, 1, 5), torch.ones(1, 1, 4), padding="same")
    assert same.shape == (1, 1, 5)


def test_refusals():
    with pytest.raises(RuntimeError, match="to have 3 channels, but got 2 channels instead"):
        F.conv2d(torch.ones(1, 2, 4, 4), torch.ones(1, 3, 2, 2))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        F.conv2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 3, 3))
    with pytest.raises(RuntimeError, match="not supported for strided convolutions"):
        F.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2), stride=2, padding="same")


LAID_OUT = [
    # channels, kernel, stride, padding, groups, input size: tiles (Note [Winograd]), the provider,
    # patches, our own loops
    (64, 64, 3, 1, 1, 1, (12, 15)),
    (64, 96, 3, 1, 0, 1, (18, 18)),
    (32, 64, 3, 1, 2, 1, (5, 17)),
    (64, 64, 3, 1, 1, 1, (2, 7)),
    (16, 32, 3, 1, 1, 1, (12, 13)),
    (16, 32, 3, 2, 1, 1, (13, 12)),
    (3, 64, 7, 2, 3, 1, (40, 39)),
    (64, 64, 1, 2, 0, 1, (9, 9)),
    (64, 128, 3, 1, 1, 1, (2, 2)),
    (64, 128, 3, 2, 0, 1, (5, 4)),
    (32, 32, 3, 1, 1, 4, (12, 12)),
    (32, 32, 3, 1, 1, 32, (24, 24)),
    (64, 64, 1, 1, 0, 1, (1, 1)),
    (5, 5, 3, 1, 1, 1, (6, 6)),
]


@pytest.mark.parametrize("case", LAID_OUT, ids=str)
@pytest.mark.parametrize("transposed", (False, True))
def test_layouts_of_floats(case, transposed):
    """Values and strides of results and gradients are those of doubles in the same layouts."""
    inputs, outputs, kernel, stride, padding, groups, size = case
    a, b = (outputs, inputs) if transposed else (inputs, outputs)
    convolve = F.conv_transpose2d if transposed else F.conv2d
    rest = (padding, min(stride - 1, 1), groups) if transposed else (padding, 1, groups)
    torch.manual_seed(0)
    source = torch.randn(4, a, *size)
    shape = (a, b // groups) if transposed else (b, a // groups)
    kernels = torch.randn(*shape, kernel, kernel)
    for x_last, w_last, g_last in itertools.product((False, True), repeat=3):

        def run(dtype, last=(x_last, w_last, g_last)):
            leaves = [
                t.to(dtype).contiguous(memory_format=torch.channels_last) if at else t.to(dtype)
                for t, at in zip((source, kernels), last, strict=False)
            ]
            leaves = [t.detach().requires_grad_() for t in leaves]
            y = convolve(*leaves, None, stride, *rest)
            torch.manual_seed(1)
            g = torch.randn(y.shape).to(dtype)
            if last[2]:
                g = g.contiguous(memory_format=torch.channels_last)
            y.backward(g)
            either = last[0] or not leaves[1].is_contiguous()
            assert y.is_contiguous(
                memory_format=torch.channels_last if either else torch.contiguous_format
            )
            return y.detach(), leaves[0].grad, leaves[1].grad

        for got, expected in zip(run(torch.float32), run(torch.float64), strict=True):
            assert got.stride() == expected.stride()
            error = (got.double() - expected).abs().max() / expected.abs().max()
            assert error < 3e-6, (x_last, w_last, g_last)
