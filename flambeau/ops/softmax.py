"""softmax and log_softmax along a dimension. Kernels: csrc/kernels/softmax.cpp.

Each has a fused backward kernel, itself differentiable by a formula, so that every order works.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _softmax_dtype(input: Tensor, dim: int, dtype: DType | None, what: str) -> DType:
    """Element type of the result; refuses what has no exponentials.

    >>> torch.softmax(torch.zeros(2, dtype=torch.int64), 0, torch.float32)
    tensor([0.5000, 0.5000])
    """
    out = input.dtype if dtype is None else dtype
    last = wrap_dim(dim, input.ndim) >= input.ndim - 1
    kernel = what + ("_lastdim_kernel_impl" if last else "_kernel_impl")
    check_not_implemented(
        out.is_floating_point, f"\"{kernel}\" not implemented for '{scalar_type_name(out)}'"
    )
    return out


@structured(kernel="softmax", namespaces=("torch", "special"), method=True, batch=True)
def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Exponentials along `dim`, scaled to sum to 1.

    Args:
        dtype: the input is converted to it first.

    >>> torch.softmax(torch.zeros(2), 0)
    tensor([0.5000, 0.5000])
    """
    return empty(input.shape, dtype=_softmax_dtype(input, dim, dtype, "softmax"), like=input)


@softmax.vjp
def _(g, input, dim, result):
    return softmax_backward(g, result, dim, input.dtype)


@structured(kernel="softmax_backward", namespaces=(), method=False, out=False, batch=True)
def softmax_backward(grad: Tensor, output: Tensor, dim: int, dtype: DType) -> Tensor:
    """Cotangent of the input of softmax, from that of its output.

    >>> torch.softmax(torch.zeros(2, requires_grad=True), 0).sum().backward()
    """
    return empty(output.shape, dtype=dtype, like=output)


@softmax_backward.vjp
def _(g, grad, output, dim):
    dims = [dim]
    h = g.to(output.dtype)
    inner = (grad * output).sum(dims, keepdim=True)
    hy = h * output
    total = hy.sum(dims, keepdim=True)
    return hy - output * total, h * (grad - inner) - grad * total


@structured(kernel="log_softmax", namespaces=("torch", "special"), method=True, batch=True)
def log_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Logarithm of softmax, computed without overflow.

    Args:
        dtype: the input is converted to it first.

    >>> torch.log_softmax(torch.zeros(2), 0)
    tensor([-0.6931, -0.6931])
    """
    return empty(input.shape, dtype=_softmax_dtype(input, dim, dtype, "log_softmax"), like=input)


@log_softmax.vjp
def _(g, input, dim, result):
    return log_softmax_backward(g, result, dim, input.dtype)


@structured(kernel="log_softmax_backward", namespaces=(), method=False, out=False, batch=True)
def log_softmax_backward(grad: Tensor, output: Tensor, dim: int, dtype: DType) -> Tensor:
    """Cotangent of the input of log_softmax, from that of its output.

    >>> torch.log_softmax(torch.zeros(2, requires_grad=True), 0).sum().backward()
    """
    return empty(output.shape, dtype=dtype, like=output)


@log_softmax_backward.vjp
def _(g, grad, output, dim):
    dims = [dim]
    h = g.to(output.dtype)
    p = output.exp()
    return h - (h * p).sum(dims, keepdim=True), -(h * p * grad.sum(dims, keepdim=True))
