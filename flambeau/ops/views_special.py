"""Views of rarer geometry: diagonals, sliding windows, plain aliases, transposes of matrices."""

from __future__ import annotations

from flambeau.ops._lang import *


@view(namespaces=(), method=False)
def alias(input: Tensor) -> Tensor:
    """View of everything.

    >>> torch.ones(2)[...]
    tensor([1., 1.])
    """
    return strided(input, input.shape, input.strides, input.offset)


@alias.vjp
def _(g):
    return g


@view
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """View of a diagonal of two dims, which become the last dim.

    >>> torch.arange(4).view(2, 2).diagonal()
    tensor([0, 3])
    """
    a = wrap_dim(dim1, input.ndim)
    b = wrap_dim(dim2, input.ndim)
    check(a != b, f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows = input.shape[a]
    cols = input.shape[b]
    n = min(rows, cols - offset) if offset >= 0 else min(rows + offset, cols)
    n = max(n, 0)
    start = input.offset
    if n > 0:
        start += offset * input.strides[b] if offset >= 0 else -offset * input.strides[a]
    shape: Ints = []
    stride: Ints = []
    for d in range(input.ndim):
        if d != a and d != b:
            shape.append(input.shape[d])
            stride.append(input.strides[d])
    shape.append(n)
    stride.append(input.strides[a] + input.strides[b])
    return strided(input, shape, stride, start)


@diagonal.vjp
def _(g, input, offset, dim1, dim2):
    out = g.new_zeros(input.shape)
    out.diagonal(offset, dim1, dim2).copy_(g)
    return out


@view(namespaces=(), method=True)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """View of all windows of `size` entries along a dim, `step` apart; they become the last dim.

    >>> torch.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    check(step > 0, f"step is {step} but must be > 0")
    check(size >= 0, f"size is {size} but must be >= 0")
    d = wrap_dim(dimension, input.ndim)
    n = input.shape[d] if input.ndim > 0 else 1
    check(
        size <= n,
        f"maximum size for tensor at dimension {d} is {n} but size is {size}",
    )
    shape = list(input.shape)
    stride = list(input.strides)
    if input.ndim == 0:
        return strided(input, [size], [1], input.offset)
    shape.append(size)
    stride.append(stride[d])
    shape[d] = (n - size) // step + 1
    stride[d] *= step
    return strided(input, shape, stride, input.offset)


@unfold.vjp
def _(g, input, dimension, size, step):
    return unfold_backward(g, input.shape, dimension, size, step)


@composite(namespaces=(), method=False)
def unfold_backward(g: Tensor, shape: Ints, dim: int, size: int, step: int) -> Tensor:
    """Cotangent of the input of unfold: windows are added where they overlap.

    >>> torch.ones(3).requires_grad_().unfold(0, 2, 1).sum().backward()
    """
    out = g.new_zeros(shape)
    if len(shape) == 0:
        return g.select(0, 0) if size > 0 else out
    d = wrap_dim(dim, len(shape))
    n = g.size(d)
    for i in range(size):
        if n > 0:
            out.slice(d, i, i + (n - 1) * step + 1, step).add_(g.select(-1, i))
    return out


@composite(namespaces=(), method=True)
def adjoint(input: Tensor) -> Tensor:
    """Conjugate transpose of the last two dims.

    >>> torch.ones(2, 3).adjoint().shape
    torch.Size([3, 2])
    """
    check(
        input.ndim != 1,
        "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.",
    )
    return input.transpose(-2, -1).conj() if input.ndim > 0 else input.conj()
