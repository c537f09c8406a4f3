"""Pools: maxima and averages over windows, regular or adaptive, in one to three dimensions.

Maxima whose gradient is wanted are computed with their indices, the others without, which is
faster. Kernels: csrc/kernels/pool.cpp.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=())
def _pool_size(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> int:
    """Number of windows along one axis; with `ceil_mode` the last may run over the end.

    >>> torch.nn.functional.avg_pool1d(torch.ones(1, 1, 5), 2, ceil_mode=True).shape[-1]
    3
    """
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return span // stride + 1
    n = (span + stride - 1) // stride + 1
    # The last window must start inside the input or its left padding.
    return n - 1 if (n - 1) * stride >= size + padding else n


@composite(namespaces=())
def _check_axes(op: str, n: int) -> None:
    """Refuses pools that are not of signals, images or volumes."""
    check(n >= 1 and n <= 3, f"{op}: expected a size for each of 1, 2 or 3 dimensions, got {n}")


@composite(namespaces=())
def _pool_shape(
    op: str,
    input: Tensor,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> Ints:
    """Shape of a pool's result; refuses windows that make no sense.

    >>> torch.nn.functional.max_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """
    n = len(kernel)
    _check_axes(op, n)
    check(
        input.ndim == n + 1 or input.ndim == n + 2,
        f"{op}: Expected {n + 1}D or {n + 2}D tensor (with optional 0 dim batch size), but got: "
        f"{input.shape}",
    )
    check(
        len(stride) == n and len(padding) == n and len(dilation) == n,
        f"{op}: expected {n} values for kernel_size, stride, padding and dilation, got {kernel}, "
        f"{stride}, {padding}, {dilation}",
    )
    lead = input.ndim - n
    for i in range(n + 1):
        d = input.ndim - n - 1 + i
        check(
            input.shape[d] > 0,
            f"{op}: Expected {n + 1}D or {n + 2}D tensor with non-zero sizes but the batch, but "
            f"got: {input.shape}",
        )
    out = input.shape[:lead]
    for i in range(n):
        check(kernel[i] > 0, f"{op}: kernel size should be greater than zero, but got {kernel}")
        check(stride[i] > 0, f"{op}: stride should not be zero, but got {stride}")
        check(padding[i] >= 0, f"{op}: pad must be non-negative, but got pad: {padding}")
        check(
            dilation[i] > 0,
            f"{op}: dilation should be greater than zero, but got dilation: {dilation}",
        )
        check(
            padding[i] * 2 <= (kernel[i] - 1) * dilation[i] + 1,
            f"{op}: pad should be at most half of effective kernel size, but got pad={padding[i]}, "
            f"kernel_size={kernel[i]} and dilation={dilation[i]}",
        )
        size = _pool_size(
            input.shape[lead + i], kernel[i], stride[i], padding[i], dilation[i], ceil_mode
        )
        check(
            size > 0,
            f"{op}: Given input size: {input.shape}. Calculated output size: {size} in dimension "
            f"{lead + i}. Output size is too small for kernel {kernel}",
        )
        out.append(size)
    return out


@composite(namespaces=())
def _stride_or_kernel(op: str, axes: int, stride: Ints | None, kernel: Ints) -> Ints:
    """A pool's stride, by default its kernel, which must have a value for every axis.

    >>> torch.nn.functional.max_pool1d(torch.ones(1, 1, 4), 2).shape[-1]
    2
    """
    check(
        len(kernel) == axes,
        f"{op}: kernel_size must be one int or a list of {axes}, but got {kernel}",
    )
    if stride is None:
        return kernel
    if len(stride) == 0:
        return kernel
    return [stride[0] for i in range(axes)] if len(stride) == 1 else stride


# Maxima ------------------------------------------------------------------------------------------


@structured(kernel="max_pool", namespaces=(), out=False, layout="follows")
def _max_pool(
    input: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Tensor:
    """Maxima over windows.

    >>> torch.nn.functional.max_pool1d(torch.arange(4.0).reshape(1, 1, 4), 2)
    tensor([[[1., 3.]]])
    """
    check(
        not input.is_complex(),
        f"\"max_pool\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    check(input.dtype != bool_, "\"max_pool\" not implemented for 'Bool'")
    shape = _pool_shape("max_pool", input, kernel, stride, padding, dilation, ceil_mode)
    return empty(shape, dtype=input.dtype, like=input, memory_format=input.suggest_memory_format())


@_max_pool.vjp
def _(g, input, kernel, stride, padding, dilation, ceil_mode):
    return _max_pool_backward(g, input, kernel, stride, padding, dilation, ceil_mode)


@_max_pool.vmap
def _(input, kernel, stride, padding, dilation, ceil_mode, input_b, batch):
    return _unfolded(
        _max_pool(_folded(input, input_b, batch), kernel, stride, padding, dilation, ceil_mode),
        batch,
    )


@structured(kernel="max_pool_backward", namespaces=(), out=False, layout="follows")
def _max_pool_backward(
    grad: Tensor,
    input: Tensor,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> Tensor:
    """Cotangent of the input of `_max_pool`: the winners are found again.

    >>> torch.nn.functional.max_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """
    return empty(
        input.shape, dtype=grad.dtype, like=input, memory_format=input.suggest_memory_format()
    )


@_max_pool_backward.vjp
def _(g, grad, input, kernel, stride, padding, dilation, ceil_mode):
    _, at = _max_pool_both(input, kernel, stride, padding, dilation, ceil_mode)
    return _pick(g, at, len(kernel)), None


@_max_pool_backward.vmap
def _(grad, input, kernel, stride, padding, dilation, ceil_mode, grad_b, input_b, batch):
    return _unfolded(
        _max_pool_backward(
            _folded(grad, grad_b, batch),
            _folded(input, input_b, batch),
            kernel,
            stride,
            padding,
            dilation,
            ceil_mode,
        ),
        batch,
    )


@composite(namespaces=())
def _pick(x: Tensor, at: Tensor, axes: int) -> Tensor:
    """Elements of each channel's plane of `x` at the flat indices `at`, in the shape of `at`.

    >>> torch.gather(torch.arange(4), 0, torch.tensor([2]))
    tensor([2])
    """
    lead = x.shape[: x.ndim - axes]
    flat = x.reshape(lead + [prod(x.shape[x.ndim - axes :])])
    places = at.reshape(lead + [prod(at.shape[x.ndim - axes :])])
    return gather(flat, -1, places).reshape(at.shape)


@structured(kernel="plane_scatter", method=False, out=False, layout="follows")
def _plane_scatter(grad: Tensor, at: Tensor, input_size: Ints, axes: int) -> Tensor:
    """Zeros of `input_size` with `grad` added at the flat indices `at` of each channel's plane.

    >>> torch.nn.functional.max_unpool1d(torch.ones(1, 1, 1), torch.tensor([[[1]]]), 2)
    tensor([[[0., 1.]]])
    """
    return empty(
        input_size, dtype=grad.dtype, like=grad, memory_format=grad.suggest_memory_format()
    )


@_plane_scatter.vjp
def _(g, grad, at, axes):
    return _pick(g, at, axes), None


@_plane_scatter.vmap
def _(grad, at, input_size, axes, grad_b, at_b, batch):
    return _unfolded(
        _plane_scatter(
            _folded(grad, grad_b, batch),
            _folded(at, at_b, batch),
            [batch * input_size[0]] + input_size[1:],
            axes,
        ),
        batch,
    )


@structured(kernel="max_pool_both", method=False, out=False, layout="follows")
def _max_pool_both(
    input: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Tuple[Tensor, Tensor]:
    """Maxima over windows and where they are: flat indices in each channel.

    >>> x = torch.arange(4.0).reshape(1, 1, 4)
    >>> torch.nn.functional.max_pool1d(x, 2, return_indices=True)[1]
    tensor([[[1, 3]]])
    """
    check(
        not input.is_complex(),
        f"\"max_pool\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    check(input.dtype != bool_, "\"max_pool\" not implemented for 'Bool'")
    shape = _pool_shape("max_pool", input, kernel, stride, padding, dilation, ceil_mode)
    layout = input.suggest_memory_format()
    out = empty(shape, dtype=input.dtype, like=input, memory_format=layout)
    return out, empty(shape, dtype=int64, like=input, memory_format=layout)


@_max_pool_both.vjp
def _(g0, input, kernel, result1):
    return _plane_scatter(g0, result1, input.shape, len(kernel))


@_max_pool_both.vmap
def _(input, kernel, stride, padding, dilation, ceil_mode, input_b, batch):
    a, b = _max_pool_both(
        _folded(input, input_b, batch), kernel, stride, padding, dilation, ceil_mode
    )
    return _unfolded(a, batch), _unfolded(b, batch)


@composite(method=False)
def _max_pool_values(
    input: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Tensor:
    """Maxima over windows, by the way that suits whether a gradient is wanted.

    >>> torch.nn.functional.max_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """
    if is_differentiated(input):
        out, _ = _max_pool_both(input, kernel, stride, padding, dilation, ceil_mode)
        return out
    return _max_pool(input, kernel, stride, padding, dilation, ceil_mode)


@composite(
    namespaces=("torch", "nn.functional"), method=False,
    flag=("return_indices", "max_pool1d_with_indices"),
)  # fmt: skip
def max_pool1d(
    input: Tensor, kernel_size: Ints1, stride: Ints | None = None, padding: Ints1 = 0,
    dilation: Ints1 = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """Maxima over windows of signals (N, C, L) or (C, L).

    >>> torch.max_pool1d(torch.arange(4.0).reshape(1, 1, 4), 2)
    tensor([[[1., 3.]]])
    """
    s = _stride_or_kernel("max_pool1d", 1, stride, kernel_size)
    return _max_pool_values(input, kernel_size, s, padding, dilation, ceil_mode)


@composite(
    namespaces=("torch", "nn.functional"), method=False,
    flag=("return_indices", "max_pool2d_with_indices"),
)  # fmt: skip
def max_pool2d(
    input: Tensor, kernel_size: Ints2, stride: Ints | None = None, padding: Ints2 = 0,
    dilation: Ints2 = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """Maxima over windows of images (N, C, H, W) or (C, H, W).

    >>> torch.max_pool2d(torch.arange(4.0).reshape(1, 1, 2, 2), 2)
    tensor([[[[3.]]]])
    """
    s = _stride_or_kernel("max_pool2d", 2, stride, kernel_size)
    return _max_pool_values(input, kernel_size, s, padding, dilation, ceil_mode)


@max_pool2d.samples
def _(make):
    yield max_pool2d, make(2, 3, 7, 6), [3, 2], [2, 2], [1, 0], [1, 2], True
    yield max_pool2d, make(3, 6, 6), 2


@composite(
    namespaces=("torch", "nn.functional"), method=False, autocast="float32",
    flag=("return_indices", "max_pool3d_with_indices"),
)  # fmt: skip
def max_pool3d(
    input: Tensor, kernel_size: Ints3, stride: Ints | None = None, padding: Ints3 = 0,
    dilation: Ints3 = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """Maxima over windows of volumes (N, C, D, H, W) or (C, D, H, W).

    >>> torch.max_pool3d(torch.ones(1, 1, 2, 2, 2), 2).shape
    torch.Size([1, 1, 1, 1, 1])
    """
    s = _stride_or_kernel("max_pool3d", 3, stride, kernel_size)
    return _max_pool_values(input, kernel_size, s, padding, dilation, ceil_mode)


@composite(
    namespaces=("torch", "nn.functional"), method=False,
    flag=("return_indices", "max_pool1d_with_indices"),
)  # fmt: skip
def max_pool1d_with_indices(
    input: Tensor, kernel_size: Ints1, stride: Ints | None = None, padding: Ints1 = 0,
    dilation: Ints1 = 1, ceil_mode: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """Maxima over windows of signals, and their indices.

    >>> torch.max_pool1d_with_indices(torch.arange(4.0).reshape(1, 1, 4), 2)[1]
    tensor([[[1, 3]]])
    """
    s = _stride_or_kernel("max_pool1d_with_indices", 1, stride, kernel_size)
    return _max_pool_both(input, kernel_size, s, padding, dilation, ceil_mode)


@composite(
    namespaces=("torch", "nn.functional"), method=False,
    flag=("return_indices", "max_pool2d_with_indices"),
)  # fmt: skip
def max_pool2d_with_indices(
    input: Tensor, kernel_size: Ints2, stride: Ints | None = None, padding: Ints2 = 0,
    dilation: Ints2 = 1, ceil_mode: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """Maxima over windows of images, and their flat indices in each channel.

    >>> torch.nn.functional.max_pool2d_with_indices(torch.ones(1, 1, 2, 2), 2)[1].item()
    0
    """
    s = _stride_or_kernel("max_pool2d_with_indices", 2, stride, kernel_size)
    return _max_pool_both(input, kernel_size, s, padding, dilation, ceil_mode)


@composite(
    namespaces=("torch", "nn.functional"), method=False,
    flag=("return_indices", "max_pool3d_with_indices"),
)  # fmt: skip
def max_pool3d_with_indices(
    input: Tensor, kernel_size: Ints3, stride: Ints | None = None, padding: Ints3 = 0,
    dilation: Ints3 = 1, ceil_mode: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """Maxima over windows of volumes, and their flat indices in each channel.

    >>> torch.nn.functional.max_pool3d_with_indices(torch.ones(1, 1, 2, 2, 2), 2)[1].item()
    0
    """
    s = _stride_or_kernel("max_pool3d_with_indices", 3, stride, kernel_size)
    return _max_pool_both(input, kernel_size, s, padding, dilation, ceil_mode)


# Averages ----------------------------------------------------------------------------------------


@structured(kernel="avg_pool", namespaces=(), out=False)
def _avg_pool(
    input: Tensor, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool,
    count_include_pad: bool, divisor: int | None,
) -> Tensor:  # fmt: skip
    """Averages over windows.

    >>> torch.nn.functional.avg_pool1d(torch.arange(4.0).reshape(1, 1, 4), 2)
    tensor([[[0.5000, 2.5000]]])
    """
    check(
        input.is_floating_point() or input.dtype == int64,
        f"\"avg_pool\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    if divisor is not None:
        check(divisor != 0, "avg_pool: divisor must be not zero")
    ones = [1 for i in range(len(kernel))]
    shape = _pool_shape("avg_pool", input, kernel, stride, padding, ones, ceil_mode)
    return empty(shape, dtype=input.dtype, like=input, memory_format=input.suggest_memory_format())


@_avg_pool.vjp
def _(g, input, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    return _avg_pool_backward(
        g, input.shape, kernel, stride, padding, ceil_mode, count_include_pad, divisor
    )


@_avg_pool.vmap
def _(input, kernel, stride, padding, ceil_mode, count_include_pad, divisor, input_b, batch):
    return _unfolded(
        _avg_pool(
            _folded(input, input_b, batch),
            kernel,
            stride,
            padding,
            ceil_mode,
            count_include_pad,
            divisor,
        ),
        batch,
    )


@structured(kernel="avg_pool_backward", namespaces=(), out=False)
def _avg_pool_backward(
    grad: Tensor, input_size: Ints, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool,
    count_include_pad: bool, divisor: int | None,
) -> Tensor:  # fmt: skip
    """Cotangent of the input of `_avg_pool`.

    >>> torch.nn.functional.avg_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """
    return empty(
        input_size, dtype=grad.dtype, like=grad, memory_format=grad.suggest_memory_format()
    )


@_avg_pool_backward.vjp
def _(g, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    return _avg_pool(g, kernel, stride, padding, ceil_mode, count_include_pad, divisor)


@_avg_pool_backward.vmap
def _(
    grad, input_size, kernel, stride, padding, ceil_mode, count_include_pad, divisor, grad_b, batch
):
    return _unfolded(
        _avg_pool_backward(
            _folded(grad, grad_b, batch),
            [batch * input_size[0]] + input_size[1:],
            kernel,
            stride,
            padding,
            ceil_mode,
            count_include_pad,
            divisor,
        ),
        batch,
    )


@composite(method=False, namespaces=("torch", "nn.functional"))
def avg_pool1d(
    input: Tensor, kernel_size: Ints1, stride: Ints | None = None, padding: Ints1 = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Averages over windows of signals (N, C, L) or (C, L).

    >>> torch.avg_pool1d(torch.arange(4.0).reshape(1, 1, 4), 2)
    tensor([[[0.5000, 2.5000]]])
    """
    s = _stride_or_kernel("avg_pool1d", 1, stride, kernel_size)
    return _avg_pool(input, kernel_size, s, padding, ceil_mode, count_include_pad, None)


@composite(method=False, namespaces=("nn.functional",))
def avg_pool2d(
    input: Tensor, kernel_size: Ints2, stride: Ints | None = None, padding: Ints2 = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Averages over windows of images (N, C, H, W) or (C, H, W).

    >>> torch.nn.functional.avg_pool2d(torch.arange(4.0).reshape(1, 1, 2, 2), 2)
    tensor([[[[1.5000]]]])
    """
    s = _stride_or_kernel("avg_pool2d", 2, stride, kernel_size)
    return _avg_pool(input, kernel_size, s, padding, ceil_mode, count_include_pad, divisor_override)


@avg_pool2d.samples
def _(make):
    yield avg_pool2d, make(2, 3, 7, 6), [3, 2], [2, 1], [1, 0], True, False
    yield avg_pool2d, make(3, 6, 6), 2, None, 0, False, True, 3


@composite(method=False, namespaces=("nn.functional",), autocast="float32")
def avg_pool3d(
    input: Tensor, kernel_size: Ints3, stride: Ints | None = None, padding: Ints3 = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Averages over windows of volumes (N, C, D, H, W) or (C, D, H, W).

    >>> torch.nn.functional.avg_pool3d(torch.ones(1, 1, 2, 2, 2), 2).shape
    torch.Size([1, 1, 1, 1, 1])
    """
    s = _stride_or_kernel("avg_pool3d", 3, stride, kernel_size)
    return _avg_pool(input, kernel_size, s, padding, ceil_mode, count_include_pad, divisor_override)


# Adaptive ----------------------------------------------------------------------------------------


@composite(namespaces=())
def _adaptive_shape(op: str, input: Tensor, size: Ints) -> Ints:
    """Shape of an adaptive pool's result.

    >>> torch.nn.functional.adaptive_avg_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """
    n = len(size)
    _check_axes(op, n)
    check(
        input.ndim == n + 1 or input.ndim == n + 2,
        f"{op}: Expected {n + 1}D or {n + 2}D tensor, but got {input.shape}",
    )
    lead = input.ndim - n
    for i in range(n):
        check(
            size[i] >= 0,
            f"{op}: elements of output_size must be greater than or equal to 0, got {size}",
        )
        check(
            input.shape[lead + i] > 0,
            f"{op}: Expected input to have non-zero size for non-batch dimensions, but input has "
            "sizes "
            f"{input.shape}",
        )
    return input.shape[:lead] + size


@structured(kernel="adaptive_avg", method=False, out=False)
def _adaptive_avg_pool(input: Tensor, size: Ints) -> Tensor:
    """Averages over windows that cover the input and number `size`.

    >>> torch.nn.functional.adaptive_avg_pool1d(torch.arange(4.0).reshape(1, 1, 4), 2)
    tensor([[[0.5000, 2.5000]]])
    """
    check(
        input.is_floating_point(),
        f"\"adaptive_avg_pool\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    shape = _adaptive_shape("adaptive_avg_pool", input, size)
    return empty(shape, dtype=input.dtype, like=input, memory_format=input.suggest_memory_format())


@_adaptive_avg_pool.vjp
def _(g, input, size):
    return _adaptive_avg_pool_backward(g, input.shape, len(size))


@_adaptive_avg_pool.vmap
def _(input, size, input_b, batch):
    return _unfolded(_adaptive_avg_pool(_folded(input, input_b, batch), size), batch)


@structured(kernel="adaptive_avg_backward", namespaces=(), out=False)
def _adaptive_avg_pool_backward(grad: Tensor, input_size: Ints, axes: int) -> Tensor:
    """Cotangent of the input of `_adaptive_avg_pool`.

    >>> torch.nn.functional.adaptive_avg_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """
    return empty(
        input_size, dtype=grad.dtype, like=grad, memory_format=grad.suggest_memory_format()
    )


@_adaptive_avg_pool_backward.vjp
def _(g, grad, axes):
    return _adaptive_avg_pool(g, grad.shape[grad.ndim - axes :])


@_adaptive_avg_pool_backward.vmap
def _(grad, input_size, axes, grad_b, batch):
    return _unfolded(
        _adaptive_avg_pool_backward(
            _folded(grad, grad_b, batch), [batch * input_size[0]] + input_size[1:], axes
        ),
        batch,
    )


@structured(kernel="adaptive_max_both", method=False, out=False)
def _adaptive_max_both(input: Tensor, size: Ints) -> Tuple[Tensor, Tensor]:
    """Maxima over windows that cover the input, and where they are: flat indices in each channel.

    >>> torch.adaptive_max_pool1d(torch.arange(4.0).reshape(1, 1, 4), 2)[1]
    tensor([[[1, 3]]])
    """
    check(
        input.is_floating_point(),
        f"\"adaptive_max_pool\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    shape = _adaptive_shape("adaptive_max_pool", input, size)
    layout = input.suggest_memory_format()
    out = empty(shape, dtype=input.dtype, like=input, memory_format=layout)
    return out, empty(shape, dtype=int64, like=input, memory_format=layout)


@_adaptive_max_both.vjp
def _(g0, input, size, result1):
    return _plane_scatter(g0, result1, input.shape, len(size))


@_adaptive_max_both.vmap
def _(input, size, input_b, batch):
    a, b = _adaptive_max_both(_folded(input, input_b, batch), size)
    return _unfolded(a, batch), _unfolded(b, batch)


@composite(method=False, namespaces=("torch", "nn.functional"))
def adaptive_avg_pool1d(input: Tensor, output_size: Ints1) -> Tensor:
    """Averages over `output_size` windows of signals.

    >>> torch.adaptive_avg_pool1d(torch.arange(4.0).reshape(1, 1, 4), 2)
    tensor([[[0.5000, 2.5000]]])
    """
    check(
        len(output_size) == 1,
        f"adaptive_avg_pool1d: output_size must be one int, but got {output_size}",
    )
    return _adaptive_avg_pool(input, output_size)


@composite(method=False)
def adaptive_max_pool1d(input: Tensor, output_size: Ints1) -> Tuple[Tensor, Tensor]:
    """Maxima over `output_size` windows of signals, and their indices.

    >>> torch.adaptive_max_pool1d(torch.arange(4.0).reshape(1, 1, 4), 2)[0]
    tensor([[[1., 3.]]])
    """
    check(
        len(output_size) == 1,
        f"adaptive_max_pool1d: output_size must be one int, but got {output_size}",
    )
    return _adaptive_max_both(input, output_size)
