"""Reading and writing at computed places: advanced indexing, gather and scatter, masks.

Kernels check every index. `index_block` is the primitive of advanced indexing: k index tensors of
one shape take the places of k adjacent dims; `index` brings every other form to it.
"""

from __future__ import annotations

from flambeau.ops._lang import *


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
                    f"The shape of the mask {index.shape} at index {k} does not match the shape of "
                    f"the indexed tensor {self.shape} at index {len(out) + k}",
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
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                f"{indices[0].shape}, {x.shape}",
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
        f"shape mismatch: value tensor of shape {values.shape} cannot be broadcast to indexing "
        f"result of shape {shape}",
    )
    for k in range(1, trimmed.ndim + 1):
        n = trimmed.size(-k)
        check(
            n == 1 or n == shape[len(shape) - k],
            f"shape mismatch: value tensor of shape {values.shape} cannot be broadcast to indexing "
            f"result of shape {shape}",
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
