"""Names that packages over PyTorch read: joined tensors, asserts as calls, operators by keyword."""

import numpy as np
import pytest

import flambeau as torch
from flambeau._utils import _flatten_dense_tensors, _unflatten_dense_tensors


def test_joined_tensors_come_apart_again():
    parts = [torch.randn(2, 3), torch.randn(()), torch.randn(0, 4), torch.randn(5)]
    flat = _flatten_dense_tensors(parts)
    assert flat.shape == (12,)
    for old, new in zip(parts, _unflatten_dense_tensors(flat, parts), strict=True):
        assert old.shape == new.shape
        np.testing.assert_array_equal(old.numpy(), new.numpy())


def test_asserts_as_calls():
    torch._assert_async(torch.tensor(1))
    torch._assert_scalar(True, "never")
    with pytest.raises(RuntimeError, match="it is zero"):
        torch._assert_async(torch.tensor(0.0), "it is zero")
    with pytest.raises(RuntimeError, match="not so"):
        torch._assert_scalar(0, "not so")


def test_contractions_stand_in_functional():
    assert torch.functional.einsum is torch.einsum
    with pytest.raises(AttributeError):
        torch.functional.nothing_of_that_name  # noqa: B018


def test_static_addresses_are_a_hint_about_tensors():
    torch._dynamo.mark_static_address(torch.ones(2))
    with pytest.raises(TypeError, match="expected a tensor, got list"):
        torch._dynamo.mark_static_address([1])


def test_operators_take_keywords_by_place_under_autograd():
    @torch.library.custom_op("clients::scaled", mutates_args=())
    def scaled(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        return x * factor

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        x, factor = ctx.saved_tensors
        return g * factor, g * x

    scaled.register_autograd(backward, setup_context=keep)
    x, factor = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    scaled(x, factor=factor).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), factor.detach().numpy())
    np.testing.assert_array_equal(factor.grad.numpy(), x.detach().numpy())
