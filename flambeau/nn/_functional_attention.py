"""`multi_head_attention_forward`: projections in, attention, projection out.

Owns the handling of masks, bias rows and need_weights; the attention itself is
`scaled_dot_product_attention`, or plain products when the weights are asked for.
"""

from __future__ import annotations

import math
import warnings

from flambeau import _C

Tensor = _C.Tensor


def _as_addend(mask: Tensor | None, name: str, dtype: _C.dtype) -> Tensor | None:
    """A mask as numbers to add to scores; True of a boolean one forbids."""
    if mask is None:
        return None
    if mask.dtype == _C.bool:
        return _C.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -math.inf)
    if not mask.is_floating_point():
        raise AssertionError(
            f"only bool and floating types of {name} are supported, got {mask.dtype}"
        )
    return mask


def _project(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    wq: Tensor,
    wk: Tensor,
    wv: Tensor,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    from flambeau.nn.functional import linear

    if bias is None:
        return linear(query, wq), linear(key, wk), linear(value, wv)
    bq, bk, bv = bias.split(query.shape[-1])
    return linear(query, wq, bq), linear(key, wk, bk), linear(value, wv, bv)


def _project_together(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    from flambeau.nn.functional import linear

    if key is value and query is key:
        q, k, v = linear(query, weight, bias).chunk(3, -1)
        return q, k, v
    wq, wk, wv = weight.chunk(3, 0)
    return _project(query, key, value, wq, wk, wv, bias)


def _check_mask(mask: Tensor, length: int, source: int, batch: int, heads: int) -> Tensor:
    """The attention mask with a dimension for batch * heads."""
    if mask.ndim == 2:
        if list(mask.shape) != [length, source]:
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {mask.shape}, but should be {(length, source)}."
            )
        return mask.unsqueeze(0)
    if mask.ndim == 3:
        if list(mask.shape) != [batch * heads, length, source]:
            raise RuntimeError(
                f"The shape of the 3D attn_mask is {mask.shape}, but should be "
                f"{(batch * heads, length, source)}."
            )
        return mask
    raise RuntimeError(f"attn_mask's dimension {mask.ndim} is not supported")


def _warn_of_two_kinds(mask: Tensor | None, padding: Tensor | None, names: str) -> None:
    """One kind of mask is easier to read than a boolean and an added one."""
    if mask is not None and padding is not None and mask.dtype != padding.dtype:
        warnings.warn(
            f"{names} of different dtypes ({padding.dtype}, {mask.dtype}) are deprecated: use one "
            "for both",
            stacklevel=4,
        )


def _check_ranks(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> bool:
    """True when there is a batch dimension."""
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query "
            "tensor"
        )
    kind = "batched 3-D" if query.ndim == 3 else "unbatched 2-D"
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {query.ndim}-D but found "
            f"{key.ndim}-D and "
            f"{value.ndim}-D tensors respectively"
        )
    if padding is not None and padding.ndim != query.ndim - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.ndim - 1}-D "
            "but found "
            f"{padding.ndim}-D tensor instead"
        )
    return query.ndim == 3


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention (Vaswani et al. 2017) with explicit parameters.

    Args:
        query: (L, N, E) or (L, E).
        key: (S, N, Ek) or (S, Ek).
        value: (S, N, Ev) or (S, Ev).
        embed_dim_to_check: E, which query must have.
        num_heads: E is split among so many heads.
        key_padding_mask: (N, S); True, or what is added to the scores, hides a key.
        attn_mask: (L, S) or (N * heads, L, S). Queries that see no key have zeros for weights.
        need_weights: also gives the weights, averaged over heads unless told otherwise.
        is_causal: a hint that `attn_mask` is the causal mask.

    Returns:
        (output of query's shape, weights (N, L, S) or (N, heads, L, S) or None).
    """
    from flambeau.nn.functional import dropout, linear, scaled_dot_product_attention, softmax

    batched = _check_ranks(query, key, value, key_padding_mask)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if not batched:
        same = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same[1] else key.unsqueeze(1)
        value = key if same[0] else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, size = query.shape
    source = key.shape[0]
    if size != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {size}"
        )
    head = size // num_heads
    if head * num_heads != size:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                f"{value.shape[:2]}"
            )
        if q_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is True but q_proj_weight is None")
        if k_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is True but k_proj_weight is None")
        if v_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is True but v_proj_weight is None")
        q, k, v = _project(
            query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias
        )
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _project_together(query, key, value, in_proj_weight, in_proj_bias)
    causal = is_causal and key_padding_mask is None and not need_weights
    mask = None
    if attn_mask is not None:
        mask = _check_mask(attn_mask, length, source, batch, num_heads)
        mask = None if causal else _as_addend(mask, "attn_mask", q.dtype)
    _warn_of_two_kinds(attn_mask, key_padding_mask, "key_padding_mask and attn_mask")
    padding = _as_addend(key_padding_mask, "key_padding_mask", q.dtype)
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = _C.cat([k, bias_k.repeat(1, batch, 1)])
        v = _C.cat([v, bias_v.repeat(1, batch, 1)])
        mask, padding = _one_more(mask), _one_more(padding)
    elif (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must both be given or both be None")
    q = q.reshape(length, batch * num_heads, head).transpose(0, 1)
    k = _heads(k, static_k, batch * num_heads, head, "k")
    v = _heads(v, static_v, batch * num_heads, head, "v")
    if add_zero_attn:
        zeros = _C.zeros([batch * num_heads, 1, head], dtype=k.dtype, device=k.device)
        k, v = _C.cat([k, zeros], 1), _C.cat([v, zeros], 1)
        mask, padding = _one_more(mask), _one_more(padding)
    source = k.shape[1]
    if padding is not None:
        if list(padding.shape) != [batch, source]:
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, source)}, but got {padding.shape}: "
                f"Expected key_padded_mask.shape[1] to be {source}, but got {padding.shape[1]}"
            )
        wide = padding.reshape(batch, 1, 1, source).expand(batch, num_heads, 1, source)
        wide = wide.reshape(batch * num_heads, 1, source)
        mask = wide if mask is None else mask + wide
    if not training:
        dropout_p = 0.0
    if need_weights:
        scores = _C.bmm(q * (1.0 / math.sqrt(head)), k.transpose(1, 2))
        if mask is None:
            p = softmax(scores, -1)
        else:
            # A query that sees no key weighs nothing, as in scaled_dot_product_attention.
            blind = (mask == -math.inf).all(-1, keepdim=True)
            p = softmax((scores + mask).masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)
        if dropout_p > 0.0:
            p = dropout(p, dropout_p)
        out = _C.bmm(p, v).transpose(0, 1).reshape(length * batch, size)
        p = p.reshape(batch, num_heads, length, source)
        if average_attn_weights:
            p = p.mean(1)
    else:
        p = None
        if mask is not None:
            shared = mask.shape[0] == 1
            whole = (batch, num_heads, mask.shape[1], source)
            mask = mask.unsqueeze(0) if shared else mask.reshape(whole)
        asked, known = (batch, num_heads, length, head), (batch, num_heads, source, head)
        out = scaled_dot_product_attention(
            q.reshape(asked), k.reshape(known), v.reshape(known), mask, dropout_p, causal
        )
        out = out.permute(2, 0, 1, 3).reshape(length * batch, size)
    out = linear(out, out_proj_weight, out_proj_bias)
    out = out.reshape(length, batch, out_proj_weight.shape[0])
    if batched:
        return out, p
    return out.squeeze(1), None if p is None else p.squeeze(0)


def _one_more(mask: Tensor | None) -> Tensor | None:
    """The mask with one more key, which is seen."""
    return None if mask is None else _C.constant_pad_nd(mask, [0, 1], 0)


def _heads(x: Tensor, static: Tensor | None, count: int, head: int, name: str) -> Tensor:
    """(S, N, E) as (N * heads, S, head), or the tensor given instead of it."""
    if static is None:
        return x.reshape(x.shape[0], count, head).transpose(0, 1)
    if static.shape[0] != count or static.shape[2] != head:
        raise AssertionError(
            f"expecting static_{name} of sizes ({count}, *, {head}), but got {list(static.shape)}"
        )
    return static
