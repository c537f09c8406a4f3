"""Least squares, pseudo-inverses and ranks. Kernels: csrc/kernels/linalg_spectral.cpp.

Tolerances come in pairs: singular values up to max(atol, rtol * the largest) count as zero.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="linalg_lstsq", namespaces=(), method=False, out=False, batch=True)
def _linalg_lstsq(
    input: Tensor, other: Tensor, rcond: float, driver: int
) -> Tuple[Tensor, Tensor, Tensor]:
    """Solution, rank and singular values for batches of matrices; drivers are numbered gels, gelsy,
    gelsd, gelss, and what a driver does not give is empty.

    >>> torch.linalg.lstsq(torch.eye(2), torch.ones(2, 1)).rank
    tensor(2)
    """
    m, n, rhs = input.size(-2), input.size(-1), other.size(-1)
    batch = broadcast_shapes(input.shape[:-2], other.shape[:-2])
    # Laid out as the top of a place that takes both sides, as LAPACK leaves it.
    strides = _column_strides(batch + [max(m, n), rhs])
    x = empty_strided_as(batch + [n, rhs], strides, dtype=input.dtype, like=input)
    rank = empty([0] if driver == 0 else batch, dtype=int64)
    kind = to_real(input.dtype)
    return x, rank, empty(batch + [min(m, n)] if driver >= 2 else [0], dtype=kind)


@_linalg_lstsq.vjp
def _(g0, input, other, rcond: float):
    back = linalg_pinv(input, rtol=rcond)
    g_back = g0 @ other.adjoint()
    g_other = back.adjoint() @ g0
    return (
        sum_to(_pinv_backward(g_back, back, input), input.shape),
        sum_to(g_other, other.shape),
    )


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.lstsq",), method=False, out=True,
    fields=("solution", "residuals", "rank", "singular_values"),
    autocast="float32",
    out_casts=True,
)  # fmt: skip
def linalg_lstsq(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """X that makes the norm of input X - b least, and is the shortest of those.

    Args:
        input: batches of (m, n) matrices.
        b: batches of (m, k) matrices, or of vectors.
        rcond: singular values below it times the largest count as zero.
        driver: the routine of LAPACK: "gelsy" (default), "gels" (full rank), "gelsd", "gelss".

    >>> torch.linalg.lstsq(torch.eye(2), torch.ones(2, 1)).solution
    tensor([[1.],
            [1.]])
    """
    check(input.ndim >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.")
    check(b.ndim >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.")
    check(
        input.dtype == b.dtype,
        "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's "
        f"dtype {input.dtype} and other's dtype {b.dtype}",
    )
    _check_inexact("torch.linalg.lstsq", input)
    ahead = input.ndim - b.ndim
    check(
        ahead >= 0 and ahead <= 1,
        "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and "
        "(input.dim() - other.dim()) <= 1",
    )
    vector = ahead == 1
    if vector:
        check(
            input.size(-2) == b.size(-1),
            "torch.linalg.lstsq: input.size(-2) should match other.size(-1)",
        )
    else:
        check(
            input.size(-2) == b.size(-2),
            "torch.linalg.lstsq: input.size(-2) should match other.size(-2)",
        )
    name = "gelsy"
    if driver is not None:
        name = driver
    number = 0 if name == "gels" else 1 if name == "gelsy" else 2 if name == "gelsd" else 3
    check(
        number < 3 or name == "gelss",
        "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)",
    )
    m, n = input.size(-2), input.size(-1)
    tolerance = epsilon(input.dtype) * float(max(m, n))
    if rcond is not None:
        tolerance = rcond
    rhs = b.unsqueeze(-1) if vector else b
    x, rank, s = _linalg_lstsq(input, rhs, tolerance, number)
    residuals = x.reshape([-1]).narrow(0, 0, 0).abs()
    if m > n and number != 1:
        # Where ranks are not known yet (vmap, meta) they count as full.
        full = number == 0 or truth((rank == n).all(), True)
        if full:
            residuals = (input @ x - rhs).abs().pow(2.0).sum(-2)
    return x.squeeze(-1) if vector else x, residuals, rank, s


@composite(namespaces=(), method=False)
def _pinv_backward(g: Tensor, back: Tensor, A: Tensor) -> Tensor:
    """Cotangent of A for its pseudo-inverse `back`. Source: Golub and Pereyra, SIAM J. Numer. Anal.
    10 (1973).

    >>> torch.linalg.pinv(torch.eye(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    gh, bh = g.adjoint(), back.adjoint()
    if A.size(-2) <= A.size(-1):
        k = gh @ back
        kb = k @ bh
        return kb - (back @ k).adjoint() - (A @ back) @ kb + (bh @ back) @ (gh - k @ A)
    k = back @ gh
    bk = bh @ k
    return bk - (k @ back).adjoint() + ((gh - A @ k) @ back) @ bh - (bk @ back) @ A


@structured(kernel="linalg_pinv", namespaces=(), method=False, out=False)
def _linalg_pinv(input: Tensor, atol: Tensor, rtol: Tensor, hermitian: bool) -> Tensor:
    """The kernel of pinv; tolerances are of the real dtype.

    >>> torch.linalg.pinv(torch.eye(1))
    tensor([[1.]])
    """
    batch = input.shape[:-2]
    return empty(batch + [input.size(-1), input.size(-2)], like=input)


@composite(namespaces=(), method=False)
def _aligned_tolerance(tolerance: Tensor, batched: bool, ndim: int) -> Tensor:
    """Tolerances of samples, beside matrices that have `ndim` dims with that of the samples."""
    if not batched:
        return tolerance
    between: Ints = [1 for k in range(ndim - 2 - tolerance.ndim)]
    return tolerance.reshape(tolerance.shape[:1] + between + tolerance.shape[1:])


@_linalg_pinv.vmap
def _(input, atol, rtol, hermitian, input_b, atol_b, rtol_b, batch):
    x = _in_front(input, input_b, batch)
    return _linalg_pinv(
        x,
        _aligned_tolerance(atol, atol_b, x.ndim),
        _aligned_tolerance(rtol, rtol_b, x.ndim),
        hermitian,
    )


@_linalg_pinv.vjp
def _(g, input, result):
    return _pinv_backward(g, result, input), None, None


@composite(namespaces=(), method=False)
def _default_rtol(input: Tensor) -> float:
    """The relative tolerance that rounding asks for.

    >>> torch.linalg.matrix_rank(torch.eye(2))
    tensor(2)
    """
    return epsilon(input.dtype) * float(max(input.size(-2), input.size(-1)))


@composite(namespaces=(), method=False)
def _number_tolerances(
    input: Tensor, atol: float | None, rtol: float | None
) -> Tuple[Tensor, Tensor]:
    """Both tolerances as tensors; the relative one is the default unless one is given.

    >>> torch.linalg.matrix_rank(torch.eye(2))
    tensor(2)
    """
    absolute = 0.0
    if atol is not None:
        absolute = atol
    relative = 0.0 if absolute > 0.0 else _default_rtol(input)
    if rtol is not None:
        relative = rtol
    kind = to_real(input.dtype)
    return full([], absolute, dtype=kind), full([], relative, dtype=kind)


@composite(namespaces=(), method=False)
def _tensor_tolerances(
    name: str, input: Tensor, atol: Tensor | None, rtol: Tensor | None
) -> Tuple[Tensor, Tensor]:
    """Both tolerances where they are tensors.

    >>> torch.linalg.matrix_rank(torch.eye(2), rtol=torch.tensor(0.5))
    tensor(2)
    """
    kind = to_real(input.dtype)
    absolute = zeros([], dtype=kind)
    if atol is not None:
        check(
            not atol.is_complex(),
            f"{name}: atol tensor of complex type is not supported. Got "
            f"{scalar_type_name(atol.dtype)}",
        )
        absolute = atol.to(kind)
    relative = where(absolute > 0.0, 0.0, _default_rtol(input)).to(kind)
    if rtol is not None:
        check(
            not rtol.is_complex(),
            f"{name}: rtol tensor of complex type is not supported. Got "
            f"{scalar_type_name(rtol.dtype)}",
        )
        relative = rtol.to(kind)
    return absolute, relative


@composite(namespaces=(), method=False)
def _check_pinv(input: Tensor) -> None:
    """Refuses what has no pseudo-inverse.

    >>> torch.linalg.pinv(torch.eye(1))
    tensor([[1.]])
    """
    check(
        input.ndim >= 2 and input.dtype.is_inexact,
        f"linalg.pinv({scalar_type_name(input.dtype)}{{{input.shape}}}): expected a tensor with "
        "2 or more dimensions of float, double, cfloat or cdouble types",
    )
    _check_inexact("linalg.pinv", input)


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.pinv",), method=False, out=True, out_casts=True
)
def linalg_pinv(
    input: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False
) -> Tensor:
    """The Moore-Penrose inverse: of all X that make the norm of input X - 1 least, the shortest.

    >>> torch.linalg.pinv(torch.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    _check_pinv(input)
    absolute, relative = _number_tolerances(input, atol, rtol)
    return _linalg_pinv(input, absolute, relative, hermitian)


@linalg_pinv.overload(
    namespaces=("_C._linalg",), aliases=("linalg.pinv",), method=False, out=True, out_casts=True
)
def linalg_pinv(
    input: Tensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """With a tolerance for each matrix.

    >>> torch.linalg.pinv(torch.eye(1), rtol=torch.tensor(0.1))
    tensor([[1.]])
    """
    _check_pinv(input)
    absolute, relative = _tensor_tolerances("torch.linalg.pinv", input, atol, rtol)
    return _linalg_pinv(input, absolute, relative, hermitian)


@linalg_pinv.overload(
    namespaces=("_C._linalg",), aliases=("linalg.pinv",), method=False, out=True, out_casts=True
)
def linalg_pinv(input: Tensor, rcond: float, hermitian: bool = False) -> Tensor:
    """With the relative tolerance under its older name.

    >>> torch.linalg.pinv(torch.eye(1), 0.1)
    tensor([[1.]])
    """
    return linalg_pinv(input, atol=0.0, rtol=rcond, hermitian=hermitian)


@linalg_pinv.overload(
    namespaces=("_C._linalg",), aliases=("linalg.pinv",), method=False, out=True, out_casts=True
)
def linalg_pinv(input: Tensor, rcond: Tensor, hermitian: bool = False) -> Tensor:
    """With relative tolerances under their older name.

    >>> torch.linalg.pinv(torch.eye(1), torch.tensor(0.1))
    tensor([[1.]])
    """
    _check_pinv(input)
    absolute, relative = _tensor_tolerances("torch.linalg.pinv", input, None, rcond)
    return _linalg_pinv(input, absolute, relative, hermitian)


@composite(autocast="float32")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The older form of linalg.pinv.

    >>> torch.pinverse(torch.eye(1))
    tensor([[1.]])
    """
    return linalg_pinv(input, rcond, False)


@composite(namespaces=(), method=False)
def _rank(input: Tensor, atol: Tensor, rtol: Tensor, hermitian: bool) -> Tensor:
    """Number of singular values above the tolerances.

    >>> torch.linalg.matrix_rank(torch.eye(2))
    tensor(2)
    """
    if input.numel() == 0:
        return zeros(input.shape[:-2], dtype=int64)
    s = linalg_eigvalsh(input).abs() if hermitian else linalg_svdvals(input)
    limit = maximum(atol, rtol * s.amax(-1))
    return (s > limit.unsqueeze(-1)).sum(-1)


@composite(
    namespaces=("_C._linalg",),
    aliases=("linalg.matrix_rank",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def linalg_matrix_rank(
    input: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False
) -> Tensor:
    """Numbers of singular values that do not count as zero. int64.

    >>> torch.linalg.matrix_rank(torch.eye(2))
    tensor(2)
    """
    _check_matrix("torch.linalg.matrix_rank", input, "input")
    absolute, relative = _number_tolerances(input, atol, rtol)
    return _rank(input, absolute, relative, hermitian)


@linalg_matrix_rank.overload(
    namespaces=("_C._linalg",),
    aliases=("linalg.matrix_rank",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def linalg_matrix_rank(
    input: Tensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """With a tolerance for each matrix.

    >>> torch.linalg.matrix_rank(torch.eye(2), atol=torch.tensor(2.0))
    tensor(0)
    """
    _check_matrix("torch.linalg.matrix_rank", input, "input")
    absolute, relative = _tensor_tolerances("torch.linalg.matrix_rank", input, atol, rtol)
    return _rank(input, absolute, relative, hermitian)


@linalg_matrix_rank.overload(
    namespaces=("_C._linalg",),
    aliases=("linalg.matrix_rank",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def linalg_matrix_rank(input: Tensor, tol: float, hermitian: bool = False) -> Tensor:
    """With an absolute tolerance under its older name.

    >>> torch.linalg.matrix_rank(torch.eye(2), 2.0)
    tensor(0)
    """
    return linalg_matrix_rank(input, atol=tol, rtol=0.0, hermitian=hermitian)


@linalg_matrix_rank.overload(
    namespaces=("_C._linalg",),
    aliases=("linalg.matrix_rank",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def linalg_matrix_rank(input: Tensor, tol: Tensor, hermitian: bool = False) -> Tensor:
    """With absolute tolerances under their older name.

    >>> torch.linalg.matrix_rank(torch.eye(2), torch.tensor(2.0))
    tensor(0)
    """
    _check_matrix("torch.linalg.matrix_rank", input, "input")
    kind = to_real(input.dtype)
    return _rank(input, tol.to(kind), zeros([], dtype=kind), hermitian)
