"""Convolutions: plain, transposed and lazy, in one, two and three dimensions.

Owns the weights and the reading of the arguments; the arithmetic is `F.conv*d` and
`F.conv_transpose*d`. Invariant: geometry attributes are tuples, one entry per dimension.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import Parameter, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Weight, bias and geometry of every convolution."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    padding_mode = "zeros"  # for modules pickled before the attribute existed
    _nd: int  # number of spatial dimensions
    padding: Any  # a tuple, or "same" or "valid"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {_PADDING_MODES}, but got "
                f"padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_for_pad()
        self.weight = Parameter(fb.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(fb.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def _padding_for_pad(self) -> list[int] | tuple[int, ...]:
        """The padding as `F.pad` wants it, for the modes that pad before convolving."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        if self.padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {self.padding!r}, should be one of 'same', 'valid'"
            )
        if self.padding == "valid":
            return [0, 0] * len(self.kernel_size)
        if any(s != 1 for s in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        both_sides: list[int] = []
        for d, k in zip(self.dilation[::-1], self.kernel_size[::-1], strict=True):
            total = d * (k - 1)
            both_sides += [total // 2, total - total // 2]
        return both_sides

    def reset_parameters(self) -> None:
        """Draw new starting values, uniform within 1 / sqrt(fan_in)."""
        with fb.no_grad():
            if self.weight.is_contiguous():
                init.kaiming_uniform_(self.weight, a=math.sqrt(5))
            else:
                # Draws fill memory in order; the values must not depend on the memory format.
                drawn = fb.empty_like(self.weight, memory_format=fb.contiguous_format)
                self.weight.copy_(init.kaiming_uniform_(drawn, a=math.sqrt(5)))
            if self.bias is not None:
                fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
                bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            if value != (usual,) * len(value):
                text += f", {name}={value}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """A convolution (cross-correlation). The subclasses fix the number of spatial dimensions.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: size of the kernel.
        stride: step between positions of the kernel.
        padding: added to both sides of the input; "same" keeps the size, "valid" adds none.
        dilation: distance between elements of the kernel.
        groups: channels are split into so many independent convolutions.
        bias: whether a number per output channel is learnt and added.
        padding_mode: "zeros", "reflect", "replicate" or "circular".

    Sizes are numbers or tuples with one number per spatial dimension.

    Shape: (N, in_channels, *spatial) or without N, to (N, out_channels, *spatial'), where
    spatial' = floor((spatial + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        spread = _ntuple(self._nd)
        super().__init__(
            in_channels,
            out_channels,
            spread(kernel_size),
            spread(stride),
            padding if isinstance(padding, str) else spread(padding),
            spread(dilation),
            False,
            spread(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        conv = getattr(F, f"conv{self._nd}d")
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return conv(input, weight, bias, self.stride, 0, self.dilation, self.groups)
        return conv(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """Convolve."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolution over (N, C, L); see `_Conv` for arguments and shapes.

    Example:
        >>> import flambeau as fb
        >>> fb.nn.Conv1d(16, 33, 3, stride=2)(fb.zeros(20, 16, 50)).shape
        torch.Size([20, 33, 24])
    """

    _nd = 1


class Conv2d(_Conv):
    """Convolution over (N, C, H, W); see `_Conv` for arguments and shapes.

    Example:
        >>> import flambeau as fb
        >>> fb.nn.Conv2d(3, 8, 3, padding=1)(fb.zeros(1, 3, 5, 7)).shape
        torch.Size([1, 8, 5, 7])
    """

    _nd = 2


class Conv3d(_Conv):
    """Convolution over (N, C, D, H, W); see `_Conv` for arguments and shapes."""

    _nd = 3


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution with respect to its input, as a layer.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: size of the kernel.
        stride: step of the convolution that this one reverses.
        padding: padding of the convolution that this one reverses.
        output_padding: added to one side of the output, to settle its size.
        groups: channels are split into so many independent convolutions.
        bias: whether a number per output channel is learnt and added.
        dilation: distance between elements of the kernel.
        padding_mode: "zeros" alone.

    Shape: (N, in_channels, *spatial) or without N, to (N, out_channels, *spatial'), where
    spatial' = (spatial - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        spread = _ntuple(self._nd)
        super().__init__(
            in_channels,
            out_channels,
            spread(kernel_size),
            spread(stride),
            spread(padding),
            spread(dilation),
            True,
            spread(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: list[int] | None) -> list[int]:
        """The output padding that gives `output_size`."""
        if output_size is None:
            return list(self.output_padding)
        nd = self._nd
        leading = input.dim() - nd
        wanted = list(output_size)
        if len(wanted) == leading + nd:
            wanted = wanted[leading:]
        if len(wanted) != nd:
            raise ValueError(
                f"ConvTranspose{nd}D: for {input.dim()}D input, output_size must have {nd} or "
                f"{leading + nd} elements (got {len(wanted)})"
            )
        spatial = list(input.shape[leading:])
        smallest = [
            (size - 1) * s - 2 * p + d * (k - 1) + 1
            for size, s, p, d, k in zip(
                spatial, self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        largest = [low + s - 1 for low, s in zip(smallest, self.stride, strict=True)]
        for low, size, high in zip(smallest, wanted, largest, strict=True):
            if not low <= size <= high:
                raise ValueError(
                    f"requested an output size of {wanted}, but valid sizes range from {smallest} "
                    f"to {largest} (for an input of {input.shape[leading:]})"
                )
        return [w - low for w, low in zip(wanted, smallest, strict=True)]

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Convolve; `output_size` picks one of the sizes that a stride above 1 allows."""
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        conv = getattr(F, f"conv_transpose{self._nd}d")
        return conv(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over (N, C, L); see `_ConvTransposeNd`."""

    _nd = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over (N, C, H, W); see `_ConvTransposeNd`."""

    _nd = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over (N, C, D, H, W); see `_ConvTransposeNd`."""

    _nd = 3


class _LazyConvXdMixin(LazyModuleMixin, _ConvNd):
    """A convolution that takes `in_channels` from its first input."""

    weight: UninitializedParameter
    bias: UninitializedParameter

    def _make_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new starting values, once there are parameters to fill."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take `in_channels` from the first input."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        unbatched = self._nd + 1
        if input.dim() not in (unbatched, unbatched + 1):
            raise RuntimeError(
                f"Expected {unbatched}D (unbatched) or {unbatched + 1}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[-unbatched]


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        geometry = (kernel_size, stride, padding, output_padding, groups)
        super().__init__(0, 0, *geometry, False, dilation, padding_mode, device, dtype)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` that takes `in_channels` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` that takes `in_channels` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` that takes `in_channels` from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose3d
