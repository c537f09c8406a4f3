"""Dropout of entries and channels, and the random leaky relu, in training and out of it.

The mask of `dropout` is one kernel's result; the others draw noise of the shape that is dropped.
`inplace=True` writes the result into the input.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(
    kernel="dropout", namespaces=(), method=False, out=False, fields=("output", "mask"), batch=True,
    masks=True,
)  # fmt: skip
def _dropout(input: Tensor, p: float, generator: Generator | None) -> Tuple[Tensor, Tensor]:
    """The kernel of dropout in training: scaled survivors, and the mask of who survived.

    >>> torch.nn.functional.dropout(torch.ones(2), 0.0)
    tensor([1., 1.])
    """
    return empty_as(input), empty_as(input, dtype=bool_)


@_dropout.vjp
def _(g0, p: float, result1):
    scale = 0.0 if p == 1.0 else 1.0 / (1.0 - p)
    return g0 * (result1.to(g0.dtype) * scale)


@composite(namespaces=(), method=False)
def _check_probability(p: float) -> None:
    """Refuses what is no probability."""
    check_value(
        p >= 0.0 and p <= 1.0, f"dropout probability has to be between 0 and 1, but got {p}"
    )


@composite(namespaces=("nn.functional", "torch"), method=False)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zeroes entries with probability p and scales the others by 1 / (1 - p).

    >>> torch.nn.functional.dropout(torch.ones(2), 1.0)
    tensor([0., 0.])
    """
    _check_probability(p)
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if p == 1.0:
        return (
            input.mul_(zeros([], dtype=input.dtype))
            if inplace
            else input * zeros([], dtype=input.dtype)
        )
    out, mask = _dropout(input, p, None)
    return input.copy_(out) if inplace else out


@composite(namespaces=(), method=False)
def _feature_noise(input: Tensor) -> Tensor:
    """Empty noise with one entry per sample and channel."""
    check(input.ndim >= 2, "Feature dropout requires at least 2 dimensions in the input")
    shape = [1 for d in input.shape]
    shape[0] = input.size(0)
    shape[1] = input.size(1)
    return empty(shape, like=input)


@composite(namespaces=("torch",), method=False)
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels.

    >>> torch.feature_dropout(torch.ones(1, 2, 2), 0.0, True).shape
    torch.Size([1, 2, 2])
    """
    check(p >= 0.0 and p <= 1.0, f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0.0 or not train or input.numel() == 0:
        return input
    if p == 1.0:
        return input * zeros([], dtype=input.dtype)
    return input * _feature_noise(input).bernoulli_(1.0 - p).div_(1.0 - p)


@composite(namespaces=(), method=False)
def _alpha(input: Tensor, noise: Tensor, p: float) -> Tensor:
    """Alpha dropout with given survivors (Klambauer et al., Self-Normalizing Networks, 2017)."""
    alpha = 1.7580993408473766
    a = 1.0 / sqrt((alpha * alpha * p + 1.0) * (1.0 - p))
    b = (noise - 1.0) * (alpha * a) + alpha * a * p
    return input * (noise * a) + b


@composite(namespaces=("torch",), method=False)
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout that keeps mean and deviation of self-normalising networks.

    >>> torch.alpha_dropout(torch.ones(2), 0.0, True)
    tensor([1., 1.])
    """
    check(p >= 0.0 and p <= 1.0, f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0.0 or not train or input.numel() == 0:
        return input
    if p == 1.0:
        return input * zeros([], dtype=input.dtype)
    return _alpha(input, empty_like(input).bernoulli_(1.0 - p), p)


@composite(namespaces=("torch",), method=False)
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Alpha dropout of whole channels.

    >>> torch.feature_alpha_dropout(torch.ones(1, 2), 0.0, True)
    tensor([[1., 1.]])
    """
    check(p >= 0.0 and p <= 1.0, f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0.0 or not train or input.numel() == 0:
        return input
    if p == 1.0:
        return input * zeros([], dtype=input.dtype)
    return _alpha(input, _feature_noise(input).bernoulli_(1.0 - p), p)


# Functions of nn.functional ---------------------------------------------------------------------


@composite(namespaces=("nn.functional",), method=False)
def functional_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and deviation of self-normalising networks.

    >>> F.alpha_dropout(torch.ones(2), 0.0, True)
    tensor([1., 1.])
    """
    _check_probability(p)
    if not training or p == 0.0:
        return input
    result = alpha_dropout(input, p, training)
    return input.copy_(result) if inplace else result


@composite(namespaces=("nn.functional",), method=False)
def functional_feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """alpha_dropout of whole channels (dim 1).

    >>> F.feature_alpha_dropout(torch.ones(1, 2), 0.0, True)
    tensor([[1., 1.]])
    """
    _check_probability(p)
    if not training or p == 0.0:
        return input
    result = feature_alpha_dropout(input, p, training)
    return input.copy_(result) if inplace else result


@composite(namespaces=(), method=False)
def _channel_dropout(
    input: Tensor, p: float, training: bool, inplace: bool, batched: bool
) -> Tensor:
    """Dropout of channels: dim 1 of a batch, dim 0 of a single sample."""
    if not training or p == 0.0:
        return input
    x = input if batched else input.unsqueeze(0)
    result = feature_dropout(x, p, training)
    result = result if batched else result.squeeze(0)
    return input.copy_(result) if inplace else result


@composite(namespaces=(), method=False)
def _warn_of_dims(name: str, n: int, spatial: int) -> None:
    """Warns of an input that has not the dims of a batch or a sample."""
    if n != spatial + 1 and n != spatial + 2:
        warn(
            f"{name}: Received a {n}-D input to {name}, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please "
            f"use dropout instead. Note that {name} exists to provide channel-wise dropout on "
            f"inputs with {spatial} spatial dimensions, a channel dimension, and an optional batch "
            f"dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs)."
        )


@composite(namespaces=("nn.functional",), method=False)
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of the channels of (N, C, L) or (C, L).

    >>> F.dropout1d(torch.ones(1, 1, 1), 0.0).sum()
    tensor(1.)
    """
    _check_probability(p)
    n = input.ndim
    check(
        n in (2, 3),
        f"dropout1d: Expected 2D or 3D input, but received a {n}D input. Note that dropout1d "
        "exists to provide channel-wise dropout on inputs with 1 spatial dimension, a channel "
        "dimension, and an optional batch dimension (i.e. 2D or 3D inputs).",
    )
    return _channel_dropout(input, p, training, inplace, n == 3)


@composite(namespaces=("nn.functional",), method=False)
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of the channels of (N, C, H, W); dim 1.

    >>> F.dropout2d(torch.ones(1, 1, 1, 1), 0.0).sum()
    tensor(1.)
    """
    _check_probability(p)
    _warn_of_dims("dropout2d", input.ndim, 2)
    if input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead."
        )
    return _channel_dropout(input, p, training, inplace, True)


@composite(namespaces=("nn.functional",), method=False)
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of the channels of (N, C, D, H, W) or (C, D, H, W).

    >>> F.dropout3d(torch.ones(1, 1, 1, 1, 1), 0.0).sum()
    tensor(1.)
    """
    _check_probability(p)
    _warn_of_dims("dropout3d", input.ndim, 3)
    return _channel_dropout(input, p, training, inplace, input.ndim != 4)


@composite(namespaces=("nn.functional",), method=False)
def rrelu(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky relu with slopes drawn from [lower, upper) in training, their middle else.

    Source: Xu et al., Empirical Evaluation of Rectified Activations, 2015.

    >>> F.rrelu(torch.tensor([-1.0, 1.0]), 0.5, 0.5)
    tensor([-0.5000,  1.0000])
    """
    check(lower <= upper, "Lower bound should be less than or equal to the upper bound")
    if not training:
        slope = (lower + upper) / 2
        return input.leaky_relu_(slope) if inplace else leaky_relu(input, slope)
    check_not_implemented(
        input.is_floating_point(),
        f"\"rrelu_out_cpu\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    # One draw in double for each entry that is not positive, in order: PyTorch's stream.
    negative = input <= 0
    count = int(negative.sum().item())
    low = float(full([], lower, dtype=input.dtype).item())
    high = float(full([], upper, dtype=input.dtype).item())
    slopes = empty([count], dtype=float64).uniform_(low, high).to(input.dtype)
    noise = ones_like(input).masked_scatter(negative, slopes)
    return input.mul_(noise) if inplace else input * noise


@composite(namespaces=("nn.functional",), method=False)
def rrelu_(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
) -> Tensor:
    """In-place form of rrelu().

    >>> F.rrelu_(torch.tensor([-1.0, 1.0]), 0.5, 0.5)
    tensor([-0.5000,  1.0000])
    """
    return rrelu(input, lower, upper, training, True)
