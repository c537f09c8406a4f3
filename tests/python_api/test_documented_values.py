"""What PyTorch's pages say of single functions, where our results once differed."""

import numpy as np
import pytest

import flambeau as torch


def test_round_to_tens_is_exact():
    x = torch.tensor([1200.1234567, 1500.0, -2500.0, 123456.0])
    assert torch.round(x, decimals=-3).tolist() == [1000.0, 2000.0, -2000.0, 123000.0]


def test_asarray_keeps_history_unless_told():
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    inner = leaf * 2
    assert torch.asarray(inner) is inner and torch.asarray(leaf) is leaf
    assert torch.asarray(inner, copy=True).grad_fn is not None
    assert torch.asarray(inner, dtype=torch.float64).grad_fn is not None
    assert not torch.asarray(inner, requires_grad=False).requires_grad
    torch.asarray(inner, copy=True).sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0]


def test_make_tensor_draws_as_uniform_does():
    torch.manual_seed(0)
    made = torch.testing.make_tensor((3,), device="cpu", dtype=torch.float32, low=-1, high=1)
    torch.manual_seed(0)
    assert torch.equal(made, torch.empty(3).uniform_(-1, 1))
    wide = torch.testing.make_tensor(4, 3, device="cpu", dtype=torch.float32, noncontiguous=True)
    assert wide.shape == (4, 3) and not wide.is_contiguous()


def test_gradient_of_whole_numbers_at_uneven_points():
    values = torch.tensor([4.0, 1.0, 1.0, 16.0])
    (made,) = torch.gradient(values, spacing=(torch.tensor([-2.0, -1.0, 1.0, 4.0]),))
    assert np.array_equal(made.numpy(), np.gradient(values.numpy(), [-2.0, -1.0, 1.0, 4.0]))


def test_ambiguity_of_dim_order():
    plain, thin = torch.empty(2, 3, 5, 7), torch.empty(1, 2, 3, 4)
    both = [torch.contiguous_format, torch.channels_last]
    assert plain.dim_order(ambiguity_check=True) == (0, 1, 2, 3)
    assert plain.dim_order(ambiguity_check=[torch.channels_last]) == (0, 1, 2, 3)
    assert thin.dim_order(ambiguity_check=both) == (0, 1, 2, 3)
    for check in (True, [], [torch.channels_last]):
        with pytest.raises(RuntimeError, match="the only one"):
            thin.dim_order(ambiguity_check=check)
    for check in ("yes", 3, ["a"]):
        with pytest.raises(TypeError, match="a bool or a list of memory formats"):
            thin.dim_order(ambiguity_check=check)
