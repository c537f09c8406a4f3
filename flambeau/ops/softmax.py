"""Softmax along a dimension. Kernels: csrc/kernels/softmax.cpp."""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="softmax", namespaces=("torch", "nn.functional"), method=True)
def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Exponentials along `dim`, scaled to sum to 1.

    >>> torch.softmax(torch.zeros(2), 0)
    tensor([0.5000, 0.5000])
    """
    check_index(-max(input.ndim, 1) <= dim < max(input.ndim, 1), f"softmax: dim {dim} is out of range")
    out = input.dtype if dtype is None else dtype
    check(out.is_inexact, f'"softmax_kernel_impl" not implemented for \'{scalar_type_name(out)}\'')
    return empty(input.shape, dtype=out, like=input)


@softmax.vjp
def _(g, input, dim, result):
    return softmax_backward(g, result, dim, input.dtype)


@structured(kernel="softmax_backward", method=False, function=False, out=False)
def softmax_backward(grad: Tensor, output: Tensor, dim: int, dtype: DType) -> Tensor:
    """Cotangent of the input of softmax, from that of its output.

    >>> torch.softmax(torch.zeros(2, requires_grad=True), 0).sum().backward()
    """
    return empty(output.shape, dtype=dtype, like=output)


@softmax_backward.vjp
def _(g, grad, output, dim):
    inner = (grad * output).sum([dim], keepdim=True)
    gy = g * output
    return gy - output * gy.sum([dim], keepdim=True), g * (grad - inner) - grad * gy.sum([dim], keepdim=True)
