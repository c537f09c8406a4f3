"""Checks that programs make of their own values, and small functions of one tensor."""

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize(
    ("check", "error"),
    [
        ("_check", RuntimeError),
        ("_check_index", IndexError),
        ("_check_value", ValueError),
        ("_check_type", TypeError),
        ("_check_not_implemented", NotImplementedError),
    ],
)
def test_a_check_raises_its_error_with_the_message(check, error):
    function = getattr(torch, check)
    assert function(True) is None
    function(True, lambda: 1 / 0)  # the message is not asked for
    with pytest.raises(error, match="told"):
        function(False, lambda: "told")
    with pytest.raises(error, match="Expected cond to be True"):
        function(False)
    with pytest.raises(TypeError, match="must be a bool"):
        function(1)
    with pytest.raises(TypeError, match="callable"):
        function(False, "told")


def test_checks_of_tensors_sizes_and_other_errors():
    torch._check_tensor_all(torch.tensor([True, True]))
    with pytest.raises(RuntimeError, match="some"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "some")
    with pytest.raises(TypeError):
        torch._check_tensor_all(torch.tensor([1]))
    with pytest.raises(KeyError, match="k"):
        torch._check_with(KeyError, False, lambda: "k")
    torch._check_is_size(2, max=3)
    for size, most in ((-1, None), (4, 3)):
        with pytest.raises(RuntimeError):
            torch._check_is_size(size, max=most)


def test_assertions():
    torch._assert(True, "no")
    with pytest.raises(AssertionError, match="^no$"):
        torch._assert(torch.tensor(False), "no")
    torch._assert_async(torch.tensor(3))
    with pytest.raises(RuntimeError, match="^no$"):
        torch._assert_async(torch.tensor(0.0), "no")
    with pytest.raises(RuntimeError, match="ambiguous"):
        torch._assert_async(torch.tensor([True, True]))


def test_questions_take_their_tensor_by_name():
    x = torch.ones(2)
    assert torch.is_floating_point(input=x) and not torch.is_complex(input=x)
    assert torch.is_signed(input=x) and torch.numel(input=x) == 2
    assert not torch.is_inference(input=x) and torch.is_nonzero(input=x[0])
    for ask in (torch.is_floating_point, torch.numel, torch.is_inference, torch.is_nonzero):
        with pytest.raises(TypeError, match="unexpected keyword"):
            ask(x=x)
        with pytest.raises(TypeError, match="one argument"):
            ask()
    assert torch.is_same_size(x, torch.zeros(2)) and not x.is_same_size(torch.zeros(2, 1))
    assert x[0].is_nonzero() and not torch.is_conj(x) and not torch.is_neg(x)
    assert not torch.is_distributed(x)


def test_grouped_products_equal_products_of_the_groups():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 3)), rng.normal(size=(3, 3, 4))
    ends = torch.tensor([2, 2, 4], dtype=torch.int32)
    got = torch._grouped_mm(torch.tensor(x), torch.tensor(w), offs=ends)
    want = np.concatenate([x[:2] @ w[0], x[2:4] @ w[2], np.zeros((1, 4))])
    np.testing.assert_allclose(got.numpy(), want)
    v, y = rng.normal(size=(3, 2, 4)), rng.normal(size=(4, 6))
    got = torch._grouped_mm(torch.tensor(v), torch.tensor(y), offs=ends)
    want = np.concatenate([v[0] @ y[:, :2], v[2] @ y[:, 2:4], np.zeros((2, 2))], 1)
    np.testing.assert_allclose(got.numpy(), want)
    a, b = rng.normal(size=(2, 4)), rng.normal(size=(4, 3))
    cut = torch.tensor([1, 4], dtype=torch.int32)
    got = torch._grouped_mm(torch.tensor(a), torch.tensor(b), offs=cut)
    np.testing.assert_allclose(got.numpy(), np.stack([a[:, :1] @ b[:1], a[:, 1:] @ b[1:]]))
    got = torch._grouped_mm(torch.tensor(w), torch.tensor(w.swapaxes(1, 2)))
    np.testing.assert_allclose(got.numpy(), w @ w.swapaxes(1, 2))
    with pytest.raises(RuntimeError, match="rise"):
        torch._grouped_mm(torch.tensor(x), torch.tensor(w), offs=ends + 3)
    leaf = torch.tensor(x, requires_grad=True)
    torch._grouped_mm(leaf, torch.tensor(w), offs=ends).sum().backward()
    rows = np.stack([w[0].sum(1)] * 2 + [w[2].sum(1)] * 2 + [np.zeros(3)])
    np.testing.assert_allclose(leaf.grad.numpy(), rows)


def test_the_number_of_a_truth_value_is_one():
    assert torch.tensor(True).item() is True and torch.tensor([False])[0].item() is False
    assert (torch.ones(2).sum() > 1).item() is True
    assert torch.tensor([True, False]).tolist() == [True, False]
    assert type(torch.tensor([True]).max().item()) is bool
