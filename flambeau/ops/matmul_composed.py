"""What is composed of products: linear layers, powers, Kronecker products, distances.

Only `_linear` has a kernel. Broadcasting of batches lives in `matmul` alone.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="linear_product", namespaces=(), out=False)
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`input @ weight.T + bias` with the bias added while the product is written.

    >>> torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3)).shape
    torch.Size([2, 4])
    """
    return empty(input.shape[:-1] + [weight.shape[0]], dtype=input.dtype, like=input)


@_linear.decompose(slower=True)
def _(input, weight, bias):
    rows = input.reshape([prod(input.shape[:-1]), input.shape[-1]])
    y = mm(rows, weight.transpose(0, 1)).reshape(input.shape[:-1] + [weight.shape[0]])
    return y if bias is None else y + bias


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
