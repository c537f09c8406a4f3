"""Eigenvalues and eigenvectors. Kernels: csrc/kernels/linalg_spectral.cpp.

Derivatives are those of functions that do not depend on the phases of the vectors; they have poles
where values coincide.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="linalg_eigh", namespaces=(), method=False, out=False, batch=True)
def _linalg_eigh(A: Tensor, upper: bool, vectors: bool) -> Tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order, and (or nothing) eigenvectors, of Hermitian matrices.

    >>> torch.linalg.eigvalsh(torch.eye(2))
    tensor([1., 1.])
    """
    values = empty(A.shape[:-1], dtype=to_real(A.dtype))
    return values, _columns(A.shape, A.dtype, A) if vectors else empty([0], like=A)


@_linalg_eigh.vjp(undefined=True)
def _(g0: Tensor | None, g1: Tensor | None, A, result0, result1):
    v = result1
    if g1 is None:
        if g0 is None:
            return None
        return (v * g0.to(v.dtype).unsqueeze(-2)) @ v.adjoint()
    inner = v.adjoint() @ g1
    gap = result0.unsqueeze(-2) - result0.unsqueeze(-1)
    unit = eye(A.size(-1), dtype=gap.dtype)
    middle = 0.5 * (inner - inner.adjoint()) / (gap + unit)
    if v.is_complex():
        check(_ignores_phase(inner, inner), _phase_message("linalg_eigh", "eigenvectors"))
    middle = middle - middle.diagonal(0, -2, -1).diag_embed()
    if g0 is not None:
        middle = middle + g0.to(v.dtype).diag_embed()
    return v @ middle @ v.adjoint()


@composite(namespaces=(), method=False)
def _ignores_phase(inner: Tensor, size: Tensor) -> bool:
    """Does the cotangent of vectors belong to a function that does not depend on their phases?

    >>> torch.linalg.eigvalsh(torch.eye(2))
    tensor([1., 1.])
    """
    phase = imag(inner.diagonal(0, -2, -1))
    if phase.numel() == 0:
        return True
    bound = 0.01 + 0.01 * size.abs().amax()
    return truth((phase.abs() <= bound).all(), True)


@composite(namespaces=(), method=False)
def _phase_message(name: str, what: str) -> str:
    """What is said of functions that do.

    >>> torch.linalg.eigvalsh(torch.eye(2))
    tensor([1., 1.])
    """
    return (
        f"{name}: The {what} in the complex case are specified up to multiplication by "
        "e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined."
    )


@composite(namespaces=(), method=False)
def _is_upper(UPLO: str) -> bool:
    """Which triangle is read.

    >>> torch.linalg.eigvalsh(torch.eye(2), "U")
    tensor([1., 1.])
    """
    check(
        UPLO == "L" or UPLO == "U" or UPLO == "l" or UPLO == "u",
        f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}",
    )
    return UPLO == "U" or UPLO == "u"


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.eigh",), method=False, out=True,
    fields=("eigenvalues", "eigenvectors"),
    autocast="float32",
)  # fmt: skip
def linalg_eigh(A: Tensor, UPLO: str = "L") -> Tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order and orthonormal eigenvectors of Hermitian matrices, of which
    the lower ("L") or upper ("U") triangle is read.

    >>> torch.linalg.eigh(torch.eye(2)).eigenvalues
    tensor([1., 1.])
    """
    _check_square("linalg.eigh", A, "A")
    _check_inexact("linalg.eigh", A)
    return _linalg_eigh(A, _is_upper(UPLO), True)


@composite(
    namespaces=("_C._linalg",),
    aliases=("linalg.eigvalsh",),
    method=False,
    out=True,
    autocast="float32",
)
def linalg_eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of Hermitian matrices, in ascending order.

    >>> torch.linalg.eigvalsh(torch.eye(2))
    tensor([1., 1.])
    """
    _check_square("linalg.eigvalsh", A, "A")
    _check_inexact("linalg.eigvalsh", A)
    # The derivative needs the vectors.
    values, _ = _linalg_eigh(A, _is_upper(UPLO), is_differentiated(A))
    return values


@structured(kernel="linalg_eig", namespaces=(), method=False, out=False, batch=True)
def _linalg_eig(A: Tensor, vectors: bool) -> Tuple[Tensor, Tensor]:
    """Eigenvalues, and (or nothing) eigenvectors, of any square matrices; complex.

    >>> torch.linalg.eigvals(torch.eye(1))
    tensor([1.+0.j])
    """
    d = to_complex(A.dtype)
    return empty(A.shape[:-1], dtype=d), _columns(A.shape, d, A) if vectors else empty([0], dtype=d)


@_linalg_eig.vjp(undefined=True)
def _(g0: Tensor | None, g1: Tensor | None, A, result0, result1):
    v = result1
    vh = v.adjoint()
    if g1 is None:
        if g0 is None:
            return None
        g = linalg_solve(vh, g0.unsqueeze(-1) * vh)
        return g if A.is_complex() else real(g)
    inner = vh @ g1
    check(_ignores_phase(inner, inner), _phase_message("linalg_eig", "eigenvectors"))
    along = real(inner.diagonal(0, -2, -1)).to(v.dtype)
    inner = inner - (vh @ v) * along.unsqueeze(-2)
    gap = (result0.unsqueeze(-2) - result0.unsqueeze(-1)).conj()
    middle = inner / (gap + eye(A.size(-1), dtype=gap.dtype))
    middle = middle - middle.diagonal(0, -2, -1).diag_embed()
    if g0 is not None:
        middle = middle + g0.diag_embed()
    g = linalg_solve(vh, middle @ vh)
    return g if A.is_complex() else real(g)


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.eig",), method=False, out=True,
    fields=("eigenvalues", "eigenvectors"),
    autocast="float32",
    out_casts=True,
)  # fmt: skip
def linalg_eig(A: Tensor) -> Tuple[Tensor, Tensor]:
    """Eigenvalues, in no order, and eigenvectors of length 1 of square matrices; complex.

    >>> torch.linalg.eig(torch.eye(1)).eigenvalues
    tensor([1.+0.j])
    """
    _check_square("linalg.eig", A, "A")
    _check_inexact("linalg.eig", A)
    return _linalg_eig(A, True)


@composite(
    namespaces=("_C._linalg",),
    aliases=("linalg.eigvals",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def linalg_eigvals(A: Tensor) -> Tensor:
    """Eigenvalues of square matrices, in no order; complex.

    >>> torch.linalg.eigvals(torch.eye(1))
    tensor([1.+0.j])
    """
    _check_square("linalg.eigvals", A, "A")
    _check_inexact("linalg.eigvals", A)
    values, _ = _linalg_eig(A, is_differentiated(A))
    return values
