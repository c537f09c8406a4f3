"""Linear systems, triangular ones too, and inverses. Kernels: csrc/kernels/linalg.cpp.

Derivatives solve with the factors at hand, or anew when they must be differentiable themselves.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(
    kernel="linalg_solve_ex",
    namespaces=(),
    method=False,
    out=False,
    name="_linalg_solve_matrices",
    batch=True,
)
def _linalg_solve_matrices(
    A: Tensor, B: Tensor, left: bool, vector: bool
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """X, the factors of A, its pivots and infos, for batches of matrices.

    >>> torch.linalg.solve(torch.eye(2), torch.ones(2))
    tensor([1., 1.])
    """
    batch = A.shape[:-2]
    x = _solution("linalg.solve", A, B, left)
    if vector and B.ndim > 2:
        # Laid out as the batch of vectors that it stands for, taken as a matrix.
        strides = _column_strides(B.shape[:-1])
        strides.append(1)
        x = empty_strided_as(x.shape, strides, dtype=B.dtype, like=B)
    return (
        x,
        _columns(A.shape, A.dtype, A),
        empty(batch + [A.size(-1)], dtype=int32),
        empty(batch, dtype=int32),
    )


@_linalg_solve_matrices.vjp
def _(g0, A, B, left: bool, result0, result1, result2):
    g_b = g0
    if differentiated():
        g_b = _solve_matrices(A.adjoint(), g0, left)
    else:
        g_b = linalg_lu_solve(result1, result2, g0, left=left, adjoint=True)
    g_a = _solve_cotangent(g_b, result0, left, False)
    return sum_to(g_a, A.shape), sum_to(g_b, B.shape)


@composite(namespaces=(), method=False)
def _solve_matrices(A: Tensor, B: Tensor, left: bool) -> Tensor:
    """The solution alone.

    >>> torch.linalg.solve(torch.eye(2), torch.ones(2))
    tensor([1., 1.])
    """
    x, _, _, _ = _linalg_solve_matrices(A, B, left, False)
    return x


@composite(namespaces=(), method=False)
def _is_vector_rhs(A: Tensor, B: Tensor) -> bool:
    """Is B a batch of vectors for the batch of matrices A?

    >>> torch.linalg.solve(torch.eye(2), torch.ones(2)).shape
    torch.Size([2])
    """
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])


@composite(
    namespaces=("torch",), method=False, name="_linalg_solve_ex",
    fields=("result", "LU", "pivots", "info"),
)  # fmt: skip
def _linalg_solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """The solution with everything that was worked out on the way.

    >>> torch._linalg_solve_ex(torch.eye(2), torch.ones(2)).info
    tensor(0, dtype=torch.int32)
    """
    _check_square("linalg.solve", A, "A")
    _check_inexact("linalg.solve", A)
    _check_same_dtype("linalg.solve", A, B, "A", "B")
    vector = _is_vector_rhs(A, B)
    check(B.ndim >= 1, "linalg.solve: The input tensor B must have at least 2 dimensions.")
    check(
        left or not vector,
        "linalg.solve: Vector broadcasting of the left hand side is not supported for "
        "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)",
    )
    b = B.unsqueeze(-1) if vector else B
    x, factors, pivots, info = _linalg_solve_matrices(A, b, left, vector)
    if check_errors:
        _ = _linalg_check_errors(info, "torch.linalg.solve_ex", is_matrix=A.ndim == 2)
    return x.squeeze(-1) if vector else x, factors, pivots, info


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.solve_ex",), fields=("result", "info"),
    method=False, out=True,
)  # fmt: skip
def linalg_solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> Tuple[Tensor, Tensor]:
    """X with A X = B, and for each A the place of its first zero pivot (0: none).

    >>> torch.linalg.solve_ex(torch.eye(2), torch.ones(2)).info
    tensor(0, dtype=torch.int32)
    """
    x, _, _, info = _linalg_solve_ex(A, B, left=left, check_errors=check_errors)
    return x, info


@composite(
    namespaces=("_C._linalg",),
    aliases=("linalg.solve",),
    method=False,
    out=True,
    autocast="float32",
)
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A X = B (or X A = B), for square A.

    >>> torch.linalg.solve(torch.tensor([[2.0]]), torch.tensor([4.0]))
    tensor([2.])
    """
    x, _, _, info = _linalg_solve_ex(A, B, left=left)
    _ = _linalg_check_errors(info, "torch.linalg.solve", is_matrix=A.ndim == 2)
    return x


@structured(
    kernel="linalg_solve_triangular", namespaces=("_C._linalg",),
    aliases=("linalg.solve_triangular",), method=False,
    batch=True,
)  # fmt: skip
def linalg_solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with A X = B (or X A = B), where only one triangle of the input A is read.

    >>> torch.linalg.solve_triangular(torch.tensor([[2.0]]), torch.tensor([[4.0]]), upper=True)
    tensor([[2.]])
    """
    _check_square("linalg.solve_triangular", input, "A")
    _check_matrix("linalg.solve_triangular", B, "B")
    _check_same_dtype("linalg.solve_triangular", input, B, "A", "B")
    _check_inexact("linalg.solve_triangular", input)
    shape = _solution("linalg.solve_triangular", input, B, left).shape
    return _columns(shape, B.dtype, B)


@linalg_solve_triangular.vjp
def _(g, input, B, upper: bool, left: bool, unitriangular: bool, result):
    g_b = linalg_solve_triangular(
        input.adjoint(), g, upper=not upper, left=left, unitriangular=unitriangular
    )
    g_a = _solve_cotangent(g_b, result, left, False)
    skip = 1 if unitriangular else 0
    g_a = g_a.triu(skip) if upper else g_a.tril(-skip)
    return sum_to(g_a, input.shape), sum_to(g_b, B.shape)


@composite(fields=("solution", "cloned_coefficient"), out=True, autocast="float32")
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Tuple[Tensor, Tensor]:
    """The older form of linalg.solve_triangular, which also returns a copy of A.

    >>> torch.triangular_solve(torch.ones(1, 1), torch.ones(1, 1)).solution
    tensor([[1.]])
    """
    warn(
        "torch.triangular_solve is deprecated: use torch.linalg.solve_triangular, which wants to "
        "be told `upper`"
    )
    check(
        input.ndim >= 2,
        "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has "
        f"{input.ndim} dimensions instead",
    )
    check(
        A.ndim >= 2,
        f"torch.triangular_solve: Expected A to have at least 2 dimensions, but it has {A.ndim} "
        "dimensions instead",
    )
    _check_same_dtype("triangular_solve", input, A, "b", "A")
    _check_square("triangular_solve", A, "A")
    check(
        A.size(-2) == input.size(-2),
        f"Incompatible matrix sizes for triangular_solve: each A matrix is {A.size(-1)} by "
        f"{A.size(-1)} but each b matrix is {input.size(-2)} by {input.size(-1)}",
    )
    a = A.transpose(-2, -1) if transpose else A
    x = linalg_solve_triangular(a, input, upper=upper != transpose, unitriangular=unitriangular)
    batch = broadcast_shapes(A.shape[:-2], input.shape[:-2])
    shape = batch + A.shape[A.ndim - 2 :]
    copied = A.new_empty_strided(shape, _column_strides(shape)).copy_(A)
    return x, copied


@structured(
    kernel="linalg_inv_ex", namespaces=("_C._linalg",), aliases=("linalg.inv_ex",),
    fields=("inverse", "info"), method=False,
    autocast="float32",
    batch=True,
)  # fmt: skip
def linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> Tuple[Tensor, Tensor]:
    """The inverse, and for each matrix the place of its first zero pivot (0: none).

    >>> torch.linalg.inv_ex(torch.eye(2)).info
    tensor(0, dtype=torch.int32)
    """
    _check_square("linalg.inv", A, "A")
    _check_inexact("linalg.inv", A)
    return _columns(A.shape, A.dtype, A), empty(A.shape[:-2], dtype=int32)


@linalg_inv_ex.vjp
def _(g0, result0):
    back = result0.adjoint()
    return -(back @ (g0 @ back))


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.inv",), method=False, out=True, autocast="float32"
)
def linalg_inv(A: Tensor) -> Tensor:
    """The inverse of each matrix.

    >>> torch.linalg.inv(torch.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    x, info = linalg_inv_ex(A)
    _ = _linalg_check_errors(info, "linalg.inv", is_matrix=A.ndim == 2)
    return x


@composite(out=True, autocast="float32")
def inverse(input: Tensor) -> Tensor:
    """Another name of linalg.inv.

    >>> torch.inverse(torch.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return linalg_inv(input)
