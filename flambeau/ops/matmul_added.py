"""Products added to a tensor: addmm, addmv, addr, baddbmm, addbmm.

beta 0 ignores what is added, NaN in it too. Kernels: csrc/kernels/matmul.cpp.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_fits


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


@addmm.decompose(slower=True)
def _(input, mat1, mat2, beta, alpha):
    product = _scaled(mm(mat1, mat2), alpha.conj()).to(input.dtype)
    return product if beta == 0 else _scaled(input, beta.conj()) + product


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
    lead = len(shape) - input.ndim
    check(
        lead >= 0,
        f"{op}: expand({input.shape}, size={shape}): the number of sizes provided ({len(shape)}) "
        f"must be greater or equal to the number of dimensions in the tensor ({input.ndim})",
    )
    for k in range(input.ndim):
        i = input.ndim - 1 - k
        check(
            input.shape[i] == shape[lead + i] or input.shape[i] == 1,
            f"{op}: The expanded size of the tensor ({shape[lead + i]}) must match the existing "
            f"size ({input.shape[i]}) at non-singleton dimension {lead + i}.  Target sizes: "
            f"{shape}.  Tensor sizes: {input.shape}",
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


@addmv.decompose(slower=True)
def _(input, mat, vec, beta, alpha):
    product = _scaled(mv(mat, vec), alpha.conj()).to(input.dtype)
    return product if beta == 0 else _scaled(input, beta.conj()) + product


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


@_addr.decompose(slower=True)
def _(input, vec1, vec2, beta, alpha):
    product = _scaled(_outer(vec1, vec2), alpha.conj()).to(input.dtype)
    return product if beta == 0 else _scaled(input, beta.conj()) + product


@_addr.vjp
def _(g, input, vec1, vec2, beta, alpha):
    a = _scaled(mv(g, vec2.conj()), alpha)
    b = _scaled(mv(g.transpose(0, 1), vec1.conj()), alpha)
    return sum_to(_scaled(g, beta), input.shape), a, b


@_addr.vmap
def _(input, vec1, vec2, beta, alpha, input_b, vec1_b, vec2_b, batch):
    product = vec1.unsqueeze(-1) * vec2.unsqueeze(-2)
    return _plus_batched(input, input_b, _in_front(product, vec1_b or vec2_b, batch), beta, alpha)


@composite(namespaces=(), method=False)
def _check_factor_of_addr(argument: str, factor: Number, kind: DType) -> None:
    """`_check_alpha` for a factor of another name; that one is on the way of every sum."""
    check(
        not factor.is_bool() or kind.is_bool,
        f"addr: Boolean {argument} only supported for Boolean results.",
    )
    check(
        factor.is_integral() or factor.is_bool() or kind.is_inexact,
        f"addr: For integral input tensors, argument {argument} must not be a floating point "
        "number.",
    )
    check(
        not factor.is_complex() or kind.is_complex,
        f"addr: For non-complex input tensors, argument {argument} must not be a complex number.",
    )
    _check_fits("addr", argument, factor, kind)


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
    _check_factor_of_addr("beta", beta, d)
    _check_factor_of_addr("alpha", alpha, d)
    if d == bool_:  # sums of truths, counted so that none wraps around
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


@baddbmm.decompose(slower=True)
def _(input, batch1, batch2, beta, alpha):
    product = _scaled(bmm(batch1, batch2), alpha.conj()).to(input.dtype)
    return product if beta == 0 else _scaled(input, beta.conj()) + product


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


@addbmm.decompose(slower=True)
def _(input, batch1, batch2, beta, alpha):
    product = _scaled(bmm(batch1, batch2).sum([0]), alpha.conj()).to(input.dtype)
    return product if beta == 0 else _scaled(input, beta.conj()) + product


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
