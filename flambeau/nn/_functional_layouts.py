"""Functions of `nn.functional` over operations of the table: another layout, an `out=`.

Rearranges arguments; the arithmetic is in the table.
"""

from __future__ import annotations

from flambeau import _C
from flambeau._C import nn_functional as _ops

Tensor = _C.Tensor

__all__ = ["conv_tbc", "normalize"]


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divides by the p-norm along `dim`, or by `eps` where the norm is smaller."""
    if out is None:
        return _ops.normalize(input, p, dim, eps)
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return _C.div(input, length, out=out)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution over time of (T, N, C) by weights (K, C, D).

    Returns:
        A tensor of shape (T + 2 pad - K + 1, N, D).
    """
    y = _ops.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return y.permute(2, 0, 1)
