"""`nn.functional`: the stateless layer below the modules.

Most names are operations that the table puts in this namespace (flambeau/ops); functions that take
`inplace`, arguments of early versions or Python functions are in `_functional_*.py` beside this
file. Never imports modules. What few use loads late.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from typing import Any

from flambeau import _C

from ._functional_activation import *  # noqa: F403
from ._functional_embedding import *  # noqa: F403
from ._functional_losses import *  # noqa: F403

Tensor = _C.Tensor
_ops = _C._namespaces["nn.functional"]

for _name, _function in vars(_ops).items():
    if _name[0] != "_":
        globals().setdefault(_name, _function)
del _name, _function

# The operations of the top level that stand here too.
feature_dropout = _C.feature_dropout
max_pool1d_with_indices = _C.max_pool1d_with_indices
tanh = _C.tanh

#: names of files that load when first asked for
_LATE = {"multi_head_attention_forward": "_functional_attention"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"flambeau.nn.{_LATE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divides by the p-norm along `dim`, or by `eps` where the norm is smaller."""
    if out is None:
        return _ops.normalize(input, p, dim, eps)
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return _C.div(input, length, out=out)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution over time of (T, N, C) by weights (K, C, D).

    Returns:
        A tensor of shape (T + 2 pad - K + 1, N, D).
    """
    y = _ops.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return y.permute(2, 0, 1)


# Pools with and without indices -----------------------------------------------------------------


def max_pool1d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima over windows of (N, C, L) or (C, L), and their indices when asked for."""
    pool = _C.max_pool1d_with_indices if return_indices else _C.max_pool1d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima over windows of (N, C, H, W) or (C, H, W), and their indices when asked for."""
    pool = _ops.max_pool2d_with_indices if return_indices else _C.max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima over windows of (N, C, D, H, W) or (C, D, H, W), and their indices when asked for."""
    pool = _ops.max_pool3d_with_indices if return_indices else _C.max_pool3d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


# Deprecated names of interpolate ----------------------------------------------------------------


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Old name of `interpolate`."""
    _warn_of_name("upsample")
    return globals()["interpolate"](input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Old name of `interpolate` with mode "nearest"."""
    _warn_of_name("upsample_nearest")
    return globals()["interpolate"](input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Old name of `interpolate` with mode "bilinear" and aligned corners."""
    _warn_of_name("upsample_bilinear")
    return globals()["interpolate"](input, size, scale_factor, mode="bilinear", align_corners=True)


def _warn_of_name(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )
