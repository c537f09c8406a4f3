"""Matrix products: primitives with native kernels, and what is composed of them.

Kernels: csrc/kernels/matmul.cpp. Broadcasting of batches lives in `matmul` alone; everything else
takes the ranks its name says.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_fits


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


@structured(
    kernel="addmm", inplace=True, autocast="lower",
    old_orders=("beta input alpha mat1 mat2", "beta input mat1 mat2"),
)  # fmt: skip
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`, with `input` broadcast; `beta` 0 ignores it.

    >>> torch.addmm(torch.ones(2), torch.ones(1, 3), torch.ones(3, 2))
    tensor([[4., 4.]])
    """
    check(mat1.ndim == 2, f"addmm: mat1 must be a matrix, got {mat1.ndim}-D tensor")
    check(mat2.ndim == 2, f"addmm: mat2 must be a matrix, got {mat2.ndim}-D tensor")
    n, k = mat1.shape
    check(
        k == mat2.shape[0],
        f"addmm: mat1 and mat2 shapes cannot be multiplied ({n}x{k} and "
        f"{mat2.shape[0]}x{mat2.shape[1]})",
    )
    d = _product_dtype("addmm", mat1, mat2)
    return _added("addmm", input, [n, mat2.shape[1]], d, beta, alpha)


@addmm.vmap
def _(input, mat1, mat2, beta, alpha, input_b, mat1_b, mat2_b, batch):
    product = _in_front(matmul(mat1, mat2), mat1_b or mat2_b, batch)
    return _plus_batched(input, input_b, product, beta, alpha)


@composite(namespaces=())
def _added(op: str, input: Tensor, shape: Ints, d: DType, beta: Number, alpha: Number) -> Tensor:
    """Result of a product that is added to `input`: checks what is added and how.

    >>> torch.addmm(torch.ones(2), torch.ones(1, 3), torch.ones(3, 2)).shape
    torch.Size([1, 2])
    """
    check(
        input.dtype == d,
        f"{op}: self and mat2 must have the same dtype, but got {input.dtype} and {d}",
    )
    check(
        broadcast_shapes(input.shape, shape) == shape,
        f"{op}: The expanded size of the tensor {shape} must match the existing size {input.shape}",
    )
    check(
        op != "addr"
        or not d.is_integral
        or not (alpha.is_floating_point() or beta.is_floating_point()),
        f"{op}: For integral input tensors, argument alpha must not be a floating point number.",
    )
    check(
        d.is_complex or not (alpha.is_complex() or beta.is_complex()),
        f"{op}: For non-complex input tensors, argument alpha must not be a complex number.",
    )
    _check_fits(op, "beta", beta, opmath(d))
    _check_fits(op, "alpha", alpha, opmath(d))
    return empty(shape, dtype=d, like=input)


@addmm.vjp
def _(g, input, mat1, mat2, beta, alpha):
    a = _scaled(mm(g, mat2.transpose(0, 1).conj()), alpha)
    b = _scaled(mm(mat1.transpose(0, 1).conj(), g), alpha)
    return sum_to(_scaled(g, beta), input.shape), a, b


@addmm.samples
def _(make):
    yield addmm, make(3, 5), make(3, 4), make(4, 5)
    yield addmm, make(5), make(3, 4), make(4, 5)
    yield addmm, make(3, 1), make(3, 4), make(4, 5)


@structured(
    kernel="addmv", inplace=True,
    old_orders=("beta input alpha mat vec", "beta input mat vec"),
)  # fmt: skip
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`beta * input + alpha * (mat @ vec)`.

    >>> torch.addmv(torch.ones(2), torch.ones(2, 3), torch.ones(3))
    tensor([4., 4.])
    """
    check(
        mat.ndim == 2 and vec.ndim == 1 and input.ndim <= 1,
        f"addmv: vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}",
    )
    check(
        mat.shape[1] == vec.shape[0],
        f"addmv: size mismatch, got input ({input.numel()}), mat ({mat.shape[0]}x{mat.shape[1]}), "
        f"vec ({vec.shape[0]})",
    )
    d = _product_dtype("addmv", mat, vec)
    return _added("addmv", input, [mat.shape[0]], d, beta, alpha)


@addmv.vjp
def _(g, input, mat, vec, beta, alpha):
    a = _scaled(_outer(g, vec.conj()), alpha)
    b = _scaled(mv(mat.transpose(0, 1).conj(), g), alpha)
    return sum_to(_scaled(g, beta), input.shape), a, b


@addmv.vmap
def _(input, mat, vec, beta, alpha, input_b, mat_b, vec_b, batch):
    product = (
        mv(mat, vec).unsqueeze(0).expand([batch, mat.size(0)])
        if not mat_b and not vec_b
        else _mv_batched(mat, vec, mat_b, vec_b)
    )
    return _plus_batched(input, input_b, product, beta, alpha)


@structured(kernel="addr", namespaces=(), method=False, out_casts=True)
def _addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`addr` of one dtype.

    >>> torch.addr(torch.zeros(1, 1), torch.ones(1), torch.ones(1))
    tensor([[1.]])
    """
    check(
        vec1.ndim == 1 and vec2.ndim == 1,
        f"addr: Expected 1-D argument vec1 and vec2, but got {vec1.ndim}-D and {vec2.ndim}-D",
    )
    return _added("addr", input, [vec1.shape[0], vec2.shape[0]], vec1.dtype, beta, alpha)


@_addr.vjp
def _(g, input, vec1, vec2, beta, alpha):
    a = _scaled(mv(g, vec2.conj()), alpha)
    b = _scaled(mv(g.transpose(0, 1), vec1.conj()), alpha)
    return sum_to(_scaled(g, beta), input.shape), a, b


@_addr.vmap
def _(input, vec1, vec2, beta, alpha, input_b, vec1_b, vec2_b, batch):
    product = vec1.unsqueeze(-1) * vec2.unsqueeze(-2)
    return _plus_batched(input, input_b, _in_front(product, vec1_b or vec2_b, batch), beta, alpha)


@composite(
    inplace=True, out=True,
    old_orders=("beta input alpha vec1 vec2", "beta input vec1 vec2"),
    out_casts=True,
)  # fmt: skip
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`, in the dtype that all three promote to.

    >>> torch.addr(torch.zeros(2, 2), torch.ones(2), torch.ones(2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    d = promote(input.dtype, result_type(vec1, vec2))
    if d == bool_:  # sums of truths, counted so that none wraps around
        check(
            not (alpha.is_floating_point() or beta.is_floating_point()),
            "addr: For integral input tensors, argument alpha must not be a floating point number.",
        )
        keep = 0 if beta == 0 else 1
        scale = 0 if alpha == 0 else 1
        return _addr(input.to(int64), vec1.to(int64), vec2.to(int64), beta=keep, alpha=scale).to(d)
    return _addr(input.to(d), vec1.to(d), vec2.to(d), beta=beta, alpha=alpha)


@structured(
    kernel="baddbmm", inplace=True, autocast="lower",
    old_orders=("beta input alpha batch1 batch2", "beta input batch1 batch2"),
)  # fmt: skip
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`beta * input + alpha * (batch1 @ batch2)`, matrix by matrix.

    >>> torch.baddbmm(torch.ones(1), torch.ones(2, 1, 3), torch.ones(2, 3, 1)).flatten()
    tensor([4., 4.])
    """
    d = _batch_dtype("baddbmm", batch1, batch2)
    shape = [batch1.shape[0], batch1.shape[1], batch2.shape[2]]
    return _added("baddbmm", input, shape, d, beta, alpha)


@baddbmm.vmap
def _(input, batch1, batch2, beta, alpha, input_b, batch1_b, batch2_b, batch):
    product = _in_front(matmul(batch1, batch2), batch1_b or batch2_b, batch)
    return _plus_batched(input, input_b, product, beta, alpha)


@composite(namespaces=())
def _batch_dtype(op: str, batch1: Tensor, batch2: Tensor) -> DType:
    """Dtype of products of two batches; refuses batches of matrices that do not fit.

    >>> torch.bmm(torch.ones(1, 1, 2), torch.ones(1, 2, 1)).item()
    2.0
    """
    check(batch1.ndim == 3, f"{op}: batch1 must be a 3D tensor, got {batch1.ndim} dimensions")
    check(batch2.ndim == 3, f"{op}: batch2 must be a 3D tensor, got {batch2.ndim} dimensions")
    check(
        batch1.shape[0] == batch2.shape[0],
        f"{op}: batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and "
        f"{batch2.shape[0]}",
    )
    check(
        batch1.shape[2] == batch2.shape[1],
        f"{op}: Incompatible matrix sizes for bmm ({batch1.shape[1]}x{batch1.shape[2]} and "
        f"{batch2.shape[1]}x{batch2.shape[2]})",
    )
    return _product_dtype(op, batch1, batch2)


@baddbmm.vjp
def _(g, input, batch1, batch2, beta, alpha):
    a = _scaled(bmm(g, batch2.transpose(1, 2).conj()), alpha)
    b = _scaled(bmm(batch1.transpose(1, 2).conj(), g), alpha)
    return sum_to(_scaled(g, beta), input.shape), a, b


@structured(
    kernel="addbmm", inplace=True, autocast="lower",
    old_orders=("beta input alpha batch1 batch2", "beta input batch1 batch2"),
)  # fmt: skip
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`beta * input + alpha * sum(batch1 @ batch2)`, summed over the batch.

    >>> torch.addbmm(torch.ones(1, 1), torch.ones(2, 1, 3), torch.ones(2, 3, 1))
    tensor([[7.]])
    """
    d = _batch_dtype("addbmm", batch1, batch2)
    return _added("addbmm", input, [batch1.shape[1], batch2.shape[2]], d, beta, alpha)


@addbmm.vjp
def _(g, input, batch1, batch2, beta, alpha):
    gs = g.unsqueeze(0).expand([batch1.shape[0], batch1.shape[1], batch2.shape[2]])
    a = _scaled(bmm(gs, batch2.transpose(1, 2).conj()), alpha)
    b = _scaled(bmm(batch1.transpose(1, 2).conj(), gs), alpha)
    return sum_to(_scaled(g, beta), input.shape), a, b


@addbmm.vmap
def _(input, batch1, batch2, beta, alpha, input_b, batch1_b, batch2_b, batch):
    product = _in_front(matmul(batch1, batch2), batch1_b or batch2_b, batch).sum([1])
    return _plus_batched(input, input_b, product, beta, alpha)


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


@structured(kernel="linear_product", namespaces=(), out=False)
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`input @ weight.T + bias` with the bias added while the product is written.

    >>> torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3)).shape
    torch.Size([2, 4])
    """
    return empty(input.shape[:-1] + [weight.shape[0]], dtype=input.dtype, like=input)


@_linear.vjp
def _(g, input, weight, bias):
    # Of shapes that input and weight have too, those of `g` are read: a layer with frozen weights
    # keeps no input.
    rows = prod(g.shape[:-1])
    g2 = g.reshape([rows, g.shape[-1]])
    gx = mm(g2, weight.conj()).reshape(g.shape[:-1] + [weight.shape[1]])
    gw = mm(g2.transpose(0, 1), input.reshape([rows, input.shape[-1]]).conj())
    return gx, gw, g2.sum([0])


@_linear.vmap
def _(input, weight, bias, input_b, weight_b, bias_b, batch):
    if not weight_b:
        y = linear(_in_front(input, input_b, batch), weight, None if bias_b else bias)
        if bias is None or not bias_b:
            return y
        return y + _aligned(bias, bias_b, y.ndim - 1)
    n = weight.size(1)
    lead = input.shape[1:-1] if input_b else input.shape[:-1]
    if input_b:
        y = matmul(input.reshape([batch, -1, weight.size(2)]), weight.transpose(1, 2))
        y = y.reshape([batch] + lead + [n])
    else:
        # One wide product for all samples.
        wide = linear(input, weight.reshape([batch * n, weight.size(2)])).reshape(lead + [batch, n])
        y = wide.movedim([wide.ndim - 2], [0])
    return y if bias is None else y + _aligned(bias, bias_b, y.ndim - 1)


@composite(namespaces=("nn.functional",), method=False, autocast="lower")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias` over the last dimension of `input`.

    Args:
        input: (*, in_features)
        weight: (out_features, in_features) or (in_features)
        bias: (out_features) or ()

    >>> torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3)).shape
    torch.Size([2, 4])
    """
    check(
        input.ndim > 0, f"linear: both arguments need to be at least 1D, but input is {input.ndim}D"
    )
    check(
        weight.ndim == 1 or weight.ndim == 2,
        f"linear: expected weight to have 1 or 2 dimensions, got {weight.ndim}",
    )
    k = input.shape[-1]
    if weight.ndim == 2:
        rows = prod(input.shape[:-1])
        check(
            k == weight.shape[1],
            f"linear: mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and "
            f"{weight.shape[1]}x{weight.shape[0]})",
        )
        check(
            input.dtype == weight.dtype,
            f"linear: mat1 and mat2 must have the same dtype, but got {input.dtype} and "
            f"{weight.dtype}",
        )
        check(input.dtype != bool_, "\"linear\" not implemented for 'Bool'")
        if bias is None or (
            bias.ndim == 1 and bias.shape[0] == weight.shape[0] and bias.dtype == input.dtype
        ):
            return _linear(input, weight, bias)
        return _linear(input, weight, None) + bias
    out = matmul(input, weight)
    return out if bias is None else out + bias


@linear.samples
def _(make):
    yield linear, make(3, 4), make(5, 4), make(5)
    yield linear, make(2, 3, 4), make(5, 4)
    yield linear, make(4), make(5, 4), make(5)


@composite(namespaces=("torch", "nn.functional"), method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[k] @ input2` for every output feature k, plus bias.

    >>> torch.nn.functional.bilinear(torch.ones(2, 3), torch.ones(2, 4), torch.ones(5, 3, 4)).shape
    torch.Size([2, 5])
    """
    check(
        input1.ndim == input2.ndim and input1.shape[:-1] == input2.shape[:-1],
        f"bilinear: input dimensions do not match, got {input1.shape} and {input2.shape}",
    )
    check(weight.ndim == 3, f"bilinear: expected weight to have 3 dimensions, got {weight.ndim}")
    o, p, q = weight.shape
    check(
        input1.shape[-1] == p,
        f"bilinear: input1 size does not match weight size, got {input1.shape[-1]} but expected "
        f"{p}",
    )
    check(
        input2.shape[-1] == q,
        f"bilinear: input2 size does not match weight size, got {input2.shape[-1]} but expected "
        f"{q}",
    )
    rows = prod(input1.shape[:-1])
    x = input1.reshape([rows, p])
    y = input2.reshape([rows, 1, q])
    left = mm(x, weight.permute([1, 0, 2]).reshape([p, o * q])).reshape([rows, o, q])
    out = (left * y).sum([-1]).reshape(input1.shape[:-1] + [o])
    return out if bias is None else out + bias


@composite(aliases=("linalg.matrix_power",), out=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Power of square matrices, by repeated squaring; negative powers invert first.

    >>> torch.matrix_power(torch.full((1, 1), 3.0), 3)
    tensor([[27.]])
    """
    check(
        input.ndim >= 2 and input.shape[-1] == input.shape[-2],
        f"linalg.matrix_power: A must be batches of square matrices, got shape {input.shape}",
    )
    size = input.shape[-1]
    one = eye(size, dtype=input.dtype, device=input.device)
    if n == 0:
        return input.clone().copy_(one)
    base = linalg_inv(input) if n < 0 else input
    if n == 1:
        return base.clone()
    left = abs(n)
    out = base
    started = False
    while left > 0:
        if left % 2 == 1:
            out = matmul(out, base) if started else base
            started = True
        left = left // 2
        if left > 0:
            base = matmul(base, base)
    return out


@composite(out=True, out_casts=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product: every element of `input` times the whole of `other`.

    >>> torch.kron(torch.eye(2), torch.ones(1, 2))
    tensor([[1., 1., 0., 0.],
            [0., 0., 1., 1.]])
    """
    n = max(input.ndim, other.ndim)
    a: Ints = []
    b: Ints = []
    out: Ints = []
    for i in range(n):
        x = input.shape[i - n + input.ndim] if i - n + input.ndim >= 0 else 1
        y = other.shape[i - n + other.ndim] if i - n + other.ndim >= 0 else 1
        a.extend([x, 1])
        b.extend([1, y])
        out.append(x * y)
    return (input.reshape(a) * other.reshape(b)).reshape(out)


@composite(method=False, autocast="float32")
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:  # fmt: skip
    """Distances in p-norm between all rows of `x1` (*, P, M) and all rows of `x2` (*, R, M).

    >>> torch.cdist(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """
    check(
        x1.is_floating_point() and x2.is_floating_point(),
        f"cdist only supports floating-point dtypes, X1 got: {x1.dtype}, X2 got: {x2.dtype}",
    )
    check(
        x1.ndim >= 2 and x2.ndim >= 2,
        f"cdist only supports at least 2D tensors, X1 got: {x1.ndim}D, X2 got: {x2.ndim}D",
    )
    check(
        x1.shape[-1] == x2.shape[-1],
        f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}",
    )
    check(p >= 0.0, f"cdist only supports non-negative p values, got {p}")
    mode = "use_mm_for_euclid_dist_if_necessary"
    if compute_mode is not None:
        mode = compute_mode
    check_value(
        mode in (
            "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
            "donot_use_mm_for_euclid_dist",
        ),
        f"{mode} is not a valid value for compute_mode",
    )  # fmt: skip
    large = x1.shape[-2] > 25 or x2.shape[-2] > 25
    if p == 2.0 and (
        mode == "use_mm_for_euclid_dist"
        or (mode == "use_mm_for_euclid_dist_if_necessary" and large)
    ):
        # |a - b|^2 = |a|^2 + |b|^2 - 2 a b; at distance 0 the derivative is taken as 0. NaN stays.
        square = (x1 * x1).sum([-1], keepdim=True) + (x2 * x2).sum([-1]).unsqueeze(-2)
        square = square - matmul(x1, x2.transpose(-1, -2)) * 2
        together = square <= 0
        return where(together, 0.0, where(together, 1.0, square).sqrt())
    return linalg_vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, [-1])


@composite(method=False, namespaces=("torch", "nn.functional"))
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Distances in p-norm between all pairs of rows of `input`, each pair once.

    >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([5.])
    """
    check(input.ndim == 2, f"pdist only supports 2D tensors, got: {input.ndim}D")
    check(
        input.is_floating_point(), f"pdist only supports floating-point dtypes, got {input.dtype}"
    )
    check(p >= 0.0, f"pdist only supports non-negative p values, got {p}")
    n = input.shape[0]
    at = triu_indices(n, n, 1, device=input.device)
    a = input.index_select(0, at.select(0, 0))
    return linalg_vector_norm(a - input.index_select(0, at.select(0, 1)), p, [-1])
