"""Transforms of tensors with their inverses and log Jacobians: the public names.

Owns nothing itself: the base and compositions, numbers, vectors and matrices, and parts of tensors
have a file each.
"""

from __future__ import annotations

from ._transforms_base import (
    ComposeTransform,
    IndependentTransform,
    Transform,
    identity_transform,
)
from ._transforms_base import (
    _InverseTransform as _InverseTransform,  # programs ask whether a transform is one
)
from ._transforms_numbers import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from ._transforms_numbers import (
    _clipped_sigmoid as _clipped_sigmoid,
)
from ._transforms_parts import CatTransform, ReshapeTransform, StackTransform
from ._transforms_vectors import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
