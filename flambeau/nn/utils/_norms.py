"""Arithmetic shared by both forms of weight and spectral normalisation."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F


def norm_except_dim(weight: Tensor, dim: int) -> Tensor:
    """2-norm over all dimensions but `dim`, kept with size 1; over all of them if it is -1."""
    if dim == -1:
        return fb.linalg.vector_norm(weight)
    others = [d for d in range(weight.dim()) if d != dim]
    if not others:
        return weight.abs()
    return fb.linalg.vector_norm(weight, 2, others, keepdim=True)


def rescaled(direction: Tensor, magnitude: Tensor, dim: int) -> Tensor:
    """`direction` with the norms `magnitude` (Salimans & Kingma, 2016)."""
    return direction * (magnitude / norm_except_dim(direction, dim))


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """`dim` as rows, everything else as columns."""
    if dim != 0:
        weight = weight.permute(dim, *(d for d in range(weight.dim()) if d != dim))
    return weight.reshape(weight.size(0), -1)


def random_direction(like: Tensor, size: int, eps: float) -> Tensor:
    """A random unit vector."""
    return F.normalize(like.new_empty(size).normal_(0, 1), dim=0, eps=eps)


def default_dim(module: object) -> int:
    """The dimension of output channels: 1 in transposed convolutions, else 0."""
    from flambeau.nn.modules.conv import _ConvTransposeNd

    return 1 if isinstance(module, _ConvTransposeNd) else 0
