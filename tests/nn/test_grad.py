"""`nn.grad`: gradients of convolutions against finite differences of the convolution."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.nn import functional as F
from flambeau.nn import grad


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


CASES = [
    ("conv1d", (2, 4, 9), (6, 2, 3), dict(stride=2, padding=1, dilation=1, groups=2)),
    ("conv1d", (1, 3, 7), (2, 3, 2), dict(stride=1, padding=0, dilation=2, groups=1)),
    ("conv2d", (2, 4, 6, 5), (4, 1, 3, 2), dict(stride=(2, 1), padding=(1, 0), groups=4)),
    ("conv2d", (1, 2, 5, 5), (3, 2, 2, 2), dict(padding=1, dilation=(1, 2))),
    ("conv3d", (1, 2, 4, 3, 4), (2, 2, 2, 2, 2), dict(stride=2, padding=1)),
]


@pytest.mark.parametrize("name, size, weight_size, options", CASES)
def test_they_are_the_slopes_of_the_convolution(name, size, weight_size, options) -> None:
    convolution = getattr(F, name)
    x, w = numbers(*size), numbers(*weight_size)
    g = numbers(*convolution(x, w, **options).shape)
    gx = getattr(grad, f"{name}_input")(size, w, g, **options)
    gw = getattr(grad, f"{name}_weight")(x, weight_size, g, **options)
    assert gx.shape == x.shape and gw.shape == w.shape and not gx.requires_grad
    for _ in range(5):  # it is linear in each: differences are exact
        dx, dw = numbers(*size), numbers(*weight_size)
        want = (convolution(dx, w, **options) * g).sum()
        assert torch.allclose((gx * dx).sum(), want)
        want = (convolution(x, dw, **options) * g).sum()
        assert torch.allclose((gw * dw).sum(), want)


def test_gradients_flow_through_them() -> None:
    w, g = numbers(2, 3, 3, 3).requires_grad_(), numbers(1, 2, 3, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda w, g: grad.conv2d_input((1, 3, 5, 5), w, g), (w, g))
    x = numbers(1, 3, 5, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, g: grad.conv2d_weight(x, (2, 3, 3, 3), g), (x, g))


def test_other_shapes_are_errors() -> None:
    with pytest.raises(RuntimeError, match=r"grad_output of shape \[1, 2, 3, 3\], got \[1, 2, 4"):
        grad.conv2d_input((1, 3, 5, 5), numbers(2, 3, 3, 3), numbers(1, 2, 4, 4))
