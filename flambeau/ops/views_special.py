"""Views of rarer geometry: diagonals, sliding windows, plain aliases, transposes of matrices."""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.views import _step_among


@view(namespaces=(), method=False, batch=True, layout="free")
def alias(input: Tensor) -> Tensor:
    """View of everything.

    >>> torch.ones(2)[...]
    tensor([1., 1.])
    """
    return strided(input, input.shape, input.strides, input.offset)


@alias.vjp
def _(g):
    return g


@view(batch=True)
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


@view(namespaces=(), method=True, batch=True)
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
    by = _step_among(step, n)
    shape[d] = (n - size) // by + 1
    stride[d] *= by
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


@composite()
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


@view(method=False, batch=True)
def view_as_real(input: Tensor) -> Tensor:
    """View of a complex tensor as pairs (real, imaginary) in a new last dim of size 2.

    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    check(input.is_complex(), "view_as_real is only supported for complex tensors")
    shape = list(input.shape)
    stride = [2 * n for n in input.strides]
    shape.append(2)
    stride.append(1)
    return strided(input, shape, stride, 2 * input.offset, to_real(input.dtype))


@view_as_real.vjp
def _(g):
    return view_as_complex(g.contiguous())


@view(method=False, autocast="float32", batch=True)
def view_as_complex(input: Tensor) -> Tensor:
    """View of pairs in the last dim (of size 2) as complex numbers.

    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    check(
        input.dtype == float32 or input.dtype == float64,
        f"view_as_complex: expected dtype float32 or float64, got {dtype_name(input.dtype)}",
    )
    check(input.ndim > 0, "Input tensor must have one or more dimensions")
    last = input.ndim - 1
    check(input.size(last) == 2, "Tensor must have a last dimension of size 2")
    check(input.stride(last) == 1, "Tensor must have a last dimension with stride 1")
    stride: Ints = []
    for i in range(last):
        check(
            input.stride(i) % 2 == 0,
            "Tensor must have a stride divisible by 2 for all but last dimension",
        )
        stride.append(input.stride(i) // 2)
    check(input.offset % 2 == 0, "Tensor must have a storage_offset divisible by 2")
    return strided(input, input.shape[:last], stride, input.offset // 2, to_complex(input.dtype))


@view_as_complex.vjp
def _(g):
    return view_as_real(g.contiguous())


@composite(method=False)
def real(input: Tensor) -> Tensor:
    """View of the real parts; a real tensor itself.

    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    return view_as_real(input).select(-1, 0) if input.is_complex() else input


@composite(method=False)
def imag(input: Tensor) -> Tensor:
    """View of the imaginary parts of a complex tensor.

    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    check(input.is_complex(), "imag is not implemented for tensors with non-complex dtypes.")
    return view_as_real(input).select(-1, 1)


@composite(namespaces=(), method=False)
def _imaginary(input: Tensor) -> Tensor:
    """Imaginary parts, 0 of real numbers: what derivatives of scalar expressions mean by them."""
    return imag(input) if input.is_complex() else zeros_like(input)


@view(namespaces=(), method=False, batch=True)
def view_dtype(input: Tensor, dtype: DType) -> Tensor:
    """View of the same bytes as elements of another dtype (`Tensor.view(dtype)`).

    >>> torch.zeros(1).view(torch.int32)
    tensor([0], dtype=torch.int32)
    """
    old = input.dtype.itemsize
    new = dtype.itemsize
    if old == new:
        return strided(input, input.shape, input.strides, input.offset, dtype)
    what = (
        f" to view {scalar_type_name(input.dtype)} as {scalar_type_name(dtype)} (different element "
        "sizes)"
    )
    check(input.ndim > 0, f"self.dim() cannot be 0{what}")
    shape = list(input.shape)
    stride = list(input.strides)
    last = input.ndim - 1
    check(stride[last] == 1, f"self.stride(-1) must be 1{what}, but got {stride[last]}")
    if old > new:
        k = old // new
        for i in range(last):
            stride[i] *= k
        shape[last] *= k
        return strided(input, shape, stride, input.offset * k, dtype)
    k = new // old
    check(
        shape[last] % k == 0,
        f"self.size(-1) must be divisible by {k}{what}, but got {shape[last]}",
    )
    check(
        input.offset % k == 0,
        f"self.storage_offset() must be divisible by {k}{what}, but got {input.offset}",
    )
    for i in range(last):
        check(
            stride[i] % k == 0,
            f"self.stride({i}) must be divisible by {k}{what}, but got {stride[i]}",
        )
        stride[i] = stride[i] // k
    shape[last] = shape[last] // k
    return strided(input, shape, stride, input.offset // k, dtype)


@view_dtype.vjp
def _(g, input):
    return view_dtype(g.contiguous(), input.dtype)
