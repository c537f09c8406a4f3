"""Results of operations that Python writes into the tensors of `out=`.

Owns what is refused of an output and what is said of one that changes its shape; the core does the
same for the operations of the table. Must not know any operation.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from flambeau import _C

Tensor = _C.Tensor


def check(out: Any, part: Tensor, op: str) -> None:
    """Refuse an output that cannot hold a result: TypeError or RuntimeError."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{op}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if out.dtype != part.dtype:
        raise RuntimeError(f"{op}: expected out of dtype {part.dtype}, got {out.dtype}")
    if _C.is_grad_enabled() and (out.requires_grad or part.requires_grad):
        raise RuntimeError(f"{op}: out= does not support automatic differentiation")


def fill(out: Tensor, part: Tensor, op: str, depth: int = 2) -> Tensor:
    """Write a result into its output, which takes the shape; a warning tells of one with entries.

    Args:
        depth: how many calls up the program stands that is told.
    """
    check(out, part, op)
    if out.shape != part.shape:
        if out.numel():
            warnings.warn(
                f"{op}: an output of shape {tuple(out.shape)} was resized to "
                f"{tuple(part.shape)}; give one of that shape or an empty one",
                stacklevel=depth + 1,
            )
        with _C.no_grad():
            out.resize_(part.shape)
    with _C.no_grad():
        return out.copy_(part)


def fill_each(out: Sequence[Tensor], parts: Sequence[Tensor], op: str) -> None:
    """Write each part into its own tensor; none unless all can be."""
    if len(out) != len(parts):
        raise RuntimeError(f"{op}: expected out of {len(parts)} tensors, got {len(out)}")
    for to, part in zip(out, parts, strict=True):
        check(to, part, op)
    for to, part in zip(out, parts, strict=True):
        fill(to, part, op, depth=4)
