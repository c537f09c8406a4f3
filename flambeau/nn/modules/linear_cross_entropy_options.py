"""How `F.linear_cross_entropy` trades memory for speed."""

from __future__ import annotations

import dataclasses
from typing import Any

import flambeau as fb

__all__ = ["LinearCrossEntropyOptions"]


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """Settings of a linear layer fused with cross entropy. None of them changes the result.

    Args:
        allow_retain_graph: keep what a second backward needs.
        batch_chunk_size: rows whose logits exist at one time; default: all.
        chunking_method: rule that finds that number: "auto", "aspect_ratio", "aspect_ratio:N" or
            None.
        acc_policy: which intermediates are kept in `acc_dtype`: "accurate", "balanced", "compact"
            or "auto".
        acc_dtype: dtype of sums; default: chosen from the input's dtype and device.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, colon, factor = self.chunking_method.partition(":")
            if name != "aspect_ratio" or (colon and not (factor.isdigit() and int(factor) > 0)):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        rows = self.batch_chunk_size
        if rows is not None and not (isinstance(rows, int) and rows > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {rows!r}")
        if self.acc_dtype not in (None, fb.float16, fb.bfloat16, fb.float32, fb.float64):
            raise ValueError(
                "acc_dtype must be one of None, float16, bfloat16, float32, float64, "
                f"got {self.acc_dtype!r}"
            )
