"""Transforms onto the simplex and onto sets of matrices.

Invariant: values satisfy the codomain's constraint, but for rounding. Must not know distributions.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional import logsigmoid, pad, softplus

from . import constraints
from ._transforms_numbers import _clipped_sigmoid, _PlainTransform
from .utils import sizes, tril_matrix_to_vec, vec_to_tril_matrix


def _at_least(x: Any, ndim: int, name: str) -> Any:
    if len(x) < ndim:
        raise ValueError(f"{name}: expected at least {ndim} dims, got {len(x)}")
    return x


class SoftmaxTransform(_PlainTransform):
    """Exponentials over their sum: from vectors to the simplex, of the same size. No bijection.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.SoftmaxTransform()(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return fb.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        return _at_least(shape, 1, "SoftmaxTransform")

    inverse_shape = forward_shape


class StickBreakingTransform(_PlainTransform):
    """From vectors to the simplex with one entry more: each takes a share of what is left.

    Zero becomes the middle of the simplex.

    Source: Stan Reference Manual, unit simplexes.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.StickBreakingTransform()(torch.zeros(2))
        tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _shift(x: Tensor) -> Tensor:
        """log(K), ..., log(1): what makes equal shares of zeros."""
        k = x.shape[-1]
        return (k + 1 - x.new_ones(k).cumsum(-1)).log()

    def _call(self, x: Tensor) -> Tensor:
        share = _clipped_sigmoid(x - self._shift(x))
        left = (1 - share).cumprod(-1)
        return pad(share, [0, 1], value=1.0) * pad(left, [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        head = y[..., :-1]
        left = (1 - head.cumsum(-1)).clamp(min=fb.finfo(y.dtype).tiny)
        return head.log() - left.log() + self._shift(head)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._shift(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        shape = sizes(_at_least(shape, 1, "StickBreakingTransform"))
        return fb.Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        shape = sizes(_at_least(shape, 1, "StickBreakingTransform"))
        return fb.Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(_PlainTransform):
    """From matrices to Cholesky factors: the lower triangle, with the exponential of the diagonal.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.LowerCholeskyTransform()(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_PlainTransform):
    """From matrices to positive definite ones, by way of their Cholesky factors.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.PositiveDefiniteTransform()(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(fb.linalg.cholesky(y))


class CorrCholeskyTransform(_PlainTransform):
    """From vectors of size D (D - 1) / 2 to Cholesky factors of D by D correlation matrices.

    The entries become canonical partial correlations by tanh; each takes a share of what is left
    of its row's unit length.

    Source: Lewandowski, Kurowicka & Joe, Generating random correlation matrices (2009); Stan
    Reference Manual, Cholesky factors of correlation matrices.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.CorrCholeskyTransform()(torch.zeros(1))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = fb.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial.square()).sqrt().cumprod(-1)
        partial = partial + fb.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return partial * pad(left[..., :-1], [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        left = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1.0)
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (partial.log1p() - partial.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * left.log().sum(-1) + tanh

    def forward_shape(self, shape: Any) -> Any:
        shape = sizes(_at_least(shape, 1, "CorrCholeskyTransform"))
        count = shape[-1]
        d = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != count:
            raise ValueError(
                "CorrCholeskyTransform: Input is not a flattened lower-diagonal number, got size "
                f"{count}"
            )
        return fb.Size((*shape[:-1], d, d))

    def inverse_shape(self, shape: Any) -> Any:
        shape = sizes(_at_least(shape, 2, "CorrCholeskyTransform"))
        if shape[-2] != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: Input is not square, got {tuple(shape)}")
        d = shape[-1]
        return fb.Size((*shape[:-2], d * (d - 1) // 2))
