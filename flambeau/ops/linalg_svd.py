"""Singular values and vectors. Kernel: csrc/kernels/linalg_spectral.cpp.

Derivatives are those of functions that do not depend on the phases of the vectors; they have poles
where values coincide or, for vectors of matrices that are not square, vanish.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(
    kernel="linalg_svd",
    method=False,
    fields=("U", "S", "Vh"),
    name="_linalg_svd",
    out=False,
    batch=True,
)
def _linalg_svd(A: Tensor, full_matrices: bool, compute_uv: bool) -> Tuple[Tensor, Tensor, Tensor]:
    """Singular values, and (or nothing) singular vectors.

    >>> torch.linalg.svdvals(torch.eye(2))
    tensor([1., 1.])
    """
    batch = A.shape[:-2]
    m, n = A.size(-2), A.size(-1)
    k = min(m, n)
    s = empty(batch + [k], dtype=to_real(A.dtype))
    if not compute_uv:
        return empty([0], like=A), s, empty([0], like=A)
    u = _columns(batch + [m, m if full_matrices else k], A.dtype, A)
    return u, s, _columns(batch + [n if full_matrices else k, n], A.dtype, A)


@_linalg_svd.vjp(undefined=True)
def _(g0: Tensor | None, g1: Tensor | None, g2: Tensor | None, A, result0, result1, result2):
    if g0 is None and g1 is None and g2 is None:
        return None
    m, n = A.size(-2), A.size(-1)
    k = min(m, n)
    u, s, vh = result0.narrow(-1, 0, k), result1, result2.narrow(-2, 0, k)
    middle = zeros(A.shape[:-2] + [k, k], dtype=A.dtype)
    if g1 is not None:
        middle = g1.to(A.dtype).diag_embed()
    if g0 is None and g2 is None:
        return u @ middle @ vh
    squares = s * s
    gap = squares.unsqueeze(-2) - squares.unsqueeze(-1) + eye(k, dtype=s.dtype)
    g_u = zeros(u.shape, dtype=A.dtype)
    g_v = zeros([vh.size(-1), k], dtype=A.dtype)
    skew_u = middle
    if g0 is not None:
        g_u = g0.narrow(-1, 0, k)
        skew_u = u.adjoint() @ g_u
        skew_u = skew_u - skew_u.adjoint()
        middle = middle + (skew_u / gap) * s.unsqueeze(-2)
    if g2 is not None:
        g_v = g2.narrow(-2, 0, k).adjoint()
        skew_v = vh @ g_v
        skew_v = skew_v - skew_v.adjoint()
        middle = middle + s.unsqueeze(-1) * (skew_v / gap)
        if A.is_complex():
            if g0 is not None:
                check(
                    _ignores_phase(skew_u + skew_v, skew_u),
                    _phase_message("svd_backward", "singular vectors"),
                )
            else:
                check(
                    _ignores_phase(skew_v, skew_v),
                    _phase_message("svd_backward", "singular vectors"),
                )
    elif A.is_complex():
        check(_ignores_phase(skew_u, skew_u), _phase_message("svd_backward", "singular vectors"))
    if A.is_complex() and g0 is not None and g2 is not None:
        middle = middle + (skew_u.diagonal(0, -2, -1) / (2.0 * s)).diag_embed()
    # What leaves the spaces that u and v span.
    out = u @ middle @ vh
    if m > k and g0 is not None:
        x = g_u / s.unsqueeze(-2)
        out = out + (x - u @ (u.adjoint() @ x)) @ vh
    if n > k and g2 is not None:
        y = g_v.adjoint() / s.unsqueeze(-1)
        out = out + u @ (y - (y @ vh.adjoint()) @ vh)
    return out


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.svd",), fields=("U", "S", "Vh"), method=False,
    out=True,
    autocast="float32",
)  # fmt: skip
def linalg_svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None
) -> Tuple[Tensor, Tensor, Tensor]:
    """A = U diag(S) Vh with orthonormal columns in U and rows in Vh; S descends.

    >>> torch.linalg.svd(torch.eye(2)).S
    tensor([1., 1.])
    """
    _check_svd(A, driver)
    return _linalg_svd(A, full_matrices, True)


@composite(namespaces=(), method=False)
def _check_svd(A: Tensor, driver: str | None) -> None:
    """Refuses what has no singular values.

    >>> torch.linalg.svdvals(torch.eye(2))
    tensor([1., 1.])
    """
    _check_matrix("linalg.svd", A, "A")
    _check_inexact("linalg.svd", A)
    check(
        driver is None,
        "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
        "cuSOLVER backend.",
    )


@composite(
    namespaces=("_C._linalg",),
    aliases=("linalg.svdvals",),
    method=False,
    out=True,
    autocast="float32",
)
def linalg_svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Singular values, in descending order.

    >>> torch.linalg.svdvals(torch.eye(2))
    tensor([1., 1.])
    """
    _check_svd(A, driver)
    _, s, _ = _linalg_svd(A, False, is_differentiated(A))
    return s


@composite(fields=("U", "S", "V"), out=True, autocast="float32")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Tuple[Tensor, Tensor, Tensor]:
    """The older form of linalg.svd: V instead of its adjoint, and zeros where nothing is wanted.

    >>> torch.svd(torch.eye(2)).S
    tensor([1., 1.])
    """
    check(input.ndim >= 2, "linalg.svd: input should have at least 2 dimensions, but has "
        f"{input.ndim} dimensions instead")  # fmt: skip
    _check_svd(input, None)
    if not compute_uv:
        batch = input.shape[:-2]
        m, n = input.size(-2), input.size(-1)
        u0 = zeros(batch + [m, m], dtype=input.dtype)
        return u0, linalg_svdvals(input), zeros(batch + [n, n], dtype=input.dtype)
    u, s, vh = _linalg_svd(input, not some, True)
    return u, s, vh.adjoint()
