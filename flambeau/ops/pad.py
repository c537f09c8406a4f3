"""Padding, windows unfolded to columns and back, and rearrangements of channels and pixels.

Kernels: csrc/kernels/pad.cpp. A padding that repeats the input reads it through one index list per
axis; its derivative adds through the same lists.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_fits


@structured(kernel="constant_pad", join="around", method=False, batch=True)
def constant_pad_nd(input: Tensor, pad: Ints, value: Number = 0) -> Tensor:
    """Input with `value` around it.

    Args:
        pad: two counts (before, after) per dimension, the last dimension first; negative ones crop

    >>> torch.constant_pad_nd(torch.ones(2), [1, 1])
    tensor([0., 1., 1., 0.])
    """
    n = len(pad) // 2
    check(
        len(pad) % 2 == 0,
        f"constant_pad_nd: Length of pad must be even but instead it equals {len(pad)}",
    )
    check(
        n <= input.ndim,
        "constant_pad_nd: Length of pad should be no more than twice the number of dimensions of "
        "the "
        f"input. Pad length is {len(pad)} while the input has {input.ndim} dimensions.",
    )
    _check_fits("constant_pad_nd", "value", value, input.dtype)
    shape: Ints = []
    for i in range(input.ndim):
        j = input.ndim - 1 - i
        extra = pad[2 * j] + pad[2 * j + 1] if j < n else 0
        size = input.shape[i] + extra
        check(
            size >= 0,
            f"constant_pad_nd: The input size {input.shape[i]}, plus negative padding {extra} "
            "resulted in "
            f"a negative output size, which is invalid. Check dimension {i} of your input.",
        )
        shape.append(size)
    crops = True
    for p in pad:
        crops = crops and p <= 0
    if crops:
        return empty_as(strided(input, shape, input.strides, input.offset))
    return empty(shape, dtype=input.dtype, like=input, memory_format=input.suggest_memory_format())


@constant_pad_nd.vjp
def _(g, input, pad, value):
    return constant_pad_nd(g, [-p for p in pad], 0)


@structured(kernel="index_pad", namespaces=(), out=False)
def _index_pad(input: Tensor, pad: Ints, mode: str) -> Tensor:
    """Input with values of its own around it: reflect, replicate or circular.

    >>> torch.nn.functional.pad(torch.arange(3.0).reshape(1, 1, 3), (1, 1), mode="circular")
    tensor([[[2., 0., 1., 2., 0.]]])
    """
    n = len(pad) // 2
    check(
        input.ndim == n + 1 or input.ndim == n + 2,
        f"pad: Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and "
        "other "
        f"non-zero dimensions for input, but got: {input.shape}",
    )
    for k in range(input.ndim):
        check(
            input.shape[k] > 0 or mode == "circular" or (k == 0 and input.ndim == n + 2),
            f"pad: Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size "
            f"and other non-zero dimensions for input, but got: {input.shape}",
        )
    shape = input.shape[: input.ndim - n]
    for i in range(n):
        j = n - 1 - i
        size = input.shape[input.ndim - n + i]
        before = pad[2 * j]
        after = pad[2 * j + 1]
        check(
            size > 0,
            f"pad: Expected non-zero dimensions for input, but got: {input.shape}",
        )
        if mode == "reflect":
            check(
                before < size and after < size,
                "pad: Padding size should be less than the corresponding input dimension, but "
                "got: "
                f"padding ({before}, {after}) at dimension {input.ndim - n + i} of input "
                f"{input.shape}",
            )
        if mode == "circular":
            check(
                before <= size and after <= size,
                f"pad: Padding value causes wrapping around more than once, got ({before}, "
                f"{after}) at "
                f"dimension {input.ndim - n + i} of input {input.shape}",
            )
        check(
            size + before + after > 0,
            f"pad: input (size: {size}) is too small for padding ({before}, {after})",
        )
        shape.append(size + before + after)
    return empty(shape, dtype=input.dtype, like=input, memory_format=input.suggest_memory_format())


@_index_pad.vjp
def _(g, input, pad, mode):
    return _index_pad_backward(g, input.shape, pad, mode)


@_index_pad.vmap
def _(input, pad, mode, input_b, batch):
    return _unfolded(_index_pad(_folded(input, input_b, batch), pad, mode), batch)


@structured(kernel="index_pad_backward", namespaces=(), out=False)
def _index_pad_backward(grad: Tensor, input_size: Ints, pad: Ints, mode: str) -> Tensor:
    """Cotangent of the input of `_index_pad`.

    >>> torch.nn.functional.pad(torch.ones(1, 1, 3), (1, 1), mode="reflect").shape
    torch.Size([1, 1, 5])
    """
    return empty(input_size, dtype=grad.dtype, like=grad)


@_index_pad_backward.vjp
def _(g, pad, mode):
    return _index_pad(g, pad, mode)


@_index_pad_backward.vmap
def _(grad, input_size, pad, mode, grad_b, batch):
    return _unfolded(
        _index_pad_backward(
            _folded(grad, grad_b, batch), [batch * input_size[0]] + input_size[1:], pad, mode
        ),
        batch,
    )


@composite(namespaces=("nn.functional",), method=False)
def pad(input: Tensor, pad: Ints, mode: str = "constant", value: Number | None = None) -> Tensor:
    """Input padded around its last dimensions.

    Args:
        pad: (before, after) of the last dimension, then of the one before it, and so on
        mode: constant, reflect, replicate or circular
        value: of constant padding; 0 by default

    >>> torch.nn.functional.pad(torch.ones(2), (0, 1))
    tensor([1., 1., 0.])
    """
    check(len(pad) % 2 == 0, f"pad: Padding length must be divisible by 2, got {len(pad)}")
    check(
        len(pad) // 2 <= input.ndim,
        "pad: Padding length should be less than or equal to two times the input dimension but "
        "got "
        f"padding length {len(pad)} and input of dimension {input.ndim}",
    )
    if mode == "constant":
        if value is None:
            return constant_pad_nd(input, pad, 0)
        return constant_pad_nd(input, pad, value)
    if value is not None:
        check(value == 0, f'Padding mode "{mode}" doesn\'t take in value argument')
    check_not_implemented(
        mode in ("reflect", "replicate", "circular"), f"pad: Unrecognised padding mode {mode}"
    )
    n = len(pad) // 2
    check_not_implemented(
        1 <= n <= 3 and (input.ndim == n + 1 or input.ndim == n + 2),
        "pad: Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, got "
        "input of "
        f"dimension {input.ndim} and padding of length {len(pad)}",
    )
    if mode == "circular" and not all(p >= 0 for p in pad):
        # What is cropped away does not come in again on the other side.
        cropped = constant_pad_nd(input, [min(p, 0) for p in pad], 0)
        return _index_pad(cropped, [max(p, 0) for p in pad], mode)
    return _index_pad(input, pad, mode)


@pad.samples
def _(make):
    yield pad, make(2, 3, 4), [1, 2]
    yield pad, make(2, 3, 4), [1, 2], "reflect"
    yield pad, make(2, 3, 4, 5), [1, 2, 0, 1], "replicate"
    yield pad, make(2, 3, 4), [1, 2], "circular"


# Columns of windows -----------------------------------------------------------------------------


@composite(namespaces=())
def _window_counts(
    op: str, size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Ints:
    """Positions of the windows along both axes.

    >>> torch.nn.functional.unfold(torch.ones(1, 1, 3, 3), 2).shape
    torch.Size([1, 4, 4])
    """
    check(
        len(size) == 2 and len(kernel) == 2 and len(dilation) == 2 and len(padding) == 2
        and len(stride) == 2,
        f"{op}: expected one int or 2 values each for kernel_size, dilation, padding and stride, "
        f"and 2 for the image's size, got {kernel}, {dilation}, {padding}, {stride} and {size}",
    )  # fmt: skip
    out: Ints = []
    for i in range(2):
        check(kernel[i] > 0, f"{op}: kernel size should be greater than zero, but got {kernel}")
        check(stride[i] > 0, f"{op}: stride should be greater than zero, but got {stride}")
        check(dilation[i] > 0, f"{op}: dilation should be greater than zero, but got {dilation}")
        check(padding[i] >= 0, f"{op}: padding should be non-negative, but got {padding}")
        n = (size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1
        check(
            n > 0 and size[i] + 2 * padding[i] >= dilation[i] * (kernel[i] - 1) + 1,
            f"{op}: Given spatial size {size}, kernel_size={kernel}, dilation={dilation}, "
            f"padding={padding}, stride={stride}, calculated shape of the array of sliding blocks "
            "is too "
            "small; its components must be at least one",
        )
        out.append(n)
    return out


@structured(kernel="im2col", method=False, namespaces=())
def im2col(input: Tensor, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
    """Windows of images (N, C, H, W) as columns (N, C * KH * KW, L).

    >>> torch.nn.functional.unfold(torch.ones(1, 1, 3, 3), 2).shape
    torch.Size([1, 4, 4])
    """
    check(
        input.ndim == 4,
        f"im2col: Expected 3D or 4D (batch mode) tensor for input, but got: {input.shape}",
    )
    n = _window_counts("im2col", input.shape[2:], kernel_size, dilation, padding, stride)
    return empty(
        [input.shape[0], input.shape[1] * kernel_size[0] * kernel_size[1], n[0] * n[1]],
        dtype=input.dtype,
        like=input,
    )


@im2col.vjp
def _(g, input, kernel_size, dilation, padding, stride):
    return col2im(g, input.shape[2:], kernel_size, dilation, padding, stride)


@im2col.vmap
def _(input, kernel_size, dilation, padding, stride, input_b, batch):
    return _unfolded(
        im2col(_folded(input, input_b, batch), kernel_size, dilation, padding, stride), batch
    )


@structured(kernel="col2im", method=False, namespaces=())
def col2im(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Tensor:
    """Columns of windows added back to images: the transpose of `im2col`.

    >>> torch.nn.functional.fold(torch.ones(1, 4, 4), (3, 3), 2)[0, 0, 1, 1].item()
    4.0
    """
    n = _window_counts("col2im", output_size, kernel_size, dilation, padding, stride)
    area = kernel_size[0] * kernel_size[1]
    check(
        input.ndim == 3,
        f"col2im: Expected 2D or 3D (batch mode) tensor for input, but got: {input.shape}",
    )
    check(
        input.shape[1] % area == 0,
        "col2im: Expected size of input's dimension 1 to be divisible by the product of "
        "kernel_size, but "
        f"got input.size(1)={input.shape[1]} and kernel_size={kernel_size}",
    )
    check(
        input.shape[2] == n[0] * n[1],
        f"col2im: Given output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, "
        f"padding={padding}, stride={stride}, expected size of input's dimension 2 to match the "
        f"calculated number of sliding blocks {n[0]} * {n[1]} = {n[0] * n[1]}, but got "
        f"input.size(2)={input.shape[2]}.",
    )
    return empty(
        [input.shape[0], input.shape[1] // area, output_size[0], output_size[1]],
        dtype=input.dtype,
        like=input,
    )


@col2im.vjp
def _(g, kernel_size, dilation, padding, stride):
    return im2col(g, kernel_size, dilation, padding, stride)


@col2im.vmap
def _(input, output_size, kernel_size, dilation, padding, stride, input_b, batch):
    return _unfolded(
        col2im(_folded(input, input_b, batch), output_size, kernel_size, dilation, padding, stride),
        batch,
    )


@composite(method=False, namespaces=(), aliases=("nn.functional.unfold",))
def unfold_images(
    input: Tensor, kernel_size: Ints2, dilation: Ints2 = 1, padding: Ints2 = 0, stride: Ints2 = 1
) -> Tensor:
    """Sliding windows of images as columns.

    >>> torch.nn.functional.unfold(torch.ones(1, 1, 3, 3), 2).shape
    torch.Size([1, 4, 4])
    """
    if input.ndim == 3:
        return im2col(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    return im2col(input, kernel_size, dilation, padding, stride)


@composite(method=False, namespaces=("nn.functional",))
def fold(
    input: Tensor, output_size: Ints2, kernel_size: Ints2, dilation: Ints2 = 1, padding: Ints2 = 0,
    stride: Ints2 = 1,
) -> Tensor:  # fmt: skip
    """Columns of sliding windows summed back to images.

    >>> torch.nn.functional.fold(torch.ones(1, 4, 4), (3, 3), 2).shape
    torch.Size([1, 1, 3, 3])
    """
    if input.ndim == 2:
        return col2im(
            input.unsqueeze(0), output_size, kernel_size, dilation, padding, stride
        ).squeeze(0)
    return col2im(input, output_size, kernel_size, dilation, padding, stride)


# Rearrangements ---------------------------------------------------------------------------------


@composite(namespaces=(), method=False)
def _channels_lie_last(x: Tensor) -> bool:
    """Are these images whose channels lie last in memory? What rearranges them keeps that."""
    return x.ndim == 4 and x.suggest_memory_format() == channels_last


@composite(method=False, namespaces=("torch", "nn.functional"))
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels (*, C r^2, H, W) spread over pixels: (*, C, H r, W r).

    >>> torch.pixel_shuffle(torch.ones(1, 4, 2, 2), 2).shape
    torch.Size([1, 1, 4, 4])
    """
    r = upscale_factor
    check(
        input.ndim >= 3,
        "pixel_shuffle: expects input to have at least 3 dimensions, but got input with "
        f"{input.ndim} dimension(s)",
    )
    check(r > 0, f"pixel_shuffle: expects a positive upscale_factor, but got {r}")
    c, h, w = input.shape[-3:]
    check(
        c % (r * r) == 0,
        f"pixel_shuffle: expects its input's 'channel' dimension to be divisible by the square of "
        f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}",
    )
    lead = input.shape[:-3]
    n = len(lead)
    x = input.reshape(lead + [c // (r * r), r, r, h, w])
    if _channels_lie_last(input):
        y = x.permute([0, 4, 2, 5, 3, 1]).reshape([lead[0], h * r, w * r, c // (r * r)])
        return (y.clone() if r == 1 else y).permute([0, 3, 1, 2])
    order = list(range(n))
    order.extend([n, n + 3, n + 1, n + 4, n + 2])
    out = x.permute(order).reshape(lead + [c // (r * r), h * r, w * r])
    return out.clone() if r == 1 else out


@composite(method=False, namespaces=("torch", "nn.functional"))
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels (*, C, H r, W r) gathered into channels: (*, C r^2, H, W).

    >>> torch.pixel_unshuffle(torch.ones(1, 1, 4, 4), 2).shape
    torch.Size([1, 4, 2, 2])
    """
    r = downscale_factor
    check(
        input.ndim >= 3,
        "pixel_unshuffle: expects input to have at least 3 dimensions, but got input with "
        f"{input.ndim} dimension(s)",
    )
    check(r > 0, f"pixel_unshuffle: expects a positive downscale_factor, but got {r}")
    c, h, w = input.shape[-3:]
    check(
        h % r == 0 and w % r == 0,
        f"pixel_unshuffle: expects height and width to be divisible by downscale_factor, but "
        f"input.size(-2)={h} or input.size(-1)={w} is not divisible by {r}",
    )
    lead = input.shape[:-3]
    n = len(lead)
    x = input.reshape(lead + [c, h // r, r, w // r, r])
    if _channels_lie_last(input):
        y = x.permute([0, 2, 4, 1, 3, 5]).reshape([lead[0], h // r, w // r, c * r * r])
        return (y.clone() if r == 1 else y).permute([0, 3, 1, 2])
    order = list(range(n))
    order.extend([n, n + 2, n + 4, n + 1, n + 3])
    out = x.permute(order).reshape(lead + [c * r * r, h // r, w // r])
    return out.clone() if r == 1 else out


@composite(
    method=False,
    namespaces=("torch", "nn.functional"),
    aliases=("native_channel_shuffle",),
    sizes=("groups",),
)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels interleaved across `groups`.

    >>> torch.channel_shuffle(torch.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    check(
        input.ndim > 2,
        f"channel_shuffle: expects input with > 2 dims, but got input with sizes {input.shape}",
    )
    check(
        groups > 0,
        f"channel_shuffle: Number of groups to divide channels in must be positive, got {groups}",
    )
    c = input.shape[1]
    check(
        c % groups == 0,
        f"channel_shuffle: Number of channels must be divisible by groups. Got {c} channels and "
        f"{groups} groups.",
    )
    x = input.reshape([input.shape[0], groups, c // groups] + input.shape[2:])
    if _channels_lie_last(input):
        y = x.permute([0, 3, 4, 2, 1]).reshape([input.size(0), input.size(2), input.size(3), c])
        return y.permute([0, 3, 1, 2])
    return x.transpose(1, 2).reshape(input.shape)
