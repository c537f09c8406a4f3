"""Dense layers: Linear, Bilinear, Identity, and the lazy Linear.

Owns the weights and how they start; the products are `F.linear` and `F.bilinear`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import UninitializedParameter

from ._fields import Maybe, fields, optional, parameter
from .lazy import LazyModuleMixin
from .module import Module

if TYPE_CHECKING:
    from dataclasses import InitVar

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Gives back its input. Takes and ignores any arguments, so it can replace any layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` itself."""
        return input


@fields
class Linear(Module):
    """y = x A^T + b.

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the output.
        bias: whether b is learnt; otherwise there is none.

    Shape: (*, in_features) to (*, out_features).

    Both start uniform within 1 / sqrt(in_features).

    Example:
        >>> import flambeau as fb
        >>> fb.nn.Linear(20, 30)(fb.zeros(8, 20)).shape
        torch.Size([8, 30])
    """

    in_features: int
    out_features: int
    weight: Tensor = parameter("out_features, in_features")
    bias: Maybe = optional("out_features", default=True)
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None

    def reset_parameters(self) -> None:
        """Draw new starting values."""
        # The slope sqrt(5) makes the bound of a leaky ReLU's gain equal 1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the affine map to the last dimension."""
        return F.linear(input, self.weight, self.bias)


class NonDynamicallyQuantizableLinear(Linear):
    """The `Linear` inside attention layers, a class of its own so that tools can tell it apart."""


@fields
class Bilinear(Module):
    """y = x1^T A x2 + b.

    Args:
        in1_features, in2_features: sizes of the last dimension of the two inputs.
        out_features: size of the last dimension of the output.
        bias: whether b is learnt.

    Shape: (*, in1_features), (*, in2_features) to (*, out_features).
    """

    in1_features: int
    in2_features: int
    out_features: int
    weight: Tensor = parameter("out_features, in1_features, in2_features")
    bias: Maybe = optional("out_features", default=True)
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None

    def _settle(self) -> None:
        if self.in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {self.in1_features}")

    def reset_parameters(self) -> None:
        """Draw new starting values, uniform within 1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Apply the bilinear form."""
        return F.bilinear(input1, input2, self.weight, self.bias)


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` whose `in_features` is the last size of its first input."""

    cls_to_become = Linear
    weight: UninitializedParameter

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        # The base gets sizes of zero: nothing is allocated or drawn yet.
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new starting values, once there are parameters to fill."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take `in_features` from the first input."""
        if self.has_uninitialized_params():
            with fb.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                bias: Any = self.bias
                if bias is not None:
                    bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"LazyLinear: the last size of the input is {input.shape[-1]}, "
                    f"the loaded weight expects {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]
