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


@softmax.decompose
def _(input, dim, dtype):
    kind = input.dtype if dtype is None else dtype
    x = input.to(kind).to(opmath(kind))
    e = (x - x.amax([dim], True)).exp()
    return (e / e.sum([dim], True)).to(kind)


@softmax.vjp
def _(g, input, dim, result):
    return softmax_backward(g, result, dim, input.dtype)


@composite(method=False)
def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """softmax as PyTorch's own functions call it; `half_to_float` gives float32 of float16.

    >>> torch._softmax(torch.zeros(1), 0, False)
    tensor([1.])
    """
    check(
        not half_to_float or input.dtype == float16,
        f"_softmax: expected a float16 input with half_to_float, got {input.dtype}",
    )
    return softmax(input, dim, float32 if half_to_float else None)


@composite(method=False)
def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    """Cotangent of the input of softmax, from that of its output.

    >>> torch._softmax_backward_data(torch.ones(1), torch.ones(1), 0, torch.float32)
    tensor([0.])
    """
    check(
        grad_output.dtype == output.dtype,
        f"_softmax_backward_data: expected grad_output of dtype {output.dtype}, got "
        f"{grad_output.dtype}",
    )
    return softmax_backward(grad_output, output, dim, input_dtype)


@structured(kernel="softmax_backward", namespaces=(), method=False, out=False, batch=True)
def softmax_backward(grad: Tensor, output: Tensor, dim: int, dtype: DType) -> Tensor:
    """Cotangent of the input of softmax, from that of its output.

    >>> torch.softmax(torch.zeros(2, requires_grad=True), 0).sum().backward()
    """
    return empty(output.shape, dtype=dtype, like=output)


@softmax_backward.decompose
def _(grad, output, dim, dtype):
    y = output.to(opmath(output.dtype))
    gy = grad.to(y.dtype) * y
    return (gy - y * gy.sum([dim], True)).to(dtype)


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


@log_softmax.decompose
def _(input, dim, dtype):
    kind = input.dtype if dtype is None else dtype
    x = input.to(kind).to(opmath(kind))
    y = x - x.amax([dim], True)
    return (y - y.exp().sum([dim], True).log()).to(kind)


@log_softmax.vjp
def _(g, input, dim, result):
    return log_softmax_backward(g, result, dim, input.dtype)


@composite(method=False)
def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """log_softmax as PyTorch's own functions call it; `half_to_float` gives float32 of float16.

    >>> torch._log_softmax(torch.zeros(1), 0, False)
    tensor([0.])
    """
    check(
        not half_to_float or input.dtype == float16,
        f"_log_softmax: expected a float16 input with half_to_float, got {input.dtype}",
    )
    return log_softmax(input, dim, float32 if half_to_float else None)


@composite(method=False)
def _log_softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    """Cotangent of the input of log_softmax, from that of its output.

    >>> torch._log_softmax_backward_data(torch.ones(1), torch.zeros(1), 0, torch.float32)
    tensor([0.])
    """
    check(
        grad_output.dtype == output.dtype,
        f"_log_softmax_backward_data: expected grad_output of dtype {output.dtype}, got "
        f"{grad_output.dtype}",
    )
    return log_softmax_backward(grad_output, output, dim, input_dtype)


@structured(kernel="log_softmax_backward", namespaces=(), method=False, out=False, batch=True)
def log_softmax_backward(grad: Tensor, output: Tensor, dim: int, dtype: DType) -> Tensor:
    """Cotangent of the input of log_softmax, from that of its output.

    >>> torch.log_softmax(torch.zeros(2, requires_grad=True), 0).sum().backward()
    """
    return empty(output.shape, dtype=dtype, like=output)


@log_softmax_backward.decompose
def _(grad, output, dim, dtype):
    y = output.to(opmath(output.dtype))
    g = grad.to(y.dtype)
    return (g - y.exp() * g.sum([dim], True)).to(dtype)


@log_softmax_backward.vjp
def _(g, grad, output, dim):
    dims = [dim]
    h = g.to(output.dtype)
    p = output.exp()
    return h - (h * p).sum(dims, keepdim=True), -(h * p * grad.sum(dims, keepdim=True))


# Functions of nn.functional, whose dim may be left out -----------------------------------------


@composite(namespaces=(), method=False)
def _implied_dim(name: str, input: Tensor) -> int:
    """The dim of softmax where none is given, with a warning."""
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument."
    )
    return 0 if input.ndim in (0, 1, 3) else 1


@composite(namespaces=("nn.functional",), method=False)
def functional_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Exponentials along `dim`, scaled to sum to 1; `dtype` is taken first.

    >>> F.softmax(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return softmax(input, _implied_dim("softmax", input) if dim is None else dim, dtype)


@composite(namespaces=("nn.functional",), method=False)
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """softmax of minus the input.

    >>> F.softmin(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return softmax(-input, _implied_dim("softmin", input) if dim is None else dim, dtype)


@composite(namespaces=("nn.functional",), method=False)
def functional_log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Logarithm of softmax; `dtype` is taken first.

    >>> F.log_softmax(torch.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return log_softmax(input, _implied_dim("log_softmax", input) if dim is None else dim, dtype)


@pointwise(namespaces=(), method=False, inplace=False, out=False)
def _straight_through(input: Tensor, soft: Tensor) -> Tensor:
    """Input, with the gradient going to `soft`.

    >>> F.gumbel_softmax(torch.zeros(1), hard=True)
    tensor([1.])
    """
    return input - soft + soft


@_straight_through.vjp
def _(g):
    return None, g


@composite(namespaces=("nn.functional",), method=False)
def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Differentiable samples of categories (Jang, Gu and Poole, 2016).

    Args:
        logits: unnormalised log-probabilities.
        tau: temperature.
        hard: gives one-hot vectors, with the gradient of the soft ones.
        eps: without effect, told by a warning.
        dim: of the categories.

    >>> F.gumbel_softmax(torch.zeros(1), hard=True)
    tensor([1.])
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    noise = -empty_like(logits, memory_format=contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    _, best = soft.max(dim, True)
    one_hot = zeros_like(logits, memory_format=contiguous_format).scatter_(dim, best, 1.0)
    return _straight_through(one_hot, soft)
