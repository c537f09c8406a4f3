"""Look-ups in tables of rows: embedding, embedding_bag, one_hot; distances of rows.

Kernels: csrc/kernels/embedding.cpp. Gradients of tables are dense.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _check_indices(indices: Tensor, op: str) -> None:
    """Refuses indices that are not int64 or int32.

    >>> F.embedding(torch.tensor([0]), torch.ones(1, 2))
    tensor([[1., 1.]])
    """
    check(
        indices.dtype == int64 or indices.dtype == int32,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
        f"Long, Int; but got {scalar_type_name(indices.dtype)} instead (while checking arguments "
        f"for {op})",
    )


# embedding --------------------------------------------------------------------------------------


@structured(
    kernel="embedding",
    element="selected",
    outside="IndexError: index out of range in self",
    namespaces=("torch",),
    method=False,
    out=False,
    batch=("indices",),
)
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` (V, D) at `indices`, as a tensor of indices.shape + (D,).

    Args:
        padding_idx: a row that gets no gradient; -1 for none
        scale_grad_by_freq: divides the gradient of a row by how often it was looked up
        sparse: not supported yet

    >>> torch.embedding(torch.eye(2), torch.tensor([1]))
    tensor([[0., 1.]])
    """
    check(weight.ndim == 2, "'weight' must be 2-D")
    _check_indices(indices, "embedding")
    return empty(indices.shape + [weight.size(1)], like=weight)


@embedding.vjp
def _(g, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    check_not_implemented(
        not sparse, "embedding: sparse gradients are not supported yet; pass sparse=False"
    )
    d = embedding_dense_backward(g, indices, weight.size(0), padding_idx, scale_grad_by_freq)
    return d, None


@embedding.vmap
def _(weight, indices, padding_idx, scale_grad_by_freq, sparse, indices_b, batch):
    at = _in_front(indices, indices_b, batch)
    if padding_idx < 0 and not sparse:
        flat = weight.reshape([batch * weight.size(1), weight.size(2)])
        rows = at + (arange(batch) * weight.size(1)).view([batch] + [1] * (at.ndim - 1))
        return embedding(flat, rows, -1, scale_grad_by_freq)
    out: Tensors = []
    for b in range(batch):
        out.append(
            embedding(weight.select(0, b), at.select(0, b), padding_idx, scale_grad_by_freq, sparse)
        )
    return stack(out)


@structured(kernel="embedding_dense_backward", namespaces=("torch",), method=False, out=False)
def embedding_dense_backward(
    grad_output: Tensor,
    indices: Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Tensor:
    """Cotangent of the table of an embedding: rows of `grad_output` added up by index.

    >>> torch.embedding_dense_backward(torch.ones(2, 1), torch.tensor([0, 0]), 2, -1, False)
    tensor([[2.],
            [0.]])
    """
    check_not_implemented(
        grad_output.dtype.is_inexact,
        f"\"embedding_backward\" not implemented for '{scalar_type_name(grad_output.dtype)}'",
    )
    check(
        grad_output.ndim == indices.ndim + 1 and grad_output.shape[: indices.ndim] == indices.shape,
        f"embedding_dense_backward: expected grad_output of shape {indices.shape} and one more "
        f"dimension, got {grad_output.shape}",
    )
    return empty([num_weights, grad_output.size(-1)], like=grad_output)


@embedding_dense_backward.vjp
def _(g, indices, num_weights, padding_idx, scale_grad_by_freq):
    rows = embedding(g, indices, padding_idx, False, False)
    if padding_idx >= 0:
        rows = where((indices == padding_idx).unsqueeze(-1), 0, rows)
    if scale_grad_by_freq:
        flat = indices.reshape([-1]).to(int64)
        count = zeros([num_weights], dtype=int64).index_add(0, flat, ones_like(flat))
        rows = rows / count.index_select(0, flat).reshape(indices.shape).unsqueeze(-1).to(g.dtype)
    return rows, None


@embedding_dense_backward.vmap
def _(
    grad_output,
    indices,
    num_weights,
    padding_idx,
    scale_grad_by_freq,
    grad_output_b,
    indices_b,
    batch,
):
    at = _in_front(indices, indices_b, batch)
    g = _in_front(grad_output, grad_output_b, batch)
    if padding_idx >= 0:
        g = g.masked_fill((at == padding_idx).unsqueeze(-1), 0)
    rows = at + (arange(batch) * num_weights).view([batch] + [1] * (at.ndim - 1))
    d = embedding_dense_backward(g, rows, batch * num_weights, -1, scale_grad_by_freq)
    return d.view([batch, num_weights, d.size(1)])


@structured(
    kernel="embedding_renorm_", namespaces=("torch",), method=False, out=False, inplace_kernel=True,
    differentiable=False,
)  # fmt: skip
def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scales the rows of `weight` at `indices` down to at most `max_norm`, in place.

    >>> torch.embedding_renorm_(torch.tensor([[3.0, 4.0]]), torch.tensor([0]), 1.0, 2.0)
    tensor([[0.6000, 0.8000]])
    """
    check(weight.ndim == 2, "'weight' must be 2-D")
    _check_indices(indices, "embedding_renorm_")
    check_not_implemented(
        weight.dtype.is_floating_point,
        f"\"embedding_renorm_\" not implemented for '{scalar_type_name(weight.dtype)}'",
    )


@view(namespaces=(), method=False, differentiable=False, unrelated=True)
def _detached(input: Tensor) -> Tensor:
    """The same data without history."""
    return alias_of(input)


# embedding_bag ----------------------------------------------------------------------------------


@structured(kernel="embedding_bag", namespaces=("torch",), method=False, out=False)
def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int,
) -> Tuple[Tensor, Tensor]:
    """Sums (mode 0), means (1) or maxima (2) of bags of rows; which row each maximum came from.

    >>> F.embedding_bag(torch.tensor([[0, 1]]), torch.eye(2))
    tensor([[0.5000, 0.5000]])
    """
    check(
        weight.dtype.is_floating_point,
        "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
        f"Half, BFloat16, Float, Double; but got {scalar_type_name(weight.dtype)} instead (while "
        "checking arguments for embedding_bag)",
    )
    _check_indices(indices, "embedding_bag")
    _check_indices(offsets, "embedding_bag")
    check(
        padding_idx < weight.size(0),
        f"padding_idx must be within the number of embeddings, -{weight.size(0)} through "
        f"{weight.size(0) - 1}, but got {padding_idx}",
    )
    if include_last_offset:
        check(offsets.size(0) >= 1, "include_last_offset: number of offset should be at least 1")
    if per_sample_weights is not None:
        check(
            per_sample_weights.dtype == weight.dtype,
            f"expected scalar type {scalar_type_name(weight.dtype)} but found "
            f"{scalar_type_name(per_sample_weights.dtype)}",
        )
        check(
            per_sample_weights.ndim == 1 and per_sample_weights.numel() == indices.numel(),
            f"embedding_bag: expected per_sample_weights of shape {indices.shape}, got "
            f"{per_sample_weights.shape}",
        )
    bags = offsets.size(0) - (1 if include_last_offset else 0)
    d = weight.size(1)
    return empty([bags, d], like=weight), empty([bags if mode == 2 else 0, d], dtype=int64)


@_embedding_bag.vjp
def _(
    g0, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
    include_last_offset, padding_idx, result1,
):  # fmt: skip
    check_not_implemented(
        not sparse, "embedding_bag: sparse gradients are not supported yet; pass sparse=False"
    )
    if differentiated():
        # The kernels have no derivative.
        g_rows, g_factors = _embedding_bag_backward_steps(
            g0, weight, indices, offsets, scale_grad_by_freq, mode, per_sample_weights,
            include_last_offset, padding_idx, result1,
        )  # fmt: skip
        return g_rows, None, None, None if per_sample_weights is None else g_factors
    d_weight = _embedding_bag_backward(
        g0, indices, offsets, weight.size(0), scale_grad_by_freq, mode, per_sample_weights,
        include_last_offset, padding_idx, result1,
    )  # fmt: skip
    d_samples: Tensor | None = None
    if per_sample_weights is not None:
        d_samples = _embedding_bag_samples_backward(
            g0, weight, indices, offsets, include_last_offset, padding_idx
        )
    return d_weight, None, None, d_samples


@structured(kernel="embedding_bag_backward", namespaces=(), method=False, out=False)
def _embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int,
    maximum_indices: Tensor,
) -> Tensor:
    """Cotangent of the table of an embedding_bag.

    >>> w = torch.eye(2, requires_grad=True)
    >>> F.embedding_bag(torch.tensor([[0, 0]]), w, mode="sum").sum().backward()
    >>> w.grad
    tensor([[2., 2.],
            [0., 0.]])
    """
    return empty([num_weights, grad.size(1)], like=grad)


@composite(namespaces=())
def _embedding_bag_backward_steps(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int,
    maximum_indices: Tensor,
) -> Tuple[Tensor, Tensor]:
    """Both cotangents of an embedding_bag as operations that can be derived again.

    >>> F.embedding_bag(torch.tensor([[0, 1]]), torch.eye(2))
    tensor([[0.5000, 0.5000]])
    """
    table = zeros(weight.shape, dtype=grad.dtype)
    if mode == 2:
        found = (maximum_indices >= 0).to(grad.dtype)  # -1: nothing in the bag
        return table.scatter_add(0, maximum_indices.clamp_min(0), grad * found), grad
    n = indices.numel()
    at = indices.to(int64)
    bags = offsets.size(0) - (1 if include_last_offset else 0)
    place = arange(0, n, dtype=int64)
    bag = searchsorted(offsets.narrow(0, 0, bags).to(int64), place, right=True) - 1
    counts = at != padding_idx
    if include_last_offset:
        counts = counts & (place < offsets.select(0, bags).to(int64))
    used = counts.to(grad.dtype)
    share = used
    if mode == 1:
        per_bag = zeros([bags], dtype=grad.dtype).index_add(0, bag, used).clamp_min(1)
        share = share / per_bag.index_select(0, bag)
    if scale_grad_by_freq:
        often = zeros([weight.size(0)], dtype=int64).index_add(0, at, ones_like(at))
        share = share / often.index_select(0, at).to(grad.dtype)
    if per_sample_weights is not None:
        share = share * per_sample_weights
    rows = grad.index_select(0, bag)
    looked_up = weight.index_select(0, at)
    return table.index_add(0, at, rows * share.unsqueeze(1)), (rows * looked_up).sum([1]) * used


@structured(
    kernel="embedding_bag_samples_backward", namespaces=(), method=False, out=False,
)  # fmt: skip
def _embedding_bag_samples_backward(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    include_last_offset: bool,
    padding_idx: int,
) -> Tensor:
    """Cotangent of the per-sample weights of an embedding_bag."""
    return empty(indices.shape, like=grad)


# Indicators -------------------------------------------------------------------------------------


@composite(namespaces=("nn.functional",), method=False)
def functional_embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` at the indices `input`.

    Args:
        input: indices of any shape.
        weight: table of shape (V, D).
        padding_idx: a row that gets no gradient; counts from the end when negative.
        max_norm, norm_type: rows that are looked up are first scaled down, in place, to this norm.
        scale_grad_by_freq: divides a row's gradient by how often it was looked up.
        sparse: not supported yet: an error in backward.

    Returns:
        A tensor of shape (*input.shape, D).

    >>> F.embedding(torch.tensor([1]), torch.eye(2))
    tensor([[0., 1.]])
    """
    pad = -1
    if padding_idx is not None:
        rows = weight.size(0)
        assert -rows <= padding_idx and padding_idx < rows, (
            "Padding_idx must be within num_embeddings"
        )
        pad = padding_idx % rows
    if max_norm is not None:
        embedding_renorm_(_detached(weight), input, max_norm, norm_type)
    return embedding(weight, input, pad, scale_grad_by_freq, sparse)


@composite(namespaces=("nn.functional",), method=False)
def functional_embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows of `weight`.

    Args:
        input: indices: (B, N) for bags of one size, or (N,) with `offsets`.
        weight: table of shape (V, D).
        offsets: where in `input` each bag begins.
        max_norm, norm_type, scale_grad_by_freq, sparse: see `embedding`.
        mode: "sum", "mean" or "max".
        per_sample_weights: factors of the rows, for mode "sum".
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that does not count.

    Returns:
        A tensor of shape (B, D).

    >>> F.embedding_bag(torch.tensor([[0, 1]]), torch.eye(2), mode="sum")
    tensor([[1., 1.]])
    """
    if weight.dtype == int64 and input.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. "
            "Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`."
        )
        weight, input = input, weight
    factors = per_sample_weights
    if factors is not None:
        check_value(
            input.shape == factors.shape,
            f"embedding_bag: If per_sample_weights ({factors.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})",
        )
    check_value(
        weight.ndim == 2,
        f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}",
    )
    check_value(
        input.ndim in (1, 2),
        f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}",
    )
    starts = offsets
    if input.ndim == 2:
        check_value(
            offsets is None,
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
            "of fixed length sequences. However, found offsets of type Tensor",
        )
        starts = arange(input.size(0), dtype=input.dtype) * input.size(1)
        input = input.reshape([-1])
        if factors is not None:
            factors = factors.reshape([-1])
    if starts is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    check_value(starts.ndim == 1, "offsets has to be a 1D Tensor")
    check_value(mode in ("sum", "mean", "max"), "mode has to be one of sum, mean or max")
    if mode == "max":
        check_value(
            not scale_grad_by_freq,
            "max mode does not support scaling the gradient by the frequency",
        )
        check_value(not sparse, "max mode does not support sparse weights")
    check_not_implemented(
        factors is None or mode == "sum",
        "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
        f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub.",
    )
    pad = -1
    if padding_idx is not None:
        rows = weight.size(0)
        check(
            -rows <= padding_idx and padding_idx < rows,
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, "
            f"but got {padding_idx}",
        )
        pad = padding_idx % rows
    if max_norm is not None:
        embedding_renorm_(_detached(weight), input, max_norm, norm_type)
    number = 0 if mode == "sum" else 1 if mode == "mean" else 2
    bags, _ = _embedding_bag(
        weight, input, starts, scale_grad_by_freq, number, sparse, factors, include_last_offset, pad
    )
    return bags


@composite(namespaces=("nn.functional",), method=False)
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Indicators of classes: 1 at the index, 0 elsewhere, in a new last dimension.

    >>> F.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    check(input.dtype == int64, "one_hot is only applicable to index tensor of type LongTensor.")
    if input.numel() == 0:
        check(num_classes > 0, "Can not infer total number of classes from empty tensor.")
        return empty(input.shape + [num_classes], dtype=int64, like=input)
    check(truth((input >= 0).all(), True), "Class values must be non-negative.")
    n = num_classes
    if n == -1:
        n = int(input.amax().item()) + 1
    else:
        inside = truth((input < num_classes).all(), True)
        check(inside, "Class values must be smaller than num_classes.")
    return zeros(input.shape + [n], dtype=int64).scatter(-1, input.unsqueeze(-1), 1)


# Distances --------------------------------------------------------------------------------------


@composite(namespaces=("torch", "nn.functional"), method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along `dim`; lengths are at least `eps`.

    >>> F.cosine_similarity(torch.eye(2), torch.ones(2, 2))
    tensor([0.7071, 0.7071])
    """
    kind = result_type(x1, x2)
    check(
        kind.is_floating_point,
        f"expected common dtype to be floating point, yet common dtype is {scalar_type_name(kind)}",
    )
    shape = broadcast_shapes(x1.shape, x2.shape)
    d = wrap_dim(dim, len(shape))
    a = x1.to(opmath(kind)).expand(shape)
    b = x2.to(opmath(kind)).expand(shape)
    dims: Ints = []
    if len(shape) > 0:
        dims.append(d)
    # Squares are clamped, not lengths: the derivative of a root at 0 is not finite.
    least = eps * eps
    a = a / (a * a).sum(dims, keepdim=True).clamp_min(least).sqrt()
    b = b / (b * b).sum(dims, keepdim=True).clamp_min(least).sqrt()
    return (a * b).sum(dims).to(kind)


@composite(namespaces=("torch", "nn.functional"), method=False)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of the difference of vectors in the last dimension, `eps` added to it.

    >>> F.pairwise_distance(torch.zeros(1, 1), torch.ones(1, 1))
    tensor([1.0000])
    """
    d = x1 - x2 + eps
    if d.ndim == 0:
        return d.norm(p)
    return d.norm(p, [-1], keepdim)
