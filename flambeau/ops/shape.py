"""Changes of shape that are made of views and copies: flatten, squeeze, stacks, splits, tilings.

Everything here is a composite over the views (view.py) and `cat`; nothing has a kernel.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite()
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`input` in the shape of `other`.

    >>> torch.arange(4).reshape_as(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return input.reshape(other.shape)


@composite(namespaces=())
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """View of `self` in the shape of `other`.

    >>> torch.arange(4).view_as(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return self.view(other.shape)


@composite(namespaces=())
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """View of `self` expanded to the shape of `other`.

    >>> torch.ones(1).expand_as(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return self.expand(other.shape)


@composite()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dims `start_dim` to `end_dim` merged into one; a 0-d tensor becomes 1-d.

    >>> torch.ones(2, 3, 4).flatten(1).shape
    torch.Size([2, 12])
    """
    a = wrap_dim(start_dim, input.ndim)
    b = wrap_dim(end_dim, input.ndim)
    check(a <= b, "flatten() has invalid args: start_dim cannot come after end_dim")
    if input.ndim == 0:
        return input.reshape([1])
    if a == b:
        return input
    sizes = input.shape[:a]
    sizes.append(prod(input.shape[a : b + 1]))
    sizes.extend(input.shape[b + 1 :])
    return input.reshape(sizes)


@composite()
def unflatten(input: Tensor, dim: int, sizes: Ints) -> Tensor:
    """Dim `dim` split into `sizes` (one may be -1).

    >>> torch.ones(2, 12).unflatten(1, (3, -1)).shape
    torch.Size([2, 3, 4])
    """
    check(len(sizes) > 0, "unflatten: sizes must be non-empty")
    d = wrap_dim(dim, input.ndim)
    n = input.size(d)
    known = 1
    holes = 0
    for s in sizes:
        if s == -1:
            holes += 1
        else:
            known *= s
    fits = known == n if holes == 0 else holes == 1 and known > 0 and n % known == 0
    check(
        fits,
        f"unflatten: Provided sizes {sizes} don't multiply up to the size of dim {dim} ({n}) in "
        "the input tensor",
    )
    out = input.shape[:d]
    for s in sizes:
        out.append(n // known if s == -1 else s)
    out.extend(input.shape[d + 1 :])
    return input.view(out)


@composite()
def ravel(input: Tensor) -> Tensor:
    """All elements in one dim.

    >>> torch.ones(2, 3).ravel().shape
    torch.Size([6])
    """
    return input.contiguous().view([-1])


@composite(autocast="widest", out=True, out_apart=True, out_casts=True)
def stack(tensors: Tensors, dim: int = 0) -> Tensor:
    """Equal-shaped tensors joined along a new dim.

    >>> torch.stack([torch.zeros(2), torch.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    check(len(tensors) > 0, "stack expects a non-empty TensorList")
    d = wrap_dim(dim, tensors[0].ndim + 1)
    parts: Tensors = []
    for i, t in enumerate(tensors):
        check(
            t.shape == tensors[0].shape,
            f"stack expects each tensor to be equal size, but got {tensors[0].shape} at entry 0 "
            f"and {t.shape} at entry {i}",
        )
        parts.append(t.unsqueeze(d) if d == t.ndim else t)
    if d == tensors[0].ndim:
        joined = cat(parts, d)
        # Strides of three dims and a new one may look like channels laid last.
        return joined.contiguous() if joined.ndim == 4 else joined
    # Joined along a dim that is there already, whose parts the new dim counts.
    shape = tensors[0].shape
    return _unsafe_view(cat(parts, d), shape[:d] + [len(tensors)] + shape[d:])


@composite(out=True, out_apart=True, out_casts=True)
def hstack(tensors: Tensors) -> Tensor:
    """Joined along dim 1, or dim 0 when 1-d.

    >>> torch.hstack([torch.zeros(1), torch.ones(1)])
    tensor([0., 1.])
    """
    check(len(tensors) > 0, "hstack expects a non-empty TensorList")
    parts = [t.reshape([1]) if t.ndim == 0 else t for t in tensors]
    return cat(parts, 0 if parts[0].ndim == 1 else 1)


@composite(aliases=("row_stack",), out=True, out_apart=True, out_casts=True)
def vstack(tensors: Tensors) -> Tensor:
    """Joined along dim 0, after 1-d ones became rows.

    >>> torch.vstack([torch.zeros(1), torch.ones(1)])
    tensor([[0.],
            [1.]])
    """
    check(len(tensors) > 0, "vstack expects a non-empty TensorList")
    return cat([atleast_2d(t) for t in tensors], 0)


@composite(out=True, out_apart=True, out_casts=True)
def dstack(tensors: Tensors) -> Tensor:
    """Joined along dim 2, after all became 3-d.

    >>> torch.dstack([torch.zeros(1), torch.ones(1)]).shape
    torch.Size([1, 1, 2])
    """
    check(len(tensors) > 0, "dstack expects a non-empty TensorList")
    return cat([atleast_3d(t) for t in tensors], 2)


@composite(out=True, out_apart=True, out_casts=True)
def column_stack(tensors: Tensors) -> Tensor:
    """1-d tensors as columns, 2-d ones as they are, joined along dim 1.

    >>> torch.column_stack([torch.zeros(2), torch.ones(2)])
    tensor([[0., 1.],
            [0., 1.]])
    """
    check(len(tensors) > 0, "column_stack expects a non-empty TensorList")
    return hstack([t.reshape([t.numel(), 1]) if t.ndim <= 1 else t for t in tensors])


@composite(method=False)
def atleast_1d(input: Tensor) -> Tensor:
    """A view with at least one dim.

    >>> torch.atleast_1d(torch.tensor(1.0))
    tensor([1.])
    """
    return input.reshape([1]) if input.ndim == 0 else input


@composite(method=False)
def atleast_2d(input: Tensor) -> Tensor:
    """A view with at least two dims; 1-d becomes a row.

    >>> torch.atleast_2d(torch.ones(2)).shape
    torch.Size([1, 2])
    """
    if input.ndim == 0:
        return input.reshape([1, 1])
    return input.unsqueeze(0) if input.ndim == 1 else input


@composite(method=False)
def atleast_3d(input: Tensor) -> Tensor:
    """A view with at least three dims.

    >>> torch.atleast_3d(torch.ones(2)).shape
    torch.Size([1, 2, 1])
    """
    if input.ndim == 0:
        return input.reshape([1, 1, 1])
    if input.ndim == 1:
        return input.unsqueeze(0).unsqueeze(-1)
    return input.unsqueeze(-1) if input.ndim == 2 else input


@composite(sizes=("length",))
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """View of `length` entries of dim `dim`, from `start`.

    >>> torch.arange(4).narrow(0, 1, 2)
    tensor([1, 2])
    """
    check(input.ndim > 0, "narrow() cannot be applied to a 0-dim tensor.")
    check(length >= 0, "narrow(): length must be non-negative.")
    n = input.size(dim)
    check_index(
        -n <= start and start <= n,
        f"start out of range (expected to be in range of [{-n}, {n}], but got {start})",
    )
    first = start + n if start < 0 else start
    check(first <= n - length, f"start ({first}) + length ({length}) exceeds dimension size ({n}).")
    return input.slice(dim, first, first + length, 1)


@narrow.overload(sizes=("length",))
def narrow(input: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    """The start given as a 0-d tensor of an integral dtype.

    >>> torch.arange(4).narrow(0, torch.tensor(1), 2)
    tensor([1, 2])
    """
    check(
        start.ndim == 0 and start.is_integral() and start.dtype != bool_,
        "start must be an 0-dim integral Tensor.",
    )
    return narrow(input, dim, int(start.item()), length)


@composite(namespaces=(), method=False, function=False)
def _check_count(op: str, views: int) -> None:
    """Refuses lists of views that no memory holds."""
    check(views <= 1 << 24, f"{op}: expected at most {1 << 24} views, but {views} were asked for")


@composite(aliases=("unsafe_split",), sizes=("split_size_or_sections",))
def split(self: Tensor, split_size_or_sections: int, dim: int = 0) -> Tensors:
    """Views along `dim`, of `split_size_or_sections` entries each (the last may be smaller), or of
    the given sizes.

    >>> [t.shape[0] for t in torch.arange(5).split(2)]
    [2, 2, 1]
    """
    check(self.ndim > 0, "split expects at least a 1-dimensional tensor")
    step = split_size_or_sections
    n = self.size(dim)
    check(step >= 0, f"split expects split_size be non-negative, but got split_size={step}")
    check(
        step > 0 or n == 0,
        f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}",
    )
    _check_count("split", n // max(step, 1))
    out: Tensors = []
    if n == 0:
        out.append(self.slice(dim, 0, 0, 1))
    else:
        for a in range(0, n, step):
            out.append(self.slice(dim, a, min(a + step, n), 1))
    return multi_views(out, "SplitBackward0")


@split.overload()
def split(self: Tensor, split_size_or_sections: Ints, dim: int = 0) -> Tensors:
    """Views along `dim` of the given sizes.

    >>> [t.shape[0] for t in torch.arange(5).split([1, 4])]
    [1, 4]
    """
    return split_with_sizes(self, split_size_or_sections, dim)


@composite(aliases=("unsafe_split_with_sizes",))
def split_with_sizes(self: Tensor, split_sizes: Ints, dim: int = 0) -> Tensors:
    """Views along `dim` of the given sizes, which must sum to the size of the dim.

    >>> [t.shape[0] for t in torch.arange(5).split_with_sizes([1, 4])]
    [1, 4]
    """
    check(self.ndim > 0, "split expects at least a 1-dimensional tensor")
    n = self.size(dim)
    out: Tensors = []
    a = 0
    for s in split_sizes:
        check(
            s >= 0,
            f"split_with_sizes: expected split_sizes of at least 0, got {split_sizes}",
        )
        out.append(self.slice(dim, min(a, n), min(a + s, n), 1))
        a += s
    check(
        a == n,
        f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
        f"dimension {dim}), but got split_sizes={split_sizes}",
    )
    return multi_views(out, "SplitWithSizesBackward0")


@composite(aliases=("unsafe_chunk",))
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Tensors:
    """At most `chunks` views along `dim`, of equal size but for the last.

    >>> [t.shape[0] for t in torch.arange(5).chunk(3)]
    [2, 2, 1]
    """
    check(input.ndim > 0, "chunk expects at least a 1-dimensional tensor")
    check(chunks > 0, f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input.size(dim)
    step = (n + chunks - 1) // chunks
    if step == 0:
        _check_count("chunk", chunks)
        return split_with_sizes(input, [0 for i in range(chunks)], dim)
    return split(input, step, dim)


@composite()
def tensor_split(input: Tensor, indices_or_sections: int, dim: int = 0) -> Tensors:
    """`indices_or_sections` views along `dim`, sizes as equal as can be; or cuts at the indices.

    >>> [t.shape[0] for t in torch.arange(5).tensor_split(3)]
    [2, 2, 1]
    """
    check(
        input.ndim > 0,
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
    )
    k = indices_or_sections
    check(k > 0, f"number of sections must be larger than 0, got {k}")
    _check_count("tensor_split", k)
    n = input.size(dim)
    out: Tensors = []
    a = 0
    for i in range(k):
        b = a + n // k + (1 if i < n % k else 0)
        out.append(input.slice(dim, a, b, 1))
        a = b
    return out


@tensor_split.overload()
def tensor_split(input: Tensor, indices_or_sections: Ints, dim: int = 0) -> Tensors:
    """Views along `dim` cut at the given indices.

    >>> [t.shape[0] for t in torch.arange(5).tensor_split([1, 3])]
    [1, 2, 2]
    """
    check(
        input.ndim > 0,
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
    )
    out: Tensors = []
    a = 0
    for b in indices_or_sections:
        out.append(input.slice(dim, a, b, 1))
        a = b
    out.append(input.slice(dim, a, None, 1))
    return out


@tensor_split.overload(tensors_first=True)
def tensor_split(input: Tensor, tensor_indices_or_sections: Tensor, dim: int = 0) -> Tensors:
    """Cuts or a number of sections from a tensor.

    >>> [t.shape[0] for t in torch.arange(5).tensor_split(torch.tensor([1, 3]))]
    [1, 2, 2]
    """
    t = tensor_indices_or_sections
    check(
        t.dtype == int64, "tensor_split expected tensor_indices_or_sections to have dtype of long"
    )
    check(
        t.ndim <= 1,
        "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
        f"one-dimensional tensor, but got a tensor with {t.ndim} dims",
    )
    if t.ndim == 0:
        return tensor_split(input, int(t.item()), dim)
    cuts: Ints = []
    for i in range(t.size(0)):
        cuts.append(int(t.select(0, i).item()))
    return tensor_split(input, cuts, dim)


@composite()
def hsplit(input: Tensor, indices_or_sections: int) -> Tensors:
    """Equal parts along dim 1 (dim 0 when 1-d).

    >>> [t.shape for t in torch.ones(2, 4).hsplit(2)]
    [torch.Size([2, 2]), torch.Size([2, 2])]
    """
    check(
        input.ndim >= 1,
        f"hsplit: expected input of at least 1 dim, got shape {input.shape}",
    )
    d = 0 if input.ndim == 1 else 1
    k = indices_or_sections
    check(
        k > 0 and input.size(d) % k == 0,
        f"hsplit: expected sections that divide {input.size(d)}, the size of dim {d}, got {k}",
    )
    return tensor_split(input, k, d)


@hsplit.overload()
def hsplit(input: Tensor, indices: Ints) -> Tensors:
    """Cut along dim 1 (dim 0 when 1-d) at the indices.

    >>> [t.shape for t in torch.ones(4).hsplit([1])]
    [torch.Size([1]), torch.Size([3])]
    """
    check(
        input.ndim >= 1,
        f"hsplit: expected input of at least 1 dim, got shape {input.shape}",
    )
    return tensor_split(input, indices, 0 if input.ndim == 1 else 1)


@composite()
def vsplit(input: Tensor, indices_or_sections: int) -> Tensors:
    """Equal parts along dim 0.

    >>> [t.shape for t in torch.ones(4, 2).vsplit(2)]
    [torch.Size([2, 2]), torch.Size([2, 2])]
    """
    check(
        input.ndim >= 2,
        f"vsplit: expected input of at least 2 dims, got shape {input.shape}",
    )
    k = indices_or_sections
    check(
        k > 0 and input.size(0) % k == 0,
        f"vsplit: expected sections that divide {input.size(0)}, the size of dim 0, got {k}",
    )
    return tensor_split(input, k, 0)


@vsplit.overload()
def vsplit(input: Tensor, indices: Ints) -> Tensors:
    """Cut along dim 0 at the indices.

    >>> [t.shape for t in torch.ones(4, 2).vsplit([1])]
    [torch.Size([1, 2]), torch.Size([3, 2])]
    """
    check(
        input.ndim >= 2,
        f"vsplit: expected input of at least 2 dims, got shape {input.shape}",
    )
    return tensor_split(input, indices, 0)


@composite()
def dsplit(input: Tensor, indices_or_sections: int) -> Tensors:
    """Equal parts along dim 2.

    >>> [t.shape for t in torch.ones(1, 2, 4).dsplit(2)]
    [torch.Size([1, 2, 2]), torch.Size([1, 2, 2])]
    """
    check(
        input.ndim >= 3,
        f"dsplit: expected input of at least 3 dims, got shape {input.shape}",
    )
    k = indices_or_sections
    check(
        k > 0 and input.size(2) % k == 0,
        f"dsplit: expected sections that divide {input.size(2)}, the size of dim 2, got {k}",
    )
    return tensor_split(input, k, 2)


@dsplit.overload()
def dsplit(input: Tensor, indices: Ints) -> Tensors:
    """Cut along dim 2 at the indices.

    >>> [t.shape for t in torch.ones(1, 2, 4).dsplit([1])]
    [torch.Size([1, 2, 1]), torch.Size([1, 2, 3])]
    """
    check(
        input.ndim >= 3,
        f"dsplit: expected input of at least 3 dims, got shape {input.shape}",
    )
    return tensor_split(input, indices, 2)


@composite()
def unbind(input: Tensor, dim: int = 0) -> Tensors:
    """Views of every entry of dim `dim`, which is dropped.

    >>> torch.eye(2).unbind()
    (tensor([1., 0.]), tensor([0., 1.]))
    """
    d = wrap_dim(dim, input.ndim)
    _check_count("unbind", input.size(d))
    out: Tensors = []
    for i in range(input.size(d)):
        out.append(input.select(d, i))
    return multi_views(out, "UnbindBackward0")


@composite(namespaces=())
def repeat(self: Tensor, repeats: Ints) -> Tensor:
    """`self` repeated `repeats[i]` times along each dim; more repeats than dims add leading dims.

    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    check(
        len(repeats) >= self.ndim,
        "repeat: Number of dimensions of repeat dims can not be smaller than number of dimensions "
        f"of tensor, got {len(repeats)} and {self.ndim}",
    )
    lead = len(repeats) - self.ndim
    pairs: Ints = []
    spread: Ints = []
    final: Ints = []
    for i, r in enumerate(repeats):
        n = 1 if i < lead else self.size(i - lead)
        pairs.append(1)
        pairs.append(n)
        spread.append(r)
        spread.append(n)
        final.append(r * n)
    for i, r in enumerate(repeats):
        check(
            r >= 0,
            f"Trying to create tensor with negative dimension {final[i]}: {final}, from repeats "
            f"{repeats}",
        )
    laid = self.reshape(pairs).expand(spread).clone(memory_format=contiguous_format)
    return _unsafe_view(laid, final)


@composite()
def tile(input: Tensor, dims: Ints) -> Tensor:
    """Like repeat, but missing repeats count as 1.

    >>> torch.tensor([[1, 2]]).tile((2,))
    tensor([[1, 2, 1, 2]])
    """
    reps: Ints = []
    for _ in range(input.ndim - len(dims)):
        reps.append(1)
    reps.extend(dims)
    return input.repeat(reps)


@composite()
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """View with two axes exchanged.

    >>> torch.ones(2, 3).swapaxes(0, 1).shape
    torch.Size([3, 2])
    """
    return input.transpose(axis0, axis1)


@composite()
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """View with two dims exchanged.

    >>> torch.ones(2, 3).swapdims(0, 1).shape
    torch.Size([3, 2])
    """
    return input.transpose(dim0, dim1)


@composite(aliases=("moveaxis",))
def movedim(input: Tensor, source: Ints1, destination: Ints1) -> Tensor:
    """View with the dims `source` moved to the places `destination`; the others keep their order.

    >>> torch.ones(2, 3, 4).movedim(0, -1).shape
    torch.Size([3, 4, 2])
    """
    check(
        len(source) == len(destination),
        f"movedim: expected as many dims in source as in destination, got {source} and "
        f"{destination}",
    )
    src = wrap_dims(source, input.ndim)
    dst = wrap_dims(destination, input.ndim)
    if input.ndim == 0:
        return input.alias()
    order: Ints = [-1 for i in range(input.ndim)]
    for i in range(len(src)):
        order[dst[i]] = src[i]
    rest: Ints = []
    for i in range(input.ndim):
        if not contains(src, i):
            rest.append(i)
    k = 0
    for i in range(input.ndim):
        if order[i] == -1:
            order[i] = rest[k]
            k += 1
    return input.permute(order)


@composite()
def t(input: Tensor) -> Tensor:
    """Transpose of a matrix; 0-d and 1-d tensors stay as they are.

    >>> torch.ones(2, 3).t().shape
    torch.Size([3, 2])
    """
    check(input.ndim <= 2, f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return input.transpose(0, 1) if input.ndim == 2 else input.alias()


@composite(method=False)
def broadcast_tensors(tensors: Tensors) -> Tensors:
    """All tensors expanded to their common shape.

    >>> [t.shape for t in torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))]
    [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    shape: Ints = []
    for x in tensors:
        shape = broadcast_shapes(shape, x.shape)
    return [x if x.shape == shape else x.expand(shape) for x in tensors]


@composite()
def broadcast_to(input: Tensor, size: Ints) -> Tensor:
    """View expanded to shape `size`.

    >>> torch.ones(1).broadcast_to((2, 3)).shape
    torch.Size([2, 3])
    """
    return input.expand(size)


@composite()
def rot90(input: Tensor, k: int = 1, dims: Ints = [0, 1]) -> Tensor:
    """Rotated by k quarter turns in the plane of two dims.

    >>> torch.arange(4).view(2, 2).rot90()
    tensor([[1, 3],
            [0, 2]])
    """
    check(len(dims) == 2, f"expected total rotation dims == 2, but got dims = {len(dims)}")
    check(input.ndim >= 2, f"expected total dims >= 2, but got total dims = {input.ndim}")
    check(
        dims[0] != dims[1] and abs(dims[0] - dims[1]) != input.ndim,
        f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}",
    )
    a = wrap_dim(dims[0], input.ndim)
    b = wrap_dim(dims[1], input.ndim)
    turns = k % 4
    if turns == 1:
        return input.transpose(a, b).flip([a])
    if turns == 2:
        return input.flip([a, b])
    if turns == 3:
        return input.transpose(a, b).flip([b])
    return input.clone()


@composite()
def fliplr(input: Tensor) -> Tensor:
    """Flipped along dim 1.

    >>> torch.arange(4).view(2, 2).fliplr()
    tensor([[1, 0],
            [3, 2]])
    """
    check(input.ndim >= 2, "Input must be >= 2-d.")
    return input.flip([1])


@composite()
def flipud(input: Tensor) -> Tensor:
    """Flipped along dim 0.

    >>> torch.arange(2).flipud()
    tensor([1, 0])
    """
    check(input.ndim >= 1, "Input must be >= 1-d.")
    return input.flip([0])


@composite(method=False)
def block_diag(tensors: Tensors) -> Tensor:
    """Matrix with the given 2-d tensors on its diagonal.

    >>> torch.block_diag(torch.ones(1, 1), torch.ones(1, 2))
    tensor([[1., 0., 0.],
            [0., 1., 1.]])
    """
    rows = 0
    cols = 0
    for i, x in enumerate(tensors):
        check(
            x.ndim <= 2,
            f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has "
            f"{x.ndim} dimensions: {x.shape}",
        )
        m = atleast_2d(x)
        rows += m.size(0)
        cols += m.size(1)
    if len(tensors) == 0:
        return zeros([1, 0])
    kind = result_type(tensors)
    parts: Tensors = []
    left = 0
    for x in tensors:
        m = atleast_2d(x).to(kind)
        right = cols - left - m.size(1)
        before = zeros([m.size(0), left], dtype=kind)
        after = zeros([m.size(0), right], dtype=kind)
        parts.append(cat([before, m, after], 1))
        left += m.size(1)
    return cat(parts, 0)
