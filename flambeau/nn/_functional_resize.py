"""Resizing of `nn.functional`: interpolate, its older names, grid_sample and affine_grid.

Works out sizes and modes; the arithmetic is one operation of the table.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

from flambeau import _C

Tensor = _C.Tensor

__all__ = [
    "affine_grid",
    "grid_sample",
    "interpolate",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

#: mode -> (number of spatial dims it is for, None: any; mode of the operation)
_MODES: dict[str, tuple[int | None, str]] = {
    "nearest": (None, "nearest"),
    "nearest-exact": (None, "nearest-exact"),
    "area": (None, "area"),
    "linear": (1, "linear"),
    "bilinear": (2, "linear"),
    "trilinear": (3, "linear"),
    "bicubic": (2, "cubic"),
}
_ALIGNED = ("linear", "bilinear", "bicubic", "trilinear")


def _output_size(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[list[int], list[float]]:
    """Spatial size of the result, and the scales that the operation shall use.

    No scales: the ratio of the sizes.
    """
    axes = input.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes = list(size) if isinstance(size, Sequence) else [size] * axes
        if len(sizes) != axes:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {list(input.shape[2:])} and output size of {size}. "
                "Please provide input tensor in (N, C, d1, d2, ...,dK) format and output size in "
                "(o1, o2, ...,oK) format."
            )
        return [operator.index(s) for s in sizes], []
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = list(scale_factor) if isinstance(scale_factor, Sequence) else [scale_factor] * axes
    if len(factors) != axes:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got "
            f"input with spatial dimensions of {list(input.shape[2:])} and scale_factor of shape "
            f"{scale_factor}."
        )
    sizes = [int(math.floor(n * f)) for n, f in zip(input.shape[2:], factors, strict=True)]
    return sizes, [] if recompute else [float(f) for f in factors]


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resamples (N, C, ...) with one to three spatial dimensions.

    Args:
        input: what to resample.
        size: spatial size of the result.
        scale_factor: instead of it, the ratio to the input's.
        mode: nearest, nearest-exact, linear, bilinear, bicubic, trilinear or area.
        align_corners: corner pixels' centres are the corners (smooth modes only).
        recompute_scale_factor: positions follow from the sizes, not from `scale_factor`.
        antialias: widen the kernel when shrinking (bilinear and bicubic).

    Raises:
        ValueError: for arguments that exclude each other.
        NotImplementedError: for a mode that does not fit the number of dimensions.
    """
    if align_corners is not None and mode not in _ALIGNED:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| "
            "bicubic | trilinear"
        )
    if mode not in _MODES or input.ndim not in (3, 4, 5):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.ndim}D) for the modes: {' | '.join(_MODES)} (got {mode})"
        )
    sizes, scales = _output_size(input, size, scale_factor, recompute_scale_factor)
    axes, op = _MODES[mode]
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as input"
        )
    if axes is not None and input.ndim != axes + 2:
        raise NotImplementedError(
            f"Got {input.ndim}D input, but {mode} mode needs {axes + 2}D input"
        )
    if op == "area":
        return _C._adaptive_avg_pool(input, sizes)
    return _C._resample(input, sizes, f"{op}-aa" if antialias else op, bool(align_corners), scales)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Older name of `interpolate`."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Older name of `interpolate` with mode "nearest"."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Older name of `interpolate` with mode "bilinear" and aligned corners."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Values of `input` at the points of `grid`.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, OH, OW, 2) or (N, OD, OH, OW, 3): x first, -1 and 1 at the borders.
        mode: bilinear, nearest or bicubic.
        padding_mode: zeros, border or reflection outside.
        align_corners: -1 and 1 are the centres of the corner pixels, not their edges.
    """
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if mode not in modes:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in paddings:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            "'reflection', "
            f"but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior is align_corners=False: pass it to say "
            "what you mean.",
            stacklevel=2,
        )
    return _C.grid_sampler(
        input, grid, modes.index(mode), paddings.index(padding_mode), bool(align_corners)
    )


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Sampling grid of affine maps `theta` (N, 2, 3) or (N, 3, 4), for results of `size` (N, C, "
    "...)."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior is align_corners=False: pass it to say "
            "what you mean.",
            stacklevel=2,
        )
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    axes = len(size) - 2
    if axes not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {list(size)}."
        )
    if theta.ndim != 3 or list(theta.shape[-2:]) != [axes, axes + 1]:
        raise ValueError(
            f"Expected a batch of {axes}D affine matrices of shape Nx{axes}x{axes + 1} for size "
            f"{list(size)}. "
            f"Got {list(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {list(size)}")
    return _C.affine_grid_generator(theta, list(size), bool(align_corners))
