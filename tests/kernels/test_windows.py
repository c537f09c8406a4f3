"""Pools, resizing, padding and sampling against NumPy definitions and finite differences."""

import itertools

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional


def windows(n, kernel, stride, padding, dilation=1, ceil_mode=False):
    """Index lists of the windows of one axis, those in the padding left out."""
    span = n + 2 * padding - dilation * (kernel - 1) - 1
    count = -(-span // stride) + 1 if ceil_mode else span // stride + 1
    if ceil_mode and (count - 1) * stride >= n + padding:
        count -= 1
    starts = [o * stride - padding for o in range(count)]
    return [[i for i in range(s, s + dilation * kernel, dilation) if 0 <= i < n] for s in starts]


@pytest.mark.parametrize("kernel,stride,padding,dilation,ceil", [
    (2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 1, 1, 2, False), (3, 2, 1, 1, True),
    (2, 3, 0, 1, True),
])  # fmt: skip
def test_max_pool(kernel, stride, padding, dilation, ceil):
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 8))
    rows = windows(9, kernel, stride, padding, dilation, ceil)
    columns = windows(8, kernel, stride, padding, dilation, ceil)
    want = np.stack(
        [np.stack([x[:, :, r][..., c].max((2, 3)) for c in columns], -1) for r in rows], -2
    )
    t = torch.from_numpy(x)
    args = (kernel, stride, padding, dilation, ceil)
    values, at = F.max_pool2d(t, *args, return_indices=True)
    assert (F.max_pool2d(t, *args).numpy() == want).all() and (values.numpy() == want).all()
    assert (
        np.take_along_axis(x.reshape(2, 3, -1), at.numpy().reshape(2, 3, -1), 2)
        == want.reshape(2, 3, -1)
    ).all()
    t.requires_grad_()
    assert torch.autograd.gradcheck(lambda t: F.max_pool2d(t, *args), (t,), fast_mode=True)


@pytest.mark.parametrize("counted", [True, False])
def test_avg_pool(counted):
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 8))
    rows, columns = windows(9, 3, 2, 1), windows(8, 3, 2, 1)
    sums = [[x[:, :, r][..., c].sum((2, 3)) for c in columns] for r in rows]
    counts = np.array([[9 if counted else len(r) * len(c) for c in columns] for r in rows])
    want = np.moveaxis(np.array(sums), (0, 1), (2, 3)) / counts
    t = torch.from_numpy(x)
    got = F.avg_pool2d(t, 3, 2, 1, count_include_pad=counted)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    t.requires_grad_()
    assert torch.autograd.gradcheck(lambda t: F.avg_pool2d(t, 3, 2, 1), (t,), fast_mode=True)


def test_adaptive_pools():
    x = np.random.default_rng(0).standard_normal((2, 3, 10))
    parts = [x[..., (i * 10) // 4 : -(-(i + 1) * 10 // 4)] for i in range(4)]
    t = torch.from_numpy(x)
    mean = np.stack([p.mean(-1) for p in parts], -1)
    high = np.stack([p.max(-1) for p in parts], -1)
    np.testing.assert_allclose(F.adaptive_avg_pool1d(t, 4).numpy(), mean, rtol=1e-12)
    assert (F.adaptive_max_pool1d(t, 4).numpy() == high).all()


def test_bilinear_of_a_plane_is_exact():
    y, x = np.mgrid[0:5, 0:7].astype(float)
    plane = torch.from_numpy(2 * y - 3 * x + 1)[None, None]
    got = F.interpolate(plane, size=(9, 13), mode="bilinear", align_corners=True)[0, 0].numpy()
    v, u = np.mgrid[0:4:9j, 0:6:13j]
    np.testing.assert_allclose(got, 2 * v - 3 * u + 1, atol=1e-12)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("size", [(3, 9), (7, 2)])
def test_interpolate_keeps_constants_and_has_its_adjoint(mode, size):
    ones = torch.ones(1, 2, 5, 6, dtype=torch.float64)
    assert torch.allclose(
        F.interpolate(ones, size=size, mode=mode), torch.ones(1, 2, *size).double()
    )
    x = torch.randn(1, 2, 5, 6, dtype=torch.float64, requires_grad=True)
    y = F.interpolate(x, size=size, mode=mode)
    g = torch.randn_like(y)
    (gx,) = torch.autograd.grad(y, x, g)
    assert abs(float((g * y).sum() - (gx * x).sum())) < 1e-10


@pytest.mark.parametrize(
    "mode,name", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
def test_pad(mode, name):
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 6))
    want = np.pad(x, [(0, 0), (0, 0), (2, 1), (3, 2)], mode=name)
    t = torch.from_numpy(x).requires_grad_()
    assert (F.pad(t, (3, 2, 2, 1), mode).detach().numpy() == want).all()
    assert torch.autograd.gradcheck(lambda t: F.pad(t, (3, 2, 2, 1), mode), (t,), fast_mode=True)


def test_constant_pad_crops_too():
    x = np.arange(12.0).reshape(3, 4)
    got = F.pad(torch.from_numpy(x), (-1, 2, 1, -1), value=7.0).numpy()
    want = np.pad(x[:2, 1:], [(1, 0), (0, 2)], constant_values=7.0)
    assert (got == want).all()


def test_fold_undoes_unfold_up_to_counts():
    x = torch.randn(2, 3, 6, 7)
    columns = F.unfold(x, 3, padding=1)
    counts = F.fold(F.unfold(torch.ones_like(x), 3, padding=1), (6, 7), 3, padding=1)
    assert torch.allclose(F.fold(columns, (6, 7), 3, padding=1), x * counts, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_at_pixel_centres(mode):
    x = torch.randn(1, 2, 4, 5, dtype=torch.float64)
    eye = torch.eye(2, 3, dtype=torch.float64).unsqueeze(0)
    grid = F.affine_grid(eye, [1, 2, 4, 5], align_corners=True)
    got = F.grid_sample(x, grid, mode=mode, align_corners=True)
    assert torch.allclose(got, x, atol=1e-12)


@pytest.mark.parametrize(
    "shape,window",
    [
        ((3, 16, 11, 13), (3, 2, 1, 1)),
        ((2, 64, 8, 8), (2, 2, 0, 1)),
        ((2, 100, 9, 7), (3, 1, 1, 2)),
        ((2, 8, 4, 5, 6), (2, 2, 0, 1)),
        ((2, 5, 6, 6), (3, 2, 1, 1)),
    ],
)
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16))
def test_maxima_with_channels_last_are_those_of_planes(shape, window, dtype):
    torch.manual_seed(0)
    pool = F.max_pool2d if len(shape) == 4 else F.max_pool3d
    format = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    planes = torch.randn(*shape).to(dtype)
    planes[0, 0, 0, 0] = float("nan")
    planes[-1, 1] = 1.0
    planes[0, 2] = float("-inf")
    last = planes.contiguous(memory_format=format)
    g = None
    for indices in (False, True):
        found = []
        for x in (planes, last):
            x = x.detach().requires_grad_()
            with torch.no_grad():
                alone = pool(x, *window, return_indices=indices)
            y = pool(x, *window, return_indices=indices)
            values, places = y if indices else (y, None)
            g = torch.randn(values.shape).to(dtype) if g is None else g
            values.backward(g.contiguous(memory_format=format) if x.stride(1) == 1 else g)
            found.append((values.detach(), places, x.grad, alone[0] if indices else alone))
        (v, i, gx, a), (w, j, gz, b) = found
        assert w.is_contiguous(memory_format=format) and gz.is_contiguous(memory_format=format)
        assert torch.equal(v.nan_to_num(7), w.nan_to_num(7)) and torch.equal(v.isnan(), w.isnan())
        assert torch.equal(a.nan_to_num(7), b.nan_to_num(7))
        assert i is None or torch.equal(i, j)
        assert torch.allclose(gx, gz, rtol=1e-2 if dtype is torch.bfloat16 else 1e-6, atol=1e-6)


def test_unpooling_with_channels_last_checks_places():
    at = torch.full((1, 8, 1, 1), 100).contiguous(memory_format=torch.channels_last)
    x = torch.ones(1, 8, 1, 1).contiguous(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="Found an invalid max index: 100"):
        F.max_unpool2d(x, at, 2)


@pytest.mark.parametrize("channels", [1, 9])
@pytest.mark.parametrize("pool", [F.max_pool3d, F.adaptive_max_pool3d])
def test_a_volume_without_samples_in_the_layout_of_images(pool, channels):
    """Four dimensions with the second one last are no images here."""
    x = torch.randn(channels, 16, 12, 5)
    y = x.contiguous(memory_format=torch.channels_last)
    for size in (2, 3, (9, 8, 2)):
        a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
        want, at = pool(a, size, return_indices=True)
        got, places = pool(b, size, return_indices=True)
        assert torch.equal(got, want) and torch.equal(places, at)
        assert torch.equal(x.flatten(1).gather(1, places.flatten(1)).view_as(got), got)
        slope = torch.randn(want.shape)
        assert torch.equal(
            torch.autograd.grad(got, b, slope)[0], torch.autograd.grad(want, a, slope)[0]
        )


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_averages_take_nothing_from_outside_their_windows(value, layout):
    """The first and last windows are smaller than the others, adaptive ones differ by one."""
    windows = {
        lambda x: F.avg_pool2d(x, 3, 2, 1): lambda o: range(2 * o - 1, 2 * o + 2),
        lambda x: F.avg_pool2d(x, 3, 2, 1, True, False): lambda o: range(2 * o - 1, 2 * o + 2),
        lambda x: F.adaptive_avg_pool2d(x, 5): lambda o: range(9 * o // 5, (9 * o + 13) // 5),
    }
    for pool, window in windows.items():
        for row, column in itertools.product(range(9), range(9)):
            x = torch.ones(2, 3, 9, 9).contiguous(memory_format=layout)
            x[1, 2, row, column] = value
            x.requires_grad_()
            y = pool(x)
            n = y.shape[-1]
            touched = [
                [row in window(i) and column in window(j) for j in range(n)] for i in range(n)
            ]
            assert (~y[1, 2].isfinite()).tolist() == touched
            assert y[0].isfinite().all()
        g = torch.ones(y.shape)
        g[1, 2, 0, 1] = value
        (slope,) = torch.autograd.grad(y, x, g)
        reached = [[i in window(0) and j in window(1) for j in range(9)] for i in range(9)]
        assert (~slope[1, 2].isfinite()).tolist() == reached


@pytest.mark.parametrize("lists", [[], [2, 2, 2], [1, 1, 1, 1]])
def test_windows_with_a_wrong_number_of_sizes(lists):
    for dims in range(6):
        for dtype in (torch.float32, torch.int64):
            x = torch.ones([2] * dims, dtype=dtype)
            refused = [
                lambda x: F.avg_pool1d(x, lists, None, lists),
                lambda x: F.avg_pool2d(x, lists, None, lists),
                lambda x: F.max_pool2d(x, lists, None, lists, lists),
                lambda x: torch.max_pool1d(x, lists, [], lists, lists),
                lambda x: F.lp_pool2d(x, 2, lists),
                lambda x: F.adaptive_avg_pool1d(x, lists),
                lambda x: torch.adaptive_max_pool1d(x, lists),
                lambda x: F.adaptive_max_pool2d(x, lists),
                lambda x: F.unfold(x, lists, lists, lists, lists),
                lambda x: F.fold(x, lists, lists),
            ]
            if len(lists) != 3:
                refused.append(lambda x: F.avg_pool3d(x, lists, None, lists))
                refused.append(lambda x: F.max_pool3d(x, lists, None, lists, lists))
            for call in refused:
                with pytest.raises((RuntimeError, ValueError)):
                    call(x)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode, axes", [("bilinear", 2), ("bilinear", 3), ("nearest", 2),
                                        ("bicubic", 2)])  # fmt: skip
def test_second_derivatives_of_sampling(mode, axes, padding, align):
    torch.manual_seed(0)
    image = torch.randn(2, 2, *[3] * axes, dtype=torch.float64, requires_grad=True)
    # Away from pixels and borders, where the slopes jump; some points lie outside.
    inside = torch.rand(2, *[2] * axes, axes, dtype=torch.float64) * 0.2 + 0.12
    grid = (inside * torch.randn(inside.shape).sign() * 3).requires_grad_()

    def f(image, grid):
        return F.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=align)

    assert torch.autograd.gradgradcheck(f, (image, grid), atol=1e-4)
    assert torch.autograd.gradgradcheck(lambda x: f(x, grid.detach()), (image,))
    assert torch.autograd.gradgradcheck(lambda x: f(image.detach(), x), (grid,), atol=1e-4)


def test_second_derivatives_of_sampling_under_vmap():
    torch.manual_seed(0)
    image = torch.randn(3, 1, 1, 4, 4, dtype=torch.float64)
    grid = torch.rand(3, 1, 2, 2, 2, dtype=torch.float64) * 1.2 - 0.6

    def f(image, grid):
        value = lambda image: F.grid_sample(image, grid, align_corners=False).pow(3).sum()  # noqa: E731
        return torch.func.grad(lambda image: torch.func.grad(value)(image).pow(2).sum())(image)

    got = torch.func.vmap(f)(image, grid)
    want = torch.stack([f(i, g) for i, g in zip(image, grid, strict=True)])
    assert torch.allclose(got, want)
