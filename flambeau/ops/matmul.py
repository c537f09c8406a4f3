"""Matrix products: two primitives (`mm`, `bmm`) and what is composed of them.

Kernels: csrc/kernels/matmul.cpp. Broadcasting lives in `matmul` alone.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="mm")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Matrix product of two matrices, without broadcasting.

    >>> torch.mm(torch.ones(2, 3), torch.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    check(input.ndim == 2, f"mm: expected input to be a matrix, got {input.ndim} dimensions")
    check(mat2.ndim == 2, f"mm: expected mat2 to be a matrix, got {mat2.ndim} dimensions")
    check(
        input.dtype == mat2.dtype,
        f"mm: expected input and mat2 to have the same dtype, got {input.dtype} and {mat2.dtype}",
    )
    n, k = input.shape
    check(
        k == mat2.shape[0],
        f"mm: input and mat2 shapes cannot be multiplied ({n}x{k} and {mat2.shape[0]}x{mat2.shape[1]})",
    )
    return empty([n, mat2.shape[1]], dtype=input.dtype, like=input)


@mm.vjp
def _(g, input, mat2):
    return mm(g, mat2.conj().transpose(0, 1)), mm(input.conj().transpose(0, 1), g)


@mm.samples
def _(make):
    yield mm, make(3, 4), make(4, 5)
    yield mm, make(4, 3).transpose(0, 1), make(4, 5)
    yield mm, make(0, 4), make(4, 5)


@structured(kernel="bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Matrix products of two batches of matrices, pair by pair.

    >>> torch.bmm(torch.ones(5, 2, 3), torch.ones(5, 3, 4)).shape
    torch.Size([5, 2, 4])
    """
    check(input.ndim == 3, f"bmm: expected input to have 3 dimensions, got {input.ndim}")
    check(mat2.ndim == 3, f"bmm: expected mat2 to have 3 dimensions, got {mat2.ndim}")
    check(
        input.dtype == mat2.dtype,
        f"bmm: expected input and mat2 to have the same dtype, got {input.dtype} and {mat2.dtype}",
    )
    check(
        input.shape[0] == mat2.shape[0] and input.shape[2] == mat2.shape[1],
        f"bmm: shapes do not fit, got input {input.shape} and mat2 {mat2.shape}",
    )
    return empty([input.shape[0], input.shape[1], mat2.shape[2]], dtype=input.dtype, like=input)


@bmm.vjp
def _(g, input, mat2):
    return bmm(g, mat2.conj().transpose(1, 2)), bmm(input.conj().transpose(1, 2), g)


@composite
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Matrix product over the last two dimensions; the others broadcast, vectors are contracted.

    >>> torch.matmul(torch.ones(7, 1, 2, 3), torch.ones(5, 3, 4)).shape
    torch.Size([7, 5, 2, 4])
    """
    check(
        input.ndim > 0 and other.ndim > 0,
        f"matmul: expected both arguments to have at least 1 dimension, got {input.ndim} and {other.ndim}",
    )
    if input.ndim == 1:
        row = matmul(input.unsqueeze(0), other)
        return row.squeeze(-2) if other.ndim > 1 else row.squeeze(0)
    if other.ndim == 1:
        return matmul(input, other.unsqueeze(1)).squeeze(-1)
    if input.ndim == 2 and other.ndim == 2:
        return mm(input, other)
    n, k = input.shape[-2:]
    m = other.shape[-1]
    if other.ndim == 2:
        # One tall product: no copy of `other` for each matrix of the batch.
        return mm(input.reshape([-1, k]), other).reshape(input.shape[:-1] + [m])
    check(
        k == other.shape[-2],
        f"matmul: shapes cannot be multiplied, got {input.shape} and {other.shape}",
    )
    batch = broadcast_shapes(input.shape[:-2], other.shape[:-2])
    a = input.expand(batch + [n, k]).reshape([prod(batch), n, k])
    b = other.expand(batch + [k, m]).reshape([prod(batch), k, m])
    return bmm(a, b).reshape(batch + [n, m])
