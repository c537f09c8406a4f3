"""Pools of `nn.functional` whose sizes may have None, or whose windows are drawn at random.

Thin over operations of the table. Must not know modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import _C
from flambeau._C import nn_functional as _F

Tensor = _C.Tensor

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


def _each(value: Any, n: int, what: str = "kernel_size") -> list[int]:
    """One value for every axis."""
    if isinstance(value, int):
        return [value] * n
    values = [int(v) for v in value]
    if len(values) == 1:
        return values * n
    if len(values) != n:
        raise RuntimeError(f"pool: {what} must be one int or a list of {n}, but got {value}")
    return values


def _adaptive_size(input: Tensor, size: Any, axes: int, kind: str) -> list[int]:
    """Sizes wanted; None keeps the input's."""
    if size is None or isinstance(size, int):
        sizes = [size] * axes
    else:
        sizes = [s for s in size]  # noqa: C416  (scripts write a tuple of ints and None out)
        if input.ndim <= len(sizes):
            raise ValueError(
                f"Input dimension should be at least {len(sizes) + 1}, got {list(input.shape)}"
            )
    if len(sizes) != axes:
        raise RuntimeError(f"adaptive_pool: output_size must be {axes} values, got {size}")
    if input.ndim not in (axes + 1, axes + 2):
        raise RuntimeError(
            f"adaptive_{kind}_pool{axes}d(): Expected {axes + 1}D or {axes + 2}D tensor, but got "
            f"{list(input.shape)}"
        )
    return [int(input.shape[i - axes]) if s is None else int(s) for i, s in enumerate(sizes)]


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over windows of images that cover the input and number `output_size`."""
    return _C._adaptive_avg_pool(input, _adaptive_size(input, output_size, 2, "avg"))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over windows of volumes that cover the input and number `output_size`."""
    return _C._adaptive_avg_pool(input, _adaptive_size(input, output_size, 3, "avg"))


def _adaptive_max_pool(
    axes: int,
) -> tuple[Callable[..., tuple[Tensor, Tensor]], Callable[..., Any]]:
    def with_indices(
        input: Tensor, output_size: Any, return_indices: bool = True
    ) -> tuple[Tensor, Tensor]:
        return _C._adaptive_max_both(input, _adaptive_size(input, output_size, axes, "max"))

    def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        both = with_indices(input, output_size)
        return both if return_indices else both[0]

    pool.__name__ = pool.__qualname__ = f"adaptive_max_pool{axes}d"
    pool.__doc__ = "Maxima over windows that cover the input and number `output_size`."
    with_indices.__name__ = with_indices.__qualname__ = f"adaptive_max_pool{axes}d_with_indices"
    with_indices.__doc__ = f"`adaptive_max_pool{axes}d` with the flat indices of the maxima."
    return with_indices, pool


adaptive_max_pool1d_with_indices, adaptive_max_pool1d = _adaptive_max_pool(1)
adaptive_max_pool2d_with_indices, adaptive_max_pool2d = _adaptive_max_pool(2)
adaptive_max_pool3d_with_indices, adaptive_max_pool3d = _adaptive_max_pool(3)


def _lp_pool(
    input: Tensor, norm_type: float, kernel: list[int], stride: Any, ceil_mode: bool
) -> Tensor:
    axes = len(kernel)
    count = 1
    for k in kernel:
        count *= k
    powers = input.pow(norm_type)
    if axes == 1:
        mean = _F.avg_pool1d(powers, kernel, stride, 0, ceil_mode)
    elif axes == 2:
        mean = _F.avg_pool2d(powers, kernel, stride, 0, ceil_mode)
    else:
        mean = _F.avg_pool3d(powers, kernel, stride, 0, ceil_mode)
    # The mean of p-th powers is positive but for odd p: the sign passes through the root.
    return (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """p-norms over windows of signals."""
    return _lp_pool(input, norm_type, _each(kernel_size, 1), stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """p-norms over windows of images."""
    return _lp_pool(input, norm_type, _each(kernel_size, 2), stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """p-norms over windows of volumes."""
    return _lp_pool(input, norm_type, _each(kernel_size, 3), stride, ceil_mode)


def _unpool_size(
    input: Tensor, kernel: list[int], stride: list[int], padding: list[int], wanted: Any
) -> list[int]:
    """Spatial size of an unpooled result; `wanted` must be within one stride of the default."""
    axes = len(kernel)
    spatial = list(input.shape[input.ndim - axes :])
    default = [
        (n - 1) * s + k - 2 * p for n, k, s, p in zip(spatial, kernel, stride, padding, strict=True)
    ]
    if wanted is None:
        return default
    sizes = list(wanted)[-axes:]
    if len(wanted) not in (axes, axes + 1, axes + 2):
        raise ValueError(
            f"max_unpool: output_size should be a sequence containing {axes} or {axes + 2} "
            "elements, "
            f"but it has a length of '{len(wanted)}'"
        )
    for d in range(axes):
        low, size, high = default[d] - stride[d], sizes[d], default[d] + stride[d]
        if not low < size < high:
            raise ValueError(
                f'max_unpool: invalid output_size "{sizes}" '
                f"(dim {d} must be between {low} and {high})"
            )
    return sizes


def _max_unpool(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    wanted: Any,
    axes: int,
) -> Tensor:
    kernel = _each(kernel_size, axes)
    steps = kernel if stride is None else _each(stride, axes, "stride")
    if indices.dtype != _C.int64:
        raise RuntimeError(
            f"max_unpool{axes}d: elements in indices should be type int64 but got: {indices.dtype}"
        )
    if indices.shape != input.shape:
        raise RuntimeError(
            f"max_unpool{axes}d: Expected shape of indices to be same as that of the input tensor "
            f"({list(input.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    if input.ndim not in (axes + 1, axes + 2):
        raise RuntimeError(
            f"max_unpool{axes}d: Input to max_unpooling{axes}d should be a {axes + 1}d or "
            f"{axes + 2}d "
            f"Tensor, but got a tensor with {input.ndim} dimensions"
        )
    spatial = _unpool_size(input, kernel, steps, _each(padding, axes, "padding"), wanted)
    lead = list(input.shape[: input.ndim - axes])
    size = 1
    for s in spatial:
        size *= s
    flat = lead + [-1]
    if input.numel() and int(indices.max()) >= size or input.numel() and int(indices.min()) < 0:
        raise RuntimeError(
            f"max_unpool{axes}d: Found an invalid max index: {int(indices.max())} (output volumes "
            "are "
            f"of size {spatial})"
        )
    last = _C.channels_last
    if input.dim() == 4 and input.is_contiguous(memory_format=last) and not input.is_contiguous():
        n, c = lead
        zeros = _C.zeros([n, size, c], dtype=input.dtype, device=input.device)
        places = indices.permute(0, 2, 3, 1).reshape(n, -1, c)
        out = zeros.scatter(1, places, input.permute(0, 2, 3, 1).reshape(n, -1, c))
        return out.reshape([n] + spatial + [c]).permute(0, 3, 1, 2)
    zeros = _C.zeros(lead + [size], dtype=input.dtype, device=input.device)
    out = zeros.scatter(-1, indices.reshape(flat), input.reshape(flat))
    return out.reshape(lead + spatial)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Maxima of signals put back where `indices` say, zeros elsewhere."""
    return _max_unpool(input, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Maxima of images put back where `indices` say, zeros elsewhere."""
    return _max_unpool(input, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Maxima of volumes put back where `indices` say, zeros elsewhere."""
    return _max_unpool(input, indices, kernel_size, stride, padding, output_size, 3)


def _fraction_starts(samples: Tensor, size: int, out: int, kernel: int) -> Tensor:
    """First positions of the windows along one axis (Graham 2014): (..., out) from samples "
    "(...)."""
    if out == 1:
        return _C.full(list(samples.shape) + [1], size - kernel, dtype=_C.int64)
    alpha = (size - kernel) / (out - 1)
    i = _C.arange(out - 1, dtype=samples.dtype)
    u = samples.unsqueeze(-1)
    starts = ((i + u) * alpha).to(_C.int64) - (u * alpha).to(_C.int64)
    last = _C.full(list(samples.shape) + [1], size - kernel, dtype=_C.int64)
    return _C.cat([starts, last], -1)


def _fractional(
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    samples: Tensor | None,
    axes: int,
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{axes}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if input.ndim not in (axes + 1, axes + 2):
        raise RuntimeError(
            f"{name}: Expected {axes + 1}D or {axes + 2}D tensor, but got: {list(input.shape)}"
        )
    kernel = _each(kernel_size, axes)
    spatial = [int(n) for n in input.shape[input.ndim - axes :]]
    if output_size is None:
        ratios = [output_ratio] * axes if isinstance(output_ratio, float) else list(output_ratio)
        out = [int(n * r) for n, r in zip(spatial, ratios, strict=True)]
    else:
        out = _each(output_size, axes, "output_size")
    for n, k, o in zip(spatial, kernel, out, strict=True):
        if o < 1 or o + k - 1 > n:
            raise RuntimeError(
                f"{name}: pool size {k} too large relative to input of size {n}, output {o}"
            )
    x = input if input.ndim == axes + 2 else input.unsqueeze(0)
    planes = [int(x.shape[0]), int(x.shape[1])]
    if samples is None:
        samples = _C.rand(planes + [axes], dtype=x.dtype, device=x.device)
    samples = samples.narrow(0, 0, planes[0])  # an image without a batch is the first of one
    # Flat index of every element of every window: one axis after the other.
    index = _C.zeros(planes + [1, 1], dtype=_C.int64)
    for a in range(axes):
        # Samples of images list the last axis first, those of volumes the first.
        starts = _fraction_starts(
            samples.select(-1, 1 - a if axes == 2 else a), spatial[a], out[a], kernel[a]
        )
        at = starts.unsqueeze(-1) + _C.arange(kernel[a], dtype=_C.int64)
        windows, taps = index.shape[2], index.shape[3]
        index = index.reshape(planes + [windows, 1, taps, 1]) * spatial[a]
        index = index + at.reshape(planes + [1, out[a], 1, kernel[a]])
        index = index.reshape(planes + [windows * out[a], taps * kernel[a]])
    flat = x.flatten(2)
    values = flat.gather(2, index.flatten(2)).reshape(list(index.shape))
    best, which = values.max(3)
    places = index.gather(3, which.unsqueeze(-1)).squeeze(-1)
    shape = list(input.shape[: input.ndim - axes]) + out
    return best.reshape(shape), places.reshape(shape)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` with the flat indices of the maxima."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` with the flat indices of the maxima."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima over windows of images placed at random steps (Graham 2014)."""
    both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)
    return both if return_indices else both[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima over windows of volumes placed at random steps (Graham 2014)."""
    both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)
    return both if return_indices else both[0]
