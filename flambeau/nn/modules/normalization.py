"""Normalisations without statistics of a batch: layer, group, RMS, and across channels.

Owns the affine parameters; the arithmetic is in `nn.functional`.
"""

from __future__ import annotations

import numbers
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import Parameter

from .module import Module

__all__ = ["LocalResponseNorm", "CrossMapLRN2d", "LayerNorm", "GroupNorm", "RMSNorm"]


class _AffineNorm(Module):
    """Weight (one at first) and bias (zero at first), either of which may be None."""

    def _make_affine(self, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            if wanted:
                setattr(self, name, Parameter(fb.empty(shape, device=device, dtype=dtype)))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to one and the bias to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def _as_shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, numbers.Integral) else tuple(shape)


class LayerNorm(_AffineNorm):
    """Normalise over the last dimensions to mean 0 and variance 1 (Ba et al., 2016).

    Args:
        normalized_shape: sizes of the last dimensions, over which the statistics are taken.
        eps: added to the (biased) variance.
        elementwise_affine: whether a scale of that shape is learnt.
        bias: whether a shift is learnt too.

    Example:
        >>> import flambeau as fb
        >>> fb.nn.LayerNorm(4)(fb.arange(4.0)).sum().abs().item() < 1e-6
        True
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        affine = elementwise_affine
        self._make_affine(self.normalized_shape, affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(_AffineNorm):
    """Normalise groups of channels of each sample (Wu & He, 2018).

    Args:
        num_groups: number of groups that the channels are split into.
        num_channels: channels C of the input (N, C, *).
        eps: added to the (biased) variance.
        affine: whether a scale per channel is learnt.
        bias: whether a shift is learnt too.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_affine(num_channels, affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide by the root of the mean square over the last dimensions (Zhang & Sennrich, 2019).

    Args:
        normalized_shape: sizes of the last dimensions.
        eps: added to the mean square; default: the dtype's machine epsilon.
        elementwise_affine: whether a scale of that shape is learnt.
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(fb.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to one."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class _AcrossChannels(Module):
    """The four constants of a normalisation over neighbouring channels."""

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_AcrossChannels):
    """Divide by a power of the local energy across channels (Krizhevsky et al., 2012).

    Args:
        size: number of neighbouring channels.
        alpha, beta, k: the divisor is (k + alpha * mean square) ** beta.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalise (N, C, *)."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_AcrossChannels):
    """As `LocalResponseNorm`, for (N, C, H, W), with the window of the original Lua layer."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise."""
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        square = input * input
        half = (self.size - 1) // 2
        # Zeros around the channels, then the sum over each window of 2 half + 1 of them.
        padded = F.pad(square, (0, 0, 0, 0, half, half))
        window = padded.unfold(1, 2 * half + 1, 1).sum(-1)
        # The original layer never takes the first channel out of its running sum.
        kept = half + 1
        if kept < input.size(1):
            extra = square[:, :1].expand(-1, input.size(1) - kept, -1, -1)
            window = fb.cat([window[:, :kept], window[:, kept:] + extra], dim=1)
        scale = window * (self.alpha / self.size) + self.k
        return input * scale.pow(-self.beta)
