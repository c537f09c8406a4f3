"""Embeddings of `nn.functional`: checks around the entries of flambeau/ops/embedding.py."""

from __future__ import annotations

import warnings

from flambeau import _C

Tensor = _C.Tensor

__all__ = ["embedding", "embedding_bag"]

_MODES = {"sum": 0, "mean": 1, "max": 2}


def _limit_norms(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    _C.embedding_renorm_(weight.detach(), input, max_norm, norm_type)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` at the indices `input`.

    Args:
        input: indices of any shape.
        weight: table of shape (V, D).
        padding_idx: a row that gets no gradient; counts from the end when negative.
        max_norm, norm_type: rows that are looked up are first scaled down, in place, to this norm.
        scale_grad_by_freq: divides a row's gradient by how often it was looked up.
        sparse: not supported yet: an error in backward.

    Returns:
        A tensor of shape (*input.shape, D).
    """
    pad = -1
    if padding_idx is not None:
        rows = weight.size(0)
        assert -rows <= padding_idx < rows, "Padding_idx must be within num_embeddings"
        pad = padding_idx % rows
    if max_norm is not None:
        _limit_norms(weight, input, max_norm, norm_type)
    return _C.embedding(weight, input, pad, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows of `weight`.

    Args:
        input: indices: (B, N) for bags of one size, or (N,) with `offsets`.
        weight: table of shape (V, D).
        offsets: where in `input` each bag begins.
        max_norm, norm_type, scale_grad_by_freq, sparse: see `embedding`.
        mode: "sum", "mean" or "max".
        per_sample_weights: factors of the rows, for mode "sum".
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that does not count.

    Returns:
        A tensor of shape (B, D).
    """
    if weight.dtype == _C.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. "
            "Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        count, size = input.shape
        offsets = _C.arange(count, dtype=input.dtype, device=input.device) * size
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    rows = weight.size(0)
    pad = -1
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, "
                f"but got {padding_idx}"
            )
        pad = padding_idx % rows
    if max_norm is not None:
        _limit_norms(weight, input, max_norm, norm_type)
    return _C._embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        pad,
    )[0]
