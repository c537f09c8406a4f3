"""Calls that mean nothing are refused, as in PyTorch, with an error that names the argument."""

import pytest

import flambeau as torch
import flambeau.nn.functional as F


@pytest.mark.parametrize("f", [torch.add, torch.sub, torch.rsub])
def test_a_bool_alpha_is_for_bools(f):
    for args in ((torch.ones(2), 1), (torch.ones(2).int(), torch.ones(2).int())):
        with pytest.raises(RuntimeError, match="Boolean alpha"):
            f(*args, alpha=True)
    assert torch.add(torch.ones(2).bool(), True, alpha=True).tolist() == [True, True]


def test_polar_takes_two_of_one_floating_dtype():
    with pytest.raises(RuntimeError, match="second argument"):
        torch.polar(torch.ones(2).double(), torch.ones(2))
    with pytest.raises(RuntimeError, match="Half, Float or Double"):
        torch.polar(torch.ones(2).long(), torch.ones(2).long())


def test_a_tensor_with_dims_is_no_number_beside_a_signature_with_tensors():
    x = torch.arange(7)
    assert [t.tolist() for t in x.tensor_split(torch.tensor([3]))] == [[0, 1, 2], [3, 4, 5, 6]]
    assert len(x.tensor_split(torch.tensor(3))) == len(x.tensor_split(3)) == 3
    with pytest.raises(RuntimeError, match="dtype of long"):
        x.tensor_split(torch.tensor([3], dtype=torch.int32))
    with pytest.raises(RuntimeError, match="2 dims"):
        x.tensor_split(torch.tensor([[3]]))
    assert x.narrow(0, torch.tensor(2), 1).tolist() == x.narrow(0, 2, 1).tolist() == [2]


def test_groups_of_one_value_have_no_variance():
    for shape in ((1, 2), (1, 2, 1)):
        for f in (lambda x: F.group_norm(x, 2), torch.nn.GroupNorm(2, 2)):
            with pytest.raises(ValueError, match="more than 1 value per channel"):
                f(torch.ones(shape))
    assert torch.group_norm(torch.ones(1, 2), 2).tolist() == [[0, 0]]
    assert F.group_norm(torch.ones(2, 2), 2).shape == F.group_norm(torch.ones(1, 2), 1).shape[:0] \
        + (2, 2)  # fmt: skip


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_pads_by_own_values_need_channels(mode):
    for shape, pad in (
        ((0, 4), (1, 1)), ((2, 0, 4), (1, 1)), ((2, 0, 4, 4), (1, 1, 1, 1)),
        ((0, 4, 4), (1, 1, 1, 1)), ((0, 4, 4, 4), (1, 1, 1, 1, 1, 1)),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="non-zero dimensions"):
            F.pad(torch.ones(shape), pad, mode=mode)
    assert F.pad(torch.ones(0, 2, 4), (1, 1), mode=mode).shape == (0, 2, 6)


def test_a_pad_by_own_values_takes_no_value_but_zero():
    x = torch.arange(3.0).view(1, 1, 3)
    assert F.pad(x, (1, 1), mode="reflect", value=0.0).tolist() == [[[1, 0, 1, 2, 1]]]
    for mode in ("reflect", "replicate", "circular"):
        F.pad(x, (1, 1), mode=mode, value=0)
        with pytest.raises(RuntimeError, match="value argument"):
            F.pad(x, (1, 1), mode=mode, value=1.0)


@pytest.mark.parametrize("f", [torch._softmax, torch._log_softmax])
def test_half_to_float_names_the_dtype_that_it_got(f):
    with pytest.raises(RuntimeError, match="expected a float16 input .* got torch.float32"):
        f(torch.zeros(1), 0, True)
