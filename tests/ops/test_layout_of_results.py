"""Results that lie by rows whatever their arguments do, so that `view` takes them."""

from __future__ import annotations

import warnings

import pytest

import flambeau as torch

F = torch.nn.functional


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.masked_fill(x > 0, 0.0),
        F.logsigmoid,
        lambda x: torch.bernoulli(x.sigmoid()),
        lambda x: torch.stack([x, x], 2),
        lambda x: F.scaled_dot_product_attention(x, x, x),
    ],
)
def test_rows(f):
    x = torch.randn(3, 5, 4).transpose(1, 2)
    y = f(x)
    assert y.is_contiguous()
    assert y.view(-1).shape == (y.numel(),)


def test_attention_lies_as_its_queries():
    q = torch.randn(2, 3, 5, 4)
    assert F.scaled_dot_product_attention(q, q, q).stride() == q.stride()
    heads = torch.randn(2, 5, 3, 4).transpose(1, 2)
    assert F.scaled_dot_product_attention(heads, q, q).stride() == heads.stride()
    wide = torch.randn(2, 3, 5, 6)
    assert F.scaled_dot_product_attention(heads, q, wide).is_contiguous()
    want = (heads @ q.mT / 2).softmax(-1) @ wide
    assert torch.allclose(F.scaled_dot_product_attention(heads, q, wide), want, atol=1e-6)


def test_products_of_vectors_promote():
    a, b = torch.tensor([1, 2]), torch.tensor([0.5, 1.5, 2.5], requires_grad=True)
    got = torch.outer(a, b)
    assert got.dtype == torch.float32 and got.tolist() == [[0.5, 1.5, 2.5], [1, 3, 5]]
    got.sum().backward()
    assert b.grad.tolist() == [3, 3, 3]
    assert torch.outer(b.detach().double(), b).dtype == torch.float64


def test_what_has_the_shape_already_is_returned():
    x, y = torch.ones(2, 3), torch.ones(3)
    first, second = torch.broadcast_tensors(x, y)
    assert first is x and second.shape == (2, 3) and second.data_ptr() == y.data_ptr()


def test_a_number_is_its_own_transpose():
    x, z = torch.tensor(2.0), torch.tensor(1 + 2j)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert x.mT is x and z.mH.item() == 1 - 2j
    assert ["deprecated on 0-D" in str(w.message) for w in said] == [True, True]
    with pytest.raises(RuntimeError, match="mT is only supported"):
        _ = torch.ones(3).mT
