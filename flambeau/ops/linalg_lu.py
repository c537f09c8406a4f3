"""LU factors with row exchanges, and systems solved by them. Kernels: csrc/kernels/linalg.cpp."""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(
    kernel="linalg_lu_factor_ex", namespaces=("_C._linalg",), aliases=("linalg.lu_factor_ex",),
    fields=("LU", "pivots", "info"), method=False,
    batch=True,
)  # fmt: skip
def linalg_lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> Tuple[Tensor, Tensor, Tensor]:
    """Both factors in one matrix, row exchanges counted from 1, and the first zero pivot.

    >>> torch.linalg.lu_factor_ex(torch.eye(2)).pivots
    tensor([1, 2], dtype=torch.int32)
    """
    _check_matrix("torch.linalg.lu_factor", A, "A")
    _check_inexact("torch.linalg.lu_factor", A)
    check(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    batch = A.shape[:-2]
    k = min(A.size(-2), A.size(-1))
    return (
        _columns(A.shape, A.dtype, A),
        empty(batch + [k], dtype=int32),
        empty(batch, dtype=int32),
    )


@linalg_lu_factor_ex.vjp
def _(g0, result0, result1):
    lower, upper = _unpack_factors(result0)
    k = min(result0.size(-2), result0.size(-1))
    g_lower = g0.narrow(-1, 0, k).tril(-1)
    g_upper = g0.narrow(-2, 0, k).triu()
    g = _plu_backward(g_lower, g_upper, lower, upper)
    return _permute_rows(g, result1, True)


@structured(
    kernel="pivots_to_permutation",
    namespaces=(),
    method=False,
    out=False,
    differentiable=False,
    batch=True,
)
def _pivots_to_permutation(pivots: Tensor, n: int) -> Tensor:
    """For each row of L U, the row of A that it is.

    >>> torch.linalg.lu(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    return empty(pivots.shape[:-1] + [n], dtype=int64)


@composite(namespaces=(), method=False)
def _permute_rows(x: Tensor, pivots: Tensor, back: bool) -> Tensor:
    """P^T x for the permutation of the pivots, or (back) P x.

    >>> torch.linalg.lu(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    order = _pivots_to_permutation(pivots, x.size(-2))
    if back:
        order = order.argsort(-1)
    batch = broadcast_shapes(x.shape[:-2], pivots.shape[:-1])
    shape = batch + x.shape[x.ndim - 2 :]
    return x.expand(shape).gather(-2, order.unsqueeze(-1).expand(shape))


@composite(namespaces=(), method=False)
def _unpack_factors(LU: Tensor) -> Tuple[Tensor, Tensor]:
    """L (with its unit diagonal) and U.

    >>> torch.linalg.lu(torch.eye(2)).L
    tensor([[1., 0.],
            [0., 1.]])
    """
    m, n = LU.size(-2), LU.size(-1)
    k = min(m, n)
    lower = LU.narrow(-1, 0, k).tril(-1) + eye(m, k, dtype=LU.dtype)
    return lower, LU.narrow(-2, 0, k).triu()


@composite(namespaces=(), method=False)
def _plu_backward(g_lower: Tensor, g_upper: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Cotangent of P^T A, from those of L and U. Wide and tall matrices add what the trailing
    columns of U or rows of L owe to the square part.

    >>> torch.linalg.lu(torch.eye(2)).L
    tensor([[1., 0.],
            [0., 1.]])
    """
    m, n = lower.size(-2), upper.size(-1)
    k = min(m, n)
    l1, u1 = lower.narrow(-2, 0, k), upper.narrow(-1, 0, k)
    strict = l1.adjoint() @ g_lower.narrow(-2, 0, k)
    rest = g_upper.narrow(-1, 0, k) @ u1.adjoint()
    if n > k:
        strict = strict - g_upper.narrow(-1, k, n - k) @ upper.narrow(-1, k, n - k).adjoint()
    if m > k:
        rest = rest - lower.narrow(-2, k, m - k).adjoint() @ g_lower.narrow(-2, k, m - k)
    middle = linalg_solve_triangular(
        u1.adjoint(), strict.tril(-1) + rest.triu(), upper=False, left=False
    )
    g = linalg_solve_triangular(l1.adjoint(), middle, upper=True, unitriangular=True)
    if n > k:
        g_right = linalg_solve_triangular(
            l1.adjoint(), g_upper.narrow(-1, k, n - k), upper=True, unitriangular=True
        )
        return cat([g, g_right], -1)
    if m > k:
        g_below = linalg_solve_triangular(
            u1.adjoint(), g_lower.narrow(-2, k, m - k), upper=False, left=False
        )
        return cat([g, g_below], -2)
    return g


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.lu_factor",), fields=("LU", "pivots"),
    method=False, out=True,
)  # fmt: skip
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> Tuple[Tensor, Tensor]:
    """Both factors in one matrix, and the row exchanges counted from 1.

    >>> torch.linalg.lu_factor(torch.eye(2)).pivots
    tensor([1, 2], dtype=torch.int32)
    """
    factors, pivots, info = linalg_lu_factor_ex(A, pivot=pivot)
    _ = _linalg_check_errors(info, "torch.linalg.lu_factor", is_matrix=A.ndim == 2)
    return factors, pivots


@composite(fields=("P", "L", "U"), out=True, method=False)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Tuple[Tensor, Tensor, Tensor]:
    """P, L and U with A = P L U, from what lu_factor gives; what is not wanted is empty.

    >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.eye(1))).P
    tensor([[1.]])
    """
    check(
        LU_data.ndim >= 2,
        "torch.lu_unpack: The input tensor LU_data must have at least 2 dimensions.",
    )
    check(
        not unpack_pivots or LU_pivots.dtype == int32,
        "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
        "Note: this function is intended to be used with the output produced by "
        "torch.linalg.lu_factor",
    )
    p = empty([0], dtype=LU_data.dtype)
    lower = empty([0], dtype=LU_data.dtype)
    upper = empty([0], dtype=LU_data.dtype)
    if unpack_pivots:
        m = LU_data.size(-2)
        order = _pivots_to_permutation(LU_pivots, m)
        p = LU_pivots.new_zeros(LU_pivots.shape[:-1] + [m, m], dtype=LU_data.dtype)
        p.scatter_(-2, order.unsqueeze(-2), 1)
    if unpack_data:
        lower, upper = _unpack_factors(LU_data)
    return p, lower, upper


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.lu",), fields=("P", "L", "U"), method=False,
    out=True,
)  # fmt: skip
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Tuple[Tensor, Tensor, Tensor]:
    """P, L and U with A = P L U.

    >>> torch.linalg.lu(torch.eye(1)).U
    tensor([[1.]])
    """
    _check_matrix("linalg.lu", A, "A")
    _check_inexact("linalg.lu", A)
    check(pivot, "linalg.lu: LU without pivoting is not implemented on the CPU")
    factors, pivots, _ = linalg_lu_factor_ex(A)
    return lu_unpack(factors, pivots)


@composite(
    namespaces=("torch",),
    method=True,
    name="_lu_with_info",
    fields=("LU", "pivots", "info"),
    autocast="float32",
)
def _lu_with_info(
    input: Tensor, pivot: bool = True, check_errors: bool = True
) -> Tuple[Tensor, Tensor, Tensor]:
    """The older form of linalg.lu_factor_ex, which lets zero pivots pass whatever it is asked.

    >>> torch._lu_with_info(torch.eye(1))[0]
    tensor([[1.]])
    """
    return linalg_lu_factor_ex(input, pivot=pivot, check_errors=False)


@structured(
    kernel="linalg_lu_solve",
    namespaces=("_C._linalg",),
    aliases=("linalg.lu_solve",),
    method=False,
    batch=True,
)
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with A X = B (or X A = B, or with the adjoint of A), from the factors of A.

    >>> torch.linalg.lu_solve(*torch.linalg.lu_factor(torch.eye(1)), torch.ones(1, 1))
    tensor([[1.]])
    """
    _check_square("torch.linalg.lu_solve", LU, "LU")
    _check_matrix("linalg.lu_solve", B, "B")
    _check_inexact("linalg.lu_solve", LU)
    _check_same_dtype("linalg.lu_solve", LU, B, "LU", "B")
    check(
        LU.shape[:-1] == pivots.shape,
        "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got "
        f"pivots with shape {pivots.shape} instead",
    )
    check(
        pivots.dtype == int32,
        "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32. Got "
        f"{scalar_type_name(pivots.dtype)}",
    )
    return _solution("linalg.lu_solve", LU, B, left)


@linalg_lu_solve.vjp
def _(g, LU, pivots, B, left: bool, adjoint: bool, result):
    g_b = linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint)
    g_a = _solve_cotangent(g_b, result, left, adjoint)
    lower, upper = _unpack_factors(LU)
    turned = _permute_rows(g_a, pivots, False)
    g_lu = (turned @ upper.adjoint()).tril(-1) + (lower.adjoint() @ turned).triu()
    return sum_to(g_lu, LU.shape), None, sum_to(g_b, B.shape)


@composite(namespaces=(), method=False)
def _solve_cotangent(g_b: Tensor, x: Tensor, left: bool, adjoint: bool) -> Tensor:
    """Cotangent of A for the solution x of a system with A, from that of the right-hand side.

    >>> torch.linalg.solve(torch.eye(2), torch.ones(2))
    tensor([1., 1.])
    """
    if left:
        return -(x @ g_b.adjoint()) if adjoint else -(g_b @ x.adjoint())
    return -(g_b.adjoint() @ x) if adjoint else -(x.adjoint() @ g_b)


@composite(namespaces=(), method=False)
def _solution(name: str, A: Tensor, B: Tensor, left: bool) -> Tensor:
    """The place of the solution: batches broadcast, columns dense (rows, for X A = B).

    >>> torch.linalg.solve(torch.eye(2), torch.ones(2))
    tensor([1., 1.])
    """
    equation = "AX = B" if left else "XA = B"
    fits = A.size(-1) == (B.size(-2) if left else B.size(-1))
    check(
        fits,
        f"{name}: Incompatible shapes of A and B for the equation {equation} "
        f"({A.size(-2)}x{A.size(-1)} and {B.size(-2)}x{B.size(-1)})",
    )
    shape = broadcast_shapes(A.shape[:-2], B.shape[:-2]) + B.shape[B.ndim - 2 :]
    return _columns(shape, B.dtype, B) if left else empty(shape, like=B)


@composite(out=True, autocast="float32")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The older form of linalg.lu_solve.

    >>> torch.lu_solve(torch.ones(1, 1), *torch.linalg.lu_factor(torch.eye(1)))
    tensor([[1.]])
    """
    warn("torch.lu_solve is deprecated: use torch.linalg.lu_solve(LU, pivots, B)")
    return linalg_lu_solve(LU_data, LU_pivots, input)
