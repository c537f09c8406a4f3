"""Determinants. Kernels: csrc/kernels/linalg.cpp.

The derivative of det holds for singular matrices too: cofactors come from singular values.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(
    kernel="linalg_det",
    method=False,
    name="_linalg_det",
    fields=("result", "LU", "pivots"),
    batch=True,
)
def _linalg_det(A: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """The determinant and the factors that it was made of.

    >>> torch._linalg_det(torch.eye(2)).result
    tensor(1.)
    """
    _check_square("linalg.det", A, "A")
    _check_inexact("linalg.det", A)
    batch = A.shape[:-2]
    return (
        empty(batch, dtype=A.dtype),
        _columns(A.shape, A.dtype, A),
        empty(batch + [A.size(-1)], dtype=int32),
    )


@_linalg_det.vjp
def _(g0, A, result0):
    n = A.size(-1)
    if n == 0:
        return zeros(A.shape, dtype=A.dtype)
    if not differentiated():
        return g0.unsqueeze(-1).unsqueeze(-1) * _linalg_cofactor(A)
    if _well_conditioned(A, result0):
        # Twice differentiable, and cheaper.
        d = (g0 * result0.conj()).unsqueeze(-1).expand(A.shape[:-1])
        return _solve_matrices(A.adjoint(), d.diag_embed(), True)
    u, s, vh = _linalg_svd(A, False, True)
    unit = (_det(u) * _det(vh)).conj() * g0
    others: Tensors = []
    for k in range(n):
        others.append(cat([s.narrow(-1, 0, k), s.narrow(-1, k + 1, n - k - 1)], -1).prod(-1))
    scale = unit.unsqueeze(-1) * stack(others, -1)
    return (u * scale.unsqueeze(-2)) @ vh


@composite(namespaces=(), method=False)
def _well_conditioned(A: Tensor, det: Tensor) -> bool:
    """Is every determinant far enough from 0 for the inverse to be of use?

    >>> torch.det(torch.eye(2))
    tensor(1.)
    """
    if det.numel() == 0:
        return True
    n = A.size(-1)
    scale = linalg_matrix_norm(A, "fro", [-2, -1]) / sqrt(float(n))
    smallest_det = scale.pow(n) * (epsilon(A.dtype) * 64.0)
    return truth((det.abs() > smallest_det).all(), False)


@composite(namespaces=(), method=False)
def _det(A: Tensor) -> Tensor:
    """The determinant alone.

    >>> torch.det(torch.eye(2))
    tensor(1.)
    """
    d, _, _ = _linalg_det(A)
    return d


@structured(
    kernel="linalg_cofactor",
    namespaces=(),
    method=False,
    out=False,
    batch=True,
)
def _linalg_cofactor(A: Tensor) -> Tensor:
    """Conjugated cofactors by singular values: the derivative of det, singular or not.

    >>> torch.det(torch.eye(2))
    tensor(1.)
    """
    return _columns(A.shape, A.dtype, A)


@composite(namespaces=("_C._linalg",), aliases=("linalg.det",), method=False, out=True)
def linalg_det(A: Tensor) -> Tensor:
    """Determinants.

    >>> torch.linalg.det(torch.tensor([[2.0]]))
    tensor(2.)
    """
    return _det(A)


@composite()
def det(input: Tensor) -> Tensor:
    """Another name of linalg.det.

    >>> torch.det(torch.tensor([[2.0]]))
    tensor(2.)
    """
    return _det(input)


@structured(
    kernel="linalg_slogdet", method=False, name="_linalg_slogdet",
    fields=("sign", "logabsdet", "LU", "pivots"),
    batch=True,
)  # fmt: skip
def _linalg_slogdet(A: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sign and logarithm of the determinant, and the factors that they were made of.

    >>> torch._linalg_slogdet(torch.eye(2)).logabsdet
    tensor(0.)
    """
    _check_square("linalg.slogdet", A, "A")
    _check_inexact("linalg.slogdet", A)
    batch = A.shape[:-2]
    return (
        empty(batch, dtype=A.dtype),
        empty(batch, dtype=to_real(A.dtype)),
        _columns(A.shape, A.dtype, A),
        empty(batch + [A.size(-1)], dtype=int32),
    )


@_linalg_slogdet.vjp
def _(g0, g1, A, result0, result2, result3):
    g = g1.to(A.dtype)
    if A.is_complex():
        turn = imag(g0.conj() * result0)
        g = view_as_complex(stack([g1, -turn], -1))
    d = g.unsqueeze(-1).expand(A.shape[:-1]).diag_embed()
    if differentiated():
        return _solve_matrices(A.adjoint(), d, True)
    return linalg_lu_solve(result2, result3, d, adjoint=True)


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.slogdet",), fields=("sign", "logabsdet"),
    method=False, out=True,
)  # fmt: skip
def linalg_slogdet(A: Tensor) -> Tuple[Tensor, Tensor]:
    """Sign (or unit complex number) and logarithm of the size of each determinant.

    >>> torch.linalg.slogdet(torch.eye(2)).sign
    tensor(1.)
    """
    sign, logabsdet, _, _ = _linalg_slogdet(A)
    return sign, logabsdet


@composite(fields=("sign", "logabsdet"), out=True)
def slogdet(input: Tensor) -> Tuple[Tensor, Tensor]:
    """Another name of linalg.slogdet.

    >>> torch.slogdet(torch.eye(2)).logabsdet
    tensor(0.)
    """
    return linalg_slogdet(input)


@composite()
def logdet(input: Tensor) -> Tensor:
    """Logarithms of determinants; NaN for negative ones.

    >>> torch.logdet(torch.eye(2))
    tensor(0.)
    """
    _check_square("logdet", input, "A")
    _check_inexact("logdet", input)
    sign, logabsdet = linalg_slogdet(input)
    if input.is_complex():
        return sign.log() + logabsdet
    return where(sign == -1.0, nan, logabsdet)
