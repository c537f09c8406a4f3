"""Starting values for weights.

Each function fills its tensor in place and returns it. Invariant: the sequence of random draws is
PyTorch's, so one seed gives the same weights in both. Knows nothing of modules.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor

__all__ = [
    "calculate_gain",
    "uniform_",
    "normal_",
    "trunc_normal_",
    "constant_",
    "ones_",
    "zeros_",
    "eye_",
    "dirac_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "sparse_",
    "uniform",
    "normal",
    "constant",
    "eye",
    "dirac",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
    "orthogonal",
    "sparse",
]

_LINEAR = {"linear", "sigmoid"} | {
    f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)
}


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Any = None) -> Tensor:
    with fb.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Any = None) -> Tensor:
    with fb.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with fb.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    with fb.no_grad():
        return tensor.zero_()


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Factor by which a nonlinearity's input spread should be scaled to keep its output's.

    Args:
        nonlinearity: name of the function in `nn.functional`.
        param: the slope, for "leaky_relu" (default 0.01).

    Example:
        >>> import flambeau as fb
        >>> fb.nn.init.calculate_gain("leaky_relu", 1.0)
        1.0
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity != "leaky_relu":
        raise ValueError(f"calculate_gain: unsupported nonlinearity {nonlinearity!r}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ValueError(f"calculate_gain: param (the slope) must be a number, got {param}")
    return math.sqrt(2.0 / (1 + slope**2))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from the uniform distribution on [a, b)."""
    return _no_grad_uniform_(tensor, a, b, generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from the normal distribution of the given mean and standard deviation."""
    return _no_grad_normal_(tensor, mean, std, generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    return _no_grad_fill_(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return _no_grad_zero_(tensor)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill with draws from a normal distribution confined to [a, b].

    Args:
        tensor: filled in place.
        mean, std: of the normal distribution before truncation.
        a, b: the bounds, in the units of the values (not in standard deviations).
        generator: source of the draws.
    """
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "trunc_normal_: mean is more than 2 std away from [a, b]; "
            "the values may not follow the distribution",
            stacklevel=2,
        )
    cdf = [0.5 * (1.0 + math.erf((edge - mean) / (std * math.sqrt(2.0)))) for edge in (a, b)]
    with fb.no_grad():
        # Redrawing normals wastes 1/p draws; below p = 0.3 uniform proposals are cheaper.
        if cdf[1] - cdf[0] > 0.3:
            return _redraw_outside(tensor, mean, std, a, b, generator)
        return _accept_uniform(tensor, mean, std, a, b, generator)


def _redraw_outside(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    # The bounds as the tensor's dtype holds them, so that a value on the bound stays.
    low, high = (tensor.new_tensor(edge, device="cpu").item() for edge in (a, b))
    values = tensor.normal_(mean, std, generator=generator)
    while (outside := (values < low) | (values > high)).any():
        again = fb.empty_like(values).normal_(mean, std, generator=generator)
        values = fb.where(outside, again, values)
    return tensor if values is tensor else tensor.copy_(values)


def _accept_uniform(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    log_peak = -0.5 * ((min(max(mean, a), b) - mean) / std) ** 2

    def rejected(values: Tensor) -> Tensor:
        log_density = values.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak)
        return fb.empty_like(values).uniform_(generator=generator).log_().gt(log_density)

    values = tensor.uniform_(a, b, generator=generator)
    pending = rejected(values)
    while pending.any():
        proposal = fb.empty_like(values).uniform_(a, b, generator=generator)
        values = fb.where(pending, proposal, values)
        pending = pending & rejected(proposal)
    return tensor if values is tensor else tensor.copy_(values)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity."""
    if tensor.ndimension() != 2:
        raise ValueError(f"eye_: expected a tensor of 2 dimensions, got {tensor.ndimension()}")
    with fb.no_grad():
        return tensor.copy_(fb.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution weight so that, in each group, it passes its input channels on unchanged.

    Args:
        tensor: weight of 3, 4 or 5 dimensions, (out, in, *kernel).
        groups: number of groups of the convolution.
    """
    dims = tensor.ndimension()
    if dims not in (3, 4, 5):
        raise ValueError(f"dirac_: expected a tensor of 3, 4 or 5 dimensions, got {dims}")
    out_channels = tensor.size(0)
    if out_channels % groups != 0:
        raise ValueError(
            f"dirac_: dimension 0 ({out_channels}) must be divisible by groups ({groups})"
        )
    per_group = out_channels // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with fb.no_grad():
        tensor.zero_()
        for g in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(g * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(
            f"fan in and fan out need a tensor of at least 2 dimensions, got {tensor.dim()}"
        )
    receptive_field = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive_field, tensor.size(0) * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    mode = mode.lower()
    if mode not in modes:
        raise ValueError(f"mode: expected one of {modes}, got {mode!r}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill uniformly within gain * sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio, 2010)."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill normally with std gain * sqrt(2 / (fan_in + fan_out)) (Glorot & Bengio, 2010)."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return _no_grad_normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """Standard deviation gain / sqrt(fan), or None for a tensor without elements."""
    if 0 in tensor.shape:
        warnings.warn("kaiming: a tensor without elements is left as it is", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill uniformly within gain * sqrt(3 / fan) (He et al., 2015).

    Args:
        tensor: filled in place.
        a: negative slope, when the nonlinearity is "leaky_relu".
        mode: "fan_in" keeps the spread of the forward pass, "fan_out" that of the backward pass.
        nonlinearity: name of the function that follows.
        generator: source of the draws.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill normally with std gain / sqrt(fan) (He et al., 2015); arguments as kaiming_uniform_."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else _no_grad_normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix times `gain` (Saxe et al., 2013).

    Dimensions after the first are taken together as the columns.
    """
    if tensor.ndimension() < 2:
        raise ValueError(
            f"orthogonal_: expected a tensor of 2 or more dimensions, got {tensor.ndimension()}"
        )
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    draws = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    with fb.no_grad():
        q, r = fb.linalg.qr(draws.t() if rows < cols else draws)
        # Signs of R's diagonal make the factor unique, hence uniformly distributed.
        q = q * fb.diag(r).sign()
        if rows < cols:
            q = q.t()
        tensor.view_as(q).copy_(q)
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix normally, then set a share of each column to zero (Martens, 2010).

    Args:
        tensor: a matrix, filled in place.
        sparsity: share of each column that becomes zero.
        std: standard deviation of the other values.
        generator: source of the normal draws.
    """
    if tensor.ndimension() != 2:
        raise ValueError(f"sparse_: expected a tensor of 2 dimensions, got {tensor.ndimension()}")
    if tensor.is_meta:
        return tensor
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with fb.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(cols):
            tensor[fb.randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The old name of an initialiser, without the underscore; it warns."""
    new_name = function.__name__
    old_name = new_name[:-1]

    def old(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    old.__name__ = old_name
    old.__doc__ = f"Deprecated: use {new_name}."
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
