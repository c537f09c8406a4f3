"""Norms of vectors and matrices, and what is made of them: condition numbers.

Kernel of vector_norm: csrc/kernels/norm.cpp; the others are composed of it and of singular values.
`torch.norm`, with several spellings of the order, is in flambeau/functional.py.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="vector_norm", namespaces=(), method=False, out=False, batch=True, all_dims=True)
def _vector_norm(input: Tensor, order: float, dims: Ints = (), keepdim: bool = False) -> Tensor:
    """The kernel of vector_norm; no dims are all dims.

    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    wrapped_dims = wrap_dims(dims, input.ndim)
    shape: Ints = []
    for d in range(input.ndim):
        if len(dims) == 0 or contains(wrapped_dims, d):
            if keepdim:
                shape.append(1)
        else:
            shape.append(input.size(d))
    return empty(shape, dtype=to_real(input.dtype), like=input)


@_vector_norm.decompose
def _(input, order, dims, keepdim):
    kind = to_real(input.dtype)
    x = input.to(opmath(input.dtype))
    if order == 0.0:
        return (x != 0).sum(dims, keepdim).to(kind)
    if order == 2.0 and not input.is_complex():
        return (x * x).sum(dims, keepdim).sqrt().to(kind)
    size = x.abs()
    if order == inf:
        return size.amax(dims, keepdim).to(kind)
    if order == -inf:
        return size.amin(dims, keepdim).to(kind)
    if order == 1.0:
        return size.sum(dims, keepdim).to(kind)
    return size.pow(order).sum(dims, keepdim).pow(1.0 / order).to(kind)


@_vector_norm.vjp
def _(g, input, order: float, dims: Ints, keepdim: bool, result):
    n, grad = result, g
    if not keepdim:
        n, grad = _restore_dims(result, dims, input.ndim), _restore_dims(g, dims, input.ndim)
    # A norm of 0 has subgradient 0, and so have its derivatives.
    zero = n == 0.0
    safe = n.masked_fill(zero, 1.0)
    if order == 0.0:
        return zeros(input.shape, dtype=input.dtype)
    if order == 1.0:
        return input.sgn() * grad
    if order == 2.0:
        # Not grad / n, which overflows beside a small norm.
        return input / n.masked_fill(zero, inf) * grad
    size = input.abs()
    if isinf(order):
        hit = ((size == n) | (n.isnan() & size.isnan())).to(n.dtype)
        all_dims: Ints = dims if len(dims) > 0 else list(range(input.ndim))
        share = hit if input.ndim == 0 else hit / hit.sum(all_dims, keepdim=True)
        return input.sgn() * (share * grad)
    if order < 1.0:
        slope = size.pow(order - 1.0).masked_fill(size == 0.0, 0.0)
        return input.sgn() * (slope * grad * n.pow(1.0 - order))
    if order < 2.0:
        slope = size.pow(order - 1.0)
        scale = (grad / safe.pow(order - 1.0)).masked_fill(zero, 0.0)
        return input.sgn() * (slope * scale)
    scale = (grad / safe.pow(order - 1.0)).masked_fill(zero, 0.0)
    return input * (size.pow(order - 2.0) * scale)


@composite(namespaces=(), method=False)
def _restore_dims(x: Tensor, dims: Ints, ndim: int) -> Tensor:
    """x with dims of size 1 where some were reduced away.

    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    shape: Ints = []
    at = 0
    wrapped_dims = wrap_dims(dims, ndim)
    for d in range(ndim):
        if len(dims) == 0 or contains(wrapped_dims, d):
            shape.append(1)
        else:
            shape.append(x.size(at))
            at += 1
    return x.reshape(shape)


@composite(namespaces=(), method=False)
def _norm_input(name: str, x: Tensor, dtype: DType | None) -> Tensor:
    """x in the dtype that its norm is computed in.

    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    check(
        x.dtype.is_inexact,
        f"{name}: Expected a floating point or complex tensor as input. Got "
        f"{scalar_type_name(x.dtype)}",
    )
    if dtype is None:
        return x
    check(
        dtype.is_inexact,
        f"{name}: dtype should be floating point or complex, but got {scalar_type_name(dtype)}",
    )
    check(
        dtype.is_complex == x.is_complex(),
        f"{name}: dtype should be {'complex' if x.is_complex() else 'real'} for "
        f"{'complex' if x.is_complex() else 'real'} inputs, but got {scalar_type_name(dtype)}",
    )
    check(
        promote(x.dtype, dtype) == dtype,
        f"{name}: the dtype of the input ({scalar_type_name(x.dtype)}) should be convertible "
        f"without narrowing to the specified dtype ({scalar_type_name(dtype)})",
    )
    return x.to(dtype)


@composite(
    namespaces=("_C._linalg",),
    aliases=("linalg.vector_norm",),
    method=False,
    out=True,
)
def linalg_vector_norm(
    x: Tensor,
    ord: float = 2.0,
    dim: Ints1 | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Norms over `dim` (all by default), the tensor taken as vectors.

    Args:
        x: floating point or complex; the result is real.
        ord: 0 counts what is not zero; inf and -inf are the largest and smallest size.

    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    y = _norm_input("linalg.vector_norm", x, dtype)
    dims: Ints = []
    if dim is not None:
        dims = dim
    if ord < 0.0 or (isinf(ord) and ord > 0.0):
        if len(dims) == 0:
            check(
                x.numel() > 0,
                f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because "
                "the operation does not have an identity",
            )
        for d in dims:
            check(
                x.ndim == 0 or x.size(d) > 0,
                f"linalg.vector_norm cannot compute the {ord} norm on the dimension {d} because "
                "this dimension is empty and the operation does not have an identity",
            )
    return _vector_norm(y, ord, dims, keepdim)


@composite(namespaces=(), method=False)
def _matrix_dims(name: str, x: Tensor, dim: Ints) -> Ints:
    """The two dims of the matrices, from 0.

    >>> torch.linalg.matrix_norm(torch.eye(2), 1)
    tensor(1.)
    """
    check(x.ndim >= 2, f"{name}: The input tensor A must have at least 2 dimensions.")
    check(len(dim) == 2, f"{name}: dim must be a 2-tuple. Got {dim}")
    first, second = wrap_dim(dim[0], x.ndim), wrap_dim(dim[1], x.ndim)
    check(first != second, f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return [first, second]


@composite(namespaces=(), method=False)
def _singular_norm(x: Tensor, ord: float, dims: Ints, keepdim: bool) -> Tensor:
    """Largest (2) or smallest (-2) singular value, or (0) their sum.

    >>> torch.linalg.matrix_norm(torch.eye(2), 2)
    tensor(1.)
    """
    s = linalg_svdvals(x.movedim(dims, [-2, -1]))
    add = ord == 0.0 or (ord > 0.0 and s.size(-1) == 0)
    value = s.sum(-1) if add else s.amax(-1) if ord > 0.0 else s.amin(-1)
    if not keepdim:
        return value
    low, high = min(dims[0], dims[1]), max(dims[0], dims[1])
    return value.unsqueeze(low).unsqueeze(high)


@composite(namespaces=("_C._linalg",), aliases=("linalg.matrix_norm",), method=False, out=True)
def linalg_matrix_norm(
    input: Tensor,
    ord: str = "fro",
    dim: Ints = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Frobenius or nuclear norms of matrices.

    >>> torch.linalg.matrix_norm(torch.eye(4))
    tensor(2.)
    """
    dims = _matrix_dims("linalg.matrix_norm", input, dim)
    check(ord == "fro" or ord == "nuc", f"linalg.matrix_norm: Order {ord} not supported.")
    x = _norm_input("linalg.matrix_norm", input, dtype)
    if ord == "fro":
        return linalg_vector_norm(x, 2.0, dims, keepdim)
    return _singular_norm(x, 0.0, dims, keepdim)


@linalg_matrix_norm.overload(
    namespaces=("_C._linalg",), aliases=("linalg.matrix_norm",), method=False, out=True
)
def linalg_matrix_norm(
    input: Tensor,
    ord: Number,
    dim: Ints = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Norms 1, 2, inf of matrices; with a minus sign, the smallest of what those take the largest.

    >>> torch.linalg.matrix_norm(torch.eye(4), float("inf"))
    tensor(1.)
    """
    dims = _matrix_dims("linalg.matrix_norm", input, dim)
    order = float(ord)
    size = abs(order)
    check(
        size == 1.0 or size == 2.0 or isinf(size),
        f"linalg.matrix_norm: Order {order} not supported.",
    )
    x = _norm_input("linalg.matrix_norm", input, dtype)
    if size == 2.0:
        return _singular_norm(x, order, dims, keepdim)
    # Sums over rows (inf) or columns (1), then the extreme of the sums.
    first, second = dims[0], dims[1]
    if isinf(size):
        first, second = dims[1], dims[0]
    sums = linalg_vector_norm(x, 1.0, [first], keepdim)
    if second > first and not keepdim:
        second -= 1
    if order > 0.0 and sums.size(second) == 0:
        return sums.sum(second, keepdim)
    return sums.amax(second, keepdim) if order > 0.0 else sums.amin(second, keepdim)


@composite(namespaces=("_C._linalg",), aliases=("linalg.norm",), method=False, out=True)
def linalg_norm(
    input: Tensor,
    ord: Number | None = None,
    dim: Ints1 | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of vectors (one dim) or of matrices (two dims); of all entries without an order.

    >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if dim is not None:
        check(
            len(dim) == 1 or len(dim) == 2,
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dim}",
        )
    elif ord is not None:
        check(
            input.ndim == 1 or input.ndim == 2,
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{input.ndim}D.",
        )
    if ord is not None:
        if dim is not None:
            if len(dim) == 2:
                return linalg_matrix_norm(input, ord, dim, keepdim, dtype=dtype)
        elif input.ndim == 2:
            return linalg_matrix_norm(input, ord, [0, 1], keepdim, dtype=dtype)
        return linalg_vector_norm(input, float(ord), dim, keepdim, dtype=dtype)
    return linalg_vector_norm(input, 2.0, dim, keepdim, dtype=dtype)


@linalg_norm.overload(namespaces=("_C._linalg",), aliases=("linalg.norm",), method=False, out=True)
def linalg_norm(
    input: Tensor,
    ord: str,
    dim: Ints1 | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Frobenius or nuclear norms of matrices.

    >>> torch.linalg.norm(torch.eye(4), "fro")
    tensor(2.)
    """
    if dim is not None:
        check(
            len(dim) == 1 or len(dim) == 2,
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dim}",
        )
        return linalg_matrix_norm(input, ord, dim, keepdim, dtype=dtype)
    check(
        input.ndim == 1 or input.ndim == 2,
        "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
        f"{input.ndim}D.",
    )
    return linalg_matrix_norm(input, ord, [0, 1], keepdim, dtype=dtype)


@composite(method=False, out=True)
def nuclear_norm(input: Tensor, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of a matrix.

    >>> torch.nuclear_norm(torch.eye(3))
    tensor(3.)
    """
    return linalg_matrix_norm(input, "nuc", [-2, -1], keepdim)


@nuclear_norm.overload(method=False, out=True)
def nuclear_norm(input: Tensor, dim: Ints2, keepdim: bool = False) -> Tensor:
    """Over two dims.

    >>> torch.nuclear_norm(torch.eye(3), (0, 1))
    tensor(3.)
    """
    return linalg_matrix_norm(input, "nuc", dim, keepdim)


@composite(method=False, out=True)
def frobenius_norm(input: Tensor, dim: Ints1, keepdim: bool = False) -> Tensor:
    """The square root of the sum of squared sizes over one or two dims.

    >>> torch.frobenius_norm(torch.tensor([3.0, 4.0]), 0)
    tensor(5.)
    """
    check(
        len(dim) <= 2,
        f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.",
    )
    return linalg_vector_norm(input, 2.0, dim, keepdim)


@composite(
    namespaces=("_C._linalg",),
    aliases=("linalg.cond",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def linalg_cond(input: Tensor, p: Number | None = None) -> Tensor:
    """Condition numbers: norms of matrices times those of their inverses, in the norm `p` (2).

    >>> torch.linalg.cond(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor(2.)
    """
    check(input.ndim >= 2, "linalg.cond: The input tensor A must have at least 2 dimensions.")
    order = 2.0
    if p is not None:
        order = float(p)
    if order == 2.0 or order == -2.0:
        s = linalg_svdvals(input)
        if s.size(-1) == 0:
            return zeros(s.shape[:-1], dtype=s.dtype)
        large, small = s.select(-1, 0), s.select(-1, -1)
        return large / small if order > 0.0 else small / large
    check(abs(order) == 1.0 or isinf(order), f"linalg.cond got an invalid norm type: {order}")
    _check_square(f"linalg.cond(ord={order})", input, "A")
    return _cond_of_inverse(input, linalg_matrix_norm(input, order), order)


@linalg_cond.overload(
    namespaces=("_C._linalg",),
    aliases=("linalg.cond",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def linalg_cond(input: Tensor, p: str) -> Tensor:
    """In the Frobenius or nuclear norm.

    >>> torch.linalg.cond(torch.eye(4), "fro")
    tensor(4.)
    """
    check(input.ndim >= 2, "linalg.cond: The input tensor A must have at least 2 dimensions.")
    _check_square(f"linalg.cond(ord={p})", input, "A")
    check(p == "fro" or p == "nuc", f"linalg.cond got an invalid norm type: {p}")
    if input.numel() == 0:
        return zeros(input.shape[:-2], dtype=to_real(input.dtype))
    if p == "nuc":
        # Singular matrices have no inverse, but a condition number: inf.
        s = linalg_svdvals(input)
        return s.sum(-1) * s.reciprocal().sum(-1)
    inverse, info = linalg_inv_ex(input)
    value = linalg_matrix_norm(input, p) * linalg_matrix_norm(inverse, p)
    return value.masked_fill(info != 0, inf)


@composite(namespaces=(), method=False)
def _cond_of_inverse(A: Tensor, size: Tensor, order: float) -> Tensor:
    """The norm `size` of A times that of its inverse; inf for a singular matrix.

    >>> torch.linalg.cond(torch.eye(4), 1)
    tensor(1.)
    """
    if A.numel() == 0:
        return zeros(A.shape[:-2], dtype=to_real(A.dtype))
    inverse, info = linalg_inv_ex(A)
    value = size * linalg_matrix_norm(inverse, order)
    return value.masked_fill(info != 0, inf)


# Norms of what lies at one place of a dim ---------------------------------------------------------


@composite(namespaces=("torch",), method=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Norms over all dims but one, which stays; over all of them where `dim` is -1.

    Args:
        v: any shape
        pow: the order of the norm
        dim: from 0, or -1

    Returns:
        (1, ..., n, ..., 1) with n the size of `dim`, or no dims.

    >>> torch.norm_except_dim(torch.ones(2, 4))
    tensor([[2.],
            [2.]])
    """
    if dim == -1:
        return linalg_vector_norm(v, float(pow))
    d = wrap_dim(dim, v.ndim)
    others = [k for k in range(v.ndim) if k != d]
    if len(others) == 0:
        return v.abs()
    return linalg_vector_norm(v, float(pow), others, True)


@composite(namespaces=("torch",), method=False)
def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> Tuple[Tensor, Tensor]:
    """`_weight_norm`, and the norms of `v`.

    >>> torch._weight_norm_interface(torch.ones(1, 4), torch.ones(1, 1))[1]
    tensor([[2.]])
    """
    norms = norm_except_dim(v, 2, dim)
    return v * (g / norms), norms


@composite(namespaces=("torch",), method=False)
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """A weight of direction `v` and sizes `g` along `dim` (Salimans and Kingma 2016).

    >>> torch._weight_norm(torch.ones(1, 4), torch.ones(1, 1))
    tensor([[0.5000, 0.5000, 0.5000, 0.5000]])
    """
    weight, _ = _weight_norm_interface(v, g, dim)
    return weight
