"""Reading and writing at computed places: advanced indexing, gather and scatter, masks.

Kernels check every index. `index_block` is the primitive of advanced indexing: k index tensors of
one shape take the places of k adjacent dims; `index` brings every other form to it.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_fits


@composite(namespaces=(), method=False)
def _index_masks(self: Tensor, indices: OptTensors) -> OptTensors:
    """Indices with masks replaced by the positions of their true entries, None for full dims.

    >>> torch.arange(3)[torch.tensor([True, False, True])]
    tensor([0, 2])
    """
    out: OptTensors = []
    for index in indices:
        if index is None:
            out.append(None)
        elif index.dtype == bool_ or index.dtype == uint8:
            if index.dtype == uint8:
                warn(
                    "indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                    "torch.bool instead."
                )
            for k in range(index.ndim):
                check_index(
                    len(out) + k < self.ndim or index.ndim == 0,
                    f"too many indices for tensor of dimension {self.ndim}",
                )
                check_index(
                    index.size(k) == self.size(len(out) + k),
                    f"index: expected a mask of the shape of the dims it selects from, {len(out)} "
                    f"and on of {self.shape}, got {index.shape}",
                )
            for place in _nonzero_columns(index):
                out.append(place)
        else:
            check_index(
                index.is_integral(),
                "tensors used as indices must be long, int, byte or bool tensors",
            )
            out.append(index if index.dtype == int64 else index.to(int64))
    check_index(
        len(out) <= self.ndim,
        f"too many indices for tensor of dimension {self.ndim}",
    )
    return out


@composite(namespaces=(), method=False)
def _nonzero_columns(mask: Tensor) -> Tensors:
    """Columns of nonzero(mask).

    >>> torch.nonzero(torch.tensor([0, 1]), as_tuple=True)
    (tensor([1]),)
    """
    places = nonzero(mask)
    out: Tensors = []
    for k in range(mask.ndim):
        out.append(places.select(1, k))
    return out


@composite(namespaces=(), method=False)
def index(self: Tensor, indices: OptTensors) -> Tensor:
    """`self[indices]` for index tensors (None: the whole dim), NumPy's advanced indexing.

    >>> torch.arange(4).view(2, 2)[torch.tensor([1, 0]), torch.tensor([0, 1])]
    tensor([2, 1])
    """
    if len(indices) == 1:
        mask = indices[0]
        if mask is not None and mask.dtype == bool_ and mask.ndim > 0 and mask.shape == self.shape:
            return masked_select(self, mask)
    full = _index_masks(self, indices)
    given: Tensors = []
    dims: Ints = []
    for k, index in enumerate(full):
        if index is not None:
            given.append(index)
            dims.append(k)
    if len(given) == 0:
        return self.alias()
    block = _index_broadcast(given)
    if _adjacent(dims):
        return index_block(self, block, dims[0])
    return index_block(self.permute(_front(dims, self.ndim)), block, 0)


@composite(namespaces=(), method=False)
def _index_broadcast(indices: Tensors) -> Tensors:
    """Index tensors expanded to one shape; IndexError when there is none.

    >>> torch.arange(3)[torch.tensor([0])]
    tensor([0])
    """
    shape: Ints = []
    for x in indices:
        n = max(len(shape), x.ndim)
        for k in range(1, min(len(shape), x.ndim) + 1):
            a = shape[len(shape) - k]
            b = x.size(-k)
            check_index(
                a == b or a == 1 or b == 1,
                f"index: expected index tensors that broadcast, got shapes {indices[0].shape} and "
                f"{x.shape}",
            )
        check(n >= 0, "unreachable")
        shape = broadcast_shapes(shape, x.shape)
    return [x.expand(shape) for x in indices]


@composite(namespaces=(), method=False)
def _adjacent(dims: Ints) -> bool:
    """Do the dims follow one another?"""
    for i in range(len(dims) - 1):
        if dims[i + 1] != dims[i] + 1:
            return False
    return True


@composite(namespaces=(), method=False)
def _front(dims: Ints, ndim: int) -> Ints:
    """Order of dims with the given ones first."""
    out: Ints = []
    out.extend(dims)
    for i in range(ndim):
        if not contains(dims, i):
            out.append(i)
    return out


@structured(kernel="index_block", namespaces=(), method=False, out=False, cpu_params=("indices",))
def index_block(self: Tensor, indices: Tensors, start: int) -> Tensor:
    """Entries of `self` where dims start, start + 1, … are replaced by equal-shaped indices.

    >>> torch.arange(3)[torch.tensor([2, 2])]
    tensor([2, 2])
    """
    shape = self.shape[:start]
    shape.extend(indices[0].shape)
    shape.extend(self.shape[start + len(indices) :])
    return empty(shape, like=self)


@index_block.vjp
def _(g, self, indices, start: int):
    out = g.new_zeros(self.shape, dtype=self.dtype)
    return index_block_put_(out, indices, start, g, True), None


@composite(namespaces=(), method=False)
def _block_in_front(ndim: int, start: int, k: int) -> Ints:
    """Order of the dims of a batch that has the `k` dims from `start` behind the batch.

    >>> torch.vmap(lambda x, i: x[:, i])(torch.ones(4, 2, 3), torch.zeros(4, 1).long()).shape
    torch.Size([4, 2, 1])
    """
    out: Ints = [0]
    out.extend(list(range(start, start + k)))
    out.extend(list(range(1, start)))
    out.extend(list(range(start + k, ndim)))
    return out


@composite(namespaces=(), method=False)
def _with_sample_index(indices: Tensors, batch: int) -> Tensors:
    """Indices with the number of the sample before them.

    >>> torch.vmap(lambda x, i: x[i])(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 1]))
    tensor([1, 4])
    """
    shape = [1] * indices[0].ndim
    shape[0] = batch
    out: Tensors = [arange(batch).view(shape).expand(indices[0].shape)]
    out.extend(indices)
    return out


@index_block.vmap
def _(self, indices, start, self_b, indices_b, batch):
    if not indices_b:
        return index_block(self, indices, start + 1)
    k = len(indices)
    if not self_b:
        return index_block(self, indices, start).movedim([start], [0])
    order = _block_in_front(self.ndim, start + 1, k)
    y = index_block(self.permute(order), _with_sample_index(indices, batch), 0)
    # From (batch, *indexed, before, after) to (batch, before, *indexed, after).
    n = indices[0].ndim - 1
    back: Ints = [0]
    back.extend(list(range(n + 1, n + 1 + start)))
    back.extend(list(range(1, n + 1)))
    back.extend(list(range(n + 1 + start, y.ndim)))
    return y.permute(back)


@composite(namespaces=(), method=False)
def _may_convert(self: Tensor, indices: OptTensors, values: Tensor) -> bool:
    """May values of another dtype be written? One number may, one entry through masks.

    >>> torch.ones(2).index_put((torch.tensor([True, False]),), torch.tensor([3]))
    tensor([3., 1.])
    """
    masked = values.numel() == 1
    for index in indices:
        masked = masked and (index is None or index.dtype == bool_)
    one = values.ndim == 0 or is_wrapped(values) or masked
    return one and (self.is_complex() or not values.is_complex())


@composite(namespaces=(), method=True)
def index_put_(
    self: Tensor, indices: OptTensors, values: Tensor, accumulate: bool = False
) -> Tensor:
    """Writes `values` (broadcast) to `self[indices]`, or adds them when `accumulate`.

    >>> torch.zeros(3).index_put_((torch.tensor([1]),), torch.tensor(5.0))
    tensor([0., 5., 0.])
    """
    full = _index_masks(self, indices)
    given: Tensors = []
    dims: Ints = []
    for k, index in enumerate(full):
        if index is not None:
            given.append(index)
            dims.append(k)
    source = values
    if values.dtype != self.dtype:
        check(
            _may_convert(self, indices, values),
            f"index_put: expected values of dtype {dtype_name(self.dtype)}, got "
            f"{dtype_name(values.dtype)}",
        )
        source = values.to(self.dtype)
    if source.ndim == 0 and source.device != self.device:
        source = source.to(device=self.device)
    if len(given) == 0:
        if accumulate:
            self.add_(source)
        else:
            self.copy_(source)
        return self
    block = _index_broadcast(given)
    target = self
    start = dims[0]
    if not _adjacent(dims):
        target = self.permute(_front(dims, self.ndim))
        start = 0
    shape = target.shape[:start]
    shape.extend(block[0].shape)
    shape.extend(target.shape[start + len(block) :])
    lead = source.ndim - len(shape)
    trimmed = source
    if lead > 0 and prod(source.shape[:lead]) == 1:
        trimmed = source.reshape(source.shape[lead:])
    check(
        trimmed.ndim <= len(shape),
        f"index_put: expected values that broadcast to {shape}, got shape {values.shape}",
    )
    for k in range(1, trimmed.ndim + 1):
        n = trimmed.size(-k)
        check(
            n == 1 or n == shape[len(shape) - k],
            f"index_put: expected values that broadcast to {shape}, got shape {values.shape}",
        )
    index_block_put_(target, block, start, trimmed.expand(shape), accumulate)
    return self


@composite(namespaces=("",), method=True)
def index_put(
    input: Tensor, indices: OptTensors, values: Tensor, accumulate: bool = False
) -> Tensor:
    """Copy of `input` with `values` written to (or added at) `indices`.

    >>> torch.zeros(3).index_put((torch.tensor([1]),), torch.tensor(5.0))
    tensor([0., 5., 0.])
    """
    return input.clone().index_put_(indices, values, accumulate)


@structured(
    kernel="index_block_put_", inplace_kernel=True, namespaces=(), method=False,
    cpu_params=("indices",),
)  # fmt: skip
def index_block_put_(
    self: Tensor, indices: Tensors, start: int, values: Tensor, accumulate: bool
) -> Tensor:
    """Writes or adds `values` at the places that index_block reads.

    >>> torch.zeros(2).index_put_((torch.tensor([0]),), torch.tensor(1.0))
    tensor([1., 0.])
    """


@index_block_put_.vjp
def _(g, indices, start: int, values, accumulate: bool):
    to_self = g
    if not accumulate:
        to_self = g.clone()
        index_block_put_(
            to_self, indices, start, zeros([], dtype=g.dtype).expand(values.shape), False
        )
    return to_self, None, index_block(g, indices, start)


@index_block_put_.vmap
def _(self, indices, start, values, accumulate, indices_b, values_b, batch):
    v = _in_front(values, values_b, batch)
    if not indices_b:
        index_block_put_(self, indices, start + 1, v, accumulate)
        return self
    k = len(indices)
    n = indices[0].ndim - 1
    target = self.permute(_block_in_front(self.ndim, start + 1, k))
    order: Ints = [0]
    order.extend(list(range(start + 1, start + 1 + n)))
    order.extend(list(range(1, start + 1)))
    order.extend(list(range(start + 1 + n, v.ndim)))
    index_block_put_(target, _with_sample_index(indices, batch), 0, v.permute(order), accumulate)
    return self


@composite(namespaces=(), method=False)
def _pad_corner(x: Tensor, shape: Ints) -> Tensor:
    """`x` in the corner of a zero tensor of a larger shape; no dims count as one of one entry."""
    if x.shape == shape:
        return x
    out = x.new_zeros(shape)
    if x.numel() == 0:
        return out
    corner = out
    for k in range(out.ndim):
        corner = corner.narrow(k, 0, x.size(k) if x.ndim > 0 else 1)
    corner.copy_(x if x.shape == corner.shape else x.reshape(corner.shape))
    return out


@composite(namespaces=(), method=False)
def _check_scatter(input: Tensor, dim: int, index: Tensor, src: Ints, op: str) -> None:
    """The rules on shapes that every scatter shares."""
    d = wrap_dim(dim, input.ndim)
    if index.numel() == 0:
        return
    check(
        index.dtype == int64 or index.dtype == int32,
        f"{op}(): Expected dtype int32/int64 for index",
    )
    check(
        max(index.ndim, 1) == max(input.ndim, 1) and max(index.ndim, 1) == max(len(src), 1),
        f"{op}: expected index of as many dims as self and src, got {index.ndim} for "
        f"{input.ndim} and {len(src)}",
    )
    for k in range(max(index.ndim, 1)):
        size = index.size(k) if index.ndim > 0 else 1
        check(
            (k == d or input.ndim == 0 or size <= input.size(k))
            and size <= (src[k] if len(src) > 0 else 1),
            f"{op}: expected index no larger than self {input.shape} apart from dim {d} and "
            f"than src {src}, got shape {index.shape}",
        )


@structured(kernel="gather", batch=True, out_apart=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on. Shape: that of `index`.

    >>> torch.tensor([[1, 2], [3, 4]]).gather(1, torch.tensor([[0], [1]]))
    tensor([[1],
            [4]])
    """
    d = wrap_dim(dim, input.ndim)
    if index.numel() > 0:
        check(
            index.dtype == int64 or index.dtype == int32,
            "gather(): Expected dtype int32/int64 for index",
        )
        check(
            max(index.ndim, 1) == max(input.ndim, 1),
            "Index tensor must have the same number of dimensions as input tensor",
        )
        for k in range(index.ndim):
            check(
                k == d or input.ndim == 0 or index.size(k) <= input.size(k),
                f"gather: expected index no larger than input {input.shape} apart from dim {d}, "
                f"got shape {index.shape}",
            )
    return empty(index.shape, like=input)


@gather.vjp
def _(g, input, dim: int, index):
    return zeros(input.shape, dtype=input.dtype).scatter_add(dim, index, g), None


@structured(kernel="scatter", inplace=True, own_memory=True, batch=True)
def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Copy of `input` with out[index[i][j]][j] = src[i][j] (for dim 0).

    >>> torch.zeros(3).scatter(0, torch.tensor([1]), torch.tensor([5.0]))
    tensor([0., 5., 0.])
    """
    _check_scatter(input, dim, index, src.shape, "scatter")
    check(
        src.dtype == input.dtype,
        "scatter(): Expected self.dtype to be equal to src.dtype",
    )
    return empty(input.shape, like=input)


@scatter.vjp
def _(g, dim: int, index, src):
    return g.scatter(dim, index, 0), None, _pad_corner(g.gather(dim, index), src.shape)


@scatter.overload(kernel="scatter_value", inplace=True, own_memory=True, batch=True)
def scatter(input: Tensor, dim: int, index: Tensor, value: Number) -> Tensor:
    """Copy of `input` with `value` at the places of `index`.

    >>> torch.zeros(3).scatter(0, torch.tensor([1]), 5.0)
    tensor([0., 5., 0.])
    """
    _check_scatter(input, dim, index, index.shape, "scatter")
    _check_fits("scatter", "value", value, input.dtype)
    return empty(input.shape, like=input)


@scatter.vjp
def _(g, dim: int, index):
    return g.scatter(dim, index, 0), None


@scatter.overload(kind="composite", inplace=True, out=True)
def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """Copy of `input` with the entries of `src` added ("add") or multiplied ("multiply").

    >>> torch.ones(2).scatter(0, torch.tensor([1]), torch.tensor([5.0]), reduce="add")
    tensor([1., 6.])
    """
    check(
        reduce == "add" or reduce == "multiply",
        f"reduce argument must be either add or multiply, got {reduce}",
    )
    return _scatter_reduce(input, dim, index, src, "sum" if reduce == "add" else "prod", True)


@scatter.overload(kind="composite", inplace=True, out=True)
def scatter(input: Tensor, dim: int, index: Tensor, value: Number, *, reduce: str) -> Tensor:
    """Copy of `input` with `value` added or multiplied at the places of `index`.

    >>> torch.ones(2).scatter(0, torch.tensor([1]), 5.0, reduce="multiply")
    tensor([1., 5.])
    """
    return scatter(input, dim, index, full(index.shape, value, dtype=input.dtype), reduce=reduce)


@composite(inplace=True, out=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Entries of `src` that meet at one place are reduced: sum, prod, mean, amax, amin.

    >>> torch.zeros(2).scatter_reduce(0, torch.tensor([0, 0]), torch.ones(2), "sum")
    tensor([2., 0.])
    """
    check(
        reduce == "sum"
        or reduce == "prod"
        or reduce == "mean"
        or reduce == "amax"
        or reduce == "amin",
        f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.",
    )
    return _scatter_reduce(input, dim, index, src, reduce, include_self)


@structured(kernel="scatter_reduce", namespaces=(), method=False, out=False, batch=True)
def _scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    """The kernel of scatter_reduce."""
    _check_scatter(input, dim, index, src.shape, "scatter_reduce")
    check(
        src.dtype == input.dtype, "scatter_reduce(): Expected self.dtype to be equal to src.dtype"
    )
    return empty(input.shape, like=input)


@_scatter_reduce.vjp
def _(g, input, dim: int, index, src, result, reduce: str, include_self: bool):
    to_input = g
    to_src = g
    if index.numel() == 0:
        return g, None, src.new_zeros(src.shape)
    if reduce == "sum":
        to_src = g.gather(dim, index)
    elif reduce == "mean":
        ones_self = (
            ones(input.shape, dtype=g.dtype) if include_self else zeros(input.shape, dtype=g.dtype)
        )
        count = ones_self.scatter_add(dim, index, ones(index.shape, dtype=g.dtype))
        count = count.masked_fill(count == 0, 1)
        to_input = g / count
        to_src = (g / count).gather(dim, index)
    elif reduce == "prod":
        base = input if include_self else ones(input.shape, dtype=input.dtype)
        masked_self = base.masked_fill(base == 0, 1)
        masked_self_result = _scatter_reduce(masked_self, dim, index, src, "prod", include_self)
        to_input = (g * masked_self_result) / masked_self
        zero_self = zeros(input.shape, dtype=g.dtype)
        src_zero = src == 0
        hits = src_zero.to(g.dtype)
        zeros_met = zero_self.scatter_add(
            dim, index, hits if hits.shape == index.shape else _corner(hits, index.shape)
        ).gather(dim, index)
        part = _corner(src, index.shape)
        part_zero = part == 0
        single_zero = part_zero & (zeros_met == 1)
        masked_src = part.masked_fill(single_zero, 1)
        masked_src_result = _scatter_reduce(input, dim, index, masked_src, "prod", include_self)
        usual = (g * result).gather(dim, index) / part.masked_fill(part_zero, 1)
        to_src = where(single_zero, (g * masked_src_result).gather(dim, index), usual)
        to_src = to_src.masked_fill(part_zero & (zeros_met > 1), 0)
    else:
        value = result.gather(dim, index)
        part = _corner(src, index.shape)
        src_hit = (part == value).to(g.dtype)
        self_hit = (input == result).to(g.dtype)
        if not include_self:
            self_hit = self_hit.scatter(dim, index, 0)
        n = self_hit.scatter_add(dim, index, src_hit)
        shared = g / n.masked_fill(n == 0, 1)
        to_input = self_hit * shared
        to_src = src_hit * shared.gather(dim, index)
    if not include_self:
        to_input = to_input.scatter(dim, index, 0)
    return to_input, None, _pad_corner(to_src, src.shape)


@composite(namespaces=(), method=False)
def _corner(x: Tensor, shape: Ints) -> Tensor:
    """The corner of `x` of a smaller shape; no dims count as one of one entry."""
    out = x
    for k in range(x.ndim):
        out = out.narrow(k, 0, shape[k] if len(shape) > 0 else 1)
    return out if out.shape == shape else out.reshape(shape)


@structured(kernel="scatter_add", inplace=True, own_memory=True, batch=True)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Copy of `input` with out[index[i][j]][j] += src[i][j] (for dim 0).

    >>> torch.zeros(2).scatter_add(0, torch.tensor([1, 1]), torch.ones(2))
    tensor([0., 2.])
    """
    _check_scatter(input, dim, index, src.shape, "scatter_add")
    check(src.dtype == input.dtype, "scatter(): Expected self.dtype to be equal to src.dtype")
    return empty(input.shape, like=input)


@scatter_add.vjp
def _(g, dim: int, index, src):
    return g, None, _pad_corner(g.gather(dim, index), src.shape)


@structured(kernel="index_select", batch=("input",), out_apart=True)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Entries `index` of dim `dim`, as a copy.

    >>> torch.arange(3).index_select(0, torch.tensor([2, 0]))
    tensor([2, 0])
    """
    check_index(index.ndim <= 1, "index_select(): Index is supposed to be a vector")
    check(
        index.dtype == int64 or index.dtype == int32,
        "index_select(): Expected dtype int32 or int64 for index",
    )
    d = wrap_dim(dim, input.ndim)
    if input.ndim == 0:
        check(index.numel() == 1, "index_select(): Index to scalar can have only 1 value")
        return empty([], like=input)
    shape = input.shape
    shape[d] = index.numel()
    return empty(shape, like=input)


@index_select.vjp
def _(g, input, dim: int, index):
    return zeros(input.shape, dtype=input.dtype).index_add(dim, index, g), None


@index_select.vmap
def _(input, dim, index, input_b, index_b, batch):
    x = _in_front(input, input_b, batch)
    d = wrap_dim(dim, x.ndim - 1) + 1
    if x.ndim == 1:
        return x.unsqueeze(1).gather(1, index.reshape([batch, -1])).squeeze([1])
    return x.gather(d, _index_like(index, index_b, x, d))


@structured(kernel="index_add", inplace=True, own_memory=True, batch=("input", "source"))
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1
) -> Tensor:
    """Copy of `input` with alpha * source added to the entries `index` of dim `dim`.

    >>> torch.zeros(2).index_add(0, torch.tensor([1, 1]), torch.ones(2))
    tensor([0., 2.])
    """
    _check_index_source(input, dim, index, source, "index_add")
    _check_fits("index_add", "alpha", alpha, input.dtype)
    return empty(input.shape, like=input)


@index_add.vjp
def _(g, dim: int, index, source, alpha: Number):
    to_source = g.index_select(dim, index).reshape(source.shape) * alpha
    return g, None, to_source


@index_add.vmap
def _(input, dim, index, source, alpha, input_b, index_b, source_b, batch):
    x = _in_front(input, input_b, batch)
    y = _in_front(source, source_b, batch)
    d = wrap_dim(dim, x.ndim - 1) + 1
    scaled = y if alpha == 1 else y * wrapped(alpha)
    return x.scatter_add(d, _index_like(index, index_b, y, d), scaled)


@structured(
    kernel="index_copy", inplace=True, own_memory=True, autocast="widest",
    batch=("input", "source"),
)  # fmt: skip
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Copy of `input` with entries `index` of dim `dim` replaced by those of `source`.

    >>> torch.zeros(2).index_copy(0, torch.tensor([1]), torch.ones(1))
    tensor([0., 1.])
    """
    _check_index_source(input, dim, index, source, "index_copy")
    return empty(input.shape, like=input)


@index_copy.vjp
def _(g, dim: int, index, source):
    return g.index_fill(dim, index, 0), None, g.index_select(dim, index).reshape(source.shape)


@index_copy.vmap
def _(input, dim, index, source, input_b, index_b, source_b, batch):
    x = _in_front(input, input_b, batch)
    y = _in_front(source, source_b, batch)
    d = wrap_dim(dim, x.ndim - 1) + 1
    return x.scatter(d, _index_like(index, index_b, y, d), y)


@composite(namespaces=(), method=False)
def _check_index_source(input: Tensor, dim: int, index: Tensor, source: Tensor, op: str) -> None:
    """What index_add and index_copy ask of their arguments."""
    d = wrap_dim(dim, input.ndim)
    check_index(
        index.ndim <= 1, f"{op}(): Index is supposed to be a vector, but got dim: {index.ndim}"
    )
    check(
        index.dtype == int64 or (index.dtype == int32 and op != "index_copy"),
        f"{op}(): Expected dtype int64 for index but got: {index.dtype}",
    )
    check(
        input.dtype == source.dtype,
        f"{op}(): self ({input.dtype}) and source ({source.dtype}) must have the same dtype",
    )
    if source.ndim == 0 or input.ndim == 0:
        check(
            input.ndim <= 1 and source.ndim <= 1,
            f"{op}: expected source of the shape of input {input.shape} apart from dim {d}, got "
            f"{source.shape}",
        )
        check(
            index.numel() == source.numel(),
            f"{op}: expected source of {index.numel()} elements, as many as index, got "
            f"{source.numel()}",
        )
        return
    check(
        source.ndim == input.ndim,
        f"{op}: expected source of {input.ndim} dims, got shape {source.shape}",
    )
    check(
        index.numel() == source.size(d),
        f"{op}: expected source of size {index.numel()}, as many as index, in dim {d}, got "
        f"{source.size(d)}",
    )
    for k in range(input.ndim):
        check(
            k == d or input.size(k) == source.size(k),
            f"{op}: expected source of shape {input.shape} apart from dim {d}, got {source.shape}",
        )


@structured(kernel="index_fill", inplace=True, own_memory=True, batch=("input",))
def index_fill(input: Tensor, dim: int, index: Tensor, value: Number) -> Tensor:
    """Copy of `input` with the entries `index` of dim `dim` set to `value`.

    >>> torch.zeros(2).index_fill(0, torch.tensor([1]), 3.0)
    tensor([0., 3.])
    """
    wrap_dim(dim, input.ndim)
    check_index(index.dtype == int64, "index_fill_(): Expected dtype int64 for index.")
    check(
        not value.is_complex() or input.is_complex(),
        "index_fill_(): Converting complex Scalar to non-complex type is not supported",
    )
    _check_fits("index_fill", "value", value, input.dtype)
    check_index(index.ndim <= 1, "Index is supposed to be a vector")
    return empty_as(input)


@index_fill.vjp
def _(g, dim: int, index):
    return g.index_fill(dim, index, 0), None


@index_fill.vmap
def _(input, dim, index, value, input_b, index_b, batch):
    x = _in_front(input, input_b, batch)
    d = wrap_dim(dim, x.ndim - 1) + 1
    return x.scatter(d, _index_like(index, index_b, x, d), value)


@index_fill.overload(kernel="index_fill_tensor", inplace=True, own_memory=True, batch=("input",))
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    """The value given as a 0-d tensor.

    >>> torch.zeros(2).index_fill(0, torch.tensor([1]), torch.tensor(3.0))
    tensor([0., 3.])
    """
    wrap_dim(dim, input.ndim)
    check_index(index.dtype == int64, "index_fill_(): Expected dtype int64 for index.")
    check(
        value.ndim == 0,
        f"Only supports 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)",
    )
    check_index(index.ndim <= 1, "Index is supposed to be a vector")
    return empty_as(input)


@index_fill.vjp
def _(g, dim: int, index, value):
    # A place that is named twice is filled once.
    places, _, _ = _unique(index.reshape([-1]), None, True, False, False)
    to_value = g.index_select(dim, places).sum().to(value.dtype)
    return g.index_fill(dim, index, 0), None, to_value


@index_fill.vmap
def _(input, dim, index, value, input_b, index_b, value_b, batch):
    x = _in_front(input, input_b, batch)
    d = wrap_dim(dim, x.ndim - 1) + 1
    chosen = zeros(x.shape, dtype=bool_).scatter(d, _index_like(index, index_b, x, d), 1)
    return where(chosen, _aligned(value, value_b, x.ndim - 1).to(x.dtype), x)


@structured(kernel="masked_select", dynamic=True, out_apart=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Entries where `mask` (broadcast with `input`) is true. Shape: (count,).

    >>> torch.arange(3).masked_select(torch.tensor([True, False, True]))
    tensor([0, 2])
    """
    check(mask.dtype == bool_, "masked_select: expected BoolTensor for mask")
    broadcast_shapes(input.shape, mask.shape)


@masked_select.vjp
def _(g, input, mask):
    shape = broadcast_shapes(input.shape, mask.shape)
    full = zeros(shape, dtype=g.dtype).masked_scatter(mask.expand(shape), g)
    return sum_to(full, input.shape), None


@structured(kernel="masked_scatter", inplace=True, out=False)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Copy of `input` with the entries under `mask` taken from `source`, in order.

    >>> torch.zeros(2).masked_scatter(torch.tensor([False, True]), torch.tensor([7.0]))
    tensor([0., 7.])
    """
    check(
        mask.dtype == bool_,
        f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}",
    )
    check(
        input.dtype == source.dtype,
        f"masked_scatter: expected source of dtype {dtype_name(input.dtype)}, got "
        f"{dtype_name(source.dtype)}",
    )
    return empty(broadcast_shapes(input.shape, mask.shape), like=input)


@masked_scatter.vjp
def _(g, input, mask, source):
    to_input = sum_to(g.masked_fill(mask, 0), input.shape)
    picked = g.masked_select(mask)
    rest = zeros([source.numel() - picked.numel()], dtype=g.dtype)
    return to_input, None, cat([picked, rest], 0).view(source.shape)


@structured(kernel="take", out_apart=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """Entries of the flattened input. Shape: that of `index`.

    >>> torch.tensor([[1, 2], [3, 4]]).take(torch.tensor([0, 3]))
    tensor([1, 4])
    """
    check(
        index.dtype == int64,
        f"take(): Expected a long tensor for index, but got {scalar_type_name(index.dtype)}",
    )
    check_index(
        input.numel() > 0 or index.numel() == 0, "take(): tried to take from an empty tensor"
    )
    return empty(index.shape, like=input)


@take.vjp
def _(g, input, index):
    return zeros(input.shape, dtype=input.dtype).put(index, g, True), None


@take.vmap
def _(input, index, input_b, index_b, batch):
    if not input_b:
        return input.take(index)
    flat = input.reshape([batch, -1])
    at = _in_front(index, index_b, batch).reshape([batch, -1])
    return flat.gather(1, where(at < 0, at + flat.size(1), at)).reshape(
        index.shape if index_b else [batch] + index.shape
    )


@structured(kernel="put", inplace=True, out=False)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Copy of `input`, seen flat, with `source` written to (or added at) the places `index`.

    >>> torch.zeros(3).put(torch.tensor([1]), torch.tensor([5.0]))
    tensor([0., 5., 0.])
    """
    check(
        index.dtype == int64,
        f"put_(): Expected a long tensor for index, but got {scalar_type_name(index.dtype)}",
    )
    check(
        source.dtype == input.dtype,
        f"put_: expected source of dtype {dtype_name(input.dtype)}, got {dtype_name(source.dtype)}",
    )
    check(
        index.numel() == source.numel(),
        f"put_: expected source of {index.numel()} elements, as many as index, got "
        f"{source.numel()}",
    )
    check_index(
        input.numel() > 0 or index.numel() == 0,
        "put_(): tried to put elements into an empty tensor",
    )
    return empty_as(input)


@put.vjp
def _(g, index, source, accumulate: bool):
    to_input = g
    if not accumulate:
        to_input = g.put(index, zeros(source.shape, dtype=g.dtype), False)
    return to_input, None, g.take(index).reshape(source.shape)


@composite(out=True, out_apart=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather after broadcasting `input` and `indices` except along `dim`; flat without one.

    >>> torch.tensor([[1, 2]]).take_along_dim(torch.tensor([[1]]), 1)
    tensor([[2]])
    """
    check(
        indices.dtype == int64,
        f"take_along_dim: expected indices of dtype int64, got {dtype_name(indices.dtype)}",
    )
    if dim is None:
        return input.reshape([-1]).gather(0, indices.reshape([-1]))
    check(
        input.ndim == indices.ndim,
        f"take_along_dim: expected indices of {input.ndim} dims, as many as input, got "
        f"{indices.ndim}",
    )
    d = wrap_dim(dim, input.ndim)
    a = input.shape
    b = indices.shape
    a[d] = 1
    b[d] = 1
    shape = broadcast_shapes(a, b)
    left = list(shape)
    right = list(shape)
    left[d] = input.size(d)
    right[d] = indices.size(d)
    places = where(indices < 0, indices + input.size(d), indices)
    return input.expand(left).gather(d, places.expand(right))


@structured(kernel="nonzero", dynamic=True, differentiable=False, out=False)
def nonzero(input: Tensor) -> Tensor:
    """Places of entries that are not zero, in row-major order. Shape: (count, ndim), int64.

    >>> torch.nonzero(torch.tensor([0, 3]))
    tensor([[1]])
    """


@composite(out=True, sizes=("size",))
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` rows of `nonzero`, filled up with `fill_value`. Shape: (size, ndim).

    >>> torch.nonzero_static(torch.tensor([0, 3]), size=2)
    tensor([[ 1],
            [-1]])
    """
    check(size >= 0, f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    places = nonzero(input)
    n = places.size(0)
    if n >= size:
        return places.narrow(0, 0, size).clone()
    return cat([places, full([size - n, input.ndim], fill_value, dtype=int64)], 0)


@composite(inplace=True, out=True)
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Slices of `source` that meet at one entry `index` of dim `dim` are reduced: prod, mean,
    amax, amin.

    >>> torch.ones(2).index_reduce(0, torch.tensor([1, 1]), torch.tensor([3.0, 5.0]), "prod")
    tensor([ 1., 15.])
    """
    check(
        reduce == "prod" or reduce == "mean" or reduce == "amax" or reduce == "amin",
        f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.",
    )
    _check_index_source(input, dim, index, source, "index_reduce")
    shape: Ints = [1 for n in source.shape]
    if source.ndim > 0:
        shape[wrap_dim(dim, source.ndim)] = index.numel()
    places = index.reshape(shape).expand(source.shape)
    return _scatter_reduce(input, dim, places, source, reduce, include_self)


@composite(method=False)
def unravel_index(indices: Tensor, shape: Ints1) -> Tensors:
    """Coordinates, one tensor per dim, of places in a flattened tensor of shape `shape`.

    >>> torch.unravel_index(torch.tensor([3]), (2, 2))
    (tensor([1]), tensor([1]))
    """
    check_type(
        indices.is_integral() and indices.dtype != bool_,
        f"expected 'indices' to be integer dtype, but got {indices.dtype}",
    )
    for n in shape:
        check_value(n >= 0, f"'shape' cannot have negative values, but got {shape}")
    out: Tensors = []
    step = prod(shape)
    for n in shape:
        step = step // n if n > 0 else 0
        out.append(indices.floor_divide(step).remainder(n) if step > 0 else indices.clone())
    return out


@composite()
def argwhere(input: Tensor) -> Tensor:
    """Places of entries that are not zero.

    >>> torch.argwhere(torch.tensor([0, 3]))
    tensor([[1]])
    """
    return nonzero(input)
