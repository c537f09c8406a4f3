"""Causal masks by name for scaled dot-product attention, for sequences of two lengths.

A `CausalBias` stands for a mask that is made only where the kernel has no name for it. Invariant:
it is an argument of `scaled_dot_product_attention` and of nothing else.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import flambeau as fb
from flambeau import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Which corner of the matrix of scores the diagonal of a causal mask ends in."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask of `seq_len_q` queries and `seq_len_kv` keys.

    Args:
        variant: where the diagonal is: it begins at the first query and key, or ends at the last.
        seq_len_q: number of queries.
        seq_len_kv: number of keys.

    Raises:
        TypeError: `variant` is no CausalVariant.

    >>> from flambeau.nn.attention.bias import causal_lower_right
    >>> x = torch.ones(1, 1, 2, 4)
    >>> F.scaled_dot_product_attention(x, x, x, causal_lower_right(2, 2)).shape
    torch.Size([1, 1, 2, 4])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise TypeError(f"CausalBias: expected a CausalVariant, got {type(variant).__name__}")
        made: Any = fb.empty(0).as_subclass(cls)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask: bool of shape (seq_len_q, seq_len_kv), True where a query sees a key."""
        lower = self.variant == CausalVariant.LOWER_RIGHT
        diagonal = self.seq_len_kv - self.seq_len_q if lower else 0
        seen = fb.ones(self.seq_len_q, self.seq_len_kv, dtype=fb.bool, device=device)
        return seen.tril(diagonal)

    @staticmethod
    def _dispatch(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        shape = (query.shape[-2], key.shape[-2])
        if shape != (attn_mask.seq_len_q, attn_mask.seq_len_kv):
            raise ValueError(
                f"CausalBias: expected {attn_mask.seq_len_q} queries and {attn_mask.seq_len_kv} "
                f"keys, got {shape[0]} and {shape[1]}"
            )
        named = attn_mask.variant == CausalVariant.UPPER_LEFT or shape[0] == shape[1]
        mask = None if named else attn_mask._materialize(query.device)
        return fb.nn.functional.scaled_dot_product_attention(
            query, key, value, mask, dropout_p, named, scale=scale, enable_gqa=enable_gqa
        )

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Attention with the mask; everything else is refused."""
        if func is fb.nn.functional.scaled_dot_product_attention:
            return cls._dispatch(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in ("__get__", "__set__"):  # shape, grad, ...
            return super().__torch_function__(func, types, args, kwargs or {})
        raise NotImplementedError("CausalBias only supports scaled_dot_product_attention")

    def __repr__(self, **kwargs: Any) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The mask whose diagonal begins at the first query and the first key.

    Args:
        size: numbers of queries and keys.

    >>> from flambeau.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return _of_size("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask whose diagonal ends at the last query and the last key.

    Args:
        size: numbers of queries and keys.

    >>> from flambeau.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return _of_size("causal_lower_right", CausalVariant.LOWER_RIGHT, size)


def _of_size(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise RuntimeError(f"{name} only supports 2D tensors, got sizes {size}")
    return CausalBias(variant, *size)
