"""Convolutions: three primitive bilinear maps, and the public functions that check and call them.

With y = product(x, w), `_conv_input` maps (gy, w) to the cotangent of x and `_conv_weight` maps
(gy, x) to that of w. Each of the three is the derivative of the others, so any order of derivative
stays inside them. Kernels: csrc/kernels/conv.cpp.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=())
def _conv_out(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Positions of a window along one axis.

    >>> torch.nn.functional.conv1d(torch.ones(1, 1, 5), torch.ones(1, 1, 3)).shape[-1]
    3
    """
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


@composite(namespaces=())
def _bias_grad(g: Tensor) -> Tensor:
    """Sum of `g` over all dimensions but the channels.

    >>> torch.ones(2, 3).sum(0)
    tensor([2., 2., 2.])
    """
    return g.sum([0] + list(range(2, g.ndim)))


@composite(namespaces=(), method=False, function=False)
def _conv_layout(input: Tensor, weight: Tensor) -> MemoryFormat:
    """Channels are laid last where those of either factor are."""
    layout = input.suggest_memory_format()
    return weight.suggest_memory_format() if layout == contiguous_format else layout


@structured(
    kernel="conv_product", namespaces=(), out=False, convolves=("input", "weight", "output")
)
def _conv(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints,
    groups: int,
) -> Tensor:  # fmt: skip
    """Convolution of a batch; arguments are checked by the caller.

    >>> torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    tensor([[[2., 2., 2.]]])
    """
    shape: Ints = [input.shape[0], weight.shape[0]]
    for i in range(len(stride)):
        shape.append(
            _conv_out(input.shape[i + 2], weight.shape[i + 2], stride[i], padding[i], dilation[i])
        )
    layout = _conv_layout(input, weight)
    return empty(shape, dtype=input.dtype, like=input, memory_format=layout)


@_conv.vjp
def _(g, input, weight, bias, stride, padding, dilation, groups):
    gx = _conv_input(g, weight.conj(), None, input.shape, stride, padding, dilation, groups)
    gw = _conv_weight(g, input.conj(), weight.shape, stride, padding, dilation, groups)
    return gx, gw, _bias_grad(g)


@_conv.vmap
def _(input, weight, bias, stride, padding, dilation, groups, input_b, weight_b, bias_b, batch):
    if not weight_b:
        x = _folded(input, input_b, batch)
        own = None if bias_b else bias
        y = _unfolded(_conv(x, weight, own, stride, padding, dilation, groups), batch)
        if bias is None or not bias_b:
            return y
        return y + _per_channel(bias, bias_b, y.ndim - 1)
    w = weight.reshape([batch * weight.size(1)] + weight.shape[2:])
    if not input_b and groups == 1:
        y = _conv(input, w, None, stride, padding, dilation, 1)
    else:
        x = _channelled(input, input_b, batch)
        y = _conv(x, w, None, stride, padding, dilation, groups * batch)
    out = _unchannelled(y, batch)
    return out if bias is None else out + _per_channel(bias, bias_b, out.ndim - 1)


@structured(
    kernel="conv_input_product", namespaces=(), out=False, convolves=("output", "weight", "input")
)
def _conv_input(
    grad: Tensor, weight: Tensor, bias: Tensor | None, input_size: Ints, stride: Ints,
    padding: Ints, dilation: Ints, groups: int,
) -> Tensor:  # fmt: skip
    """Transposed convolution: the map of gradients from output to input of `_conv`, plus bias.

    >>> torch.nn.functional.conv_transpose1d(torch.ones(1, 1, 2), torch.ones(1, 1, 2))
    tensor([[[1., 2., 1.]]])
    """
    layout = _conv_layout(grad, weight)
    return empty(input_size, dtype=grad.dtype, like=grad, memory_format=layout)


@_conv_input.vjp
def _(g, grad, weight, bias, stride, padding, dilation, groups):
    gg = _conv(g, weight.conj(), None, stride, padding, dilation, groups)
    # Output padding beyond a stride holds places that no window of `grad` starts from.
    gg = _corner(gg, grad.shape)
    gw = _conv_weight(grad.conj(), g, weight.shape, stride, padding, dilation, groups)
    return gg, gw, _bias_grad(g)


@_conv_input.vmap
def _(
    grad,
    weight,
    bias,
    input_size,
    stride,
    padding,
    dilation,
    groups,
    grad_b,
    weight_b,
    bias_b,
    batch,
):
    size = input_size[:]
    if not weight_b:
        size[0] = batch * input_size[0]
        g = _folded(grad, grad_b, batch)
        y = _unfolded(_conv_input(g, weight, None, size, stride, padding, dilation, groups), batch)
    else:
        size[1] = batch * input_size[1]
        w = weight.reshape([batch * weight.size(1)] + weight.shape[2:])
        g = _channelled(grad, grad_b, batch)
        y = _unchannelled(
            _conv_input(g, w, None, size, stride, padding, dilation, groups * batch), batch
        )
    return y if bias is None else y + _per_channel(bias, bias_b, y.ndim - 1)


@structured(
    kernel="conv_weight_product", namespaces=(), out=False, convolves=("output", "input", "weight")
)
def _conv_weight(
    grad: Tensor, input: Tensor, weight_size: Ints, stride: Ints, padding: Ints, dilation: Ints,
    groups: int,
) -> Tensor:  # fmt: skip
    """Cotangent of the weight of `_conv`.

    >>> torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2)).sum()
    tensor(6.)
    """
    return empty(weight_size, dtype=grad.dtype, like=grad)


@_conv_weight.vjp
def _(g, grad, input, stride, padding, dilation, groups):
    gg = _corner(_conv(input.conj(), g, None, stride, padding, dilation, groups), grad.shape)
    gx = _conv_input(grad.conj(), g, None, input.shape, stride, padding, dilation, groups)
    return gg, gx


@_conv_weight.vmap
def _(grad, input, weight_size, stride, padding, dilation, groups, grad_b, input_b, batch):
    g = _channelled(grad, grad_b, batch)
    x = _channelled(input, input_b, batch)
    size = weight_size[:]
    size[0] = batch * weight_size[0]
    return _unfolded(_conv_weight(g, x, size, stride, padding, dilation, groups * batch), batch)


@composite(namespaces=())
def _check_conv(
    op: str, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints,
    dilation: Ints, groups: int, axes: int, transposed: bool,
) -> bool:  # fmt: skip
    """Refuses what no convolution is defined for; True when `input` has no batch dimension.

    >>> torch.nn.functional.conv1d(torch.ones(1, 4), torch.ones(1, 1, 2)).shape
    torch.Size([1, 3])
    """
    check(groups > 0, f"{op}: expected groups to be greater than 0, but got groups={groups}")
    check(
        weight.ndim == axes + 2,
        f"{op}: Expected {axes + 2}-dimensional weight, but got weight of size {weight.shape}",
    )
    check(
        input.ndim == axes + 1 or input.ndim == axes + 2,
        f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to {op}, but got input "
        "of "
        f"size: {input.shape}",
    )
    check(
        len(stride) == axes and len(padding) == axes and len(dilation) == axes,
        f"{op}: expected stride, padding and dilation of {axes} values, got {stride}, {padding}, "
        f"{dilation}",
    )
    unbatched = input.ndim == axes + 1
    channels = input.shape[0] if unbatched else input.shape[1]
    for i in range(axes):
        check(stride[i] > 0, f"{op}: non-positive stride is not supported, got {stride}")
        check(padding[i] >= 0, f"{op}: negative padding is not supported, got {padding}")
        check(dilation[i] > 0, f"{op}: dilation should be greater than zero, got {dilation}")
        check(
            weight.shape[i + 2] > 0,
            f"{op}: kernel size should be greater than zero, got {weight.shape}",
        )
    check(
        input.dtype == weight.dtype,
        f"{op}: Input type ({input.dtype}) and weight type ({weight.dtype}) should be the same",
    )
    check(input.dtype != bool_, f"\"{op}\" not implemented for 'Bool'")
    check(
        weight.shape[0] >= groups and weight.shape[0] % groups == 0,
        f"{op}: Given groups={groups}, expected weight to be at least {groups} at dimension 0 and "
        f"divisible by it, but got weight of size {weight.shape} instead",
    )
    features = weight.shape[1] * groups if transposed else weight.shape[0]
    expected = weight.shape[0] if transposed else weight.shape[1] * groups
    check(
        channels == expected,
        f"Given groups={groups}, weight of size {weight.shape}, expected input{input.shape} to "
        "have "
        f"{expected} channels, but got {channels} channels instead",
    )
    if bias is not None:
        check(
            bias.ndim == 1 and bias.shape[0] == features,
            f"Given weight of size {weight.shape}, expected bias to be 1-dimensional with "
            f"{features} "
            f"elements, but got bias of size {bias.shape} instead",
        )
        check(
            bias.dtype == input.dtype,
            f"{op}: Input type ({input.dtype}) and bias type ({bias.dtype}) should be the same",
        )
    if not transposed:
        lead = 1 if unbatched else 2
        for i in range(axes):
            padded = input.shape[lead + i] + 2 * padding[i]
            span = dilation[i] * (weight.shape[i + 2] - 1) + 1
            check(
                padded >= span,
                f"{op}: Calculated padded input size per channel: ({padded}). Kernel size: "
                f"({span}). "
                "Kernel size can't be greater than actual input size",
            )
    return unbatched


@composite(namespaces=())
def _convolve(
    op: str, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints,
    dilation: Ints, groups: int, axes: int,
) -> Tensor:  # fmt: skip
    """Checked convolution, batched or not.

    >>> torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2)).shape
    torch.Size([1, 1, 3])
    """
    if _check_conv(op, input, weight, bias, stride, padding, dilation, groups, axes, False):
        return _conv(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    return _conv(input, weight, bias, stride, padding, dilation, groups)


@composite(namespaces=())
def _convolve_named(
    op: str, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: str,
    dilation: Ints, groups: int, axes: int,
) -> Tensor:  # fmt: skip
    """Convolution with padding "valid" (none) or "same" (the output has the input's size).

    >>> x, w = torch.ones(1, 1, 4), torch.ones(1, 1, 3)
    >>> torch.nn.functional.conv1d(x, w, padding="same").shape
    torch.Size([1, 1, 4])
    """
    none = [0 for i in range(axes)]
    if padding == "valid":
        return _convolve(op, input, weight, bias, stride, none, dilation, groups, axes)
    check(padding == "same", f"{op}: Invalid padding string: '{padding}'")
    for i in range(axes):
        check(stride[i] == 1, f"{op}: padding='same' is not supported for strided convolutions")
    _ = _check_conv(
        op,
        input,
        weight,
        bias,
        stride,
        [1 << 30 for i in range(axes)],
        dilation,
        groups,
        axes,
        False,
    )
    both: Ints = []
    extra: Ints = []
    uneven = False
    for i in range(axes):
        total = dilation[i] * (weight.shape[i + 2] - 1)
        both.append(total // 2)
        extra.insert(0, total % 2)
        extra.insert(0, 0)
        uneven = uneven or total % 2 == 1
    if uneven:
        warn(f"{op}: padding='same' with windows of even reach pads a copy of the input")
    x = constant_pad_nd(input, extra, 0) if uneven else input
    return _convolve(op, x, weight, bias, stride, both, dilation, groups, axes)


@composite(namespaces=())
def _convolve_transposed(
    op: str, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints,
    output_padding: Ints, groups: int, dilation: Ints, axes: int,
) -> Tensor:  # fmt: skip
    """Checked transposed convolution, batched or not.

    >>> torch.nn.functional.conv_transpose1d(torch.ones(1, 1, 2), torch.ones(1, 1, 2)).shape
    torch.Size([1, 1, 3])
    """
    unbatched = _check_conv(op, input, weight, bias, stride, padding, dilation, groups, axes, True)
    check(
        len(output_padding) == axes,
        f"{op}: expected output_padding of {axes} values, got {output_padding}",
    )
    x = input.unsqueeze(0) if unbatched else input
    size: Ints = [x.shape[0], weight.shape[1] * groups]
    for i in range(axes):
        check(
            output_padding[i] >= 0,
            f"{op}: negative output_padding is not supported, got {output_padding}",
        )
        check(
            output_padding[i] < stride[i] or output_padding[i] < dilation[i],
            f"{op}: output padding must be smaller than either stride or dilation, but got "
            f"output_padding: {output_padding}, stride: {stride}, dilation: {dilation}",
        )
        n = (x.shape[i + 2] - 1) * stride[i] - 2 * padding[i] + output_padding[i]
        size.append(n + dilation[i] * (weight.shape[i + 2] - 1) + 1)
    for i in range(axes):
        check(
            size[i + 2] > 0,
            f"{op}: Given input size per channel {x.shape[2:]}, calculated output size per channel "
            f"{size[2:]}. Output size is too small",
        )
    out = _conv_input(x, weight, bias, size, stride, padding, dilation, groups)
    return out.squeeze(0) if unbatched else out


@composite(namespaces=("torch", "nn.functional"), method=False, autocast="lower")
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints1 = 1,
    padding: Ints1 = 0, dilation: Ints1 = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution of signals.

    Args:
        input: (N, C, L) or (C, L)
        weight: (out channels, C / groups, K)
        padding: zeros on both sides, or "valid" or "same"

    >>> torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    tensor([[[2., 2., 2.]]])
    """
    return _convolve("conv1d", input, weight, bias, stride, padding, dilation, groups, 1)


@conv1d.overload(namespaces=("torch", "nn.functional"), method=False, autocast="lower")
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints1 = 1,
    padding: str = "valid", dilation: Ints1 = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution of signals with named padding.

    >>> x, w = torch.ones(1, 1, 4), torch.ones(1, 1, 3)
    >>> torch.nn.functional.conv1d(x, w, padding="same").shape
    torch.Size([1, 1, 4])
    """
    return _convolve_named("conv1d", input, weight, bias, stride, padding, dilation, groups, 1)


@conv1d.samples
def _(make):
    yield conv1d, make(2, 4, 7), make(6, 2, 3), make(6), 2, 1, 1, 2


@composite(namespaces=("torch", "nn.functional"), method=False, autocast="lower")
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints2 = 1,
    padding: Ints2 = 0, dilation: Ints2 = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution of images.

    Args:
        input: (N, C, H, W) or (C, H, W)
        weight: (out channels, C / groups, KH, KW)
        padding: zeros on all sides, or "valid" or "same"

    >>> torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """
    return _convolve("conv2d", input, weight, bias, stride, padding, dilation, groups, 2)


@conv2d.overload(namespaces=("torch", "nn.functional"), method=False, autocast="lower")
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints2 = 1,
    padding: str = "valid", dilation: Ints2 = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution of images with named padding.

    >>> x, w = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3)
    >>> torch.nn.functional.conv2d(x, w, padding="same").shape
    torch.Size([1, 1, 3, 3])
    """
    return _convolve_named("conv2d", input, weight, bias, stride, padding, dilation, groups, 2)


@conv2d.samples
def _(make):
    yield conv2d, make(2, 4, 5, 6), make(6, 2, 3, 2), make(6), [2, 1], [1, 0], [1, 2], 2
    yield conv2d, make(2, 5, 5), make(3, 2, 3, 3)


@composite(namespaces=("torch", "nn.functional"), method=False, autocast="lower")
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints3 = 1,
    padding: Ints3 = 0, dilation: Ints3 = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution of volumes.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W)
        weight: (out channels, C / groups, KD, KH, KW)

    >>> torch.nn.functional.conv3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2)).item()
    8.0
    """
    return _convolve("conv3d", input, weight, bias, stride, padding, dilation, groups, 3)


@conv3d.overload(namespaces=("torch", "nn.functional"), method=False, autocast="lower")
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints3 = 1,
    padding: str = "valid", dilation: Ints3 = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution of volumes with named padding.

    >>> x, w = torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 1, 1, 1)
    >>> torch.nn.functional.conv3d(x, w, padding="same").shape
    torch.Size([1, 1, 2, 2, 2])
    """
    return _convolve_named("conv3d", input, weight, bias, stride, padding, dilation, groups, 3)


@composite(namespaces=("torch", "nn.functional"), method=False, autocast="lower")
def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints1 = 1,
    padding: Ints1 = 0, output_padding: Ints1 = 0, groups: int = 1, dilation: Ints1 = 1,
) -> Tensor:  # fmt: skip
    """Transposed convolution of signals: the gradient of conv1d as a map of its own.

    >>> torch.nn.functional.conv_transpose1d(torch.ones(1, 1, 2), torch.ones(1, 1, 2))
    tensor([[[1., 2., 1.]]])
    """
    op = "conv_transpose1d"
    return _convolve_transposed(
        op, input, weight, bias, stride, padding, output_padding, groups, dilation, 1
    )


@composite(namespaces=("torch", "nn.functional"), method=False, autocast="lower")
def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints2 = 1,
    padding: Ints2 = 0, output_padding: Ints2 = 0, groups: int = 1, dilation: Ints2 = 1,
) -> Tensor:  # fmt: skip
    """Transposed convolution of images.

    >>> torch.nn.functional.conv_transpose2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 3, 3])
    """
    op = "conv_transpose2d"
    return _convolve_transposed(
        op, input, weight, bias, stride, padding, output_padding, groups, dilation, 2
    )


@composite(namespaces=("torch", "nn.functional"), method=False, autocast="lower")
def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints3 = 1,
    padding: Ints3 = 0, output_padding: Ints3 = 0, groups: int = 1, dilation: Ints3 = 1,
) -> Tensor:  # fmt: skip
    """Transposed convolution of volumes.

    >>> x, w = torch.ones(1, 1, 1, 1, 1), torch.ones(1, 1, 2, 2, 2)
    >>> torch.nn.functional.conv_transpose3d(x, w).shape
    torch.Size([1, 1, 2, 2, 2])
    """
    op = "conv_transpose3d"
    return _convolve_transposed(
        op, input, weight, bias, stride, padding, output_padding, groups, dilation, 3
    )


@composite(method=False)
def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints,
    transposed: bool, output_padding: Ints, groups: int,
) -> Tensor:  # fmt: skip
    """Any of the convolutions, by its full list of arguments.

    >>> x, w = torch.ones(1, 1, 4), torch.ones(1, 1, 2)
    >>> torch.convolution(x, w, None, [1], [0], [1], False, [0], 1).shape
    torch.Size([1, 1, 3])
    """
    axes = weight.ndim - 2
    check(
        1 <= axes <= 3,
        f"convolution: expected weight of 3 to 5 dimensions, got size {weight.shape}",
    )
    s = _per_axis(stride, axes)
    p = _per_axis(padding, axes)
    d = _per_axis(dilation, axes)
    if transposed:
        o = _per_axis(output_padding, axes)
        return _convolve_transposed("convolution", input, weight, bias, s, p, o, groups, d, axes)
    return _convolve("convolution", input, weight, bias, s, p, d, groups, axes)


@composite(namespaces=())
def _per_axis(values: Ints, axes: int) -> Ints:
    """One value stands for all axes.

    >>> torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2), stride=2).shape
    torch.Size([1, 1, 2])
    """
    return [values[0] for i in range(axes)] if len(values) == 1 else values


@composite(namespaces=("torch", "nn.functional"), method=False, autocast="lower")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of signals laid out (time, batch, channel), weight (K, in, out).

    >>> torch.conv_tbc(torch.ones(4, 1, 2), torch.ones(2, 2, 3), torch.zeros(3)).shape
    torch.Size([3, 1, 3])
    """
    check(
        input.ndim == 3,
        f"conv_tbc: Input must have 3 dims: time, batch, in_channel, got {input.ndim}",
    )
    check(
        weight.ndim == 3,
        f"conv_tbc: Weight tensor must have 3 dims: kernel_width, in, out, got {weight.ndim}",
    )
    check(bias.ndim == 1, f"conv_tbc: Bias must be 1-D, got {bias.ndim}")
    out = conv1d(input.permute([1, 2, 0]), weight.permute([2, 1, 0]), bias, [1], [pad])
    return out.permute([2, 0, 1])
