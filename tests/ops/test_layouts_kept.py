"""Strides of results where PyTorch's are part of what programs see: channels last, dims of size 1,
copies and their histories.
"""

import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F

LAST = torch.channels_last


def images(*shape):
    x = torch.arange(float(np.prod(shape))).reshape(shape).sin()
    return x, x.to(memory_format=LAST)


REARRANGED = {
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_shuffle_by_1": lambda x: F.pixel_shuffle(x, 1),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
    "group_norm": lambda x: F.group_norm(x, 2, torch.arange(8.0), torch.ones(8)),
    "max_unpool2d": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "roll": lambda x: x.roll(1, 2),
    "roll_flat": lambda x: x.roll(3),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([0]), 2.0),
    "crop": lambda x: F.pad(x, (-1, -1, 0, -1)),
}


@pytest.mark.parametrize("name", REARRANGED)
def test_channels_stay_last(name):
    f = REARRANGED[name]
    plain, last = images(2, 8, 4, 6)
    want, got = f(plain), f(last)
    assert want.is_contiguous()
    assert got.is_contiguous(memory_format=LAST) and not got.is_contiguous()
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", REARRANGED)
def test_gradients_do_not_depend_on_the_layout(name):
    f = REARRANGED[name]
    grads = []
    for x in images(2, 8, 4, 6):
        x.requires_grad_()
        y = f(x)
        y.backward(torch.arange(float(y.numel())).view(y.shape).cos())
        grads.append(x.grad)
    np.testing.assert_allclose(grads[1].numpy(), grads[0].numpy(), rtol=1e-4, atol=1e-5)


def test_the_gradient_of_group_norm_has_channels_last():
    _, x = images(2, 8, 4, 6)
    x.requires_grad_()
    F.group_norm(x, 2).sum().backward()
    assert x.grad.is_contiguous(memory_format=LAST)


@pytest.mark.parametrize(
    ("shape", "size", "strides"),
    [
        ((1,), (1, 1), (1, 1)),
        ((3,), (1, 3), (3, 1)),
        ((3,), (1, 1, 3), (3, 3, 1)),
        ((3,), (1, 2, 3), (0, 0, 1)),
        ((3,), (2, 1, 3), (0, 3, 1)),
        ((3, 1), (1, 3, 1), (3, 1, 1)),
        ((3, 1), (3, 4), (1, 0)),
        ((1, 3), (1, 4, 3), (0, 0, 1)),
        ((), (1, 1), (0, 0)),
    ],
)
def test_strides_of_expanded_dims(shape, size, strides):
    x = torch.ones(shape)
    assert x.expand(size).stride() == strides
    assert torch.broadcast_to(x, size).stride() == strides


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [((1, 3), (1, 1)), ((3, 1), (1, 3)), ((2, 1, 3), (3, 100, 1)), ((1, 2, 1), (7, 1, 9))],
)
def test_results_like_a_tensor_have_its_strides_where_a_size_is_one(sizes, strides):
    x = torch.empty_strided(sizes, strides).fill_(1)
    for y in (x.clone(), torch.zeros_like(x), torch.empty_like(x), torch.full_like(x, 2)):
        assert y.stride() == strides
    assert (x.clone() @ x.mT).tolist() == (x.contiguous() @ x.mT.contiguous()).tolist()


@pytest.mark.parametrize(
    ("sizes", "strides", "dense"),
    [
        ((2, 7), (1, 0), (7, 1)),
        ((2, 7), (0, 0), (7, 1)),
        ((3, 5, 4), (4, 0, 1), (20, 4, 1)),
        ((3, 5, 4), (1, 0, 3), (1, 3, 15)),  # the order of its strides; a repeated dim where it is
        ((3, 5, 4), (8, 1, 0), (20, 4, 1)),
        ((4, 3, 5), (3, 100, 0), (5, 20, 1)),
    ],
)
def test_results_like_an_expanded_tensor_are_dense_in_the_order_of_its_strides(
    sizes, strides, dense
):
    x = torch.zeros(400).as_strided(sizes, strides)
    whole = torch.compile(torch.empty_like, backend="eager", fullgraph=True)
    for y in (x.clone(), torch.empty_like(x), x.flip(1), x.sin(), whole(x)):
        assert y.stride() == dense


def test_a_reshape_that_copies_is_no_view():
    x = torch.arange(6.0).view(2, 3)
    copied, view = x.t().reshape(6), x.reshape(6)
    assert view._is_view() and view._base is x or view._base is x._base
    for y in (copied, x.t().flatten()):
        assert not y._is_view() and y._base is None
        assert y.tolist() == [0, 3, 1, 4, 2, 5]
    assert x.t().reshape(3, 2)._is_view()
    x.requires_grad_()
    y = (x * 1).t().reshape(6)
    y.add_(1).mul_(y.detach().clone())
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), x.detach().numpy() + 1)
    assert torch.func.vmap(lambda a: a.t().reshape(-1))(torch.arange(12.0).view(2, 2, 3)).tolist() \
        == [[0, 3, 1, 4, 2, 5], [6, 9, 7, 10, 8, 11]]  # fmt: skip
    twice = torch.autograd.functional.hessian(lambda a: (a.t().reshape(6) ** 3).sum(), x.detach())
    np.testing.assert_allclose(twice.reshape(6, 6).numpy(), np.diag(6 * np.arange(6.0)), rtol=1e-6)


def test_the_names_of_copies_in_the_graph():
    x = torch.ones(2, 3, requires_grad=True)
    for y in (x.clone(), x.t().contiguous()):
        assert y.grad_fn.name() == "CloneBackward0"
    assert x.double().grad_fn.name() == "ToCopyBackward0"
    y = x.t().reshape(6)
    assert y.grad_fn.name() == "UnsafeViewBackward0"
    assert y.grad_fn.next_functions[0][0].name() == "CloneBackward0"


@pytest.mark.parametrize("name", ["avg_pool3d", "adaptive_avg_pool3d", "circular", "rrelu"])
def test_channels_stay_last_where_pytorch_brings_them_forward(name):
    """docs/why.md says so."""
    f = {
        "avg_pool3d": lambda x: F.avg_pool3d(x, 2),
        "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x, 2),
        "circular": lambda x: F.pad(x, (1, 1, 1, 1, 1, 1), mode="circular"),
        "rrelu": lambda x: F.rrelu(x, 0.25, 0.25),
    }[name]
    x = torch.arange(2.0 * 3 * 4 * 4 * 4).reshape(2, 3, 4, 4, 4).sin()
    last = f(x.to(memory_format=torch.channels_last_3d))
    assert last.is_contiguous(memory_format=torch.channels_last_3d)
    np.testing.assert_allclose(last.numpy(), f(x).numpy(), rtol=1e-5, atol=1e-6)


def _order(x):
    """Dims from the farthest apart in memory to the nearest."""
    return sorted(range(x.ndim), key=lambda d: -x.stride(d))


@pytest.mark.parametrize(("dim", "order"), [(0, [0, 1, 3, 4, 2]), (1, [0, 3, 4, 1, 2])])
def test_stacked_images_keep_their_channels_last(dim, order):
    plain, last = images(2, 4, 6, 5)
    got = torch.stack([last, last + 1], dim)
    assert _order(got) == order and got.numel() == 480 and not got._is_view()
    np.testing.assert_array_equal(got.numpy(), np.stack([plain.numpy(), plain.numpy() + 1], dim))
    assert torch.stack([plain, plain], dim).is_contiguous()


@pytest.mark.parametrize("dim", range(-1, 3))
def test_gradient_and_batches_of_stack(dim):
    a = torch.arange(6.0).reshape(2, 3).requires_grad_()
    b = (torch.arange(6.0).reshape(2, 3) * 2).requires_grad_()
    weight = torch.arange(12.0).reshape(torch.stack([a, b], dim).shape)
    (torch.stack([a, b], dim) * weight).sum().backward()
    want = np.moveaxis(weight.numpy(), dim, 0)
    np.testing.assert_array_equal(a.grad.numpy(), want[0])
    np.testing.assert_array_equal(b.grad.numpy(), want[1])
    batched = torch.vmap(lambda x: torch.stack([x, b[0].detach()], min(dim, 1)))(a.detach())
    rows = [np.stack([r, b[0].detach().numpy()], min(dim, 1)) for r in a.detach().numpy()]
    np.testing.assert_array_equal(batched.numpy(), np.stack(rows))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_follow_either_factor(dtype, groups, transposed):
    x = images(2, 4, 6, 5)[0].to(dtype)
    w = images(4, 4 // groups, 3, 3)[0].to(dtype)
    f = F.conv_transpose2d if transposed else F.conv2d
    want = f(x, w, groups=groups)
    assert want.is_contiguous()
    for a, b in ((x.to(memory_format=LAST), w), (x, w.to(memory_format=LAST))):
        got = f(a, b, groups=groups)
        assert got.is_contiguous(memory_format=LAST) and not got.is_contiguous() or groups == 4
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


def test_formats_are_what_strides_say():
    for shape in ((2, 8, 1, 1), (1, 1, 3, 3), (2, 1, 3, 1), (1, 8, 1, 1)):
        n, c, h, w = shape
        x = torch.arange(float(np.prod(shape))).reshape(shape)
        got = x.to(memory_format=LAST)
        assert got.stride() == (h * w * c, 1, w * c, c) and got.equal(x)
    t = torch.ones(2, 3).t()
    assert t.to(memory_format=torch.contiguous_format) is t
    assert t.contiguous().stride() == (2, 1)
    last = images(2, 4, 6, 5)[1]
    assert last.to(memory_format=torch.contiguous_format).is_contiguous()
    assert last.to(memory_format=LAST) is last


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.repeat(2, 1),
        lambda x: x.tile(1, 2),
        lambda x: x.sum_to_size(2, 1),
        lambda x: x.rot90(1),
        lambda x: x.rot90(3),
        lambda x: torch.stack([x, x], 1),
    ],
)
def test_copies_are_no_views(f):
    x = torch.arange(6.0).reshape(2, 3)
    got = f(x)
    assert not got._is_view() and got._base is None
    got.add_(1)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("k", range(4))
def test_rot90(k):
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(torch.rot90(torch.tensor(x), k, (1, 2)), np.rot90(x, k, (1, 2)))


def test_images_of_two_layouts_are_joined_with_channels_in_front():
    plain, last = images(2, 4, 6, 5)
    assert torch.cat([last, last], 1).is_contiguous(memory_format=LAST)
    for pair in ([plain, last], [last, plain]):
        got = torch.cat(pair, 1)
        assert got.is_contiguous() and got[:, :4].equal(plain) and got[:, 4:].equal(plain)
