"""Layers against NumPy and closed forms; printed forms; argument errors."""

import itertools

import numpy as np
import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import functional as F


def array(tensor):
    return tensor.detach().numpy()


def close(tensor, expected, tol=1e-5):
    np.testing.assert_allclose(array(tensor), expected, rtol=tol, atol=tol)


def randn(*shape):
    return fb.randn(*shape, generator=fb.Generator().manual_seed(7))


def convolve(x, w, b, stride, padding, dilation, groups):
    """A convolution in loops. x: (N, C, H, W)."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    n, _, height, width = x.shape
    out_channels, per_group, kh, kw = w.shape
    oh = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((n, out_channels, oh, ow))
    for o, i, j in itertools.product(range(out_channels), range(oh), range(ow)):
        first = o // (out_channels // groups) * per_group
        rows = i * stride[0] + dilation[0] * np.arange(kh)
        cols = j * stride[1] + dilation[1] * np.arange(kw)
        patch = x[:, first : first + per_group][:, :, rows][:, :, :, cols]
        y[:, o, i, j] = (patch * w[o]).sum((1, 2, 3)) + b[o]
    return y


def test_linear_and_bilinear():
    x, z = randn(5, 3), randn(5, 4)
    layer = nn.Linear(3, 2)
    close(layer(x), array(x) @ array(layer.weight).T + array(layer.bias))
    assert nn.Linear(3, 2, bias=False).bias is None
    both = nn.Bilinear(3, 4, 2)
    expected = np.einsum("ni,oij,nj->no", array(x), array(both.weight), array(z))
    close(both(x, z), expected + array(both.bias))
    with pytest.raises(ValueError, match="in1_features must be > 0"):
        nn.Bilinear(0, 1, 1)
    assert nn.Identity(1, a=2)(x) is x


@pytest.mark.parametrize("groups", [1, 2])
def test_conv2d(groups):
    geometry = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}
    conv = nn.Conv2d(4, 6, (3, 2), groups=groups, **geometry)
    x = randn(2, 4, 6, 7)
    expected = convolve(array(x), array(conv.weight), array(conv.bias), **geometry, groups=groups)
    close(conv(x), expected, 1e-4)
    close(conv(x[0]), expected[0], 1e-4)


@pytest.mark.parametrize(
    ("mode", "numpy_mode"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
def test_conv_padding_modes(mode, numpy_mode):
    conv = nn.Conv2d(1, 1, 3, padding=2, padding_mode=mode)
    x = randn(1, 1, 5, 5)
    padded = np.pad(array(x), ((0, 0), (0, 0), (2, 2), (2, 2)), mode=numpy_mode)
    one = (1, 1)
    expected = convolve(padded, array(conv.weight), array(conv.bias), one, (0, 0), one, 1)
    close(conv(x), expected, 1e-4)


def test_conv_same_padding_keeps_the_size():
    conv = nn.Conv1d(1, 1, 5, padding="same", dilation=3)
    assert conv(fb.ones(1, 1, 20)).shape == (1, 1, 20)
    assert conv._reversed_padding_repeated_twice == [6, 6]
    assert nn.Conv1d(1, 1, 4, padding="same")._reversed_padding_repeated_twice == [1, 2]


def test_transposed_convolution_is_the_adjoint():
    conv = nn.Conv2d(2, 3, 3, stride=2, padding=1, bias=False)
    back = nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, bias=False)
    back.weight = conv.weight
    x = randn(1, 2, 8, 8)
    y = conv(x)
    z = randn(*y.shape)
    left = (y * z).sum()
    right = (x * back(z, output_size=x.shape)).sum()
    close(left, right.item(), 1e-4)
    with pytest.raises(ValueError, match=r"valid sizes range from \[7, 7\] to \[8, 8\]"):
        back(z, output_size=(9, 9))
    with pytest.raises(ValueError, match="output_size must have 2 or 4 elements"):
        back(z, output_size=(8,))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"groups": 2}, "in_channels must be divisible by groups"),
        ({"groups": 0}, "groups must be a positive integer"),
        ({"padding": "all"}, "Invalid padding string 'all'"),
        ({"padding": "same", "stride": 2}, "not supported for strided convolutions"),
        ({"padding_mode": "other"}, "padding_mode must be one of"),
    ],
)
def test_conv_errors(kwargs, message):
    with pytest.raises(ValueError, match=message):
        nn.Conv2d(3, 4, 3, **kwargs)


def test_batch_norm():
    norm = nn.BatchNorm1d(3, momentum=0.25)
    x = randn(8, 3) * 2 + 1
    mean, var = array(x).mean(0), array(x).var(0)
    close(norm(x), (array(x) - mean) / np.sqrt(var + 1e-5), 1e-4)
    close(norm.running_mean, 0.25 * mean)
    close(norm.running_var, 0.75 + 0.25 * array(x).var(0, ddof=1))
    assert int(norm.num_batches_tracked) == 1
    norm.eval()
    kept = (array(norm.running_mean), array(norm.running_var))
    close(norm(x), (array(x) - kept[0]) / np.sqrt(kept[1] + 1e-5), 1e-4)
    assert int(norm.num_batches_tracked) == 1
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 4D input\)"):
        norm(fb.ones(1, 3, 2, 2))


def test_batch_norm_cumulative_average_and_without_statistics():
    norm = nn.BatchNorm1d(2, momentum=None)
    batches = [randn(4, 2), randn(4, 2) + 3]
    for batch in batches:
        norm(batch)
    close(norm.running_mean, np.mean([array(b).mean(0) for b in batches], axis=0))
    plain = nn.BatchNorm1d(2, affine=False, track_running_stats=False).eval()
    assert list(plain.state_dict()) == []
    close(plain(batches[0]).mean(0), [0, 0])


@pytest.mark.parametrize("layout", [fb.contiguous_format, fb.channels_last])
def test_norms_keep_what_is_not_a_number(layout):
    x = randn(2, 4, 3, 3)
    x[0, 1, 2, 2] = float("nan")
    x = x.contiguous(memory_format=layout)
    norm = nn.BatchNorm2d(4)
    norm(x)
    assert norm.running_var.isnan().tolist() == [False, True, False, False]
    assert norm.running_mean.isnan().tolist() == [False, True, False, False]
    one, zero = fb.ones(4), fb.zeros(4)
    for found in fb.native_batch_norm(x, one, zero, None, None, True, 0.1, 1e-5)[1:]:
        assert found.isnan().tolist() == [False, True, False, False]
    for found in fb.native_group_norm(x, one, zero, 2, 4, 9, 2, 1e-5)[1:]:
        assert found.isnan().tolist() == [[True, False], [False, False]]
    for found in fb.native_layer_norm(x, [3, 3], None, None, 1e-5)[1:]:
        assert found.isnan().flatten().nonzero().tolist() == [[1]]


def test_sync_batch_norm_of_one_process():
    model = nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm1d(2)))
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert type(converted[0]) is type(converted[1][0]) is nn.SyncBatchNorm
    x = randn(2, 3, 4, 4)
    close(converted[0](x), array(nn.BatchNorm2d(3)(x)))


def test_other_norms():
    x = randn(2, 4, 3)
    a = array(x)
    layer = nn.LayerNorm((4, 3), bias=False)
    flat = a.reshape(2, -1)
    expected = (flat - flat.mean(1, keepdims=True)) / np.sqrt(flat.var(1, keepdims=True) + 1e-5)
    close(layer(x), expected.reshape(a.shape), 1e-4)
    assert layer.bias is None

    grouped = a.reshape(2, 2, -1)
    expected = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(
        grouped.var(2, keepdims=True) + 1e-5
    )
    close(nn.GroupNorm(2, 4)(x), expected.reshape(a.shape), 1e-4)
    close(nn.RMSNorm(3, eps=1e-3)(x), a / np.sqrt((a**2).mean(-1, keepdims=True) + 1e-3), 1e-4)
    instance = (a - a.mean(2, keepdims=True)) / np.sqrt(a.var(2, keepdims=True) + 1e-5)
    close(nn.InstanceNorm1d(4)(x), instance, 1e-4)
    close(nn.InstanceNorm1d(4)(x[0]), instance[0], 1e-4)
    with pytest.raises(ValueError, match="must be divisible by num_groups"):
        nn.GroupNorm(3, 4)
    with pytest.raises(ValueError, match="to match num_features"):
        nn.InstanceNorm1d(5, affine=True)(x)
    with pytest.warns(UserWarning, match="does not match num_features"):
        nn.InstanceNorm1d(5)(x)


def test_response_norms():
    x = randn(1, 5, 2, 2)
    square = np.pad(array(x) ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    window = square[:, :-2] + square[:, 1:-1] + square[:, 2:]
    expected = array(x) / (2 + 0.3 * window / 3) ** 0.5
    close(nn.LocalResponseNorm(3, alpha=0.3, beta=0.5, k=2)(x), expected)
    whole = (array(x) ** 2).sum(1, keepdims=True)  # a window wider than all channels
    close(F.local_response_norm(x, 2**62, 2.0**62, beta=1.0), array(x) / (1 + whole))
    with pytest.raises(RuntimeError, match="local_response_norm: expected a size greater than 0"):
        F.local_response_norm(x, 0)
    window[:, 2:] += array(x)[:, :1] ** 2  # the original layer never drops the first channel
    expected = array(x) / (2 + 0.3 * window / 3) ** 0.5
    close(nn.CrossMapLRN2d(3, alpha=0.3, beta=0.5, k=2)(x), expected)


def test_embeddings():
    table = nn.Embedding(5, 3, padding_idx=-1)
    assert table.padding_idx == 4 and table.weight[4].tolist() == [0, 0, 0]
    index = fb.tensor([[1, 4], [0, 1]])
    out = table(index)
    assert fb.equal(out, table.weight[index])
    out.sum().backward()
    assert table.weight.grad[:, 0].tolist() == [1, 2, 0, 0, 0]

    frozen = nn.Embedding.from_pretrained(fb.arange(6.0).view(3, 2))
    assert not frozen.weight.requires_grad and frozen(fb.tensor(1)).tolist() == [2, 3]
    bag = nn.EmbeddingBag.from_pretrained(fb.arange(6.0).view(3, 2), mode="sum", freeze=False)
    assert bag.weight.requires_grad
    assert bag(fb.tensor([0, 2, 1]), fb.tensor([0, 2])).tolist() == [[4, 6], [2, 3]]
    with pytest.raises(AssertionError, match="within num_embeddings"):
        nn.Embedding(3, 2, padding_idx=3)


def test_pools():
    x = fb.arange(16.0).view(1, 1, 4, 4)
    assert nn.MaxPool2d(2)(x).flatten().tolist() == [5, 7, 13, 15]
    assert nn.AvgPool2d(2)(x).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert nn.AvgPool2d(2, divisor_override=1)(x).flatten().tolist() == [10, 18, 42, 50]
    assert nn.AvgPool1d(2, stride=1, padding=1, count_include_pad=False)(
        fb.tensor([[1.0, 3.0]])
    ).tolist() == [[1, 2, 3]]
    assert nn.AdaptiveAvgPool2d(1)(x).item() == 7.5
    assert nn.AdaptiveMaxPool2d((None, 1))(x).flatten().tolist() == [3, 7, 11, 15]
    close(nn.LPPool1d(2, 2)(fb.tensor([[3.0, 4.0]])), [[5.0]])
    pooled, where = nn.MaxPool2d(2, return_indices=True)(x)
    assert where.flatten().tolist() == [5, 7, 13, 15]
    back = nn.MaxUnpool2d(2)(pooled, where)
    assert back.sum().item() == pooled.sum().item() and back[0, 0, 3, 3].item() == 15
    assert nn.FractionalMaxPool2d(2, output_ratio=0.5)(x).shape == (1, 1, 2, 2)
    with pytest.raises(ValueError, match="requires specifying either"):
        nn.FractionalMaxPool2d(2)


def test_pads():
    x = fb.tensor([[[1.0, 2.0, 3.0]]])
    for layer, expected in (
        (nn.ConstantPad1d((1, 2), 9.0), [9, 1, 2, 3, 9, 9]),
        (nn.ZeroPad1d(1), [0, 1, 2, 3, 0]),
        (nn.ReflectionPad1d(2), [3, 2, 1, 2, 3, 2, 1]),
        (nn.ReplicationPad1d((2, 0)), [1, 1, 1, 2, 3]),
        (nn.CircularPad1d(1), [3, 1, 2, 3, 1]),
        (nn.ConstantPad1d((-1, 0), 0.0), [2, 3]),
    ):
        assert layer(x).flatten().tolist() == expected
    assert nn.ZeroPad2d((1, 2, 0, 1))(fb.ones(1, 2, 2)).shape == (1, 3, 5)
    assert nn.ReplicationPad3d(1)(fb.ones(1, 1, 2, 2, 2)).shape == (1, 1, 4, 4, 4)
    with pytest.raises(ValueError, match="expected 3D or 4D input"):
        nn.CircularPad2d(1)(fb.ones(2, 2))


def test_rearrangements():
    x = fb.arange(16.0).view(1, 4, 2, 2)
    assert fb.equal(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(x)), x)
    assert nn.PixelShuffle(2)(x)[0, 0, :2, :2].flatten().tolist() == [0, 4, 8, 12]
    assert nn.ChannelShuffle(2)(x)[0, :, 0, 0].tolist() == [0, 8, 4, 12]
    assert nn.Flatten()(x).shape == (1, 16)
    assert nn.Unflatten(1, (2, 2))(x).shape == (1, 2, 2, 2, 2)
    with pytest.raises(TypeError, match="found element of type str at pos 1"):
        nn.Unflatten(1, (2, "a"))
    columns = nn.Unfold(2)(fb.arange(9.0).view(1, 1, 3, 3))
    assert columns[0, :, 0].tolist() == [0, 1, 3, 4]
    counts = nn.Fold((3, 3), 2)(fb.ones(1, 4, 4))
    assert counts.flatten().tolist() == [1, 2, 1, 2, 4, 2, 1, 2, 1]
    grown = nn.Upsample(scale_factor=2)(fb.tensor([[[1.0, 2.0]]]))
    assert grown.tolist() == [[[1, 1, 2, 2]]]
    wide = nn.UpsamplingBilinear2d(size=(1, 3))(fb.tensor([[[[0.0, 1.0]]]]))
    assert wide.flatten().tolist() == [0, 0.5, 1]


def test_dropouts():
    fb.manual_seed(0)
    x = fb.ones(2000)
    out = nn.Dropout(0.25)(x)
    assert set(np.unique(array(out)).round(4)) == {0.0, np.float32(4 / 3).round(4)}
    assert abs((out == 0).sum().item() / 2000 - 0.25) < 0.05
    for cls in (nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout):
        assert fb.equal(cls(0.5).eval()(x), x)
    channels = nn.Dropout2d(0.5)(fb.ones(4, 50, 3, 3)).sum((2, 3))
    assert set(array(channels).flatten().tolist()) == {0.0, 18.0}
    with pytest.raises(ValueError, match="has to be between 0 and 1, but got 2"):
        nn.Dropout(2)


def test_distances():
    a, b = fb.tensor([[3.0, 4.0]]), fb.tensor([[0.0, 0.0]])
    close(nn.PairwiseDistance(p=1.0)(a, b), [7.0])
    close(nn.CosineSimilarity()(a, fb.tensor([[4.0, 3.0]])), [24 / 25])


@pytest.mark.parametrize(
    ("layer", "printed"),
    [
        (lambda: nn.Conv2d(3, 4, 3), "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1))"),
        (
            lambda: nn.Conv1d(4, 4, 3, 2, 1, 2, 2, False, "circular"),
            "Conv1d(4, 4, kernel_size=(3,), stride=(2,), padding=(1,), dilation=(2,), groups=2, "
            "bias=False, padding_mode=circular)",
        ),
        (
            lambda: nn.Conv2d(1, 1, 3, padding="same"),
            "Conv2d(1, 1, kernel_size=(3, 3), stride=(1, 1), padding=same)",
        ),
        (
            lambda: nn.ConvTranspose1d(1, 1, 2, 2, output_padding=1),
            "ConvTranspose1d(1, 1, kernel_size=(2,), stride=(2,), output_padding=(1,))",
        ),
        (
            lambda: nn.BatchNorm2d(3),
            "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, "
            "track_running_stats=True)",
        ),
        (
            lambda: nn.LayerNorm(3),
            "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)",
        ),
        (lambda: nn.GroupNorm(1, 2), "GroupNorm(1, 2, eps=1e-05, affine=True, bias=True)"),
        (lambda: nn.RMSNorm(2), "RMSNorm((2,), eps=None, elementwise_affine=True)"),
        (lambda: nn.LocalResponseNorm(2), "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)"),
        (lambda: nn.Embedding(3, 2, 0), "Embedding(3, 2, padding_idx=0)"),
        (lambda: nn.EmbeddingBag(3, 2), "EmbeddingBag(3, 2, mode='mean')"),
        (
            lambda: nn.MaxPool2d(2),
            "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        ),
        (lambda: nn.AvgPool1d(2), "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"),
        (lambda: nn.AdaptiveAvgPool2d((1, 2)), "AdaptiveAvgPool2d(output_size=(1, 2))"),
        (lambda: nn.ZeroPad2d(1), "ZeroPad2d((1, 1, 1, 1))"),
        (lambda: nn.ConstantPad1d(1, 2.0), "ConstantPad1d(padding=(1, 1), value=2.0)"),
        (lambda: nn.Upsample(scale_factor=2), "Upsample(scale_factor=2.0, mode='nearest')"),
        (lambda: nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
        (lambda: nn.Dropout(), "Dropout(p=0.5, inplace=False)"),
        (lambda: nn.ReLU(True), "ReLU(inplace=True)"),
        (lambda: nn.ReLU6(), "ReLU6()"),
        (lambda: nn.LeakyReLU(0.1, True), "LeakyReLU(negative_slope=0.1, inplace=True)"),
        (lambda: nn.GELU(), "GELU(approximate='none')"),
        (lambda: nn.Softmax(1), "Softmax(dim=1)"),
        (lambda: nn.Softshrink(), "Softshrink(0.5)"),
        (lambda: nn.Threshold(0.1, 20), "Threshold(threshold=0.1, value=20)"),
        (lambda: nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
        (
            lambda: nn.LSTM(3, 4, 2, bidirectional=True),
            "LSTM(3, 4, num_layers=2, bidirectional=True)",
        ),
        (lambda: nn.RNNCell(3, 4, nonlinearity="relu"), "RNNCell(3, 4, nonlinearity=relu)"),
    ],
)
def test_printed_forms(layer, printed):
    assert repr(layer()) == printed


def test_lazy_modules_become_ordinary_ones():
    with pytest.warns(UserWarning, match="Lazy modules are a new feature"):
        net = nn.Sequential(
            nn.LazyConv2d(4, 3),
            nn.LazyBatchNorm2d(),
            nn.LazyConvTranspose2d(2, 3),
            nn.Flatten(),
            nn.LazyLinear(3, bias=False),
        )
    assert nn.parameter.is_lazy(net[0].weight) and repr(net[0].weight) == "<UninitializedParameter>"
    with pytest.raises(RuntimeError, match="not initialized"):
        net[0].weight.shape  # noqa: B018
    x = fb.ones(2, 3, 8, 8)
    with pytest.warns(UserWarning, match="Lazy modules are a new feature"):
        twin = nn.Sequential(
            nn.LazyConv2d(4, 3),
            nn.LazyBatchNorm2d(),
            nn.LazyConvTranspose2d(2, 3),
            nn.Flatten(),
            nn.LazyLinear(3, bias=False),
        )
    assert net(x).shape == (2, 3)
    assert [type(m) for m in net] == [
        nn.Conv2d,
        nn.BatchNorm2d,
        nn.ConvTranspose2d,
        nn.Flatten,
        nn.Linear,
    ]
    assert net[4].in_features == 128 and net[0].in_channels == 3
    assert not net[0]._hooked
    twin.load_state_dict(net.state_dict())
    close(twin.eval()(x), array(net.eval()(x)))


@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 4, 0), (0, 4)])
def test_group_norm_of_nothing_has_derivatives(shape):
    x = fb.randn(shape, dtype=fb.float64, requires_grad=True)
    positions = x.shape[2] if x.ndim > 2 else 1
    y, mean, rstd = fb.native_group_norm(x, None, None, x.shape[0], 4, positions, 2, 1e-5)
    (g,) = fb.autograd.grad(y.sum() + mean.sum() + rstd.sum(), x)
    assert g.shape == x.shape


@pytest.mark.parametrize("kind", ["BatchNorm1d", "InstanceNorm1d"])
def test_running_statistics_may_move_between_two_calls_and_backward(kind):
    m = getattr(nn, kind)(3, track_running_stats=True).double()
    x = fb.randn(4, 3, 5, dtype=fb.float64, requires_grad=True)
    (m(x).pow(3).sum() + m(2 * x).sin().sum()).backward()
    both = x.grad.clone()
    x.grad = None
    m(x).pow(3).sum().backward()
    m(2 * x).sin().sum().backward()
    assert both.allclose(x.grad)
    if kind == "InstanceNorm1d":
        return  # which reads a copy of them
    m.eval()
    y = m(x).pow(3).sum()
    m.running_mean.add_(1)  # here backward reads them
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
