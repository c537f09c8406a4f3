"""`make_tensor`: a tensor of random numbers from an interval, in any dtype and layout of memory.

Owns the default intervals by dtype. Numbers are drawn from [low, high).
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb

__all__ = ["make_tensor"]


def _interval(dtype: Any, low: float | None, high: float | None) -> tuple[float, float]:
    """The interval, within what the dtype holds."""
    if dtype is fb.bool:
        ends: tuple[float, float] = (0, 2)
        least, most = 0.0, 2.0
    elif dtype.is_floating_point or dtype.is_complex:
        ends = (-9, 9)
        most = fb.finfo(dtype).max
        least = -most
    else:
        limits = fb.iinfo(dtype)
        ends = (0 if not dtype.is_signed else -9, 10)
        least, most = limits.min, limits.max + 1
    low, high = ends[0] if low is None else low, ends[1] if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"make_tensor: expected numbers, got low={low}, high={high}")
    low, high = max(low, least), min(high, most)
    if not low < high:
        raise ValueError(f"make_tensor: expected low < high, got low={low}, high={high}")
    return low, high


def _uniform(sizes: tuple[int, ...], dtype: Any, device: Any, least: float, most: float) -> Any:
    """Numbers of a floating-point dtype, the generator's own where the interval is one it knows."""
    if most - least <= fb.finfo(dtype).max:
        return fb.empty(sizes, dtype=dtype, device=device).uniform_(least, most)
    return (fb.rand(sizes, dtype=fb.float64, device=device) * (most - least) + least).to(dtype)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """Make a tensor of random numbers from [low, high).

    Args:
        shape: its sizes, apart or as one sequence.
        dtype, device: its type and place.
        low, high: the interval; by default [-9, 9), for integers up to 9, for bool {0, 1}.
        requires_grad: record a gradient for it.
        noncontiguous: take every other element of more memory.
        exclude_zero: replace zeros by the smallest number there is.
        memory_format: order in memory.

    >>> torch.testing.make_tensor(2, 3, dtype=torch.int64, device="cpu").shape
    torch.Size([2, 3])
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor: expected noncontiguous or memory_format, got both")
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"make_tensor: expected a differentiable dtype, got {dtype}")
    least, most = _interval(dtype, low, high)
    wide = noncontiguous and math.prod(sizes) > 1
    if dtype.is_complex:
        parts = _uniform((*sizes, 2), dtype.to_real(), device, least, most)
        out = fb.view_as_complex(parts)
    elif dtype.is_floating_point:
        out = _uniform(sizes, dtype, device, least, most)
    else:
        out = fb.randint(math.ceil(least), math.ceil(most), sizes, device=device).to(dtype)
    if exclude_zero:
        tiny = 1 if not (dtype.is_floating_point or dtype.is_complex) else fb.finfo(dtype).tiny
        out = out.masked_fill(out == 0, tiny)
    if wide:
        out = out.repeat_interleave(2, -1)[..., ::2]
    if memory_format is not None:
        out = out.contiguous(memory_format=memory_format)
    return out.requires_grad_() if requires_grad else out
