"""Convolutions by tiles of 2 x 2 results (Note [Winograd]), beside direct sums in float64."""

import itertools

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional


def gradients(x, w, b, g, padding):
    """The convolution of x by w, and what g makes of it in x, w and b."""
    leaves = [t.detach().clone().requires_grad_() for t in (x, w, b)]
    y = F.conv2d(*leaves, padding=padding)
    y.backward(g)
    return [y.detach(), *(t.grad for t in leaves)]


SHAPES = [
    # batch, channels, size: one block and several, odd sizes, wider than a block of tiles
    (2, 64, 96, (7, 9)),
    (3, 32, 32, (3, 4)),
    (5, 32, 64, (14, 13)),
    (1, 64, 32, (33, 130)),
    (1, 32, 32, (4, 260)),
    (9, 96, 32, (2, 2)),
]


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_whole_numbers_are_exact(shape, threads):
    """Transforms halve and add, so what fits into 24 bits stays exact."""
    batch, inputs, outputs, size = shape
    torch.manual_seed(0)
    for padding in (0, 1, 2, (0, 1), (2, 0)):
        room = [n + 2 * p for n, p in zip(size, np.broadcast_to(padding, 2), strict=True)]
        if min(room) < 3:
            continue
        x = torch.randint(-8, 9, (batch, inputs, *size)).float()
        w = torch.randint(-8, 9, (outputs, inputs, 3, 3)).float()
        b = torch.randint(-8, 9, (outputs,)).float()
        g = torch.randint(-8, 9, (batch, outputs, *(int(n) - 2 for n in room))).float()
        exact = gradients(*(t.double() for t in (x, w, b, g)), padding)
        for last in itertools.product((False, True), repeat=2):
            laid = [
                t.contiguous(memory_format=torch.channels_last) if at else t
                for t, at in zip((x, w), last, strict=True)
            ]
            got = gradients(*laid, b, g, padding)
            for name, a, e in zip("y x w b".split(), got, exact, strict=True):
                assert torch.equal(a.double(), e), (name, padding, last)


def test_the_number_of_threads_changes_no_bit():
    torch.manual_seed(0)
    before = torch.get_num_threads()
    try:
        for n, c, size in ((1, 64, 7), (3, 32, 40), (40, 32, 8)):
            x, w, b = torch.randn(n, c, size, size), torch.randn(c, c, 3, 3), torch.randn(c)
            g = torch.randn(n, c, size, size)
            torch.set_num_threads(1)
            one = gradients(x, w, b, g, 1)[:3]
            for count in (2, 3, 5):
                torch.set_num_threads(count)
                for a, e in zip(gradients(x, w, b, g, 1)[:3], one, strict=True):
                    assert torch.equal(a, e)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("channels,size", ((64, 24), (256, 8), (512, 7)))
@pytest.mark.parametrize("positive", (False, True))
def test_errors_are_those_of_direct_sums(channels, size, positive):
    """Root mean square beside float64, in roundings of 1; direct sums of PyTorch make 1.4 to 2."""
    torch.manual_seed(0)
    x, g = torch.randn(2, channels, size, size), torch.randn(2, channels, size, size)
    if positive:
        x = x.relu()
    w, b = torch.randn(channels, channels, 3, 3) / (9 * channels) ** 0.5, torch.zeros(channels)
    exact = gradients(*(t.double() for t in (x, w, b, g)), 1)
    for name, a, e in zip("yxw", gradients(x, w, b, g, 1)[:3], exact[:3], strict=True):
        error = (a - e).pow(2).mean().sqrt() / e.pow(2).mean().sqrt()
        assert error.item() < 2.4 * 2**-23, (name, error.item() * 2**23)


def test_the_error_is_not_that_of_sums_in_order():
    """Of 576 products one after another, each sum rounded."""
    torch.manual_seed(0)
    x, w = torch.randn(8, 64, 16, 16), torch.randn(64, 64, 3, 3) / 24
    exact = F.conv2d(x.double(), w.double(), padding=1)
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (1, 1)))
    total = np.zeros((8, 64, 16, 16), np.float32)
    for c, i, j in np.ndindex(64, 3, 3):
        window = padded[:, None, c, i : i + 16, j : j + 16]
        total += w.numpy()[None, :, c, i, j, None, None] * window
    in_order = np.sqrt(((total - exact.numpy()) ** 2).mean())
    error = (F.conv2d(x, w, padding=1) - exact).pow(2).mean().sqrt().item()
    assert error < 0.6 * in_order


def test_what_is_not_finite_stays_in_its_window():
    """Tiles would spread it; its values would be others, too."""
    torch.manual_seed(0)
    x, w = torch.randn(4, 64, 12, 12), torch.randn(64, 64, 3, 3) / 24
    bad = x.clone()
    bad[1, 2, 4, 4], bad[3, 5, 11, 0] = float("inf"), float("nan")
    y, z = F.conv2d(x, w, padding=1), F.conv2d(bad, w, padding=1)
    reached = torch.zeros(4, 64, 12, 12, dtype=torch.bool)
    reached[1, :, 3:6, 3:6], reached[3, :, 10:, :2] = True, True
    assert torch.equal(z.isfinite(), ~reached)
    assert torch.equal(z[1].isinf(), reached[1]) and z[3].isnan().sum() == 64 * 4
    assert torch.allclose(z[~reached], y[~reached], atol=1e-5)
    huge = F.conv2d(x * 1e37, w, padding=1)  # beyond the range within a tile
    assert torch.equal(huge.isfinite(), torch.ones_like(huge, dtype=torch.bool))
    assert torch.allclose(huge / 1e37, y, atol=1e-5)
    b, g = torch.zeros(64), torch.zeros(4, 64, 12, 12)
    g[2, 7, 6, 6] = float("inf")
    of_w = gradients(x, w, b, g, 1)[2]
    assert of_w[7].isinf().all() and torch.equal(of_w[:7], torch.zeros(7, 64, 3, 3))


def test_large_numbers_reach_one_position_beyond_their_windows():
    torch.manual_seed(0)
    x, w = torch.randn(1, 64, 16, 16), torch.randn(64, 64, 3, 3) / 24
    beside = x.clone()
    beside[0, 0, 8, 8] += 2.0**20
    y, z = F.conv2d(x, w, padding=1), F.conv2d(beside, w, padding=1)
    far = torch.ones(16, 16, dtype=torch.bool)
    far[6:11, 6:11] = False
    assert torch.equal(y[..., far], z[..., far])
    far[6:11, 6:11], far[7:10, 7:10] = True, False
    assert (y - z)[..., far].abs().max() < 2.0**20 * 2**-23
