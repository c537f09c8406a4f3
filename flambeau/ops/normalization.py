"""Normalisation over trailing dimensions. Kernels: csrc/kernels/layer_norm.cpp."""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="native_layer_norm", method=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tuple[Tensor, Tensor, Tensor]:
    """Layer normalisation with the mean and the reciprocal deviation that it used.

    >>> torch.native_layer_norm(torch.ones(2, 3), (3,), None, None, 1e-5)[1].shape
    torch.Size([2, 1])
    """
    k = len(normalized_shape)
    check(k > 0, "layer_norm: expected normalized_shape to have at least one entry")
    lead = input.ndim - k
    check(
        lead >= 0 and input.shape[lead:] == normalized_shape,
        f"layer_norm: expected input to end in normalized_shape {normalized_shape}, got {input.shape}",
    )
    if weight is not None:
        check(
            weight.shape == normalized_shape,
            f"layer_norm: expected weight of shape {normalized_shape}, got {weight.shape}",
        )
    if bias is not None:
        check(
            bias.shape == normalized_shape,
            f"layer_norm: expected bias of shape {normalized_shape}, got {bias.shape}",
        )
    stats = input.shape[:lead] + [1] * k
    mean = empty(stats, dtype=opmath(input.dtype), like=input)
    rstd = empty(stats, dtype=opmath(input.dtype), like=input)
    return empty(input.shape, dtype=input.dtype, like=input), mean, rstd


@native_layer_norm.vjp
def _(g0, g1, g2, input, normalized_shape, weight, bias, result1, result2):
    n = float(prod(normalized_shape))
    lead = list(range(input.ndim - len(normalized_shape)))
    tail = list(range(input.ndim - len(normalized_shape), input.ndim))
    x = (input - result1) * result2
    gx = g0 if weight is None else g0 * weight
    # Through the output, then through the statistics themselves.
    centred = gx - gx.mean(tail, keepdim=True) - x * (gx * x).mean(tail, keepdim=True)
    d_input = centred * result2 + g1 / n - g2 * x * (result2 * result2) / n
    d_weight = None if weight is None else (g0 * x).sum(lead).reshape(weight.shape)
    d_bias = None if bias is None else g0.sum(lead).reshape(bias.shape)
    return d_input.to(input.dtype), d_weight, d_bias


@composite(namespaces=("torch", "nn.functional"), method=False)
def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the trailing dimensions to mean 0 and deviation 1, then scales and shifts.

    >>> F.layer_norm(torch.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    y, _, _ = native_layer_norm(input, normalized_shape, weight, bias, eps)
    return y
