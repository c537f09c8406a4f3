"""Multivariate normal distributions: of full covariance, and of low rank plus a diagonal.

Invariant: everything is computed from triangular factors, which are kept as they were given and
broadcast only when an attribute is asked for. Formulas: Rasmussen & Williams, Gaussian Processes
for Machine Learning (2006), appendix A (matrix inversion and determinant lemmas).
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import constraints
from .distribution import Distribution, family
from .utils import _standard_normal, lazy_property


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Products of matrices (..., n, m) and vectors (..., m), with broadcasting."""
    return fb.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:  # noqa: N803
    """x' (L L')^-1 x, for triangular L (..., n, n) and x (..., n), with broadcasting.

    Dims of x in front of those of L become columns of one solve, so that L is not copied.
    """
    batch = bL.ndim - 2
    extra = bx.ndim - 1 - batch
    if extra <= 0:
        y = fb.linalg.solve_triangular(bL, bx.unsqueeze(-1), upper=False)
        return y.squeeze(-1).square().sum(-1)
    n = bx.shape[-1]
    shape = fb.broadcast_shapes(bx.shape[extra:-1], bL.shape[:-2])
    x = bx.expand((*bx.shape[:extra], *shape, n))
    columns = x.reshape((-1, *shape, n)).movedim(0, -1)
    squares = fb.linalg.solve_triangular(bL, columns, upper=False).square().sum(-2)
    return squares.movedim(-1, 0).reshape((*bx.shape[:extra], *shape))


def _precision_to_scale_tril(P: Tensor) -> Tensor:  # noqa: N803
    """The Cholesky factor of the inverse of P, by that of P read backwards."""
    backwards = fb.linalg.cholesky(fb.flip(P, (-2, -1)))
    inverse_factor = fb.flip(backwards, (-2, -1)).mT
    identity = fb.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return fb.linalg.solve_triangular(inverse_factor, identity, upper=False)


@family(loc=1, covariance_matrix=2, precision_matrix=2, scale_tril=2)
class MultivariateNormal(Distribution):
    """The multivariate normal distribution.

    Args:
        loc: mean, shape (..., n).
        covariance_matrix: shape (..., n, n), positive definite.
        precision_matrix: its inverse, instead.
        scale_tril: its Cholesky factor, instead; the cheapest.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: for no dim, or unless exactly one matrix is given.

    Example:
        >>> import flambeau as torch
        >>> d = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> d.log_prob(torch.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _shared = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = _one_matrix(covariance_matrix, precision_matrix, scale_tril)
        batch = fb.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch, *matrix.shape[-2:])))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = _factor(name, matrix)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Cholesky factor of the covariance."""
        n = self._event_shape[0]
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, n, n))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Covariance."""
        factor = self._unbroadcasted_scale_tril
        n = self._event_shape[0]
        return fb.matmul(factor, factor.mT).expand((*self._batch_shape, n, n))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Inverse of the covariance."""
        n = self._event_shape[0]
        inverse = fb.cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand((*self._batch_shape, n, n))

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def _log_volume(self) -> Tensor:
        """Logarithm of the factor's determinant."""
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        norm = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (norm + distance) - self._log_volume()

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        entropy = 0.5 * n * (1.0 + math.log(2 * math.pi)) + self._log_volume()
        return entropy.expand(self._batch_shape)


def _one_matrix(
    covariance_matrix: Tensor | None, precision_matrix: Tensor | None, scale_tril: Tensor | None
) -> tuple[str, Tensor]:
    """Name and value of the one that is given."""
    matrices = {
        "covariance_matrix": covariance_matrix,
        "precision_matrix": precision_matrix,
        "scale_tril": scale_tril,
    }
    given = [(k, v) for k, v in matrices.items() if v is not None]
    if len(given) != 1:
        raise ValueError(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified, "
            f"got {len(given)}"
        )
    name, matrix = given[0]
    if matrix.ndim < 2:
        raise ValueError(f"{name} must be at least two-dimensional, got {matrix.ndim} dims")
    return name, matrix


def _factor(name: str, matrix: Tensor) -> Tensor:
    """The covariance's Cholesky factor."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return fb.linalg.cholesky(matrix)
    return _precision_to_scale_tril(matrix)


def _with_identity(square: Tensor) -> Tensor:
    """The Cholesky factor of I + a matrix."""
    identity = fb.eye(square.shape[-1], dtype=square.dtype, device=square.device)
    return fb.linalg.cholesky(square + identity)


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:  # noqa: N803
    """The Cholesky factor of I + W' D^-1 W, for W (..., n, rank) and the diagonal D (..., n)."""
    return _with_identity(fb.matmul(W.mT / D.unsqueeze(-2), W))


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:  # noqa: N803
    """log det(W W' + D), by the determinant lemma."""
    inner = capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return 2 * inner + D.log().sum(-1)


def _batch_lowrank_mahalanobis(
    W: Tensor,  # noqa: N803
    D: Tensor,  # noqa: N803
    x: Tensor,
    capacitance_tril: Tensor,
) -> Tensor:
    """x' (W W' + D)^-1 x, by the inversion lemma."""
    inner = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


@family(loc=1, cov_factor=2, cov_diag=1, scale_tril=2, covariance_matrix=2, precision_matrix=2)
class LowRankMultivariateNormal(Distribution):
    """A multivariate normal distribution with covariance ``cov_factor cov_factor' + cov_diag``.

    Args:
        loc: mean, shape (..., n).
        cov_factor: shape (..., n, rank).
        cov_diag: diagonal, shape (..., n), positive.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: for shapes that do not fit.

    Example:
        >>> import flambeau as torch
        >>> d = torch.distributions.LowRankMultivariateNormal(
        ...     torch.zeros(2), torch.ones(2, 1), torch.ones(2)
        ... )
        >>> d.covariance_matrix
        tensor([[2., 1.],
                [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _shared = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.ndim < 2 or cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.shape[-1:] != (n,):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {(n,)}")
        batch = fb.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self.cov_diag = cov_diag.expand((*batch, n))
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch, fb.Size((n,)), validate_args=validate_args)

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @lazy_property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return squares.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Cholesky factor of the covariance."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        return self._whole(root * _with_identity(fb.matmul(scaled, scaled.mT)))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Covariance."""
        factor = self._unbroadcasted_cov_factor
        diagonal = self._unbroadcasted_cov_diag.diag_embed()
        return self._whole(fb.matmul(factor, factor.mT) + diagonal)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Inverse of the covariance."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        inner = fb.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        inverse = self._unbroadcasted_cov_diag.reciprocal().diag_embed()
        return self._whole(inverse - fb.matmul(inner.mT, inner))

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rank = self.cov_factor.shape[-1:]
        dtype, device = self.loc.dtype, self.loc.device
        common = _standard_normal(shape[:-1] + rank, dtype, device)
        own = _standard_normal(shape, dtype, device)
        return (
            self.loc
            + _batch_mv(self._unbroadcasted_cov_factor, common)
            + self._unbroadcasted_cov_diag.sqrt() * own
        )

    def _log_det(self) -> Tensor:
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            value - self.loc,
            self._capacitance_tril,
        )
        norm = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (norm + self._log_det() + distance)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        entropy = 0.5 * (n * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape)
