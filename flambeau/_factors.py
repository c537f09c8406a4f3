"""Approximate factorisations by random projection.

Source: Halko, Martinsson and Tropp, SIAM Review 53 (2011), algorithms 4.4 and 5.1.

Loaded on first use. Knows no kernel.
"""

from __future__ import annotations

from typing import Any

from flambeau import _C

Tensor = _C.Tensor


def get_approximate_basis(A: Tensor, q: int, niter: int = 2, M: Tensor | None = None) -> Tensor:
    """Orthonormal columns that nearly span the range of A - M, from q random directions.

    Shape: A (..., m, n); result (..., m, q).
    """
    linalg = _linalg()
    dtype = A.dtype if A.is_floating_point() or A.is_complex() else _C.get_default_dtype()
    x = A.to(dtype) if M is None else A.to(dtype) - M
    basis = x @ _C.randn(*x.shape[:-2], x.shape[-1], q, dtype=dtype, device=A.device)
    basis = linalg.qr(basis).Q
    for _ in range(niter):
        basis = linalg.qr(x.mH @ basis).Q
        basis = linalg.qr(x @ basis).Q
    return basis


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The q largest singular values of A - M with their vectors: A - M is nearly U diag(S) V^H.

    Args:
        A: (..., m, n).
        q: a slightly larger number than the rank.
        niter: power iterations; more for spectra that decay slowly.
        M: subtracted, broadcast to A's shape.

    >>> torch.svd_lowrank(torch.eye(3), q=2)[1]
    tensor([1., 1.])
    """
    q = 6 if q is None else q
    niter = 2 if niter is None else niter
    m, n = A.shape[-2:]
    if M is not None:
        M = M.broadcast_to(A.shape)
    if m < n:  # the smaller side is projected
        U, S, V = svd_lowrank(A.mH, q, niter, None if M is None else M.mH)
        return V, S, U
    Q = get_approximate_basis(A, q, niter, M)
    x = A if M is None else A - M
    small = _linalg().svd(Q.mH @ x.to(Q.dtype), full_matrices=False)
    return Q @ small.U, small.S, small.Vh.mH


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components by svd_lowrank: the columns of V, and A - mean is nearly U diag(S) V^H.

    >>> torch.pca_lowrank(torch.eye(3), q=1)[2].shape
    torch.Size([3, 1])
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter)
    return svd_lowrank(A - A.mean(-2, keepdim=True), q, niter)


def _linalg() -> Any:
    import flambeau.linalg

    return flambeau.linalg
