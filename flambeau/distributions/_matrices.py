"""Distributions over matrices: Wishart, and LKJ over Cholesky factors of correlation matrices.

Invariant: samples are built from triangular factors. Must not know other families, but for those
that the factors' entries are drawn from.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import constraints
from ._gaussian import _factor, _one_matrix
from ._positive import Chi2
from ._simplex import Beta
from .distribution import Distribution, family
from .exp_family import ExponentialFamily
from .utils import is_tensor_like, lazy_property, sizes


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """Derivative of the logarithm of the multivariate gamma function."""
    steps = fb.arange(p, dtype=x.dtype, device=x.device) / 2
    return fb.digamma(x.unsqueeze(-1) - steps).sum(-1)


@family("df", covariance_matrix=2, precision_matrix=2, scale_tril=2)
class Wishart(ExponentialFamily):
    """The Wishart distribution: sums of ``df`` outer products of normal vectors with themselves.

    Args:
        df: degrees of freedom, above the matrices' size less one.
        covariance_matrix: shape (..., n, n), positive definite.
        precision_matrix: its inverse, instead.
        scale_tril: its Cholesky factor, instead.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: unless exactly one matrix is given; for too few degrees of freedom.

    Source: Wishart (1928); samples by Bartlett's decomposition (1933).

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Wishart(torch.tensor(3.0), torch.eye(2)).mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _shared = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = _one_matrix(covariance_matrix, precision_matrix, scale_tril)
        if not is_tensor_like(df):
            df = fb.tensor(df, dtype=matrix.dtype, device=matrix.device)
        n = matrix.shape[-1]
        batch = fb.broadcast_shapes(df.shape, matrix.shape[:-2])
        if bool((df <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand((*batch, n, n)))
        super().__init__(batch, fb.Size((n, n)), validate_args=validate_args)
        self._unbroadcasted_scale_tril = _factor(name, matrix)
        steps = fb.arange(n, dtype=matrix.dtype, device=matrix.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        n = self._event_shape[-1]
        new._dist_chi2 = self._dist_chi2.expand(fb.Size((*batch_shape, n)))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Covariance of the normal vectors."""
        factor = self._unbroadcasted_scale_tril
        return fb.matmul(factor, factor.mT).expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Inverse of the covariance."""
        inverse = fb.cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand((*self._batch_shape, *self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """Where the density is largest; NaN for fewer than n + 1 degrees of freedom."""
        factor = self.df - self._event_shape[-1] - 1
        factor = fb.where(factor <= 0, math.nan, factor)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        c = self.covariance_matrix
        d = c.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (c.pow(2) + d.unsqueeze(-1) * d.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Any) -> Tensor:
        p = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).clamp(min=0).sqrt().diag_embed(0, -2, -1)
        rows, columns = fb.tril_indices(p, p, -1)
        below = fb.randn(
            (*noise.shape[:-2], p * (p - 1) // 2), dtype=noise.dtype, device=noise.device
        )
        noise[..., rows, columns] = below
        root = self._unbroadcasted_scale_tril @ noise
        return root @ root.mT

    def rsample(
        self, sample_shape: Any = fb.Size(), max_try_correction: int | None = None
    ) -> Tensor:
        """Draw, with derivatives; singular matrices are drawn again, a few times.

        Args:
            sample_shape: shape of independent samples.
            max_try_correction: how often; by default 3, or 10 for matrices below 3 x 3.
        """
        if max_try_correction is None:
            max_try_correction = 3 if self._event_shape[-1] > 2 else 10
        sample_shape = sizes(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        singular = ~self.support.check(sample)
        if not bool(singular.any()):
            return sample
        warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(max_try_correction):
            fresh = self._bartlett_sampling(sample_shape)
            sample = fb.where(singular[..., None, None], fresh, sample)
            singular = ~self.support.check(sample)
            if not bool(singular.any()):
                break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        solved = fb.cholesky_solve(value, factor)
        return (
            -nu * (p * math.log(2) / 2 + self._log_volume())
            - fb.mvlgamma(nu / 2, p)
            + (nu - p - 1) / 2 * fb.linalg.slogdet(value).logabsdet
            - solved.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def _log_volume(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * math.log(2) / 2 + self._log_volume())
            + fb.mvlgamma(nu / 2, p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        log_det = fb.linalg.slogdet(-2 * x).logabsdet
        return half * (-log_det + math.log(2) * p) + fb.mvlgamma(half, p)


@family("concentration")
class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices with density det(matrix)**(concentration - 1).

    Args:
        dim: size of the matrices, at least 2.
        concentration: 1 for all matrices equally likely, more for those near the identity.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: for a smaller size.

    Source: Lewandowski, Kurowicka & Joe, Generating random correlation matrices based on vines and
    extended onion method (2009).

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.LKJCholesky(3, 0.5).sample().shape
        torch.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _shared = ("dim",)

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        self.concentration = fb.as_tensor(concentration, dtype=_floating(concentration))
        offset = fb.arange(
            dim - 1, dtype=self.concentration.dtype, device=self.concentration.device
        )
        offset = fb.cat([offset.new_zeros(1), offset])  # of the rows; the first is not used
        at_one = offset + 0.5
        at_zero = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * offset
        self._beta = Beta(at_one, at_zero)
        super().__init__(self.concentration.shape, fb.Size((dim, dim)), validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        new._beta = self._beta.expand(fb.Size((*batch_shape, self.dim)))

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        """Draw by the onion method: each row is a direction times a length below one."""
        with fb.no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            normal = fb.randn(shape, dtype=length.dtype, device=length.device).tril(-1)
            direction = normal / normal.norm(dim=-1, keepdim=True)
            direction[..., 0, :] = 0.0
            rows = length.sqrt() * direction
            tiny = fb.finfo(rows.dtype).tiny
            rest = (1 - rows.square().sum(-1)).clamp(min=tiny).sqrt()
            return rows + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        rows = fb.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - rows
        m = self.dim - 1
        alpha = self.concentration + 0.5 * m
        norm = 0.5 * m * math.log(math.pi) + fb.mvlgamma(alpha - 0.5, m) - fb.lgamma(alpha) * m
        return (order * diagonal.log()).sum(-1) - norm


def _floating(value: Any) -> Any:
    """The dtype of a floating tensor, else the default."""
    if is_tensor_like(value) and value.is_floating_point():
        return value.dtype
    return fb.get_default_dtype()
