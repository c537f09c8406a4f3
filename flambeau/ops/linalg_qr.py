"""QR factors, whole or as Householder reflectors. Kernels: csrc/kernels/linalg_spectral.cpp."""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(
    kernel="linalg_qr", namespaces=("_C._linalg",), aliases=("linalg.qr",), fields=("Q", "R"),
    method=False,
    autocast="float32",
    batch=True,
)  # fmt: skip
def linalg_qr(A: Tensor, mode: str = "reduced") -> Tuple[Tensor, Tensor]:
    """A = Q R with orthonormal columns in Q and an upper triangular R.

    Args:
        A: batches of matrices.
        mode: "reduced", "complete" (a square Q) or "r" (an empty Q).

    >>> torch.linalg.qr(torch.eye(2)).R.shape
    torch.Size([2, 2])
    """
    _check_matrix("linalg.qr", A, "A")
    _check_inexact("linalg.qr", A)
    check(
        mode == "reduced" or mode == "complete" or mode == "r",
        f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
        "or 'complete'",
    )
    batch = A.shape[:-2]
    m, n = A.size(-2), A.size(-1)
    k = m if mode == "complete" else min(m, n)
    r = _columns(batch + [k, n], A.dtype, A)
    if mode == "r":
        return empty([0], like=A), r
    return _columns(batch + [m, k], A.dtype, A), r


@linalg_qr.vjp
def _(g0, g1, A, mode: str, result0, result1):
    check(
        mode != "r",
        "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
        "use linalg.qr(A, mode='reduced') if you are going to require gradients wrt the input.",
    )
    m, n = A.size(-2), A.size(-1)
    check(
        mode == "reduced" or m <= n,
        "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.",
    )
    k = min(m, n)
    q = result0
    if m >= n:
        return _square_qr_backward(g0, g1, q, result1)
    # The trailing columns are Q R2 = A2: R2 depends on Q, which the leading columns make.
    tail = g1.narrow(-1, k, n - k)
    g_q = g0 + q @ (result1.narrow(-1, k, n - k) @ tail.adjoint())
    g_left = _square_qr_backward(g_q, g1.narrow(-1, 0, k), q, result1.narrow(-1, 0, k))
    return cat([g_left, q @ tail], -1)


@composite(namespaces=(), method=False)
def _square_qr_backward(g_q: Tensor, g_r: Tensor, q: Tensor, r: Tensor) -> Tensor:
    """Cotangent of A = Q R for a square R. Source: Walter and Lehmann, On the differentiation of
    matrix-valued functions in algorithmic differentiation, 2018.

    >>> torch.linalg.qr(torch.eye(2)).R.shape
    torch.Size([2, 2])
    """
    middle = (g_r @ r.adjoint() - q.adjoint() @ g_q).triu()
    both = middle + middle.adjoint()
    both = both - 0.5 * both.diagonal(0, -2, -1).diag_embed()
    g = g_q + q @ both
    return linalg_solve_triangular(r.adjoint(), g, upper=False, left=False)


@composite(fields=("Q", "R"), out=True, autocast="float32")
def qr(input: Tensor, some: bool = True) -> Tuple[Tensor, Tensor]:
    """The older form of linalg.qr.

    >>> torch.qr(torch.eye(2)).R.shape
    torch.Size([2, 2])
    """
    warn("torch.qr is deprecated: use torch.linalg.qr, whose mode is a word in place of `some`")
    return linalg_qr(input, "reduced" if some else "complete")


@structured(
    kernel="geqrf",
    fields=("a", "tau"),
    autocast="float32",
    batch=True,
    out_cast=True,
    out_casts=True,
)
def geqrf(input: Tensor) -> Tuple[Tensor, Tensor]:
    """R, the reflectors that make Q below its diagonal, and their scales.

    >>> torch.geqrf(torch.eye(2)).tau.shape
    torch.Size([2])
    """
    check(input.ndim >= 2, "torch.geqrf: input must have at least 2 dimensions.")
    _check_inexact("geqrf", input)
    k = min(input.size(-2), input.size(-1))
    return (
        _columns(input.shape, input.dtype, input),
        empty(input.shape[:-2] + [k], dtype=input.dtype),
    )


@composite(namespaces=(), method=False)
def _reflector(input: Tensor, k: int) -> Tensor:
    """Reflector k of geqrf's result as a column: zeros, a one, what is stored.

    >>> torch.linalg.householder_product(torch.eye(1), torch.zeros(1))
    tensor([[1.]])
    """
    m = input.size(-2)
    v = input.narrow(-1, k, 1)
    place = eye(m, input.size(-1), dtype=input.dtype).narrow(-1, k, 1)
    if k + 1 == m:
        return place.expand(v.shape)
    below = v.narrow(-2, k + 1, m - k - 1)
    return cat([place.narrow(-2, 0, k + 1).expand(v.shape[:-2] + [k + 1, 1]), below], -2)


@composite(namespaces=(), method=False)
def _reflect_all(input: Tensor, tau: Tensor, other: Tensor, left: bool, adjoint: bool) -> Tensor:
    """op(Q) other, or other op(Q), one reflector after the other: what ormqr is, differentiably.

    >>> torch.linalg.householder_product(torch.eye(1), torch.zeros(1))
    tensor([[1.]])
    """
    x = other
    k = tau.size(-1)
    for step in range(k):
        i = step if adjoint == left else k - 1 - step
        v = _reflector(input, i)
        t = tau.narrow(-1, i, 1).unsqueeze(-1)
        if adjoint:
            t = t.conj()
        if left:
            x = x - v @ (t * (v.adjoint() @ x))
        else:
            x = x - ((x @ v) * t) @ v.adjoint()
    return x


@structured(
    kernel="linalg_householder_product", namespaces=("_C._linalg",),
    aliases=("linalg.householder_product",), method=False,
    autocast="float32",
    batch=True,
    out_casts=True,
)  # fmt: skip
def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The leading columns of Q, from reflectors as geqrf gives them.

    >>> torch.linalg.householder_product(torch.eye(1), torch.zeros(1))
    tensor([[1.]])
    """
    _check_householder("torch.linalg.householder_product", input, tau)
    check(
        input.shape[:-2] == tau.shape[:-1],
        "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to "
        f"input.shape[:-2], but got {tau.shape[:-1]}",
    )
    return _columns(input.shape, input.dtype, input)


@composite(namespaces=(), method=False)
def _check_householder(name: str, input: Tensor, tau: Tensor) -> None:
    """Refuses reflectors and scales that do not belong together.

    >>> torch.linalg.householder_product(torch.eye(1), torch.zeros(1))
    tensor([[1.]])
    """
    check(input.ndim >= 2, f"{name}: input must have at least 2 dimensions.")
    check(
        input.size(-2) >= input.size(-1),
        f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]",
    )
    check(
        tau.ndim >= 1 and input.size(-1) >= tau.size(-1),
        f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]",
    )
    check(
        tau.ndim == input.ndim - 1,
        f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
        f"{tau.ndim} and input.ndim is equal to {input.ndim}",
    )
    check(
        tau.dtype == input.dtype,
        f"{name}: tau dtype {scalar_type_name(tau.dtype)} does not match input dtype "
        f"{scalar_type_name(input.dtype)}",
    )
    _check_inexact(name, input)


@composite(namespaces=(), method=False)
def _reflectors_backward(
    g: Tensor, input: Tensor, tau: Tensor, other: Tensor, left: bool, adjoint: bool
) -> Tuple[Tensor, Tensor, Tensor]:
    """Cotangents of input, tau and other for x = op(Q) other (or other op(Q)).

    The reflectors are undone one by one, so nothing but the result is needed: H is unitary up to
    tau, and x before a step is worked out from the start anew.

    >>> torch.linalg.householder_product(torch.eye(1), torch.zeros(1))
    tensor([[1.]])
    """
    k = tau.size(-1)
    states: Tensors = [other]
    for step in range(k):
        i = step if adjoint == left else k - 1 - step
        states.append(_reflect_one(input, tau, states[step], i, left, adjoint))
    y = g
    g_columns: Tensors = []
    g_taus: Tensors = []
    for back in range(k):
        step = k - 1 - back
        i = step if adjoint == left else k - 1 - step
        x = states[step]
        v = _reflector(input, i)
        t = tau.narrow(-1, i, 1).unsqueeze(-1)
        if adjoint:
            t = t.conj()
        # x' = x - v t (v^H x), or x - (x v) t v^H
        if left:
            w = v.adjoint() @ x
            gv = v.adjoint() @ y
            g_t = -(w.conj() * gv).sum(-1, keepdim=True)
            g_v = -(y @ (t * w).adjoint()) - x @ (t.conj() * gv).adjoint()
            y = y - v @ (t.conj() * gv)
        else:
            w = x @ v
            gv = y @ v
            g_t = -(w.conj() * gv).sum(-2, keepdim=True)
            g_v = -(x.adjoint() @ gv) * t.conj() - (y.adjoint() @ w) * t
            y = y - (gv * t.conj()) @ v.adjoint()
        if adjoint:
            g_t = g_t.conj()
        g_columns.append(g_v)
        g_taus.append(g_t.squeeze(-1))
    g_input = zeros(input.shape, dtype=input.dtype)
    if k == 0:
        return g_input, zeros(tau.shape, dtype=tau.dtype), y
    if adjoint != left:
        pass
    else:
        g_columns = g_columns[::-1]
        g_taus = g_taus[::-1]
    g_all = cat(g_columns, -1).tril(-1)
    if k < input.size(-1):
        g_all = cat([g_all, g_input.narrow(-1, k, input.size(-1) - k)], -1)
    return g_all, cat(g_taus, -1), y


@composite(namespaces=(), method=False)
def _reflect_one(
    input: Tensor, tau: Tensor, x: Tensor, i: int, left: bool, adjoint: bool
) -> Tensor:
    """Reflector i applied to x.

    >>> torch.linalg.householder_product(torch.eye(1), torch.zeros(1))
    tensor([[1.]])
    """
    v = _reflector(input, i)
    t = tau.narrow(-1, i, 1).unsqueeze(-1)
    if adjoint:
        t = t.conj()
    return x - v @ (t * (v.adjoint() @ x)) if left else x - ((x @ v) * t) @ v.adjoint()


@linalg_householder_product.vjp
def _(g, input, tau):
    unit = eye(input.size(-2), input.size(-1), dtype=input.dtype).expand(input.shape)
    g_input, g_tau, _ = _reflectors_backward(g, input, tau, unit, True, False)
    return g_input, g_tau


@composite(out=True, autocast="float32", out_casts=True)
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """Another name of linalg.householder_product.

    >>> torch.orgqr(torch.eye(1), torch.zeros(1))
    tensor([[1.]])
    """
    return linalg_householder_product(input, input2)


@structured(kernel="ormqr", autocast="float32", batch=True)
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """The product of Q (or its adjoint), given as reflectors, with `other`.

    >>> torch.ormqr(torch.eye(1), torch.zeros(1), torch.ones(1, 1))
    tensor([[1.]])
    """
    check(input.ndim >= 2, "torch.ormqr: input must have at least 2 dimensions.")
    check(other.ndim >= 2, "torch.ormqr: other must have at least 2 dimensions.")
    side = other.size(-2) if left else other.size(-1)
    where_ = "-2" if left else "-1"
    check(
        side >= tau.size(-1),
        f"torch.ormqr: other.shape[{where_}] must be greater than or equal to tau.shape[-1]",
    )
    check(
        side == input.size(-2),
        f"torch.ormqr: other.shape[{where_}] must be equal to input.shape[-2]",
    )
    check(
        tau.size(-1) <= input.size(-1),
        "torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]",
    )
    check(
        input.ndim == tau.ndim + 1,
        "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim "
        f"equal to {tau.ndim} and input.ndim is equal to {input.ndim}",
    )
    check(
        input.ndim == other.ndim,
        "torch.ormqr: Expected other to have the same number of dimensions as input, but got "
        f"other.ndim equal to {other.ndim} and input.ndim is equal to {input.ndim}",
    )
    check(
        input.shape[:-2] == tau.shape[:-1],
        "torch.ormqr: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
        f"{tau.shape[:-1]}",
    )
    check(
        input.shape[:-2] == other.shape[:-2],
        "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but "
        f"got {other.shape[:-2]}",
    )
    check(
        tau.dtype == input.dtype and other.dtype == input.dtype,
        "torch.ormqr: Expected input, tau and other to have the same dtype, but got "
        f"{input.dtype}, {tau.dtype} and {other.dtype}",
    )
    _check_inexact("ormqr", input)
    return _columns(other.shape, other.dtype, other)


@ormqr.vjp
def _(g, input, tau, other, left: bool, transpose: bool):
    g_input, g_tau, g_other = _reflectors_backward(g, input, tau, other, left, transpose)
    return g_input, g_tau, g_other
