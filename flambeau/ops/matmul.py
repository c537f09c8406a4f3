"""Matrix products: primitives with native kernels, and what is composed of them.

Kernels: csrc/kernels/matmul.cpp. Broadcasting of batches lives in `matmul` alone; everything else
takes the ranks its name says.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=())
def _scaled(x: Tensor, by: Number) -> Tensor:
    """Cotangent `x` of a product that was multiplied by `by`.

    >>> torch.ones(2) * 2
    tensor([2., 2.])
    """
    return x if by == 1 else x * wrapped(by).conj()


@composite(namespaces=())
def _product_dtype(op: str, a: Tensor, b: Tensor) -> DType:
    """Dtype of a product; refuses operands whose dtypes differ or have no product.

    >>> torch.mm(torch.ones(1, 2), torch.ones(2, 1)).item()
    2.0
    """
    check(
        a.dtype == b.dtype,
        f"{op}: expected both matrices to have the same dtype, but got: {a.dtype} != {b.dtype}",
    )
    check(a.dtype != bool_, f"\"{op}\" not implemented for 'Bool'")
    return a.dtype


@structured(kernel="mm", autocast="lower")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Matrix product of two matrices, without broadcasting.

    >>> torch.mm(torch.ones(2, 3), torch.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    check(input.ndim == 2, f"mm: self must be a matrix, got {input.ndim} dimensions")
    check(mat2.ndim == 2, f"mm: mat2 must be a matrix, got {mat2.ndim} dimensions")
    n, k = input.shape
    check(
        k == mat2.shape[0],
        f"mm: mat1 and mat2 shapes cannot be multiplied ({n}x{k} and "
        f"{mat2.shape[0]}x{mat2.shape[1]})",
    )
    d = _product_dtype("mm", input, mat2)
    return empty([n, mat2.shape[1]], dtype=d, like=input)


@mm.vjp
def _(g, input, mat2):
    # This first, so that the other holds no memory while a transpose is packed.
    of_mat2 = mm(input.transpose(0, 1).conj(), g)
    return mm(g, mat2.transpose(0, 1).conj()), of_mat2


@mm.samples
def _(make):
    yield mm, make(3, 4), make(4, 5)
    yield mm, make(4, 3).transpose(0, 1), make(4, 5)
    yield mm, make(0, 4), make(4, 5)
    yield mm, make(3, 0), make(0, 5)


@mm.vmap
def _(input, mat2):
    return matmul(input, mat2)


@structured(kernel="bmm", autocast="lower")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Matrix products of two batches of matrices, pair by pair.

    >>> torch.bmm(torch.ones(5, 2, 3), torch.ones(5, 3, 4)).shape
    torch.Size([5, 2, 4])
    """
    check(input.ndim == 3, f"bmm: batch1 must be a 3D tensor, got {input.ndim} dimensions")
    check(mat2.ndim == 3, f"bmm: batch2 must be a 3D tensor, got {mat2.ndim} dimensions")
    b, n, k = input.shape
    check(
        mat2.shape[0] == b and mat2.shape[1] == k,
        f"bmm: Expected size for first two dimensions of batch2 tensor to be: [{b}, {k}] "
        f"but got: [{mat2.shape[0]}, {mat2.shape[1]}].",
    )
    d = _product_dtype("bmm", input, mat2)
    return empty([b, n, mat2.shape[2]], dtype=d, like=input)


@bmm.vjp
def _(g, input, mat2):
    # This first, so that the other holds no memory while a transpose is packed.
    of_mat2 = bmm(input.transpose(1, 2).conj(), g)
    return bmm(g, mat2.transpose(1, 2).conj()), of_mat2


@bmm.samples
def _(make):
    yield bmm, make(2, 3, 4), make(2, 4, 5)
    yield bmm, make(2, 4, 3).transpose(1, 2), make(2, 5, 4).transpose(1, 2)
    yield bmm, make(0, 3, 4), make(0, 4, 5)


@bmm.vmap
def _(input, mat2):
    return matmul(input, mat2)


@structured(kernel="mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Product of a matrix and a vector.

    >>> torch.mv(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    check(
        input.ndim == 2 and vec.ndim == 1,
        f"mv: vector + matrix @ vector expected, got {input.ndim} dimensions of input and "
        f"{vec.ndim} of vec",
    )
    check(
        input.shape[1] == vec.shape[0],
        f"mv: size mismatch, got input ({input.shape[0]}x{input.shape[1]}), vec ({vec.shape[0]})",
    )
    d = _product_dtype("mv", input, vec)
    return empty([input.shape[0]], dtype=d, like=input)


@mv.decompose(slower=True)
def _(input, vec):
    return mm(input, vec.unsqueeze(1)).squeeze([1])


@mv.vjp
def _(g, input, vec):
    return _outer(g, vec.conj()), mv(input.transpose(0, 1).conj(), g)


@mv.samples
def _(make):
    yield mv, make(3, 4), make(4)


@mv.vmap
def _(input, vec, input_b, vec_b):
    return _mv_batched(input, vec, input_b, vec_b)


@structured(kernel="dot")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Sum of the products of the elements of two vectors; complex ones are not conjugated.

    >>> torch.dot(torch.ones(3), torch.full((3,), 2.0))
    tensor(6.)
    """
    check(
        input.ndim == 1 and tensor.ndim == 1,
        f"dot: 1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors",
    )
    check(
        input.dtype == tensor.dtype,
        f"dot: expected both vectors to have same dtype, but found {input.dtype} and "
        f"{tensor.dtype}",
    )
    check(
        input.numel() == tensor.numel(),
        f"dot: inconsistent tensor size, expected tensor [{input.numel()}] and src "
        f"[{tensor.numel()}] to have the same number of elements, but got {input.numel()} and "
        f"{tensor.numel()} elements respectively",
    )
    check(input.dtype != bool_, "\"dot\" not implemented for 'Bool'")
    return empty([], dtype=input.dtype, like=input)


@dot.decompose(slower=True)
def _(input, tensor):
    kind = opmath(input.dtype)
    return (input.to(kind) * tensor.to(kind)).sum().to(input.dtype)


@dot.vjp
def _(g, input, tensor):
    return g * tensor.conj(), g * input.conj()


@dot.samples
def _(make):
    yield dot, make(5), make(5)


@dot.vmap
def _(input, tensor, input_b, tensor_b):
    if input_b and tensor_b:
        return matmul(input.unsqueeze(1), tensor.unsqueeze(2)).reshape([input.size(0)])
    return matmul(input, tensor) if input_b else matmul(tensor, input)


@composite(out=True)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Inner product of two vectors, the first conjugated.

    >>> torch.vdot(torch.ones(3), torch.ones(3))
    tensor(3.)
    """
    return dot(input.conj(), other)


@composite(aliases=("ger",), out=True, out_casts=True)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of an element of `input` with an element of `vec2`.

    >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    check(
        input.ndim == 1 and vec2.ndim == 1,
        f"outer: Expected 1-D argument self and vec2, but got {input.ndim}-D and {vec2.ndim}-D",
    )
    d = result_type(input, vec2)
    return _outer(input.to(d), vec2.to(d))


@structured(kernel="outer", namespaces=(), out=False)
def _outer(input: Tensor, vec2: Tensor) -> Tensor:
    """`outer` of vectors of one dtype."""
    return empty([input.shape[0], vec2.shape[0]], dtype=input.dtype, like=input)


@_outer.decompose
def _(input, vec2):
    return input.unsqueeze(1) * vec2


@_outer.vjp
def _(g, input, vec2):
    return mv(g, vec2.conj()), mv(g.transpose(0, 1), input.conj())


@composite(namespaces=(), method=False)
def _mv_batched(matrix: Tensor, vec: Tensor, matrix_b: bool, vec_b: bool) -> Tensor:
    """Products of matrices and vectors, one for each sample.

    >>> torch.vmap(torch.mv)(torch.ones(4, 2, 3), torch.ones(4, 3)).shape
    torch.Size([4, 2])
    """
    if matrix_b and vec_b:
        return matmul(matrix, vec.unsqueeze(2)).squeeze([2])
    if matrix_b:
        return matmul(matrix, vec)
    return matmul(vec, matrix.transpose(0, 1))


@composite(namespaces=(), method=False)
def _plus_batched(
    input: Tensor, input_b: bool, product: Tensor, beta: Number, alpha: Number
) -> Tensor:
    """`beta * input + alpha * product` for a product with the batch in front.

    >>> x, y = torch.ones(4, 2, 3), torch.ones(4, 3)
    >>> torch.vmap(torch.addmv)(torch.ones(4, 2), x, y).shape
    torch.Size([4, 2])
    """
    p = product if alpha == 1 else product * wrapped(alpha)
    if beta == 0:
        return p
    x = _aligned(input, input_b, product.ndim - 1)
    return p + (x if beta == 1 else x * wrapped(beta))


@_outer.vmap
def _(input, vec2):
    return input.unsqueeze(-1) * vec2.unsqueeze(-2)


@composite(out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sums of products over the last dimension of both; a 0-d argument just multiplies.

    >>> torch.inner(torch.ones(2, 3), torch.ones(4, 3)).shape
    torch.Size([2, 4])
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    k = input.shape[-1]
    check(
        k == other.shape[-1],
        f"inner: the last dimension must match on both input tensors but got shapes {input.shape} "
        f"and {other.shape}",
    )
    if input.ndim == 1 and other.ndim == 1:
        return dot(input, other)
    rows = prod(input.shape[:-1])
    columns = prod(other.shape[:-1])
    out = mm(input.reshape([rows, k]), other.reshape([columns, k]).transpose(0, 1))
    return out.reshape(input.shape[:-1] + other.shape[:-1])


@composite(autocast="lower", aliases=("linalg.matmul",), out=True)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Matrix product over the last two dimensions; the others broadcast, vectors are contracted.

    >>> torch.matmul(torch.ones(7, 1, 2, 3), torch.ones(5, 3, 4)).shape
    torch.Size([7, 5, 2, 4])
    """
    check(
        input.ndim > 0 and other.ndim > 0,
        "matmul: both arguments to matmul need to be at least 1D, but they are "
        f"{input.ndim}D and {other.ndim}D",
    )
    if input.ndim == 2 and other.ndim == 2:
        return mm(input, other)
    if input.ndim == 1 and other.ndim == 1:
        return dot(input, other)
    if input.ndim == 2 and other.ndim == 1:
        return mv(input, other)
    if input.ndim == 1:
        return matmul(input.unsqueeze(0), other).squeeze(-2)
    if other.ndim == 1:
        return matmul(input, other.unsqueeze(1)).squeeze(-1)
    n = input.shape[-2]
    k = input.shape[-1]
    m = other.shape[-1]
    if other.ndim == 2:
        # One tall product: no copy of `other` for each matrix of the batch.
        rows = prod(input.shape[:-1])
        return mm(input.reshape([rows, k]), other).reshape(input.shape[:-1] + [m])
    check(
        k == other.shape[-2],
        f"matmul: mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {other.shape[-2]}x{m})",
    )
    batch = broadcast_shapes(input.shape[:-2], other.shape[:-2])
    count = prod(batch)
    a = input.expand(batch + [n, k]).reshape([count, n, k])
    b = other.expand(batch + [k, m]).reshape([count, k, m])
    return bmm(a, b).reshape(batch + [n, m])


@matmul.samples
def _(make):
    yield matmul, make(4), make(4)
    yield matmul, make(3, 4), make(4)
    yield matmul, make(4), make(2, 4, 3)
    yield matmul, make(2, 3, 4), make(4, 5)
    yield matmul, make(2, 1, 3, 4), make(5, 4, 2)
