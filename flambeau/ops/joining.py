"""Rearrangements that move data: cat, flip, roll, triangles, diagonals, repeated entries.

The kernels move bytes and do not care for dtypes. Views live in view.py, composites in shape.py.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(
    kernel="cat",
    join="along",
    aliases=("concat", "concatenate"),
    method=False,
    autocast="widest",
    batch=True,
    out_cast=True,
    out_apart=True,
    out_casts=True,
    layout="follows",
)
def cat(tensors: Tensors, dim: int = 0) -> Tensor:
    """Tensors joined along an existing dim; other sizes must agree. Shapes (0,) are skipped.

    >>> torch.cat([torch.zeros(1), torch.ones(2)])
    tensor([0., 1., 1.])
    """
    check_value(len(tensors) > 0, "torch.cat(): expected a non-empty list of Tensors")
    first = 0
    while first + 1 < len(tensors) and tensors[first].shape == [0]:
        first += 1
    like = tensors[first]
    d = wrap_dim(dim, like.ndim)
    total = 0
    layout = like.suggest_memory_format()
    for i, x in enumerate(tensors):
        check(x.ndim > 0, f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        if x.shape == [0] and like.ndim != 1:
            continue
        check(
            x.ndim == like.ndim,
            f"Tensors must have same number of dimensions: got {like.ndim} and {x.ndim}",
        )
        for k in range(like.ndim):
            check(
                k == d or x.size(k) == like.size(k),
                f"cat: Sizes of tensors must match except in dimension {d}. Expected size "
                f"{like.size(k)} but got size {x.size(k)} for tensor number {i} in "
                f"the list.",
            )
        total += x.size(d)
        if x.suggest_memory_format() != layout:
            layout = contiguous_format
    shape = like.shape
    shape[d] = total
    return empty(shape, dtype=result_type(tensors), like=like, memory_format=layout)


@cat.vjp
def _(g, tensors: Tensors, dim: int):
    out: Tensors = []
    at = 0
    d = wrap_dim(dim, g.ndim)
    for x in tensors:
        if x.shape == [0] and g.ndim != 1:
            out.append(zeros([0], dtype=x.dtype))
        else:
            piece = g.narrow(d, at, x.shape[d])
            if x.is_complex() or not piece.is_complex():
                out.append(piece.to(x.dtype))
            else:
                out.append(real(piece).to(x.dtype))
            at += x.shape[d]
    return out


@structured(kernel="flip", element="mirrored", linear=True, out=False, batch=True)
def flip(input: Tensor, dims: Ints) -> Tensor:
    """Copy with the order of entries reversed along `dims`.

    >>> torch.arange(3).flip(0)
    tensor([2, 1, 0])
    """
    wrap_dims(dims, input.ndim)
    return empty_as(input)


@flip.vjp
def _(g, dims: Ints):
    return g.flip(dims)


@structured(kernel="roll", join="rolled", linear=True, out=False)
def roll(input: Tensor, shifts: Ints1, dims: Ints1 | None = None) -> Tensor:
    """Copy with entries moved by `shifts` along `dims`, those that fall off coming in again.
    Without dims the tensor is rolled as if flat.

    >>> torch.arange(4).roll(1)
    tensor([3, 0, 1, 2])
    """
    check(len(shifts) > 0, "`shifts` required")
    along: Ints = [] if dims is None else dims
    flat = len(along) == 0 and len(shifts) == 1
    check(
        flat or len(along) == len(shifts),
        f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(along)}",
    )
    check_index(
        flat or input.ndim > 0,
        f"Dimension specified as {along[0] if len(along) > 0 else 0} but tensor has no dimensions",
    )
    for d in along:
        wrap_dim(d, input.ndim)
    if input.is_contiguous():
        return empty(input.shape, like=input)
    layout = input.suggest_memory_format()
    return empty(input.shape, dtype=input.dtype, like=input, memory_format=layout)


@roll.decompose
def _(input, shifts, dims):
    if dims is not None and len(dims) > 0:
        return roll(input, shifts, dims)
    return roll(input.reshape([-1]), shifts, [0]).reshape(input.shape)


@roll.vjp
def _(g, shifts: Ints, dims: Ints | None):
    return g.roll([-s for s in shifts], dims)


@roll.vmap
def _(input, shifts, dims, batch):
    if dims is None:
        return input.reshape([batch, -1]).roll(shifts, [1]).reshape(input.shape)
    if len(dims) == 0:
        return input.reshape([batch, -1]).roll(shifts, [1]).reshape(input.shape)
    return input.roll(shifts, [wrap_dim(d, input.ndim - 1) + 1 for d in dims])


@structured(
    kernel="tril", element="below", inplace=True, linear=True, batch=True, sizes=("diagonal",)
)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Lower triangle of the last two dims; the rest is zero.

    >>> torch.ones(2, 2).tril()
    tensor([[1., 0.],
            [1., 1.]])
    """
    check(input.ndim >= 2, "tril: input tensor must have at least 2 dimensions")
    return empty(input.shape, like=input)


@tril.vjp
def _(g, diagonal: int):
    return g.tril(diagonal)


@structured(
    kernel="triu", element="above", inplace=True, linear=True, batch=True, sizes=("diagonal",)
)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Upper triangle of the last two dims; the rest is zero.

    >>> torch.ones(2, 2).triu()
    tensor([[1., 1.],
            [0., 1.]])
    """
    check(input.ndim >= 2, "triu: input tensor must have at least 2 dimensions")
    return empty(input.shape, like=input)


@triu.vjp
def _(g, diagonal: int):
    return g.triu(diagonal)


@composite(out=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Matrix with a vector on a diagonal, or a matrix's diagonal as a vector.

    >>> torch.tensor([1, 2]).diag()
    tensor([[1, 0],
            [0, 2]])
    """
    check(
        input.ndim == 1 or input.ndim == 2, f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D"
    )
    if input.ndim == 1:
        return input.diag_embed(diagonal)
    return input.diagonal(diagonal).clone()


@composite()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Matrix with the flattened input on a diagonal.

    >>> torch.ones(1, 2).diagflat()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return input.reshape([-1]).diag_embed(offset)


@composite()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dim laid on a diagonal of two new dims, zero elsewhere.

    >>> torch.ones(2).diag_embed(1).shape
    torch.Size([3, 3])
    """
    n = input.ndim + 1
    a = wrap_dim(dim1, n)
    b = wrap_dim(dim2, n)
    check(a != b, f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = input.size(-1) + abs(offset)
    rest = input.shape[: input.ndim - 1]
    shape: Ints = []
    k = 0
    for i in range(n):
        if i == a or i == b:
            shape.append(side)
        else:
            shape.append(rest[k])
            k += 1
    out = input.new_zeros(shape)
    out.diagonal(offset, a, b).copy_(input)
    return out


@composite(autocast="float32")
def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal of a matrix.

    >>> torch.ones(2, 3).trace()
    tensor(2.)
    """
    check(input.ndim == 2, f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return input.diagonal().sum()


@composite(sizes=("output_size",))
def repeat_interleave(
    input: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each entry along `dim` repeated as often as `repeats` says; flat without a dim.

    >>> torch.tensor([1, 2]).repeat_interleave(torch.tensor([1, 2]))
    tensor([1, 2, 2])
    """
    x = input if dim is not None else input.reshape([-1])
    d = wrap_dim(dim if dim is not None else 0, x.ndim)
    check(repeats.ndim <= 1, "repeats must be 0-dim or 1-dim tensor")
    n = x.size(d) if x.ndim > 0 else 1
    counts = repeats.reshape([-1])
    check(
        counts.numel() == 1 or counts.numel() == n,
        f"repeat_interleave: expected repeats of size 1 or {n} (dim {d}), got {counts.numel()}",
    )
    full_counts = counts.expand([n]) if counts.numel() == 1 else counts
    return x.index_select(d, repeat_indices(full_counts, output_size=output_size))


@repeat_interleave.overload(sizes=("repeats", "output_size"))
def repeat_interleave(
    input: Tensor, repeats: int, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each entry along `dim` repeated `repeats` times; flat without a dim.

    >>> torch.tensor([1, 2]).repeat_interleave(2)
    tensor([1, 1, 2, 2])
    """
    check(repeats >= 0, "Repeats must be non-negative")
    x = input if dim is not None else input.reshape([-1])
    if x.ndim == 0:
        x = x.reshape([1])
    d = wrap_dim(dim if dim is not None else 0, x.ndim)
    if output_size is not None:
        check(
            output_size == x.size(d) * repeats,
            f"repeat_interleave: Invalid output_size, expected {x.size(d) * repeats} but got "
            f"{output_size}",
        )
    shape = x.unsqueeze(d + 1).shape
    shape[d + 1] = repeats
    return x.unsqueeze(d + 1).expand(shape).clone(memory_format=contiguous_format).flatten(d, d + 1)


@repeat_interleave.overload(method=False)
def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """Index i repeated repeats[i] times.

    >>> torch.repeat_interleave(torch.tensor([1, 2]))
    tensor([0, 1, 1])
    """
    check(repeats.ndim == 1, "repeat_interleave only accept 1D vector as repeat")
    return repeat_indices(repeats, output_size=output_size)


@structured(
    kernel="repeat_indices",
    dynamic="[([n if output_size is None else output_size], int64)]",
    namespaces=(),
    method=False,
    differentiable=False,
)
def repeat_indices(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """Index i, repeats[i] times. Shape: (sum(repeats),), int64.

    >>> torch.repeat_interleave(torch.tensor([2]))
    tensor([0, 0])
    """
    check(
        repeats.dtype == int64 or repeats.dtype == int32,
        "repeats has to be Long or Int tensor",
    )


@composite(method=False)
def _meshgrid(tensors: Tensors, indexing: str) -> Tensors:
    """Coordinates of a grid whose axes are the given vectors (`torch.meshgrid`).

    >>> [t.shape for t in torch.meshgrid(torch.ones(2), torch.ones(3), indexing="ij")]
    [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    check(len(tensors) > 0, "meshgrid expects a non-empty TensorList")
    check(
        indexing == "ij" or indexing == "xy",
        f"torch.meshgrid: indexing must be one of 'xy' or 'ij', but received: {indexing}",
    )
    shape: Ints = []
    for x in tensors:
        check(
            x.ndim <= 1,
            f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x.ndim}D of "
            f"shape {x.shape}",
        )
        check(
            x.dtype == tensors[0].dtype, "torch.meshgrid expects all tensors to have the same dtype"
        )
        shape.append(x.numel())
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        first = shape[0]
        shape[0] = shape[1]
        shape[1] = first
    out: Tensors = []
    for i, x in enumerate(tensors):
        k = (1 - i if i < 2 else i) if swap else i
        line: Ints = [1 for j in range(len(shape))]
        line[k] = x.numel()
        out.append(x.reshape(line).expand(shape))
    return out


@composite(method=False)
def cartesian_prod(tensors: Tensors) -> Tensor:
    """All combinations of one entry from each vector, in lexicographic order.

    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3]))
    tensor([[1, 3],
            [2, 3]])
    """
    for x in tensors:
        check(x.ndim == 1, "Expect a 1D vector, but got shape " + f"{x.shape}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([x.flatten() for x in _meshgrid(tensors, "ij")], 1)


@composite()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to take r entries of a vector, in order. Shape: (count, r).

    >>> torch.tensor([1, 2, 3]).combinations()
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    check(input.ndim == 1, f"Expect a 1D vector, but got shape {input.shape}")
    check(r >= 0, f"Expect a non-negative number, but got {r}")
    if r == 0:
        return empty([0], dtype=input.dtype)
    n = input.numel()
    check(r <= 64, f"combinations: expected r of at most 64, but got {r}")
    if r > n and not with_replacement:
        return input.narrow(0, 0, 0).unsqueeze(1).repeat([1, r])
    step = 0 if with_replacement else 1
    last = arange(0, n)
    columns: Tensors = [last]
    for _ in range(r - 1):  # every row goes on with each place from its last one on
        counts = n - step - last
        rows = repeat_indices(counts)
        before = counts.cumsum(0) - counts
        at = arange(0, rows.numel()) - before.index_select(0, rows)
        last = at + last.index_select(0, rows) + step
        columns = [c.index_select(0, rows) for c in columns]
        columns.append(last)
    return stack([input.index_select(0, c) for c in columns], 1)
