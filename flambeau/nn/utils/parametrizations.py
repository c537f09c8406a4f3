"""Ready-made parametrisations: orthogonal, weight norm, spectral norm."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module

from . import parametrize
from ._norms import as_matrix, default_dim, norm_except_dim, rescaled

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(module: Module, name: str) -> Tensor:
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


# ---- orthogonal ---------------------------------------------------------------------------------


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.size(-2), q.size(-1)
    identity = fb.eye(k, dtype=q.dtype, device=q.device)
    return fb.allclose(q.mH @ q, identity, atol=10.0 * n * fb.finfo(q.dtype).eps)


def _make_orthogonal(a: Tensor) -> Tensor:
    """The orthogonal factor of `a`, with the signs that leave an orthogonal matrix as it is."""
    x, tau = fb.geqrf(a)
    q = fb.linalg.householder_product(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Maps a matrix to an orthogonal (or unitary) one; more columns than rows: orthonormal rows.

    With `use_trivialization`, the map is around a base point, which an assignment moves
    (Lezcano-Casado, 2019).
    """

    def __init__(
        self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        """The orthogonal matrix."""
        wide = x.size(-2) < x.size(-1)
        if wide:
            x = x.mT
        if self.orthogonal_map == _OrthMaps.householder:
            q = self._householder(x)
        else:
            q = self._from_skew(x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _householder(self, x: Tensor) -> Tensor:
        reflectors = x.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (reflectors * reflectors).sum(dim=-2))
        q = fb.linalg.householder_product(reflectors, tau)
        # The diagonal holds signs; as integers they carry no gradient.
        return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def _from_skew(self, x: Tensor) -> Tensor:
        n, k = x.size(-2), x.size(-1)
        x = x.tril()
        if n != k:
            x = fb.cat([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], dim=-1)
        skew = x - x.mH
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            q = fb.matrix_exp(skew)
        else:
            identity = fb.eye(n, dtype=skew.dtype, device=skew.device)
            q = fb.linalg.solve(identity - 0.5 * skew, identity + 0.5 * skew)
        return q if n == k else q[..., :k]

    def right_inverse(self, q: Tensor) -> Tensor:
        """A matrix that maps to `q` (made orthogonal first where it is not)."""
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {q.shape}."
            )
        with fb.no_grad():
            if hasattr(self, "base"):
                return self._move_base(q)
            if self.orthogonal_map != _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            wide = q.size(-2) < q.size(-1)
            a, tau = fb.geqrf(q.mT if wide else q)
            signs = a.diagonal(dim1=-2, dim2=-1)
            signs.sign_()
            # A reflector with tau = 0 is the identity, which the sign convention has reversed.
            signs[tau == 0.0] *= -1
            return a.mT if wide else a

    def _move_base(self, q: Tensor) -> Tensor:
        start = q
        if q.size(-2) < q.size(-1):
            q = q.mT
        n, k = q.size(-2), q.size(-1)
        if n != k:
            filling = fb.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            q = _make_orthogonal(fb.cat([q, filling], dim=-1))
        else:
            q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        self.base = q
        # Minus the identity maps to the identity under all three maps (its skew part is zero).
        negative = fb.zeros_like(start)
        negative.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return negative


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix orthogonal (unitary if complex).

    Args:
        module: changed in place.
        name: its tensor.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; default: "matrix_exp" for square or
            complex matrices, else "householder".
        use_trivialization: map around a base point, so that values can be assigned.
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    parametrization = _Orthogonal(weight, kind, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)


# ---- weight norm --------------------------------------------------------------------------------


class _WeightNorm(Module):
    """A weight as magnitude times direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The weight."""
        return rescaled(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Magnitude and direction of a weight."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train magnitude and direction of a weight separately (Salimans & Kingma, 2016).

    Args:
        module: changed in place.
        name: its parameter.
        dim: dimension whose slices have a magnitude each; None: one magnitude.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def read_old_format(state_dict: dict[str, Any], prefix: str, *unused: Any) -> None:
        keys = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in keys):
            for i, key in enumerate(keys):
                new_key = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new_key] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(read_old_format)
    return module


# ---- spectral norm ------------------------------------------------------------------------------


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iteration follows."""

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            height, width = matrix.size()
            u = matrix.new_empty(height).normal_(0, 1)
            v = matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        with fb.no_grad():
            for _ in range(n_power_iterations):
                self._u.copy_(F.normalize(fb.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(fb.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """The weight with spectral norm one."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies: two forwards before one backward must not see each other's update.
        u, v = self._u.clone(), self._v.clone()
        return weight / fb.vdot(u, fb.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself: its scale is lost."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Keep the spectral norm of a weight at one (Miyato et al., 2018).

    Args:
        module: changed in place.
        name: its parameter.
        n_power_iterations: iterations at each access while training.
        eps: smallest norm that is divided by.
        dim: dimension of the outputs; default: 1 for transposed convolutions, else 0.
    """
    weight = _tensor_of(module, name)
    dim = default_dim(module) if dim is None else dim
    parametrization = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, parametrization)
