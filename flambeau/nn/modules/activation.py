"""Elementwise nonlinearities, softmax and its kin.

Owns their constants; the arithmetic is in `nn.functional`. `MultiheadAttention` is found here too,
its file is `_multihead_attention`.
"""

from __future__ import annotations

import warnings
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init as nn_init
from flambeau.nn.parameter import Parameter

from ._fields import fields
from ._multihead_attention import MultiheadAttention
from .module import Module

__all__ = [
    "Threshold",
    "ReLU",
    "RReLU",
    "Hardtanh",
    "ReLU6",
    "Sigmoid",
    "Hardsigmoid",
    "Tanh",
    "SiLU",
    "Mish",
    "Hardswish",
    "ELU",
    "CELU",
    "SELU",
    "GLU",
    "GELU",
    "Hardshrink",
    "LeakyReLU",
    "LogSigmoid",
    "Softplus",
    "Softshrink",
    "MultiheadAttention",
    "PReLU",
    "Softsign",
    "Tanhshrink",
    "Softmin",
    "Softmax",
    "Softmax2d",
    "LogSoftmax",
]


class _Inplace(Module):
    """An activation that may write into its input.

    Args:
        inplace: whether it does.
    """

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def _constants_repr(self) -> str:
        return ""

    def extra_repr(self) -> str:
        parts = [self._constants_repr(), "inplace=True" if self.inplace else ""]
        return ", ".join(part for part in parts if part)


class ReLU(_Inplace):
    """max(x, 0). See `_Inplace` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.relu(input, inplace=self.inplace)


class SiLU(_Inplace):
    """x * sigmoid(x), also called swish. See `_Inplace` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """x * tanh(softplus(x)). See `_Inplace` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.mish(input, inplace=self.inplace)


class SELU(_Inplace):
    """Self-normalising ELU (Klambauer et al., 2017). See `_Inplace` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.selu(input, self.inplace)


class Hardsigmoid(_Inplace):
    """clamp(x / 6 + 1 / 2, 0, 1). See `_Inplace` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Inplace):
    """x * hardsigmoid(x). See `_Inplace` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Threshold(_Inplace):
    """x where it is above a threshold, else a value.

    Args:
        threshold: the threshold.
        value: the value below it.
        inplace: write into the input.
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def _constants_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}"


class RReLU(_Inplace):
    """Leaky ReLU whose slope is drawn for each element while training (Xu et al., 2015).

    Args:
        lower, upper: bounds of the uniform distribution; evaluation uses their mean.
        inplace: write into the input.
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def _constants_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


class Hardtanh(_Inplace):
    """clamp(x, min_val, max_val).

    Args:
        min_val, max_val: the bounds.
        inplace: write into the input.
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        for old, new, value in (
            ("min_value", "min_val", min_value),
            ("max_value", "max_val", max_value),
        ):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and renamed to `{new}`",
                    FutureWarning,
                    stacklevel=2,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def _constants_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class ReLU6(Hardtanh):
    """min(max(x, 0), 6). See `_Inplace` for the argument."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def _constants_repr(self) -> str:
        return ""


class _Alpha(_Inplace):
    """An exponential linear unit.

    Args:
        alpha: minus the limit at minus infinity.
        inplace: write into the input.
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def _constants_repr(self) -> str:
        return f"alpha={self.alpha}"


class ELU(_Alpha):
    """x if positive, else alpha (exp(x) - 1). See `_Alpha` for the arguments."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """x if positive, else alpha (exp(x / alpha) - 1). See `_Alpha` for the arguments."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(_Inplace):
    """x if positive, else a small multiple of it.

    Args:
        negative_slope: the factor.
        inplace: write into the input.
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def _constants_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return fb.sigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return fb.tanh(input)


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.tanhshrink(input)


class GELU(Module):
    """x times the normal distribution function of x (Hendrycks & Gimpel, 2016).

    Args:
        approximate: "none", or "tanh" for the cheaper approximation.
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


@fields
class Softplus(Module):
    """log(1 + exp(beta x)) / beta, and x itself where beta x is above a threshold.

    Args:
        beta: sharpness.
        threshold: where the straight line takes over.
    """

    beta: float = 1.0
    threshold: float = 20.0

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.softplus(input, self.beta, self.threshold)


class _Shrink(Module):
    """Zero near zero.

    Args:
        lambd: half the width of the zero part.
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """x where |x| > lambd, else 0. See `_Shrink` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by lambd, which stops there. See `_Shrink` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to each element."""
        return F.softshrink(input, self.lambd)


class PReLU(Module):
    """Leaky ReLU with a learnt slope (He et al., 2015).

    Args:
        num_parameters: 1, or the number of channels for one slope each.
        init: where the slopes start.
    """

    __constants__ = ["num_parameters"]

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(fb.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to `init`."""
        nn_init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Apply to (N, C, *), or to any shape with one slope."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


@fields
class GLU(Module):
    """a * sigmoid(b), where a and b are the halves of the input (Dauphin et al., 2016).

    Args:
        dim: dimension that is halved.
    """

    dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        """Gate one half by the other."""
        return F.glu(input, self.dim)


@fields
class _AlongDim(Module):
    """A normalised exponential.

    Args:
        dim: dimension along which the result sums to one.
    """

    dim: int | None = None


class Softmin(_AlongDim):
    """softmax(-x). See `_AlongDim` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply along `dim`."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """exp(x) / sum exp(x). See `_AlongDim` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply along `dim`."""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """log(softmax(x)). See `_AlongDim` for the argument."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply along `dim`."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply along the channels."""
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3, _stacklevel=5)
