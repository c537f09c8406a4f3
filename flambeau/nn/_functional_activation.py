"""Activations and dropouts of `nn.functional` that take `inplace`, softmax with an implied dim.

Thin over operations: picks the in-place form, checks, warns. No arithmetic but what no operation
of the table has (gumbel_softmax, rrelu in training).
"""

from __future__ import annotations

import warnings

from flambeau import _C
from flambeau._C import nn_functional as _ops

Tensor = _C.Tensor

__all__ = [
    "alpha_dropout",
    "celu",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "feature_alpha_dropout",
    "gumbel_softmax",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "rrelu",
    "rrelu_",
    "selu",
    "silu",
    "softmax",
    "softmin",
    "threshold",
]

# Activations ------------------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Input where it is positive, else 0."""
    return _ops.relu_(input) if inplace else _ops.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Input clamped to [0, 6]."""
    return _ops.relu6_(input) if inplace else _ops.relu6(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x) - 1) below (Clevert et al., 2015)."""
    return _ops.elu_(input, alpha) if inplace else _ops.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu scaled so that activations keep mean and deviation (Klambauer et al., 2017)."""
    return _ops.selu_(input) if inplace else _ops.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x / alpha) - 1) below (Barron, 2017)."""
    return _ops.celu_(input, alpha) if inplace else _ops.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope x below."""
    if inplace:
        return _ops.leaky_relu_(input, negative_slope)
    return _ops.leaky_relu(input, negative_slope)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Input clamped to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (_ops.hardtanh_ if inplace else _ops.hardtanh)(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6."""
    return _ops.hardsigmoid_(input) if inplace else _ops.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x relu6(x + 3) / 6 (Howard et al., 2019)."""
    return _ops.hardswish_(input) if inplace else _ops.hardswish(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x times its logistic sigmoid (Elfwing et al., 2017)."""
    return _ops.silu_(input) if inplace else _ops.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(softplus(x)) (Misra, 2019)."""
    return _ops.mish_(input) if inplace else _ops.mish(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above the threshold, `value` elsewhere."""
    return (_ops.threshold_ if inplace else _ops.threshold)(input, threshold, value)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky relu with slopes drawn from [lower, upper) in training, their middle else.

    Source: Xu et al., Empirical Evaluation of Rectified Activations, 2015.
    """
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    data = input.detach()
    if not data.is_floating_point():
        raise NotImplementedError(f"\"rrelu_out_cpu\" not implemented for '{input.dtype}'")
    # One draw in double for each entry that is not positive, in order: PyTorch's stream.
    negative = data <= 0
    slopes = _C.empty(int(negative.sum()), dtype=_C.float64, device=data.device)
    low, high = _C.tensor([lower, upper], dtype=data.dtype).tolist()
    slopes = slopes.uniform_(low, high).to(data.dtype)
    noise = _C.ones_like(data).masked_scatter(negative, slopes)
    return input.mul_(noise) if inplace else input * noise


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """In-place form of rrelu()."""
    return rrelu(input, lower, upper, training, inplace=True)


# Softmax ----------------------------------------------------------------------------------------


def _implied_dim(name: str, input: Tensor, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None
) -> Tensor:
    """Exponentials along `dim`, scaled to sum to 1; `dtype` is taken first."""
    if dim is None:
        dim = _implied_dim("softmax", input, _stacklevel)
    return _C.softmax(input, dim, dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None
) -> Tensor:
    """softmax of minus the input."""
    if dim is None:
        dim = _implied_dim("softmin", input, _stacklevel)
    return _C.softmax(-input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None
) -> Tensor:
    """Logarithm of softmax; `dtype` is taken first."""
    if dim is None:
        dim = _implied_dim("log_softmax", input, _stacklevel)
    return _C.log_softmax(input, dim, dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Differentiable samples of categories (Jang, Gu and Poole, 2016).

    Args:
        logits: unnormalised log-probabilities.
        tau: temperature.
        hard: gives one-hot vectors, with the gradient of the soft ones.
        eps: without effect.
        dim: of the categories.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -_C.empty_like(logits, memory_format=_C.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.max(dim, keepdim=True)[1]
    one_hot = _C.zeros_like(logits, memory_format=_C.contiguous_format).scatter_(dim, best, 1.0)
    return one_hot - soft.detach() + soft


# Dropout ----------------------------------------------------------------------------------------


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _applied(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return input.copy_(result) if inplace and result is not input else result


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and deviation of self-normalising networks."""
    _check_probability(p)
    return _applied(input, _C.alpha_dropout(input, p, training), inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """alpha_dropout of whole channels (dim 1)."""
    _check_probability(p)
    return _applied(input, _C.feature_alpha_dropout(input, p, training), inplace)


def _channels(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    """Dropout of channels: dim 1 of a batch, dim 0 of a single sample."""
    x = input if batched else input.unsqueeze(0)
    result = _C.feature_dropout(x, p, training)
    return _applied(input, result if batched else result.squeeze(0), inplace)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of the channels of (N, C, L) or (C, L)."""
    _check_probability(p)
    n = input.dim()
    if n not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {n}D input. Note that dropout1d "
            "exists to provide channel-wise dropout on inputs with 1 spatial dimension, a channel "
            "dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _channels(input, p, training, inplace, n == 3)


def _warn_of_dims(name: str, n: int, spatial: int) -> None:
    warnings.warn(
        f"{name}: Received a {n}-D input to {name}, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use "
        f"dropout instead. Note that {name} exists to provide channel-wise dropout on inputs with "
        f"{spatial} spatial dimensions, a channel dimension, and an optional batch dimension "
        f"(i.e. {spatial + 1}D or {spatial + 2}D inputs).",
        stacklevel=3,
    )


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of the channels (dim 1) of (N, C, H, W)."""
    _check_probability(p)
    n = input.dim()
    if n not in (3, 4):
        _warn_of_dims("dropout2d", n, 2)
    if n == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    if n < 2 and training and p > 0:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _channels(input, p, training, inplace, True)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of the channels of (N, C, D, H, W) or (C, D, H, W)."""
    _check_probability(p)
    n = input.dim()
    if n not in (4, 5):
        _warn_of_dims("dropout3d", n, 3)
    if n < 2 and training and p > 0:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _channels(input, p, training, inplace, n != 4)
