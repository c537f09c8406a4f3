"""Normalisation over groups of channels and single samples: group, instance.

Group norm has a fused backward kernel and, for derivatives of derivatives, a formula over other
operations; instance norm is batch norm of reshaped input.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="native_group_norm", namespaces=(), method=False, out=False)
def _group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, num_groups: int, eps: float
) -> Tuple[Tensor, Tensor, Tensor]:
    """Group normalisation with the mean and reciprocal deviation per sample and group.

    >>> F.group_norm(torch.ones(1, 2, 3), 2).shape
    torch.Size([1, 2, 3])
    """
    check(
        input.ndim >= 2,
        "Expected at least 2 dimensions for input tensor but received " + f"{input.ndim}",
    )
    c = input.size(1)
    check(num_groups > 0, "Expected num groups to be greater than 0, got " + f"{num_groups}")
    check(
        c % num_groups == 0,
        "Expected number of channels in input to be divisible by num_groups, but got input of "
        f"shape {input.shape} and num_groups={num_groups}",
    )
    if weight is not None:
        check(
            weight.ndim == 1 and weight.numel() == c,
            f"group_norm: expected weight of shape [{c}], got {weight.shape}",
        )
    if bias is not None:
        check(
            bias.ndim == 1 and bias.numel() == c,
            f"group_norm: expected bias of shape [{c}], got {bias.shape}",
        )
    check(
        input.dtype.is_floating_point,
        f"'GroupNormKernelImpl' not implemented for '{scalar_type_name(input.dtype)}'",
    )
    kind = opmath(input.dtype)
    stats = [input.size(0), num_groups]
    layout = input.suggest_memory_format()
    out = empty(input.shape, dtype=input.dtype, like=input, memory_format=layout)
    return out, empty(stats, dtype=kind), empty(stats, dtype=kind)


@_group_norm.decompose
def _(input, weight, bias, num_groups, eps):
    if not input.is_contiguous():
        return _group_norm(input, weight, bias, num_groups, eps)
    kind = opmath(input.dtype)
    n, per = input.size(0), input.size(1) // num_groups
    inner = prod(input.shape[2:])
    x = input.to(kind).reshape([n, num_groups, per, inner])
    mean = x.mean([2, 3], True)
    centred = x - mean
    rstd = ((centred * centred).mean([2, 3], True) + eps).rsqrt()
    y = centred * rstd
    if weight is not None:
        y = y * weight.to(kind).view([num_groups, per, 1])
    if bias is not None:
        y = y + bias.to(kind).view([num_groups, per, 1])
    stats = [n, num_groups]
    return y.to(input.dtype).reshape(input.shape), mean.reshape(stats), rstd.reshape(stats)


@_group_norm.vjp(undefined=True)
def _(
    g0: Tensor | None,
    g1: Tensor | None,
    g2: Tensor | None,
    input,
    weight,
    bias,
    num_groups,
    eps,
    result1,
    result2,
):
    # As of native_layer_norm: the fused kernel knows nothing of cotangents of the statistics.
    if g0 is not None and g1 is None and g2 is None and not differentiated():
        gx, gw, gb = group_norm_backward(g0, input, weight, num_groups, result1, result2)
        d_w = None if weight is None else gw.to(weight.dtype)
        d_b = None if bias is None else gb.to(bias.dtype)
        return gx, d_w, d_b
    shape = _channel_shape(input)
    dims = _all_but_channels(input.ndim)
    kind = opmath(input.dtype)
    group = input.size(1) // num_groups  # elements of one; -1 would not do where there are none
    for d in range(2, input.ndim):
        group = group * input.size(d)
    x = input.to(kind).reshape([input.size(0), num_groups, group])
    centred = x - x.mean([2], keepdim=True)
    rstd = ((centred * centred).mean([2], keepdim=True) + eps).rsqrt()
    hat = centred * rstd
    gy = zeros(input.shape, dtype=kind) if g0 is None else g0.to(kind)
    gh = gy if weight is None else gy * weight.to(kind).view(shape)
    gr = gh.reshape(hat.shape)
    d_input = (gr - gr.mean([2], keepdim=True) - hat * (gr * hat).mean([2], keepdim=True)) * rstd
    n = float(max(hat.size(2), 1))
    if g1 is not None:
        d_input = d_input + g1.unsqueeze(2) / n
    if g2 is not None:
        d_input = d_input - hat * (g2.unsqueeze(2) * rstd * rstd) / n
    full = hat.reshape(input.shape)
    d_weight = None if weight is None else (gy * full).sum(dims).to(weight.dtype)
    d_bias = None if bias is None else gy.sum(dims).to(bias.dtype)
    return d_input.reshape(input.shape).to(input.dtype), d_weight, d_bias


@_group_norm.vmap
def _(input, weight, bias, num_groups, eps, input_b, weight_b, bias_b, batch):
    x = _folded(input, input_b, batch)
    if not weight_b and not bias_b:
        y, mean, rstd = _group_norm(x, weight, bias, num_groups, eps)
        return _unfolded(y, batch), _unfolded(mean, batch), _unfolded(rstd, batch)
    y, mean, rstd = _group_norm(x, None, None, num_groups, eps)
    out = _unfolded(y, batch)
    if weight is not None:
        out = out * _per_channel(weight, weight_b, out.ndim - 1)
    if bias is not None:
        out = out + _per_channel(bias, bias_b, out.ndim - 1)
    return out, _unfolded(mean, batch), _unfolded(rstd, batch)


@composite(method=False)
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Group normalisation with the mean and reciprocal deviation per sample and group.

    Args:
        N, C, HxW: sizes of the batch, the channels and everything behind them

    >>> torch.native_group_norm(torch.ones(1, 2, 3), None, None, 1, 2, 3, 2, 1e-5)[1].shape
    torch.Size([1, 2])
    """
    check(
        input.numel() == N * C * HxW,
        f"native_group_norm: expected {N} * {C} * {HxW} elements, got {input.shape}",
    )
    return _group_norm(input, weight, bias, group, eps)


@structured(kernel="group_norm_backward", namespaces=(), method=False, out=False)
def group_norm_backward(
    g: Tensor, input: Tensor, weight: Tensor | None, num_groups: int, mean: Tensor, rstd: Tensor
) -> Tuple[Tensor, Tensor, Tensor]:
    """Cotangents of input, weight and bias of group_norm."""
    kind = opmath(input.dtype)
    c = input.size(1)
    layout = input.suggest_memory_format()
    gx = empty(input.shape, dtype=input.dtype, like=input, memory_format=layout)
    return gx, empty([c], dtype=kind), empty([c], dtype=kind)


@group_norm_backward.decompose(slower=True)
def _(g, input, weight, num_groups, mean, rstd):
    if not (input.is_contiguous() and g.is_contiguous()):
        return group_norm_backward(g, input, weight, num_groups, mean, rstd)
    kind = opmath(input.dtype)
    n, per = input.size(0), input.size(1) // num_groups
    inner = prod(input.shape[2:])
    shape = [n, num_groups, per, inner]
    stats = [n, num_groups, 1, 1]
    h = g.to(kind).reshape(shape)
    x = (input.to(kind).reshape(shape) - mean.reshape(stats)) * rstd.reshape(stats)
    gx = h if weight is None else h * weight.to(kind).view([num_groups, per, 1])
    d = (gx - gx.mean([2, 3], True) - x * (gx * x).mean([2, 3], True)) * rstd.reshape(stats)
    c = [input.size(1)]
    gw, gb = (h * x).sum([0, 3]).reshape(c), h.sum([0, 3]).reshape(c)
    return d.to(input.dtype).reshape(input.shape), gw, gb


@group_norm_backward.vmap
def _(g, input, weight, num_groups, mean, rstd, g_b, input_b, weight_b, mean_b, rstd_b, batch):
    gs = _in_front(g, g_b, batch)
    x = _folded(input, input_b, batch)
    m = _folded(mean, mean_b, batch)
    r = _folded(rstd, rstd_b, batch)
    scaled = gs if weight is None else gs * _per_channel(weight, weight_b, gs.ndim - 1)
    d_input, _, _ = group_norm_backward(_folded(scaled, True, batch), x, None, num_groups, m, r)
    groups = x.to(m.dtype).reshape([x.size(0), num_groups, -1])
    hat = ((groups - m.unsqueeze(2)) * r.unsqueeze(2)).reshape(gs.shape)
    dims = [1] + list(range(3, gs.ndim))
    d_weight = (gs.to(m.dtype) * hat).sum(dims)
    return _unfolded(d_input, batch), d_weight, gs.to(m.dtype).sum(dims)


@composite(method=False)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises groups of channels of each sample.

    Source: Wu and He, Group Normalization, 2018.

    >>> torch.group_norm(torch.ones(1, 2, 3), 2).shape
    torch.Size([1, 2, 3])
    """
    y, _, _ = _group_norm(input, weight, bias, num_groups, eps)
    return y


@composite(namespaces=(), method=False, aliases=("nn.functional.group_norm",))
def group_norm_of_many(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises groups of channels of each sample; a batch with one value per group is refused.

    Source: Wu and He, Group Normalization, 2018.

    >>> F.group_norm(torch.ones(1, 2, 3), 2).shape
    torch.Size([1, 2, 3])
    """
    check(
        input.ndim >= 2,
        "Expected at least 2 dimensions for input tensor but received " + f"{input.ndim}",
    )
    check_value(
        input.numel() != num_groups,
        f"Expected more than 1 value per channel when training, got input size {input.shape}",
    )
    y, _, _ = _group_norm(input, weight, bias, num_groups, eps)
    return y


@composite(namespaces=("nn.functional",), method=False)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each sample over space.

    Source: Ulyanov, Vedaldi and Lempitsky, Instance Normalization, 2016.

    >>> F.instance_norm(torch.ones(1, 2, 3)).shape
    torch.Size([1, 2, 3])
    """
    n = input.size(0)
    c = input.size(1)
    if use_input_stats:
        check_value(
            prod(input.shape[2:]) > 1,
            f"Expected more than 1 spatial element when training, got input size {input.shape}",
        )
    shape = [1, n * c] + input.shape[2:]
    x = input.contiguous().view(shape)
    mean: Tensor | None = None
    var: Tensor | None = None
    w: Tensor | None = None
    b: Tensor | None = None
    if running_mean is not None:
        mean = running_mean.repeat([n])
    if running_var is not None:
        var = running_var.repeat([n])
    if weight is not None:
        w = weight.repeat([n])
    if bias is not None:
        b = bias.repeat([n])
    y = _batch_norm(x, w, b, mean, var, use_input_stats, momentum, eps)
    if use_input_stats:
        if running_mean is not None and mean is not None:
            running_mean.copy_(mean.view([n, c]).mean([0]))
        if running_var is not None and var is not None:
            running_var.copy_(var.view([n, c]).mean([0]))
    return y.view(input.shape)
