"""Scaled dot product attention: a fused kernel where it applies, plain operations elsewhere.

The fused kernel keeps no matrix of scores. Kernels: csrc/kernels/attention.cpp. Which of the two
is taken, the thread's order of preference says (`attention_place`): FLASH_ATTENTION, number 1 of
`torch.nn.attention.SDPBackend`, is the kernel, MATH, number 0, the plain operations.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="attention_fused", namespaces=(), out=False)
def _attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> Tuple[Tensor, Tensor]:
    """Attention of (N, Hq, L, E) on (N, H, S, E) and (N, H, S, Ev), and the log-sums of the scores.

    Hq is a multiple of H: a head of key and value serves Hq / H heads of queries.

    >>> q = torch.ones(1, 1, 2, 4)
    >>> torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 1, 2, 4])
    """
    n, h, rows, _ = query.shape
    lse = empty([n, h, rows], dtype=opmath(query.dtype), like=query)
    if value.shape[3] == query.shape[3]:
        return empty_as(query), lse
    return empty([n, h, rows, value.shape[3]], dtype=query.dtype, like=query), lse


@_attention.vjp(undefined=True)
def _(
    g0: Tensor | None, g1: Tensor | None, query, key, value, mask, causal, scale, result0, result1
):
    g = zeros(result0.shape, dtype=query.dtype) if g0 is None else g0
    gq, gk, gv = _attention_backward(g, query, key, value, mask, result0, result1, causal, scale)
    if g1 is None:
        return gq, gk, gv, None
    # Derivatives of derivatives reach the sums, whose derivatives are the probabilities.
    k = _per_query_head(key, query.size(1))
    p = _probabilities(query, k, mask, result1, causal, scale)
    s = p * (g1 * scale).to(p.dtype).unsqueeze(3)
    gk = gk + _of_key_head(matmul(s.transpose(2, 3), query), key.size(1))
    return gq + matmul(s, k), gk, gv, None


@composite(namespaces=())
def _probabilities(
    query: Tensor, key: Tensor, mask: Tensor | None, lse: Tensor, causal: bool, scale: float
) -> Tensor:
    """What each query weighs each key by; there are as many heads of keys as of queries.

    >>> q = torch.ones(1, 1, 2, 4)
    >>> torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 1, 2, 4])
    """
    scores = matmul(query, key.transpose(2, 3)) * scale
    if causal:
        scores = scores + _causal_mask(query, key)
    if mask is not None:
        scores = scores + _additive(mask, query.dtype)
    return (scores - lse.to(query.dtype).unsqueeze(3)).exp()


@composite(namespaces=())
def _folded_mask(
    mask: Tensor | None, batched: bool, query: Tensor, key: Tensor, batch: int
) -> Tensor | None:
    """A mask for queries and keys that have the batch folded into their first dim.

    >>> q = torch.ones(2, 1, 1, 2, 4)
    >>> torch.vmap(F.scaled_dot_product_attention)(q, q, q).shape
    torch.Size([2, 1, 1, 2, 4])
    """
    if mask is None:
        return None
    n = query.size(0) // max(batch, 1)
    full = [batch, n, query.size(1), query.size(2), key.size(2)]
    wide = _aligned(mask, batched, 4).expand(full)
    return wide.reshape([batch * n] + full[2:])


@_attention.vmap
def _(query, key, value, mask, causal, scale, query_b, key_b, value_b, mask_b, batch):
    q = _folded(query, query_b, batch)
    k = _folded(key, key_b, batch)
    v = _folded(value, value_b, batch)
    out, lse = _attention(q, k, v, _folded_mask(mask, mask_b, q, k, batch), causal, scale)
    return _unfolded(out, batch), _unfolded(lse, batch)


@structured(kernel="attention_fused_backward", namespaces=(), out=False)
def _attention_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, output: Tensor,
    lse: Tensor, causal: bool, scale: float,
) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Cotangents of query, key and value.

    >>> q = torch.ones(1, 1, 2, 4, requires_grad=True)
    >>> torch.nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()
    """
    return (
        empty(query.shape, dtype=query.dtype, like=query),
        empty(key.shape, dtype=key.dtype, like=key),
        empty(value.shape, dtype=value.dtype, like=value),
    )


@_attention_backward.vjp
def _(g0, g1, g2, grad, query, key, value, mask, output, lse, causal, scale):
    # Second order is rare: the matrices are made, with P the probabilities and D = P (dP - delta).
    h = query.size(1)
    k, v = _per_query_head(key, h), _per_query_head(value, h)
    h1, h2 = _per_query_head(g1, h), _per_query_head(g2, h)
    p = _probabilities(query, k, mask, lse, causal, scale)
    dp = matmul(grad, v.transpose(2, 3))
    delta = (dp * p).sum([3], keepdim=True)
    ds = p * (dp - delta)
    # gq = scale ds k, gk = scale ds^T q, gv = p^T grad; t is the cotangent of ds, e that of p.
    t = (matmul(g0, k.transpose(2, 3)) + matmul(query, h1.transpose(2, 3))) * scale
    tp = (t * p).sum([3], keepdim=True)
    cdp = p * (t - tp)
    e = t * (dp - delta) - dp * tp + matmul(grad, h2.transpose(2, 3))
    cs = p * (e - (e * p).sum([3], keepdim=True)) * scale
    cgrad = matmul(p, h2) + matmul(cdp, v)
    cq = matmul(ds, h1) * scale + matmul(cs, k)
    ck = matmul(ds.transpose(2, 3), g0) * scale + matmul(cs.transpose(2, 3), query)
    cv = matmul(cdp.transpose(2, 3), grad)
    n = key.size(1)
    return cgrad, cq, _of_key_head(ck, n), _of_key_head(cv, n), None, None, None


@_attention_backward.vmap
def _(
    grad,
    query,
    key,
    value,
    mask,
    output,
    lse,
    causal,
    scale,
    grad_b,
    query_b,
    key_b,
    value_b,
    mask_b,
    output_b,
    lse_b,
    batch,
):
    q = _folded(query, query_b, batch)
    k = _folded(key, key_b, batch)
    v = _folded(value, value_b, batch)
    m = _folded_mask(mask, mask_b, q, k, batch)
    g = _folded(grad, grad_b, batch)
    y = _folded(output, output_b, batch)
    gq, gk, gv = _attention_backward(g, q, k, v, m, y, _folded(lse, lse_b, batch), causal, scale)
    return _unfolded(gq, batch), _unfolded(gk, batch), _unfolded(gv, batch)


@composite(namespaces=())
def _per_query_head(x: Tensor, heads: int) -> Tensor:
    """Heads of keys or values (N, H, S, E), each repeated for the `heads` of queries it serves.

    >>> torch.ones(1, 2, 3, 4).repeat_interleave(2, 1).shape
    torch.Size([1, 4, 3, 4])
    """
    if x.size(1) == heads:
        return x
    return x.repeat_interleave(heads // x.size(1), 1)


@composite(namespaces=())
def _of_key_head(g: Tensor, heads: int) -> Tensor:
    """The transpose of `_per_query_head`: sums over the heads of queries that share a key head.

    >>> torch.ones(1, 4, 3, 4).unflatten(1, (2, 2)).sum(2).shape
    torch.Size([1, 2, 3, 4])
    """
    if g.size(1) == heads:
        return g
    return g.reshape([g.size(0), heads, g.size(1) // heads, g.size(2), g.size(3)]).sum([2])


@composite(namespaces=())
def _causal_mask(query: Tensor, key: Tensor) -> Tensor:
    """Scores' mask that lets position i see keys up to i.

    >>> q = torch.ones(1, 1, 2, 4)
    >>> torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).shape
    torch.Size([1, 1, 2, 4])
    """
    allowed = ones([query.shape[-2], key.shape[-2]], dtype=bool_, device=query.device).tril()
    return _additive(allowed, query.dtype)


@composite(namespaces=())
def _additive(mask: Tensor, dtype: DType) -> Tensor:
    """A mask as numbers to add to scores: a boolean one forbids where it is False.

    >>> torch.tensor([True, False]).logical_not()
    tensor([False,  True])
    """
    if mask.dtype != bool_:
        return mask.to(dtype)
    return zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask.logical_not(), -inf)


@composite(namespaces=())
def _attention_formula(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, causal: bool,
    scale: float, grouped: bool,
) -> Tensor:  # fmt: skip
    """Attention in plain operations, which make the matrix of the weights.

    >>> q = torch.ones(2, 4)
    >>> torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([2, 4])
    """
    k = key
    v = value
    if grouped:
        k = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        v = value.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = matmul(query, k.transpose(-2, -1)) * scale
    if causal:
        scores = scores + _causal_mask(query, k)
    if mask is not None:
        scores = scores + _additive(mask, query.dtype)
    weights = softmax(scores, -1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p, True)
    return matmul(weights, v)


@composite(namespaces=(), as_written=True)
def _attention_as_written(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, causal: bool,
    scale: float, grouped: bool,
) -> Tensor:  # fmt: skip
    """The formula where a program asked for it: the compiler does not put the kernel in its place.

    >>> q = torch.ones(1, 1, 2, 4)
    >>> with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    ...     torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 1, 2, 4])
    """
    return _attention_formula(query, key, value, mask, dropout_p, causal, scale, grouped)


@composite(method=False, namespaces=("nn.functional",), autocast="lower")
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Weighted means of `value` by the softmax of `query @ key.T * scale + mask`.

    Args:
        query: (N, ..., Hq, L, E)
        key: (N, ..., H, S, E)
        value: (N, ..., H, S, Ev)
        attn_mask: bool (False forbids) or added to the scores; broadcast to (N, ..., L, S)
        dropout_p: applied to the weights, also outside training
        is_causal: position i sees keys up to i
        scale: 1 / sqrt(E) by default
        enable_gqa: Hq may be a multiple of H; each head of key and value serves several queries

    >>> q = torch.ones(1, 2, 3, 4)
    >>> torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 2, 3, 4])
    """
    op = "scaled_dot_product_attention"
    check(
        query.ndim >= 2 and key.ndim >= 2 and value.ndim >= 2,
        f"{op}: Expected query, key, and value to all be at least 2 dimensional, but got "
        f"query.dim: {query.ndim}, key.dim: {key.ndim} and value.dim: {value.ndim} instead.",
    )
    check(
        query.dtype == key.dtype and query.dtype == value.dtype,
        f"{op}: Expected query, key, and value to have the same dtype, but got query.dtype: "
        f"{query.dtype} "
        f"key.dtype: {key.dtype} and value.dtype: {value.dtype} instead.",
    )
    check(
        query.dtype.is_inexact,
        f"{op}: Expected query, key and value of floating point, got {query.dtype}",
    )
    check(
        not (is_causal and attn_mask is not None),
        f"{op}: Explicit attn_mask should not be set when is_causal=True",
    )
    check(
        query.shape[-1] == key.shape[-1] and key.shape[-2] == value.shape[-2],
        f"{op}: query, key and value do not fit, got shapes {query.shape}, {key.shape}, "
        f"{value.shape}",
    )
    if attn_mask is not None:
        check(
            attn_mask.dtype == bool_ or attn_mask.is_floating_point(),
            f"{op}: Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {attn_mask.dtype} and query.dtype: {query.dtype} instead.",
        )
    grouped = enable_gqa and query.ndim >= 3 and query.shape[-3] != key.shape[-3]
    if grouped:
        check(
            key.shape[-3] > 0
            and query.shape[-3] % key.shape[-3] == 0
            and key.shape[-3] == value.shape[-3],
            f"{op}: Number of heads in key and value must divide the number of heads in query, got "
            f"{query.shape[-3]}, {key.shape[-3]}, {value.shape[-3]}",
        )
    factor = 1.0 / sqrt(float(max(1, query.shape[-1])))
    if scale is not None:
        factor = scale
    lead = query.shape[:-3] + key.shape[-3:-2] if grouped else query.shape[:-2]
    same_batch = key.shape[:-2] == lead and value.shape[:-2] == lead
    fused = same_batch and dropout_p == 0.0 and query.ndim in (3, 4) and not query.is_complex()
    if attn_mask is not None:
        fused = fused and not attn_mask.requires_grad and attn_mask.ndim <= query.ndim
        fused = fused and (attn_mask.ndim < 3 or query.ndim == 4)
    flash = attention_place(1)
    math = attention_place(0)
    asked = math >= 0 and (flash < 0 or math < flash)  # for the formula
    if fused and flash >= 0 and not asked and not query.is_cuda:  # meta takes the way of the CPU
        if attn_mask is not None:
            full = query.shape[:-1] + [key.shape[-2]]
            check(
                broadcast_shapes(attn_mask.shape, full) == full,
                f"{op}: The expanded size of attn_mask {attn_mask.shape} must match the scores "
                f"{full}",
            )
        if query.ndim == 4:
            out, _ = _attention(query, key, value, attn_mask, is_causal, factor)
            return out
        out3, _ = _attention(
            query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), attn_mask, is_causal, factor
        )
        return out3.squeeze(0).contiguous()
    if math < 0 and not query.is_meta:
        if query.numel() > 0 and key.numel() > 0 and value.numel() > 0:
            check(
                flash >= 0,
                f"{op}: No viable backend: expected FLASH_ATTENTION or MATH, which there are on "
                f"{query.device}, among those that are allowed; see torch.nn.attention.sdpa_kernel",
            )
            no = f"{op}: No available kernel: MATH is not allowed, and FLASH_ATTENTION expects"
            check(not query.is_cuda, f"{no} tensors on the CPU, got {query.device}")
            check(dropout_p == 0.0, f"{no} no dropout, got dropout_p={dropout_p}")
            check(not query.is_complex(), f"{no} real tensors, got {query.dtype}")
            check(
                query.ndim in (3, 4) and same_batch,
                f"{no} 3 or 4 dims and the same batch and heads, got query {query.shape}, "
                f"key {key.shape}, value {value.shape}",
            )
            if attn_mask is not None:
                check(not attn_mask.requires_grad, f"{no} an attn_mask that requires no grad")
                check(
                    fused,
                    f"{no} an attn_mask of 2 dims or as many as query, got {attn_mask.shape} for "
                    f"query {query.shape}",
                )
    if asked:
        return _attention_as_written(
            query, key, value, attn_mask, dropout_p, is_causal, factor, grouped
        )
    return _attention_formula(query, key, value, attn_mask, dropout_p, is_causal, factor, grouped)
