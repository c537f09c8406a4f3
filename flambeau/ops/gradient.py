"""Numerical gradients of sampled functions, of second order inside and `edge_order` at the ends.

Source: Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids", 1988.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _gradient_dims(input: Tensor, dim: Ints | None, spacings: int, edge_order: int) -> Ints:
    """The dims along which a gradient is asked for; `spacings` -1: one number for all."""
    check(
        input.dtype != uint8,
        "torch.gradient does not support uint8 input.",
    )
    if dim is None:
        check(
            spacings < 0 or spacings == input.ndim,
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to 'self.dim() = {input.ndim}', since dim argument was not given, but got a "
            f"list of length {spacings}",
        )
        dims = list(range(input.ndim))
    else:
        check(
            spacings < 0 or spacings == len(dim),
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            f"arguments to have the same length, but got a spacing argument of length {spacings} "
            f"and a dim argument of length {len(dim)}.",
        )
        dims = wrap_dims(dim, input.ndim)
    check(
        edge_order == 1 or edge_order == 2,
        "torch.gradient only supports edge_order=1 and edge_order=2.",
    )
    for d in dims:
        check(
            input.size(d) > edge_order,
            "torch.gradient expected each dimension size to be at least edge_order+1",
        )
    return dims


@composite(namespaces=(), method=False)
def _even_gradient(f: Tensor, dim: int, h: Number, edge_order: int) -> Tensor:
    """Differences along `dim` of samples `h` apart."""
    n = f.size(dim)
    inner = (f.narrow(dim, 2, n - 2) - f.narrow(dim, 0, n - 2)) / (h * 2)
    first, second = f.narrow(dim, 0, 1), f.narrow(dim, 1, 1)
    last, before = f.narrow(dim, n - 1, 1), f.narrow(dim, n - 2, 1)
    if edge_order == 1:
        return cat([(second - first) / h, inner, (last - before) / h], dim)
    start = (4 * second - 3 * first - f.narrow(dim, 2, 1)) / (h * 2)
    end = (3 * last - 4 * before + f.narrow(dim, n - 3, 1)) / (h * 2)
    return cat([start, inner, end], dim)


@composite(namespaces=(), method=False)
def _uneven_gradient(f: Tensor, dim: int, points: Tensor, edge_order: int) -> Tensor:
    """Differences along `dim` of samples at the given points."""
    n = f.size(dim)
    shape = [1 for _ in range(f.ndim)]
    shape[dim] = points.size(0) - 1
    steps = diff(points).reshape(shape)
    a, b = steps.narrow(dim, 0, points.size(0) - 2), steps.narrow(dim, 1, points.size(0) - 2)
    inner = (
        f.narrow(dim, 0, n - 2) * (-b / (a * (a + b)))
        + f.narrow(dim, 1, n - 2) * ((b - a) / (a * b))
        + f.narrow(dim, 2, n - 2) * (a / (b * (a + b)))
    )
    first, second = f.narrow(dim, 0, 1), f.narrow(dim, 1, 1)
    last, before = f.narrow(dim, n - 1, 1), f.narrow(dim, n - 2, 1)
    s0, s1 = steps.narrow(dim, 0, 1), steps.narrow(dim, points.size(0) - 2, 1)
    if edge_order == 1:
        return cat([(second - first) / s0, inner, (last - before) / s1], dim)
    t0, t1 = steps.narrow(dim, 1, 1), steps.narrow(dim, points.size(0) - 3, 1)
    start = (
        second * ((s0 + t0) / (s0 * t0))
        - first * ((2 * s0 + t0) / (s0 * (s0 + t0)))
        - f.narrow(dim, 2, 1) * (s0 / (t0 * (s0 + t0)))
    )
    end = (
        last * ((2 * s1 + t1) / (s1 * (s1 + t1)))
        - before * ((s1 + t1) / (s1 * t1))
        + f.narrow(dim, n - 3, 1) * (s1 / (t1 * (s1 + t1)))
    )
    return cat([start, inner, end], dim)


@composite(method=False)
def gradient(
    input: Tensor, *, spacing: Tensors, dim: Ints | None = None, edge_order: int = 1
) -> Tensors:
    """Estimates of the gradient along each dim, from samples at given coordinates.

    >>> torch.gradient(torch.tensor([1.0, 2.0, 4.0]), spacing=[torch.tensor([0.0, 1.0, 3.0])])
    (tensor([1., 1., 1.]),)
    """
    dims = _gradient_dims(input, dim, len(spacing), edge_order)
    for points in spacing:
        check(
            points.ndim == 1,
            "torch.gradient expected each element of spacing to have one dimension, but got an "
            f"element with {points.ndim} dimensions!",
        )
    return [_uneven_gradient(input, d, points, edge_order) for d, points in zip(dims, spacing)]


@gradient.overload(method=False)
def gradient(
    input: Tensor, *, spacing: Numbers, dim: Ints | None = None, edge_order: int = 1
) -> Tensors:
    """From even samples, with a distance for each dim.

    >>> torch.gradient(torch.tensor([1.0, 2.0, 3.0]), spacing=[2.0])
    (tensor([0.5000, 0.5000, 0.5000]),)
    """
    dims = _gradient_dims(input, dim, len(spacing), edge_order)
    return [_even_gradient(input, d, h, edge_order) for d, h in zip(dims, spacing)]


@gradient.overload(method=False)
def gradient(
    input: Tensor, *, spacing: Number | None = None, dim: Ints | None = None, edge_order: int = 1
) -> Tensors:
    """From even samples, with one distance (default 1) for all dims.

    >>> torch.gradient(torch.tensor([1.0, 2.0, 4.0]))
    (tensor([1.0000, 1.5000, 2.0000]),)
    """
    dims = _gradient_dims(input, dim, -1, edge_order)
    h: Number = 1 if spacing is None else spacing
    return [_even_gradient(input, d, h, edge_order) for d in dims]
