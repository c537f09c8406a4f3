"""Multi-head attention (Vaswani et al., 2017).

Owns the projections; the arithmetic is `F.multi_head_attention_forward`. Its public place is
`activation`.
"""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import Parameter

from .linear import NonDynamicallyQuantizableLinear
from .module import Module


class MultiheadAttention(Module):
    """Attention of queries to keys, in several subspaces at once.

    Args:
        embed_dim: size of queries and of the result.
        num_heads: number of subspaces; divides `embed_dim`.
        dropout: probability of zeroing an attention weight.
        bias: whether the projections have biases.
        add_bias_kv: append a learnt key and value.
        add_zero_attn: append a zero key and value.
        kdim, vdim: sizes of keys and values; default: `embed_dim`.
        batch_first: shapes are (N, L, E) rather than (L, N, E).

    Shape: query (L, N, embed_dim), key (S, N, kdim), value (S, N, vdim), or all without N.
    """

    __constants__ = ["batch_first"]
    _qkv_same_embed_dim = True  # for modules pickled before the attribute existed

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.add_zero_attn = add_zero_attn

        together = self._qkv_same_embed_dim
        shapes = {
            "q_proj_weight": None if together else (embed_dim, embed_dim),
            "k_proj_weight": None if together else (embed_dim, self.kdim),
            "v_proj_weight": None if together else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if together else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }
        if together:  # the order of registration is that of PyTorch's state dictionaries
            shapes = {"in_proj_weight": shapes.pop("in_proj_weight"), **shapes}
        for name, shape in shapes.items():
            self._register(name, shape, device, dtype)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        if add_bias_kv:
            self._register("bias_k", (1, 1, embed_dim), device, dtype)
            self._register("bias_v", (1, 1, embed_dim), device, dtype)
        else:
            self.bias_k = self.bias_v = None
        self._reset_parameters()

    def _register(self, name: str, shape: Any, device: Any, dtype: Any) -> None:
        weight = None if shape is None else Parameter(fb.empty(shape, device=device, dtype=dtype))
        self.register_parameter(name, weight)

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = getattr(self, name)
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Args:
            query, key, value: see the class.
            key_padding_mask: (N, S); True, or minus infinity, hides a key.
            need_weights: give the attention weights too (slower).
            attn_mask: (L, S) or (N * num_heads, L, S); True, or minus infinity, hides a pair.
            average_attn_weights: average the weights over the heads.
            is_causal: a hint that `attn_mask` is the causal one.

        Returns:
            (result, weights or None).
        """
        swap = self.batch_first and query.dim() == 3
        if swap:
            query, key, value = _swapped(query, key, value)
        separate = not self._qkv_same_embed_dim
        result, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=separate,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (result.transpose(1, 0) if swap else result), weights

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Join both masks into one of shape (N, num_heads, L, L) for self-attention.

        Returns:
            (mask, kind): kind 1 is a padding mask alone, 2 any with an attention mask, None none.
        """
        if attn_mask is None:
            return key_padding_mask, (None if key_padding_mask is None else 1)
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, self.num_heads, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            padding = key_padding_mask.view(batch, 1, 1, length)
            merged = merged + padding.expand(-1, self.num_heads, -1, -1)
        return merged, 2


def _swapped(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Batch and length exchanged. Tensors that are one object stay one."""
    new_query = query.transpose(1, 0)
    new_key = new_query if key is query else key.transpose(1, 0)
    new_value = new_key if value is key else value.transpose(1, 0)
    return new_query, new_key, new_value
