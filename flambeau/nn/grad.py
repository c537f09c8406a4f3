"""Gradients of convolutions by themselves: with respect to the input, and to the weight.

Source: PyTorch's documentation of `torch.nn.grad`; a convolution is linear in each of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import functional as F

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]

_Ints = int | Sequence[int]


def _gradient(
    convolution: Callable[..., Tensor],
    inputs: tuple[Tensor, Tensor],
    wanted: int,
    grad_output: Tensor,
    options: tuple[Any, ...],
) -> Tensor:
    """The gradient of a convolution of (input, weight) with respect to one of them. Its own
    gradients flow to the other and to `grad_output`."""
    follow = fb.is_grad_enabled() and any(x.requires_grad for x in (*inputs, grad_output))
    with fb.enable_grad():
        x, w = (
            t.detach().requires_grad_() if i == wanted else t for i, t in enumerate(inputs)
        )
        out = convolution(x, w, None, *options)
        if out.shape != grad_output.shape:
            raise RuntimeError(
                f"nn.grad: expected grad_output of shape {list(out.shape)}, got "
                f"{list(grad_output.shape)}"
            )
        (made,) = fb.autograd.grad(out, (x, w)[wanted], grad_output, create_graph=follow)
    return made


def _input(
    convolution: Callable[..., Tensor], size: Sequence[int], weight: Tensor, g: Tensor, *rest: Any
) -> Tensor:
    x = fb.empty(1, dtype=g.dtype, device=g.device).expand(tuple(size))
    return _gradient(convolution, (x, weight), 0, g, rest)


def _weight(
    convolution: Callable[..., Tensor], input: Tensor, size: Sequence[int], g: Tensor, *rest: Any
) -> Tensor:
    w = fb.empty(1, dtype=g.dtype, device=g.device).expand(tuple(size))
    return _gradient(convolution, (input, w), 1, g, rest)


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: _Ints = 1,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` with respect to its input.

    Args:
        input_size: of the input, (N, C, L).
        weight: (K, C / groups, k).
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: as in `conv1d`.

    Raises:
        RuntimeError: `grad_output` has not the result's shape.

    >>> torch.nn.grad.conv1d_input((1, 1, 3), torch.ones(1, 1, 2), torch.ones(1, 1, 2))
    tensor([[[1., 2., 1.]]])
    """
    return _input(F.conv1d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: _Ints = 1,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` with respect to its weight, of shape `weight_size`; the other
    arguments and errors are those of `conv1d_input`.

    >>> torch.nn.grad.conv1d_weight(torch.ones(1, 1, 3), (1, 1, 2), torch.ones(1, 1, 2))
    tensor([[[2., 2.]]])
    """
    return _weight(F.conv1d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: _Ints = 1,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` with respect to its input, of shape `input_size`, (N, C, H, W); see
    `conv1d_input`.

    >>> torch.nn.grad.conv2d_input((1, 1, 2, 2), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 1))
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    return _input(F.conv2d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: _Ints = 1,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` with respect to its weight, see `conv1d_weight`.

    >>> torch.nn.grad.conv2d_weight(torch.ones(1, 1, 2, 2), (1, 1, 1, 1), torch.ones(1, 1, 2, 2))
    tensor([[[[4.]]]])
    """
    return _weight(F.conv2d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: _Ints = 1,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` with respect to its input, of shape `input_size`, (N, C, D, H, W);
    see `conv1d_input`.

    >>> g = torch.ones(1, 1, 1, 1, 1)
    >>> torch.nn.grad.conv3d_input((1, 1, 1, 1, 2), torch.ones(1, 1, 1, 1, 2), g).shape
    torch.Size([1, 1, 1, 1, 2])
    """
    return _input(F.conv3d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: _Ints = 1,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` with respect to its weight, see `conv1d_weight`.

    >>> x = torch.ones(1, 1, 1, 1, 2)
    >>> torch.nn.grad.conv3d_weight(x, (1, 1, 1, 1, 2), torch.ones(1, 1, 1, 1, 1)).sum()
    tensor(2.)
    """
    return _weight(F.conv3d, input, weight_size, grad_output, stride, padding, dilation, groups)
