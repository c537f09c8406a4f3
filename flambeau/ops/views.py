"""Views: other geometry over the same memory. Every primitive view ends in `strided(...)`.

Rules for shape and strides only; no view copies. `reshape` and its kin are composed of these.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@view(sizes=("storage_offset",))
def as_strided(
    input: Tensor, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Tensor:
    """View of any geometry over the memory of `input`.

    >>> torch.arange(4).as_strided((2, 2), (1, 1))
    tensor([[0, 1],
            [1, 2]])
    """
    check(
        len(size) == len(stride),
        f"as_strided: expected as many strides as sizes, got {len(stride)} and {len(size)}",
    )
    check(all(n >= 0 for n in size), f"as_strided: expected sizes of 0 or more, got {size}")
    check(all(n >= 0 for n in stride), f"as_strided: expected strides of 0 or more, got {stride}")
    return strided(input, size, stride, input.offset if storage_offset is None else storage_offset)


@as_strided.vjp
def _(g, input, size, stride, storage_offset):
    offset = input.offset if storage_offset is None else storage_offset
    return as_strided_backward(g, input.shape, input.strides, input.offset, size, stride, offset)


@as_strided.vmap
def _(input, size, stride, storage_offset, batch):
    return input.as_strided([batch] + size, [input.stride(0)] + stride, storage_offset)


@structured(kernel="as_strided_backward", method=False, function=False, out=False, linear=True)
def as_strided_backward(
    grad: Tensor,
    input_size: Ints,
    input_stride: Ints,
    input_offset: int,
    size: Ints,
    stride: Ints,
    offset: int,
) -> Tensor:
    """Cotangent of the input of `as_strided`: sums what the elements of the view received.

    >>> torch.ones(2).requires_grad_().as_strided((2, 2), (0, 1)).sum().backward()
    """
    return empty(input_size, dtype=grad.dtype, like=grad)


@as_strided_backward.vjp
def _(g, input_size, input_stride, input_offset, size, stride, offset):
    # Linear in the cotangent: its transpose reads the same elements.
    source = g.new_empty_strided(input_size, input_stride).copy_(g)
    return source.as_strided(size, stride, offset - input_offset)


@as_strided_backward.vmap
def _(grad, input_size, input_stride, input_offset, size, stride, offset, batch):
    lead = offset - input_offset
    step = max(_extent(input_size, input_stride), lead + _extent(size, stride))
    return as_strided_backward(
        grad,
        [batch] + input_size,
        [step] + input_stride,
        input_offset,
        [batch] + size,
        [step] + stride,
        offset,
    )


@view(batch=True)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """View with two dimensions swapped.

    >>> torch.ones(2, 3).transpose(0, 1).shape
    torch.Size([3, 2])
    """
    i = wrap_dim(dim0, input.ndim)
    j = wrap_dim(dim1, input.ndim)
    shape = list(input.shape)
    stride = list(input.strides)
    if input.ndim > 0:
        shape[i], shape[j] = shape[j], shape[i]
        stride[i], stride[j] = stride[j], stride[i]
    return strided(input, shape, stride, input.offset)


@transpose.vjp
def _(g, dim0, dim1):
    return g.transpose(dim0, dim1)


@view
def permute(input: Tensor, dims: Ints) -> Tensor:
    """View with the dimensions in another order.

    >>> torch.ones(2, 3, 4).permute(2, 0, 1).shape
    torch.Size([4, 2, 3])
    """
    check(
        len(dims) == input.ndim,
        "permute: number of dimensions in the tensor input does not match the length of the "
        f"desired ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) "
        f"= {len(dims)}",
    )
    order = wrap_dims(dims, input.ndim)
    shape = [input.shape[d] for d in order]
    return strided(input, shape, [input.strides[d] for d in order], input.offset)


@permute.vjp
def _(g, dims):
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d] = i
    return g.permute(inverse)


@permute.vmap
def _(input, dims):
    return input.permute([0] + [wrap_dim(d, input.ndim - 1) + 1 for d in dims])


@view
def expand(input: Tensor, size: Ints, *, implicit: bool = False) -> Tensor:
    """View with dimensions of size 1 repeated, and new ones in front; -1 keeps a size.

    >>> torch.ones(3, 1).expand(2, 3, 4).shape
    torch.Size([2, 3, 4])
    """
    lead = len(size) - input.ndim
    check(
        lead >= 0,
        f"expand({input.shape}, size={size}): the number of sizes provided ({len(size)}) must be "
        f"greater or equal to the number of dimensions in the tensor ({input.ndim})",
    )
    shape: Ints = []
    stride: Ints = []
    for i, n in enumerate(size):
        if i < lead:
            check(
                n >= 0,
                f"expand: The expanded size of the tensor ({n}) isn't allowed in a leading, "
                f"non-existing dimension {i}",
            )
            shape.append(n)
            stride.append(0)
        else:
            have = input.shape[i - lead]
            want = have if n == -1 else n
            check(
                have == want or have == 1,
                f"expand: The expanded size of the tensor ({want}) must match the existing size "
                f"({have}) at non-singleton dimension {i}.  Target sizes: {size}.  Tensor sizes: "
                f"{input.shape}",
            )
            shape.append(want)
            stride.append(input.strides[i - lead] if have == want else 0)
    if input.ndim > 0:
        # A new dim of size 1 is not repeated: its stride is that of a dim in front of the next.
        step = input.shape[0] * input.strides[0]
        if lead > 0 and shape[lead] != input.shape[0]:
            step = 0
        for k in range(lead):
            i = lead - 1 - k
            if shape[i] != 1:
                step = 0
            stride[i] = step
    return strided(input, shape, stride, input.offset)


@expand.vjp
def _(g, input):
    return sum_to(g, input.shape)


@expand.vmap
def _(input, size, implicit, batch):
    return _aligned(input, True, len(size)).expand([batch] + size, implicit=implicit)


@view(name="view")
def view_(input: Tensor, size: Ints) -> Tensor:
    """View of another shape with the same number of elements; one size may be -1.

    >>> torch.arange(6).view(2, -1).shape
    torch.Size([2, 3])
    """
    shape = infer_size(size, input.numel())
    stride = view_strides(input.shape, input.strides, shape)
    check(
        stride is not None,
        "view size is not compatible with input tensor's size and stride (at least one dimension "
        "spans across two contiguous subspaces). Use .reshape(...) instead. Asked for was "
        f"{shape} of size {input.shape} and stride {input.strides}",
    )
    return strided(input, shape, stride, input.offset)


@view_.vjp
def _(g, input):
    return g.reshape(input.shape)


@view_.vmap
def _(input, size, batch):
    return input.view([batch] + infer_size(size, prod(input.shape[1:])))


@view(unrelated=True, method=False)
def _unsafe_view(input: Tensor, size: Ints) -> Tensor:
    """A new tensor over the memory of `input`, which nobody else may use: no view of it.

    >>> torch.arange(6).view(2, 3).t().reshape(6)._is_view()
    False
    """
    shape = infer_size(size, input.numel())
    stride = view_strides(input.shape, input.strides, shape)
    check(
        stride is not None,
        f"_unsafe_view: size {shape} is not compatible with the strides {input.strides} of input "
        f"of shape {input.shape}",
    )
    return strided(input, shape, stride, input.offset)


@_unsafe_view.vjp
def _(g, input):
    return g.reshape(input.shape)


@_unsafe_view.vmap
def _(input, size, batch):
    return _unsafe_view(input, [batch] + infer_size(size, prod(input.shape[1:])))


@view(batch=True, sizes=("index",))
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """View of one position along a dimension, which disappears.

    >>> torch.arange(6).view(2, 3).select(0, 1)
    tensor([3, 4, 5])
    """
    check_index(input.ndim > 0, "select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, input.ndim)
    n = input.shape[d]
    check_index(
        -n <= index < n,
        f"select(): index {index} out of range for tensor of size {input.shape} at dimension {d}",
    )
    i = index + n if index < 0 else index
    offset = input.offset + i * input.strides[d]
    shape = input.shape[:d] + input.shape[d + 1 :]
    return strided(input, shape, input.strides[:d] + input.strides[d + 1 :], offset)


@select.vjp
def _(g, input, dim, index):
    out = g.new_zeros(input.shape)
    out.select(dim, index).copy_(g)
    return out


@composite(namespaces=(), method=False)
def _step_among(step: int, n: int) -> int:
    """A step over n positions; a huge one as the least that leaves them: no size overflows."""
    return step if step < 2147483648 else min(step, n + 1)


@view(batch=True, sizes=("start", "end", "step"), layout="free")
def slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """View of a range of positions along a dimension, as Python slices do.

    >>> torch.arange(6).slice(0, 1, None, 2)
    tensor([1, 3, 5])
    """
    check(input.ndim > 0, "slice: cannot slice a 0-dim tensor")
    check(step > 0, f"slice: expected step greater than 0, got {step}")
    d = wrap_dim(dim, input.ndim)
    n = input.shape[d]
    first = 0 if start is None else start
    last = n if end is None else end
    first = min(max(first + n if first < 0 else first, 0), n)
    last = min(max(last + n if last < 0 else last, first), n)
    shape = list(input.shape)
    stride = list(input.strides)
    offset = input.offset + first * stride[d]
    by = _step_among(step, n)
    shape[d] = (last - first - 1) // by + 1
    stride[d] *= by
    return strided(input, shape, stride, offset)


@slice.vjp
def _(g, input, dim, start, end, step):
    out = g.new_zeros(input.shape)
    out.slice(dim, start, end, step).copy_(g)
    return out


@view
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """View with a dimension of size 1 put in.

    >>> torch.ones(2, 3).unsqueeze(-1).shape
    torch.Size([2, 3, 1])
    """
    d = wrap_dim(dim, input.ndim + 1)
    shape = list(input.shape)
    stride = list(input.strides)
    step = 1 if d == input.ndim else shape[d] * stride[d]
    shape.insert(d, 1)
    stride.insert(d, step)
    return strided(input, shape, stride, input.offset)


@unsqueeze.vjp
def _(g, input):
    return g.reshape(input.shape)


@unsqueeze.vmap
def _(input, dim):
    return input.unsqueeze(wrap_dim(dim, input.ndim) + 1)


@view
def squeeze(input: Tensor) -> Tensor:
    """View without the dimensions of size 1.

    >>> torch.ones(2, 1, 3, 1).squeeze().shape
    torch.Size([2, 3])
    """
    keep = [d for d in range(input.ndim) if input.shape[d] != 1]
    shape = [input.shape[d] for d in keep]
    return strided(input, shape, [input.strides[d] for d in keep], input.offset)


@squeeze.vjp
def _(g, input):
    return g.reshape(input.shape)


@squeeze.vmap
def _(input):
    return input.squeeze([d for d in range(1, input.ndim) if input.shape[d] == 1])


@squeeze.overload(batch=True)
def squeeze(input: Tensor, dim: Ints) -> Tensor:
    """View without those of the given dimensions that have size 1.

    >>> torch.ones(2, 1, 3, 1).squeeze(1).shape
    torch.Size([2, 3, 1])
    """
    dims = wrap_dims(dim, input.ndim)
    keep = [d for d in range(input.ndim) if input.shape[d] != 1 or d not in dims]
    shape = [input.shape[d] for d in keep]
    return strided(input, shape, [input.strides[d] for d in keep], input.offset)


@squeeze.vjp
def _(g, input):
    return g.reshape(input.shape)


@composite
def reshape(input: Tensor, shape: Ints) -> Tensor:
    """Tensor of another shape with the same elements: a view where the strides allow, else a copy.

    >>> torch.arange(6).view(2, 3).transpose(0, 1).reshape(6)
    tensor([0, 3, 1, 4, 2, 5])
    """
    size = infer_size(shape, input.numel())
    if view_strides(input.shape, input.strides, size) is None:
        return _unsafe_view(input.clone(memory_format=contiguous_format), size)
    return input.view(size)
