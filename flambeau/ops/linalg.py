"""Linear algebra: what all its families share (layout, checks, errors), and Cholesky factors.

Kernels: csrc/kernels/linalg.cpp. Factorisations write matrices column by column, as LAPACK does;
`_column_strides` says so. The public module is `linalg`; entries are named `linalg_NAME`.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _column_strides(shape: Ints) -> Ints:
    """Strides of a batch of matrices whose columns are dense.

    >>> torch.linalg.inv(torch.eye(2)).stride()
    (1, 2)
    """
    strides = contiguous_strides(shape)
    n = len(shape)
    strides[n - 2] = 1
    strides[n - 1] = max(1, shape[n - 2])
    return strides


@composite(namespaces=(), method=False)
def _columns(shape: Ints, dtype: DType, like: Tensor) -> Tensor:
    """A new batch of matrices with dense columns.

    >>> torch.linalg.inv(torch.eye(2)).stride()
    (1, 2)
    """
    return empty_strided_as(shape, _column_strides(shape), dtype=dtype, like=like)


@composite(namespaces=(), method=False)
def _check_matrix(name: str, x: Tensor, what: str) -> None:
    """Refuses what is no batch of matrices.

    >>> torch.linalg.det(torch.eye(2))
    tensor(1.)
    """
    check(x.ndim >= 2, f"{name}: The input tensor {what} must have at least 2 dimensions.")


@composite(namespaces=(), method=False)
def _check_square(name: str, x: Tensor, what: str) -> None:
    """Refuses what is no batch of square matrices.

    >>> torch.linalg.det(torch.eye(2))
    tensor(1.)
    """
    _check_matrix(name, x, what)
    check(
        x.size(-1) == x.size(-2),
        f"{name}: {what} must be batches of square matrices, but they are {x.size(-2)} by "
        f"{x.size(-1)} matrices",
    )


@composite(namespaces=(), method=False)
def _check_inexact(name: str, x: Tensor) -> None:
    """Refuses dtypes that factorisations have no kernel for.

    >>> torch.linalg.det(torch.eye(2))
    tensor(1.)
    """
    d = x.dtype
    check(
        d.is_inexact,
        f"{name}: Expected a floating point or complex tensor as input. Got {scalar_type_name(d)}",
    )
    check(
        d == float32 or d == float64 or d == complex64 or d == complex128,
        f"{name}: Low precision dtypes not supported. Got {scalar_type_name(d)}",
    )


@composite(namespaces=(), method=False)
def _check_same_dtype(name: str, a: Tensor, b: Tensor, what: str, other: str) -> None:
    """Refuses operands whose dtypes differ.

    >>> torch.linalg.solve(torch.eye(2), torch.ones(2))
    tensor([1., 1.])
    """
    check(
        a.dtype == b.dtype,
        f"{name}: Expected {what} and {other} to have the same dtype, but found {what} of type "
        f"{scalar_type_name(a.dtype)} and {other} of type {scalar_type_name(b.dtype)} instead",
    )


@structured(
    kernel="linalg_check_errors", method=False, differentiable=False, out=False,
    name="_linalg_check_errors",
    batch=True,
)  # fmt: skip
def _linalg_check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> Tensor:
    """Raises LinAlgError for the first matrix whose `info` is not 0; returns `info`.

    >>> torch._linalg_check_errors(torch.zeros(2, dtype=torch.int32), "inv", is_matrix=False)
    tensor([0, 0], dtype=torch.int32)
    """
    check(
        info.dtype == int32 or info.dtype == int64,
        f"_linalg_check_errors: expected an integer tensor, got {info.dtype}",
    )
    return alias_of(info)


@structured(
    kernel="linalg_use_builtin", dynamic=True, method=False, differentiable=False, out=False,
    namespaces=("_C._linalg",),
)  # fmt: skip
def _linalg_use_builtin(on: bool) -> bool:
    """Whether the plain routines are used though LAPACK is there; returns the setting before.

    For tests of machines without OpenBLAS.
    """


@structured(
    kernel="linalg_cholesky_ex", namespaces=("_C._linalg",), aliases=("linalg.cholesky_ex",),
    fields=("L", "info"), method=False,
    autocast="float32",
    batch=True,
)  # fmt: skip
def linalg_cholesky_ex(
    input: Tensor, *, upper: bool = False, check_errors: bool = False
) -> Tuple[Tensor, Tensor]:
    """The Cholesky factor, and for each matrix the order of the first minor that is not positive.

    >>> torch.linalg.cholesky_ex(torch.eye(2)).info
    tensor(0, dtype=torch.int32)
    """
    _check_square("linalg.cholesky", input, "A")
    _check_inexact("linalg.cholesky", input)
    return _columns(input.shape, input.dtype, input), empty(input.shape[:-2], dtype=int32)


@linalg_cholesky_ex.vjp
def _(g0, upper: bool, result0):
    low = result0.adjoint() if upper else result0
    g = g0.adjoint() if upper else g0
    phi = (low.adjoint() @ g).tril()
    phi = phi - 0.5 * phi.diagonal(0, -2, -1).diag_embed()
    phi = linalg_solve_triangular(low.adjoint(), phi, upper=True)
    phi = linalg_solve_triangular(low, phi, upper=False, left=False)
    return 0.5 * (phi + phi.adjoint())


@composite(
    namespaces=("_C._linalg",),
    aliases=("linalg.cholesky",),
    method=False,
    out=True,
    autocast="float32",
)
def linalg_cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """L with input = L L^H for a Hermitian positive-definite input, or its adjoint.

    >>> torch.linalg.cholesky(torch.tensor([[4.0, 0.0], [0.0, 9.0]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    factor, info = linalg_cholesky_ex(input, upper=upper)
    _ = _linalg_check_errors(info, "linalg.cholesky", is_matrix=input.ndim == 2)
    return factor


@composite(out=True, autocast="float32", out_casts=True)
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The older form of linalg.cholesky.

    >>> torch.cholesky(torch.eye(1))
    tensor([[1.]])
    """
    warn("torch.cholesky is deprecated: use torch.linalg.cholesky, of the upper factor its .mH")
    _check_square("cholesky", input, "A")
    factor, info = linalg_cholesky_ex(input, upper=upper)
    _ = _linalg_check_errors(info, "cholesky", is_matrix=input.ndim == 2)
    return factor


@structured(kernel="cholesky_solve", namespaces=(), method=False, out=False, batch=True)
def _cholesky_solve(input: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """The kernel of cholesky_solve.

    >>> torch.cholesky_solve(torch.ones(1, 1), torch.eye(1))
    tensor([[1.]])
    """
    batch = broadcast_shapes(input.shape[:-2], factor.shape[:-2])
    return _columns(batch + input.shape[input.ndim - 2 :], input.dtype, input)


@_cholesky_solve.vjp
def _(g, input, factor, upper: bool, result):
    g_input = _cholesky_solve(g, factor, upper)
    common = g_input @ result.adjoint()
    common = common + common.adjoint()
    g_factor = -(factor @ common) if upper else -(common @ factor)
    return sum_to(g_input, input.shape), sum_to(g_factor, factor.shape)


@composite(out=True, autocast="float32", out_casts=True)
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = input, from the Cholesky factor of A.

    >>> torch.cholesky_solve(torch.ones(1, 1), torch.full((1, 1), 2.0))
    tensor([[0.2500]])
    """
    check(
        input.ndim >= 2,
        f"b should have at least 2 dimensions, but has {input.ndim} dimensions instead",
    )
    check(L.ndim >= 2, f"u should have at least 2 dimensions, but has {L.ndim} dimensions instead")
    _check_same_dtype("cholesky_solve", input, L, "b", "A")
    check(
        L.size(-1) == L.size(-2),
        f"A must be batches of square matrices, but they are {L.size(-2)} by {L.size(-1)} matrices",
    )
    check(
        L.size(-2) == input.size(-2),
        f"Incompatible matrix sizes for cholesky_solve: each A matrix is {L.size(-1)} by "
        f"{L.size(-1)} but each b matrix is {input.size(-2)} by {input.size(-1)}",
    )
    _check_inexact("cholesky_solve", input)
    return _cholesky_solve(input, L, upper)


@composite(out=True, autocast="float32", out_casts=True)
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, from its Cholesky factor.

    >>> torch.cholesky_inverse(torch.full((1, 1), 2.0))
    tensor([[0.2500]])
    """
    _check_square("cholesky_inverse", input, "A")
    _check_inexact("cholesky_inverse", input)
    n = input.size(-1)
    factor = input.triu() if upper else input.tril()
    return _cholesky_solve(eye(n, dtype=input.dtype).expand(input.shape), factor, upper)
