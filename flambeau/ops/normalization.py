"""Normalisation: layer, batch, group, instance, RMS. Kernels: csrc/kernels/normalization.cpp.

Each normalisation with a kernel has a fused backward kernel and, for derivatives of derivatives, a
formula over other operations; its rule picks by grad mode.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _check_normalized(
    input: Tensor, normalized_shape: Ints, scale: Tensor | None, what: str, op: str
) -> None:
    """What norms over the last dims ask of `normalized_shape` and of a weight or bias."""
    k = len(normalized_shape)
    check(k > 0, f"{op}: expected normalized_shape of at least 1 dim, got {normalized_shape}")
    check(
        input.ndim >= k and input.shape[input.ndim - k :] == normalized_shape,
        f"{op}: Given normalized_shape={normalized_shape}, expected input with a shape that ends "
        f"so, but got input of size{input.shape}",
    )
    if scale is not None:
        check(
            scale.shape == normalized_shape,
            f"{op}: expected {what} of shape {normalized_shape}, got {scale.shape}",
        )


@structured(kernel="native_layer_norm", method=False, out=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tuple[Tensor, Tensor, Tensor]:
    """Layer normalisation with the mean and the reciprocal deviation that it used.

    >>> torch.native_layer_norm(torch.ones(2, 3), (3,), None, None, 1e-5)[1].shape
    torch.Size([2, 1])
    """
    _check_normalized(input, normalized_shape, weight, "weight", "layer_norm")
    _check_normalized(input, normalized_shape, bias, "bias", "layer_norm")
    k = len(normalized_shape)
    check(
        input.dtype.is_floating_point,
        f"'LayerNormKernelImpl' not implemented for '{scalar_type_name(input.dtype)}'",
    )
    stats = input.shape[: input.ndim - k] + [1] * k
    mean = empty(stats, dtype=opmath(input.dtype), like=input)
    rstd = empty(stats, dtype=opmath(input.dtype), like=input)
    return empty(input.shape, dtype=input.dtype, like=input), mean, rstd


@native_layer_norm.decompose
def _(input, normalized_shape, weight, bias, eps):
    tail = list(range(input.ndim - len(normalized_shape), input.ndim))
    x = input.to(opmath(input.dtype))
    mean = x.mean(tail, True)
    centred = x - mean
    rstd = ((centred * centred).mean(tail, True) + eps).rsqrt()
    y = centred * rstd
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y.to(input.dtype), mean, rstd


@native_layer_norm.vjp(undefined=True)
def _(
    g0: Tensor | None,
    g1: Tensor | None,
    g2: Tensor | None,
    input,
    normalized_shape,
    weight,
    bias,
    result1,
    result2,
):
    # Derivatives of derivatives reach the statistics, which the fused kernel knows nothing of.
    if g0 is not None and g1 is None and g2 is None and not differentiated():
        gx, gw, gb = layer_norm_backward(g0, input, normalized_shape, weight, result1, result2)
        d_w = None if weight is None else gw.to(weight.dtype)
        d_b = None if bias is None else gb.to(bias.dtype)
        return gx, d_w, d_b
    n = float(prod(normalized_shape))
    tail = list(range(input.ndim - len(normalized_shape), input.ndim))
    x = (input - result1) * result2
    gy = zeros(input.shape, dtype=input.dtype) if g0 is None else g0
    gx = gy if weight is None else gy * weight
    # Through the output, then through the statistics themselves.
    centred = gx - gx.mean(tail, keepdim=True) - x * (gx * x).mean(tail, keepdim=True)
    d_input = centred * result2
    if g1 is not None:
        d_input = d_input + g1 / n
    if g2 is not None:
        d_input = d_input - g2 * x * (result2 * result2) / n
    d_weight = None if weight is None else sum_to(gy * x, weight.shape).to(weight.dtype)
    d_bias = None if bias is None else sum_to(gy, bias.shape).to(bias.dtype)
    return d_input.to(input.dtype), d_weight, d_bias


@native_layer_norm.vmap
def _(input, normalized_shape, weight, bias, eps, input_b, weight_b, bias_b, batch):
    x = _in_front(input, input_b, batch)
    if not weight_b and not bias_b:
        return native_layer_norm(x, normalized_shape, weight, bias, eps)
    y, mean, rstd = native_layer_norm(x, normalized_shape, None, None, eps)
    if weight is not None:
        y = y * _aligned(weight, weight_b, y.ndim - 1)
    if bias is not None:
        y = y + _aligned(bias, bias_b, y.ndim - 1)
    return y, mean, rstd


@structured(kernel="layer_norm_backward", namespaces=(), method=False, out=False)
def layer_norm_backward(
    g: Tensor,
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None,
    mean: Tensor,
    rstd: Tensor,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Cotangents of input, weight and bias of layer_norm, in one pass over the rows."""
    kind = opmath(input.dtype)
    return (
        empty(input.shape, like=input),
        empty(normalized_shape, dtype=kind),
        empty(normalized_shape, dtype=kind),
    )


@layer_norm_backward.vmap
def _(
    g, input, normalized_shape, weight, mean, rstd, g_b, input_b, weight_b, mean_b, rstd_b, batch
):
    gs = _in_front(g, g_b, batch)
    x = _in_front(input, input_b, batch)
    m = _in_front(mean, mean_b, batch)
    r = _in_front(rstd, rstd_b, batch)
    scaled = gs if weight is None else gs * _aligned(weight, weight_b, x.ndim - 1)
    d_input, _, _ = layer_norm_backward(scaled, x, normalized_shape, None, m, r)
    d_weight = gs.to(m.dtype) * (x.to(m.dtype) - m) * r
    d_bias = gs.to(m.dtype)
    lead = list(range(1, x.ndim - len(normalized_shape)))
    if len(lead) > 0:
        d_weight = d_weight.sum(lead)
        d_bias = d_bias.sum(lead)
    return d_input, d_weight, d_bias


@layer_norm_backward.decompose
def _(g, input, normalized_shape, weight, mean, rstd):
    lead = input.ndim - len(normalized_shape)
    tail = list(range(lead, input.ndim))
    h = g.to(rstd.dtype)
    x = (input.to(rstd.dtype) - mean) * rstd
    gx = h if weight is None else h * weight.to(rstd.dtype)
    d = (gx - gx.mean(tail, True) - x * (gx * x).mean(tail, True)) * rstd
    if lead == 0:
        return d.to(input.dtype), h * x, h
    before = list(range(lead))
    return d.to(input.dtype), (h * x).sum(before), h.sum(before)


@composite(namespaces=("torch", "nn.functional"), method=False)
def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the trailing dimensions to mean 0 and deviation 1, then scales and shifts.

    Source: Ba, Kiros and Hinton, Layer Normalization, 2016.

    >>> F.layer_norm(torch.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    y, _, _ = native_layer_norm(input, normalized_shape, weight, bias, eps)
    return y


@structured(
    kernel="native_batch_norm",
    method=False,
    out=False,
    updates=("running_mean", "running_var"),
    updates_when="training",
    layout="follows",
)
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Batch normalisation with the mean and reciprocal deviation per channel that it used (empty in
    evaluation). In training the running statistics move by `momentum`.

    >>> torch.native_batch_norm(torch.ones(2, 3), None, None, None, None, True, 0.1, 1e-5)[1].shape
    torch.Size([3])
    """
    check(
        input.ndim >= 2, f"batch_norm: expected input of at least 2 dims, got shape {input.shape}"
    )
    c = input.size(1)
    for t, what in [
        (running_mean, "running_mean"), (running_var, "running_var"),
        (weight, "weight"), (bias, "bias"),
    ]:  # fmt: skip
        if t is not None:
            check(
                t.numel() == c,
                f"{what} should contain {c} elements not {t.numel()}",
            )
    check(
        input.dtype.is_floating_point,
        f"'batch_norm' not implemented for '{scalar_type_name(input.dtype)}'",
    )
    if not training:
        check(
            running_mean is not None and running_var is not None,
            "Expected running_mean and running_var to be defined when training=False",
        )
    kind = opmath(input.dtype)
    k = c if training else 0
    return empty_as(input), empty([k], dtype=kind), empty([k], dtype=kind)


@composite(namespaces=())
def _all_but_channels(ndim: int) -> Ints:
    """Dimensions other than the second.

    >>> torch.ones(2, 3, 4).sum((0, 2)).shape
    torch.Size([3])
    """
    dims: Ints = []
    for d in range(ndim):
        if d != 1:
            dims.append(d)
    return dims


@composite(namespaces=())
def _channel_shape(input: Tensor) -> Ints:
    """The shape in which a vector over the channels broadcasts.

    >>> torch.ones(3).view(1, 3, 1).shape
    torch.Size([1, 3, 1])
    """
    shape: Ints = [1 for d in input.shape]
    shape[1] = input.size(1)
    return shape


@native_batch_norm.decompose
def _(input, weight, bias, running_mean, running_var, training, momentum, eps):
    kind = opmath(input.dtype)
    dims = _all_but_channels(input.ndim)
    shape = _channel_shape(input)
    x = input.to(kind)
    kept_mean = empty([0], dtype=kind)
    kept_rstd = empty([0], dtype=kind)
    mean = kept_mean
    rstd = kept_rstd
    if training:
        mean = x.mean(dims)
        centred = x - mean.view(shape)
        variance = (centred * centred).mean(dims)
        rstd = (variance + eps).rsqrt()
        if running_mean is not None:
            moved = running_mean.to(kind) * (1 - momentum) + mean * momentum
            running_mean.copy_(moved)
        if running_var is not None:
            n = input.numel() // input.size(1)
            unbiased = variance * (float(n) / float(max(n - 1, 1)))
            running_var.copy_(running_var.to(kind) * (1 - momentum) + unbiased * momentum)
        kept_mean = mean
        kept_rstd = rstd
    else:
        if running_mean is not None and running_var is not None:
            mean = running_mean.to(kind)
            rstd = (running_var.to(kind) + eps).rsqrt()
    y = (x - mean.view(shape)) * rstd.view(shape)
    if weight is not None:
        y = y * weight.to(kind).view(shape)
    if bias is not None:
        y = y + bias.to(kind).view(shape)
    return y.to(input.dtype), kept_mean, kept_rstd


@native_batch_norm.vjp(undefined=True)
def _(
    g0: Tensor | None,
    g1: Tensor | None,
    g2: Tensor | None,
    input,
    weight,
    bias,
    running_mean,
    running_var,
    training,
    eps,
    result1,
    result2,
):
    # As of native_layer_norm: the fused kernel knows nothing of cotangents of the statistics.
    if g0 is not None and g1 is None and g2 is None and not differentiated():
        gx, gw, gb = batch_norm_backward(
            g0, input, weight, running_mean, running_var, result1, result2, training, eps
        )
        d_w = None if weight is None else gw.to(weight.dtype)
        d_b = None if bias is None else gb.to(bias.dtype)
        return gx, d_w, d_b, None, None
    shape = _channel_shape(input)
    dims = _all_but_channels(input.ndim)
    kind = opmath(input.dtype)
    x = input.to(kind)
    mean = x.mean(dims)
    rstd = mean
    if training:
        # Anew from the input, so that the derivative flows through the statistics.
        centred0 = x - mean.view(shape)
        rstd = ((centred0 * centred0).mean(dims) + eps).rsqrt()
    else:
        if running_mean is not None and running_var is not None:
            mean = running_mean.to(kind)
            rstd = (running_var.to(kind) + eps).rsqrt()
    hat = (x - mean.view(shape)) * rstd.view(shape)
    gy = zeros(input.shape, dtype=kind) if g0 is None else g0.to(kind)
    gh = gy if weight is None else gy * weight.to(kind).view(shape)
    d_input = gh * rstd.view(shape)
    if training:
        d_input = (
            gh - gh.mean(dims, keepdim=True) - hat * (gh * hat).mean(dims, keepdim=True)
        ) * rstd.view(shape)
        n = float(max(input.numel() // input.size(1), 1))
        if g1 is not None:
            d_input = d_input + g1.view(shape) / n
        if g2 is not None:
            d_input = d_input - hat * (g2 * rstd * rstd).view(shape) / n
    d_weight = None if weight is None else (gy * hat).sum(dims).to(weight.dtype)
    d_bias = None if bias is None else gy.sum(dims).to(bias.dtype)
    return d_input.to(input.dtype), d_weight, d_bias, None, None


@native_batch_norm.vmap
def _(
    input,
    weight,
    bias,
    running_mean,
    running_var,
    training,
    momentum,
    eps,
    input_b,
    weight_b,
    bias_b,
    running_mean_b,
    running_var_b,
    batch,
):
    check(
        not training or running_mean is None or (running_mean_b and running_var_b),
        "vmap: batch_norm: the input is batched and the running statistics, which are changed in "
        "place, are not; batch them, or use track_running_stats=False",
    )
    x = _channelled(input, input_b, batch)
    w = None if weight is None else _in_front(weight, weight_b, batch).reshape([-1])
    b = None if bias is None else _in_front(bias, bias_b, batch).reshape([-1])
    rm = running_mean
    rv = running_var
    if running_mean is not None and running_var is not None:
        if running_mean_b and running_var_b:
            rm = running_mean.view([-1])
            rv = running_var.view([-1])
        else:
            rm = _in_front(running_mean, running_mean_b, batch).reshape([-1])
            rv = _in_front(running_var, running_var_b, batch).reshape([-1])
    y, mean, rstd = native_batch_norm(x, w, b, rm, rv, training, momentum, eps)
    c = mean.size(0) // max(batch, 1)
    return _unchannelled(y, batch), mean.view([batch, c]), rstd.view([batch, c])


@structured(
    kernel="batch_norm_backward",
    namespaces=(),
    method=False,
    out=False,
    layout="follows",
)
def batch_norm_backward(
    g: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    rstd: Tensor,
    training: bool,
    eps: float,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Cotangents of input, weight and bias of batch_norm."""
    kind = opmath(input.dtype)
    return empty_as(input), empty([input.size(1)], dtype=kind), empty([input.size(1)], dtype=kind)


@batch_norm_backward.decompose
def _(g, input, weight, running_mean, running_var, mean, rstd, training, eps):
    kind = opmath(input.dtype)
    dims = _all_but_channels(input.ndim)
    shape = _channel_shape(input)
    m = mean
    r = rstd
    if not training:
        if running_mean is not None and running_var is not None:
            m = running_mean.to(kind)
            r = (running_var.to(kind) + eps).rsqrt()
    h = g.to(kind)
    hat = (input.to(kind) - m.view(shape)) * r.view(shape)
    gb = h.sum(dims)
    gw = (h * hat).sum(dims)
    scale = r if weight is None else r * weight.to(kind)
    if training:
        n = float(input.numel() // input.size(1))
        h = h - (gb / n).view(shape) - hat * (gw / n).view(shape)
    return (h * scale.view(shape)).to(input.dtype), gw, gb


@batch_norm_backward.vmap
def _(
    g,
    input,
    weight,
    running_mean,
    running_var,
    mean,
    rstd,
    training,
    eps,
    g_b,
    input_b,
    weight_b,
    running_mean_b,
    running_var_b,
    mean_b,
    rstd_b,
    batch,
):
    gs = _channelled(g, g_b, batch)
    x = _channelled(input, input_b, batch)
    w = None if weight is None else _in_front(weight, weight_b, batch).reshape([-1])
    rm = (
        None
        if running_mean is None
        else _in_front(running_mean, running_mean_b, batch).reshape([-1])
    )
    rv = None if running_var is None else _in_front(running_var, running_var_b, batch).reshape([-1])
    m = _in_front(mean, mean_b, batch).reshape([-1])
    r = _in_front(rstd, rstd_b, batch).reshape([-1])
    gx, gw, gb = batch_norm_backward(gs, x, w, rm, rv, m, r, training, eps)
    c = gw.size(0) // max(batch, 1)
    return _unchannelled(gx, batch), gw.view([batch, c]), gb.view([batch, c])


@composite(namespaces=("torch",), method=False, name="_batch_norm")
def _batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    """Batch normalisation, arguments in the order of `torch.batch_norm`.

    >>> F.batch_norm(torch.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    y, _, _ = native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    return y


@composite(namespaces=("nn.functional",), method=False)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel (dim 1) over batch and space: by the batch's own statistics in
    training, by the running ones else.

    Source: Ioffe and Szegedy, Batch Normalization, 2015.

    >>> F.batch_norm(torch.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if training:
        n = input.size(0) * prod(input.shape[2:])
        check_value(
            n != 1,
            f"Expected more than 1 value per channel when training, got input size {input.shape}",
        )
    if input.numel() == 0:
        # No statistics to take; the weights are part of the graph all the same.
        out = input.clone() if weight is None else input * weight.sum()
        return out if bias is None else out + bias.sum()
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@composite(namespaces=("nn.functional", "torch"), method=False)
def rms_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divides by the root of the mean square over the trailing dims, then scales.

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.

    >>> F.rms_norm(torch.tensor([3.0, 4.0]), (2,))
    tensor([0.8485, 1.1314])
    """
    _check_normalized(input, normalized_shape, weight, "weight", "rms_norm")
    k = len(normalized_shape)
    kind = opmath(input.dtype)
    e = eps if eps is not None else epsilon(kind)
    x = input.to(kind)
    tail = list(range(input.ndim - k, input.ndim))
    y = x * ((x * x).mean(tail, keepdim=True) + e).rsqrt()
    if weight is not None:
        y = y * weight
    return y.to(input.dtype) if weight is None or weight.dtype == input.dtype else y


@composite(namespaces=("nn.functional",), method=False, out=True)
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divides by the p-norm along `dim`, or by eps where the norm is smaller.

    >>> F.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = input.norm(p, [dim], True)
    return input / length.clamp_min(eps).expand_as(input)


@composite(namespaces=("nn.functional",), method=False)
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divides by (k + alpha * mean of squares over `size` neighbouring channels) ** beta.

    Source: Krizhevsky, Sutskever and Hinton, ImageNet Classification, 2012.

    >>> F.local_response_norm(torch.ones(1, 1, 1), 1, alpha=0.0)
    tensor([[[1.]]])
    """
    check_value(
        input.ndim >= 3,
        f"local_response_norm: expected input of at least 3 dims, got shape {input.shape}",
    )
    check(size > 0, f"local_response_norm: expected a size greater than 0, got {size}")
    if input.numel() == 0:
        return input
    squares = input * input
    c = input.size(1)
    total = input.new_zeros(input.shape)
    for shift in range(max(-(size // 2), 1 - c), min(size - size // 2, c)):
        n = c - abs(shift)
        total.narrow(1, max(-shift, 0), n).add_(squares.narrow(1, max(shift, 0), n))
    return input / (total * (alpha / float(size)) + k) ** beta
