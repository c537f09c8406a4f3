"""Products and other functions of matrices and vectors: cross, vecdot, vander, exp, tensor systems,
and symmetric indefinite factors. Kernels: csrc/kernels/linalg_products.cpp.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(
    kernel="linalg_cross",
    namespaces=("_C._linalg",),
    aliases=("linalg.cross",),
    method=False,
    batch=True,
)
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Cross products of vectors of length 3 along `dim`.

    >>> torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    check(
        input.ndim == other.ndim,
        "linalg.cross: inputs must have the same number of dimensions.",
    )
    check(
        input.size(dim) == 3 and other.size(dim) == 3,
        f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.size(dim)} and "
        f"{other.size(dim)}",
    )
    check(
        input.dtype == other.dtype,
        f"linalg.cross: expected inputs of the same dtype, got {input.dtype} and {other.dtype}",
    )
    check(input.dtype != bool_, "\"cross\" not implemented for 'Bool'")
    return empty(broadcast_shapes(input.shape, other.shape), like=input)


@linalg_cross.vjp
def _(g, input, other, dim: int):
    g_input = linalg_cross(other.conj().expand(g.shape), g, dim=dim)
    g_other = linalg_cross(g, input.conj().expand(g.shape), dim=dim)
    return sum_to(g_input, input.shape), sum_to(g_other, other.shape)


@linalg_cross.samples
def _(make):
    yield linalg_cross, make(4, 3), make(4, 3)
    yield linalg_cross, make(1, 3), make(4, 3)
    yield linalg_cross, make(2, 1, 3), make(4, 3).expand(1, 4, 3)


@composite(out=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Cross products along `dim`: by default along the first dim of size 3.

    >>> torch.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]), dim=0)
    tensor([0, 0, 1])
    """
    if dim is not None:
        return linalg_cross(input, other, dim=dim)
    warn(
        "torch.cross without dim is deprecated: pass it, or use torch.linalg.cross, which takes "
        "the last"
    )
    for d in range(input.ndim):
        if input.size(d) == 3:
            return linalg_cross(input, other, dim=d)
    raise RuntimeError("no dimension of size 3 in input")


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.vecdot",), method=False, out=True, autocast="lower"
)
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sums of products along `dim`, the first factor conjugated.

    >>> torch.linalg.vecdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    check(
        x.dtype == y.dtype,
        "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
        f"{scalar_type_name(x.dtype)} and y of type {scalar_type_name(y.dtype)} instead",
    )
    if x.ndim == 1 and y.ndim == 1:
        return vdot(x, y)
    return (x.conj() * y).sum(dim, dtype=x.dtype)


@composite(namespaces=("_C._linalg",), aliases=("linalg.vander",), method=False, sizes=("N",))
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Powers 0 to N - 1 (by default, as many as there are entries) of the entries, as rows.

    >>> torch.linalg.vander(torch.tensor([1, 2]))
    tensor([[1, 1],
            [1, 2]])
    """
    t = x.dtype
    check(
        t.is_inexact or t.is_integral,
        "linalg.vander supports floating point, complex, and integer tensors, but got "
        + scalar_type_name(t),
    )
    v = x.unsqueeze(-1) if x.ndim == 0 else x
    n = v.size(-1)
    if N is not None:
        n = N
    check(n > 1, "N must be greater than 1.")
    kind = t if t.is_inexact else int64
    first = ones(v.shape + [1], dtype=kind)
    repeated = v.to(kind).unsqueeze(-1).expand(v.shape + [n - 1])
    return cat([first, repeated.cumprod(-1)], -1)


@composite(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of the entries of a vector as rows, the highest first unless `increasing`.

    >>> torch.vander(torch.tensor([1, 2]))
    tensor([[1, 1],
            [2, 1]])
    """
    check(x.ndim == 1, "x must be a one-dimensional tensor.")
    n = x.size(0)
    if N is not None:
        n = N
    check(n >= 0, "N must be non-negative.")
    kind = x.dtype if x.dtype.is_inexact else int64
    powers = [ones([x.size(0), 1], dtype=kind)]
    if n == 0:
        return zeros([x.size(0), 0], dtype=kind)
    if n > 1:
        powers.append(x.to(kind).unsqueeze(-1).expand([x.size(0), n - 1]).cumprod(-1))
    out = cat(powers, -1)
    return out if increasing else out.flip([1])


@composite(namespaces=("_C._linalg",), aliases=("linalg.diagonal",), method=False)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """View of the diagonals of matrices.

    >>> torch.linalg.diagonal(torch.eye(2))
    tensor([1., 1.])
    """
    return A.diagonal(offset, dim1, dim2)


@composite(
    namespaces=("_C._linalg",),
    aliases=("linalg.tensorinv",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def linalg_tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse under tensordot of an input whose first `ind` dims make the rows of a matrix.

    >>> torch.linalg.tensorinv(torch.eye(2), ind=1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    check(ind > 0, f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = input.shape
    rows = shape[:ind]
    columns = shape[ind:]
    m, n = prod(rows), prod(columns)
    check(
        m == n,
        "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
        f"prod(self.shape[:ind]), but got {n} != {m}",
    )
    x, info = linalg_inv_ex(input.reshape([n, m]))
    _ = _linalg_check_errors(info, "linalg.tensorinv: inv", is_matrix=True)
    return x.reshape(columns + rows)


@composite(
    namespaces=("_C._linalg",),
    aliases=("linalg.tensorsolve",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def linalg_tensorsolve(input: Tensor, other: Tensor, dims: Ints | None = None) -> Tensor:
    """X with tensordot(input, X, X.ndim) = other.

    >>> torch.linalg.tensorsolve(torch.eye(2), torch.ones(2))
    tensor([1., 1.])
    """
    a = input
    if dims is not None:
        places: Ints = []
        for i in range(len(dims)):
            places.append(i - len(dims))
        a = input.movedim(dims, places)
    tail = a.shape[other.ndim :]
    rest = prod(tail)
    check(
        rest == prod(a.shape[: other.ndim]),
        "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
        f"prod(self.shape[:other.ndim]), but got {rest} != {prod(a.shape[: other.ndim])}",
    )
    return linalg_solve(a.reshape([rest, rest]), other.reshape([-1])).reshape(tail)


@structured(
    kernel="linalg_matrix_exp", namespaces=("_C._linalg",), aliases=("linalg.matrix_exp",),
    method=False, out=False,
    batch=True,
)  # fmt: skip
def linalg_matrix_exp(A: Tensor) -> Tensor:
    """Matrix exponentials.

    >>> torch.linalg.matrix_exp(torch.zeros(1, 1))
    tensor([[1.]])
    """
    _check_square("linalg.matrix_exp", A, "A")
    check(
        A.dtype.is_inexact,
        "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got "
        f"{scalar_type_name(A.dtype)}",
    )
    return empty(A.shape, like=A)


@linalg_matrix_exp.vjp
def _(g, A):
    # The derivative in the direction g is a block of the exponential of [[A^H, g], [0, A^H]].
    n = A.size(-1)
    back = A.adjoint()
    top, bottom = cat([back, g], -1), cat([zeros(A.shape, dtype=A.dtype), back], -1)
    return linalg_matrix_exp(cat([top, bottom], -2)).narrow(-2, 0, n).narrow(-1, n, n)


@composite()
def matrix_exp(input: Tensor) -> Tensor:
    """Another name of linalg.matrix_exp.

    >>> torch.matrix_exp(torch.zeros(1, 1))
    tensor([[1.]])
    """
    return linalg_matrix_exp(input)


# Symmetric indefinite factors -------------------------------------------------------------------


@structured(
    kernel="linalg_ldl_factor_ex", namespaces=("_C._linalg",), aliases=("linalg.ldl_factor_ex",),
    fields=("LD", "pivots", "info"), method=False,
    batch=True,
)  # fmt: skip
def linalg_ldl_factor_ex(
    input: Tensor, *, hermitian: bool = False, check_errors: bool = False
) -> Tuple[Tensor, Tensor, Tensor]:
    """Bunch and Kaufman's factors of symmetric (or Hermitian) matrices, in LAPACK's packing.

    >>> torch.linalg.ldl_factor_ex(torch.eye(1)).info
    tensor(0, dtype=torch.int32)
    """
    _check_square("torch.linalg.ldl_factor_ex", input, "A")
    _check_inexact("torch.linalg.ldl_factor_ex", input)
    return (
        _columns(input.shape, input.dtype, input),
        empty(input.shape[:-1], dtype=int32),
        empty(input.shape[:-2], dtype=int32),
    )


@composite(
    namespaces=("_C._linalg",), aliases=("linalg.ldl_factor",), fields=("LD", "pivots"),
    method=False, out=True,
)  # fmt: skip
def linalg_ldl_factor(input: Tensor, *, hermitian: bool = False) -> Tuple[Tensor, Tensor]:
    """The factors without the infos; a singular D is an error.

    >>> torch.linalg.ldl_factor(torch.eye(1)).LD
    tensor([[1.]])
    """
    factors, pivots, info = linalg_ldl_factor_ex(input, hermitian=hermitian)
    _ = _linalg_check_errors(info, "torch.linalg.ldl_factor_ex", is_matrix=input.ndim == 2)
    return factors, pivots


@structured(
    kernel="linalg_ldl_solve",
    namespaces=("_C._linalg",),
    aliases=("linalg.ldl_solve",),
    method=False,
    batch=True,
)
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A X = B, from the factors of A.

    >>> torch.linalg.ldl_solve(*torch.linalg.ldl_factor(torch.eye(1)), torch.ones(1, 1))
    tensor([[1.]])
    """
    _check_square("torch.linalg.ldl_solve", LD, "LD")
    _check_inexact("torch.linalg.ldl_solve", LD)
    _check_same_dtype("torch.linalg.ldl_solve", LD, B, "LD", "B")
    check(
        B.ndim >= 2,
        f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.ndim} "
        "dimensions instead",
    )
    check(
        LD.shape[:-1] == pivots.shape,
        "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but "
        f"got pivots with shape {pivots.shape} instead",
    )
    check(
        pivots.dtype == int32 or pivots.dtype == int64,
        "torch.linalg.ldl_solve: Expected pivots to be integers. Got "
        f"{scalar_type_name(pivots.dtype)}",
    )
    return _solution("torch.linalg.ldl_solve", LD, B, True)
