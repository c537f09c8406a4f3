"""Causal masks by name: attention with them is attention with the mask that they print."""

import pytest

import flambeau as torch
from flambeau.nn.attention.bias import (
    CausalBias,
    CausalVariant,
    causal_lower_right,
    causal_upper_left,
)

F = torch.nn.functional


@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize("sizes", [(3, 3), (2, 5), (5, 2)])
def test_is_the_mask(make, sizes):
    torch.manual_seed(0)
    n, m = sizes
    q, k, v = (torch.randn(2, 2, s, 4, requires_grad=True) for s in (n, m, m))
    bias = make(n, m)
    shift = m - n if make is causal_lower_right else 0
    want = torch.tensor([[j <= i + shift for j in range(m)] for i in range(n)])
    assert torch.equal(bias._materialize(), want) and repr(bias) == repr(want)
    got = F.scaled_dot_product_attention(q, k, v, bias)
    assert torch.allclose(got, F.scaled_dot_product_attention(q, k, v, want), atol=1e-6)
    scaled = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.1)
    same = F.scaled_dot_product_attention(q, k, v, want, scale=0.1)
    assert torch.allclose(scaled, same, atol=1e-6)
    got.sum().backward()
    assert q.grad is not None and not q.grad.isnan().any()


def test_refused():
    bias = causal_upper_left(2, 3)
    q, k = torch.ones(1, 1, 2, 4), torch.ones(1, 1, 3, 4)
    with pytest.raises(ValueError, match="should not be used with causal=True"):
        F.scaled_dot_product_attention(q, k, k, bias, is_causal=True)
    with pytest.raises(ValueError, match="expected 2 queries and 3 keys, got 2 and 2"):
        F.scaled_dot_product_attention(q, q, q, bias)
    with pytest.raises(NotImplementedError, match="only supports scaled_dot_product_attention"):
        bias + 1
    with pytest.raises(RuntimeError, match="only supports 2D"):
        causal_lower_right(1, 2, 3)
    with pytest.raises(TypeError, match="expected a CausalVariant"):
        CausalBias("upper", 2, 3)
    assert CausalVariant.UPPER_LEFT == 1
