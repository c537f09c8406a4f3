"""The `_copy` functions: values and shape of the view, memory of their own, derivatives through."""

import numpy as np
import pytest

import flambeau as torch

CASES = [
    ("alias", (), ()),
    ("t", (), ()),
    ("squeeze", (), ()),
    ("squeeze", (1,), ()),
    ("unsqueeze", (1,), ()),
    ("as_strided", ((2,), (3,), 1), ()),
    ("diagonal", (1,), ()),
    ("expand", ((2, 2, 3),), ()),
    ("narrow", (1, 1, 2), ()),
    ("permute", ((1, 0),), ()),
    ("select", (1, 2), ()),
    ("slice", (1, 0, None, 2), ()),
    ("transpose", (0, 1), ()),
    ("unfold", (1, 2, 1), ()),
    ("view", ((3, 2),), ()),
]


@pytest.mark.parametrize(("name", "args", "_"), CASES)
def test_copy_of_a_view(name, args, _):
    x = torch.arange(6.0, dtype=torch.float64).view(2, 3)
    view = getattr(torch.Tensor, name, None) or (lambda x: x[...])
    want = view(x, *args)
    function = getattr(torch, name + "_copy")
    got = function(x, *args)
    assert got.is_contiguous() and got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want.numpy())
    got.zero_()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert torch.autograd.gradcheck(lambda x: function(x, *args), x.clone().requires_grad_())


def test_lists_of_copies():
    x = torch.arange(4)
    for parts in (
        torch.unbind_copy(x),
        torch.split_copy(x, 2),
        torch.split_with_sizes_copy(x, (1, 3)),
    ):
        assert torch.cat([p.reshape(-1) for p in parts]).tolist() == [0, 1, 2, 3]
        for part in parts:
            part.zero_()
    assert x.tolist() == [0, 1, 2, 3]


def test_scatter_into_a_view():
    x = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    src = torch.ones(2, dtype=torch.float64, requires_grad=True)
    out = torch.as_strided_scatter(x, src, (2,), (2,), 1)
    assert out.tolist() == [0, 1, 0, 1]
    out.sum().backward()
    assert x.grad.tolist() == [1, 0, 1, 0] and src.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="src size"):
        torch.as_strided_scatter(x, src, (3,), (1,))
