"""Pooling: maximum, average, power average, adaptive, fractional, and un-pooling.

Owns the window arguments; the arithmetic is the function of `nn.functional` that each class names
in `_op`. Shapes are (N, C, *spatial) or (C, *spatial), as many spatial dimensions as the name says.
"""

from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.nn import functional as F

from .module import Module
from .utils import _ntuple

__all__ = [
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
]


class _Pool(Module):
    """A pooling whose printed form shows the attributes named in `_shown`."""

    _op: str  # the function of nn.functional
    _shown: tuple[str, ...] = ("kernel_size", "stride", "padding")

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)


class _MaxPoolNd(_Pool):
    """The largest value of each window.

    Args:
        kernel_size: size of the window.
        stride: step between windows; default: their size.
        padding: minus infinities on both sides, at most half a window.
        dilation: distance between the elements of a window.
        return_indices: give the positions of the maxima too, for `MaxUnpool`.
        ceil_mode: round the output's size up, so that every input element is in a window.
    """

    __constants__ = [
        "kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"
    ]  # fmt: skip
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return getattr(F, self._op)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    """Maximum over windows of the last dimension; see `_MaxPoolNd`."""

    _op = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    """Maximum over windows of the last two dimensions; see `_MaxPoolNd`.

    Example:
        >>> import flambeau as fb
        >>> fb.nn.MaxPool2d(2)(fb.arange(16.0).view(1, 4, 4))
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """

    _op = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    """Maximum over windows of the last three dimensions; see `_MaxPoolNd`."""

    _op = "max_pool3d"


class _MaxUnpoolNd(_Pool):
    """Puts pooled maxima back to their places and zero elsewhere.

    Args:
        kernel_size, stride, padding: those of the pooling.
    """

    _nd: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        spread = _ntuple(self._nd)
        self.kernel_size = spread(kernel_size)
        self.stride = spread(kernel_size if stride is None else stride)
        self.padding = spread(padding)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: list[int] | None = None
    ) -> Tensor:
        """Undo a pooling that returned `indices`; `output_size` settles an ambiguous size."""
        unpool = getattr(F, f"max_unpool{self._nd}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """Inverse of `MaxPool1d`; see `_MaxUnpoolNd`."""

    _nd = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Inverse of `MaxPool2d`; see `_MaxUnpoolNd`."""

    _nd = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Inverse of `MaxPool3d`; see `_MaxUnpoolNd`."""

    _nd = 3


class _AvgPoolNd(_Pool):
    """The mean of each window.

    Args:
        kernel_size: size of the window.
        stride: step between windows; default: their size.
        padding: zeros on both sides.
        ceil_mode: round the output's size up.
        count_include_pad: whether the zeros count in the mean.
        divisor_override: divide by this instead of the number of elements (not in one dimension).
    """

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return getattr(F, self._op)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool1d(_AvgPoolNd):
    """Mean over windows of the last dimension; see `_AvgPoolNd`."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        spread = _ntuple(1)
        window = spread(kernel_size)
        step = window if stride is None else spread(stride)
        super().__init__(window, step, spread(padding), ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool2d(_AvgPoolNd):
    """Mean over windows of the last two dimensions; see `_AvgPoolNd`."""

    _op = "avg_pool2d"


class AvgPool3d(_AvgPoolNd):
    """Mean over windows of the last three dimensions; see `_AvgPoolNd`."""

    _op = "avg_pool3d"


class _FractionalMaxPoolNd(Module):
    """Maximum over windows at pseudo-random steps (Graham, 2014).

    Args:
        kernel_size: size of the window.
        output_size: size of the output; or else
        output_ratio: share of the input's size that the output has.
        return_indices: give the positions of the maxima too.
    """

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _nd: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        spread = _ntuple(self._nd)
        self.kernel_size = spread(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else spread(output_size)
        self.output_ratio = None if output_ratio is None else spread(output_ratio)
        name = type(self).__name__
        if min(self.kernel_size) <= 0 and self._nd == 3:
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        pool = getattr(F, f"fractional_max_pool{self._nd}d_with_indices")
        both = pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            _random_samples=self._random_samples,
        )
        return both if self.return_indices else both[0]


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Fractional pooling of the last two dimensions; see `_FractionalMaxPoolNd`."""

    _nd = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Fractional pooling of the last three dimensions; see `_FractionalMaxPoolNd`."""

    _nd = 3


class _LPPoolNd(_Pool):
    """The p-norm of each window: (sum x^p)^(1/p).

    Args:
        norm_type: the power p.
        kernel_size: size of the window.
        stride: step between windows; default: their size.
        ceil_mode: round the output's size up.
    """

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        pool = getattr(F, self._op)
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """Power average over windows of the last dimension; see `_LPPoolNd`."""

    _op = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    """Power average over windows of the last two dimensions; see `_LPPoolNd`."""

    _op = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """Power average over windows of the last three dimensions; see `_LPPoolNd`."""

    _op = "lp_pool3d"


class _AdaptiveMaxPoolNd(_Pool):
    """Maximum over as many windows as the output is to have elements.

    Args:
        output_size: size of the output; None keeps the input's.
        return_indices: give the positions of the maxima too.
    """

    __constants__ = ["output_size", "return_indices"]
    _shown = ("output_size",)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        both = getattr(F, f"{self._op}_with_indices")(input, self.output_size)
        return both if self.return_indices else both[0]


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Adaptive maximum over the last dimension; see `_AdaptiveMaxPoolNd`."""

    _op = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Adaptive maximum over the last two dimensions; see `_AdaptiveMaxPoolNd`."""

    _op = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Adaptive maximum over the last three dimensions; see `_AdaptiveMaxPoolNd`."""

    _op = "adaptive_max_pool3d"


class _AdaptiveAvgPoolNd(_Pool):
    """Mean over as many windows as the output is to have elements.

    Args:
        output_size: size of the output; None keeps the input's.
    """

    __constants__ = ["output_size"]
    _shown = ("output_size",)

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return getattr(F, self._op)(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Adaptive mean over the last dimension; see `_AdaptiveAvgPoolNd`."""

    _op = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Adaptive mean over the last two dimensions; see `_AdaptiveAvgPoolNd`."""

    _op = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Adaptive mean over the last three dimensions; see `_AdaptiveAvgPoolNd`."""

    _op = "adaptive_avg_pool3d"
