"""Operations that make tensors: empty, filled, sequences, identity, windows.

Shapes come first (`factory=True`: the binding also takes the sizes one by one, and the common
factory keywords layout, device, pin_memory, requires_grad). Values are the kernels' business.
"""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_fits


@structured(kernel="nothing", factory=True, method=False, differentiable=False)
def empty(
    size: Ints,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Tensor of shape `size` with whatever its memory held.

    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """
    return empty(size, dtype=dtype, device=device, memory_format=memory_format)


@structured(kernel="nothing", factory=True, method=False, differentiable=False, out=False)
def empty_strided(
    size: Ints, stride: Ints, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Uninitialised tensor of the given sizes and strides, over just the memory they reach.

    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return empty_strided_as(size, stride, dtype=dtype, device=device)


@structured(kernel="nothing", namespaces=(), method=False, differentiable=False, out=False)
def _empty_samples(
    size: Ints, dtype: DType | None, device: Device | None, generator: Generator | None
) -> Tensor:
    """Memory that random numbers will fill: inside vmap, different ones for each sample have room.

    >>> torch.rand(2).shape
    torch.Size([2])
    """
    return empty(size, dtype=dtype, device=device)


@_empty_samples.vmap
def _(size, dtype, device, generator, batch):
    return _empty_samples([batch] + size, dtype, device, generator)


@composite(factory=True, method=False)
def empty_permuted(
    size: Ints, physical_layout: Ints, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Uninitialised dense tensor whose dims follow one another in memory as listed, outermost
    first.

    >>> torch.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    n = len(size)
    check(
        len(physical_layout) == n,
        f"Number of dimensions in size does not match the length of the physical_layout; i.e. "
        f"len(size) = {n} is not equal to len(physical_layout) = {len(physical_layout)}",
    )
    stride: Ints = [0 for d in size]
    order: Ints = []
    step = 1
    for d in physical_layout[::-1]:
        check(
            0 <= d and d < n,
            f"Dimension out of range (expected to be between 0 and {n - 1}, but got {d}).",
        )
        check(not contains(order, d), "Duplicate dim not allowed")
        order.append(d)
        stride[d] = step
        step *= max(size[d], 1)
    return empty_strided(size, stride, dtype=dtype, device=device)


@structured(kernel="fill_value", element="given", factory=True, method=False, differentiable=False)
def full(
    size: Ints, fill_value: Number, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Tensor of shape `size` filled with `fill_value`, whose kind decides the default dtype.

    >>> torch.full((2,), 7)
    tensor([7, 7])
    """
    d = dtype if dtype is not None else dtype_of(fill_value)
    _check_fits("full", "fill_value", fill_value, d)
    return empty(size, dtype=d, device=device)


@structured(kernel="fill_zeros", element="zero", factory=True, method=False, differentiable=False)
def zeros(size: Ints, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """Tensor of shape `size` filled with zeros.

    >>> torch.zeros(2)
    tensor([0., 0.])
    """
    return empty(size, dtype=dtype, device=device)


@composite(factory=True, method=False, out=True)
def ones(size: Ints, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """Tensor of shape `size` filled with ones.

    >>> torch.ones(2)
    tensor([1., 1.])
    """
    d = dtype if dtype is not None else default_dtype()
    return full(size, 1, dtype=d, device=device)


@structured(
    kernel="nothing", like_factory=True, method=False, differentiable=False, out=False, batch=True
)
def empty_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Uninitialised tensor with the shape of `input`, and its dtype and layout unless given.

    >>> torch.empty_like(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return empty_as(input, dtype=dtype, memory_format=memory_format, device=device)


@composite(like_factory=True, method=False)
def full_like(
    input: Tensor,
    fill_value: Number,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Tensor shaped like `input`, filled with `fill_value`.

    >>> torch.full_like(torch.ones(2), 3)
    tensor([3., 3.])
    """
    return empty_like(input, dtype=dtype, device=device, memory_format=memory_format).fill_(
        fill_value
    )


@composite(like_factory=True, method=False)
def zeros_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Zeros shaped like `input`.

    >>> torch.zeros_like(torch.ones(2))
    tensor([0., 0.])
    """
    return empty_like(input, dtype=dtype, device=device, memory_format=memory_format).zero_()


@composite(like_factory=True, method=False)
def ones_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Ones shaped like `input`.

    >>> torch.ones_like(torch.zeros(2))
    tensor([1., 1.])
    """
    return empty_like(input, dtype=dtype, device=device, memory_format=memory_format).fill_(1)


@structured(
    kernel="nothing", namespaces=(), factory=True, method=True, differentiable=False, out=False
)
def new_empty(
    self: Tensor, size: Ints, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Uninitialised tensor of shape `size`, with the dtype of `self` unless given.

    >>> torch.ones(1).new_empty(2, 3).shape
    torch.Size([2, 3])
    """
    return empty(size, dtype=dtype, like=self, device=device)


@new_empty.vmap
def _(self, size, dtype, device, batch):
    return self.new_empty([batch] + size, dtype=dtype, device=device)


@structured(
    kernel="nothing", namespaces=(), factory=True, method=True, differentiable=False, out=False
)
def new_empty_strided(
    self: Tensor,
    size: Ints,
    stride: Ints,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Uninitialised strided tensor with the dtype of `self` unless given.

    >>> torch.ones(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return empty_strided_as(size, stride, dtype=dtype, like=self, device=device)


@new_empty_strided.vmap
def _(self, size, stride, dtype, device, batch):
    step = _extent(size, stride)
    return self.new_empty_strided([batch] + size, [step] + stride, dtype=dtype, device=device)


@structured(
    kernel="new_full",
    namespaces=(),
    factory=True,
    method=True,
    differentiable=False,
    out=False,
    unread=("self",),
)
def new_full(
    self: Tensor,
    size: Ints,
    fill_value: Number,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Tensor of shape `size` filled with `fill_value`, with the dtype of `self` unless given.

    >>> torch.ones(1).new_full((2,), 3)
    tensor([3., 3.])
    """
    return empty(size, dtype=dtype, like=self, device=device)


@new_full.decompose
def _(self, size, fill_value, dtype, device):
    kind = dtype if dtype is not None else self.dtype
    return full(size, fill_value, dtype=kind, device=device)


@new_full.vmap
def _(self, size, fill_value, dtype, device, batch):
    return self.new_full([batch] + size, fill_value, dtype=dtype, device=device)


@structured(
    kernel="new_zeros",
    element="zero",
    namespaces=(),
    factory=True,
    method=True,
    differentiable=False,
    out=False,
    unread=("self",),
)
def new_zeros(
    self: Tensor, size: Ints, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Zeros of shape `size`, with the dtype of `self` unless given.

    >>> torch.ones(1).new_zeros(2)
    tensor([0., 0.])
    """
    return empty(size, dtype=dtype, like=self, device=device)


@new_zeros.vmap
def _(self, size, dtype, device, batch):
    return self.new_zeros([batch] + size, dtype=dtype, device=device)


@composite(namespaces=(), factory=True, method=True)
def new_ones(
    self: Tensor, size: Ints, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Ones of shape `size`, with the dtype of `self` unless given.

    >>> torch.zeros(1).new_ones(2)
    tensor([1., 1.])
    """
    return self.new_full(size, 1, dtype=dtype, device=device)


@composite(namespaces=(), method=False)
def _is_inexact(x: Number) -> bool:
    """Is it a number that may have a fraction?"""
    return dtype_of(x).is_inexact


@structured(
    kernel="arange",
    element="counted",
    factory=True,
    out_any_shape=True,
    method=False,
    differentiable=False,
    out_told=True,
)
def arange(
    start: Number,
    end: Number,
    step: Number = 1,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Values from `start` up to but without `end`, `step` apart.

    Shape: (ceil((end - start) / step),). Integers give int64 unless `dtype` is given.

    >>> torch.arange(1, 4)
    tensor([1, 2, 3])
    """
    whole = not (_is_inexact(start) or _is_inexact(end) or _is_inexact(step))
    d = dtype if dtype is not None else (int64 if whole else default_dtype())
    check(float(step) != 0.0, "step must be nonzero")
    check(abs(float(start)) < inf and abs(float(end)) < inf, "unsupported range")
    check(
        float(end) >= float(start) if float(step) > 0.0 else float(end) <= float(start),
        "upper bound and lower bound inconsistent with step sign",
    )
    check_value(not d.is_integral or int(step) != 0, "step must be nonzero")
    n = 0
    if whole or d.is_integral:
        n = -((int(start) - int(end)) // int(step))
    else:
        n = ceil((float(end) - float(start)) / float(step))
    return empty([n], dtype=d, device=device)


@arange.overload(
    kernel="arange_to",
    element="counted",
    factory=True,
    out_any_shape=True,
    method=False,
    differentiable=False,
    out_told=True,
)
def arange(end: Number, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """Values from 0 up to but without `end`.

    >>> torch.arange(3)
    tensor([0, 1, 2])
    """
    whole = not _is_inexact(end)
    d = dtype if dtype is not None else (int64 if whole else default_dtype())
    n = int(end) if whole or d.is_integral else ceil(float(end))
    check(n >= 0, "upper bound and lower bound inconsistent with step sign")
    return empty([n], dtype=d, device=device)


@structured(
    kernel="arange", factory=True, out_any_shape=True, method=False, differentiable=False,
    python_name="range",
)  # fmt: skip
def inclusive_range(
    start: Number = 0,
    end: Number = 0,
    step: Number = 1,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Values from `start` to `end`, both included, `step` apart.

    Deprecated: `arange` leaves its end out, as Python's range does.

    >>> torch.arange(1, 4)
    tensor([1, 2, 3])
    """
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior "
        "is inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end)."
    )
    d = dtype if dtype is not None else default_dtype()
    check(float(step) != 0.0, "step must be nonzero")
    check(abs(float(start)) < inf and abs(float(end)) < inf, "unsupported range")
    check(
        float(end) >= float(start) if float(step) > 0.0 else float(end) <= float(start),
        "upper bound and lower bound inconsistent with step sign",
    )
    n = int((float(end) - float(start)) / float(step)) + 1
    return empty([n], dtype=d, device=device)


@structured(kernel="linspace", factory=True, out_any_shape=True, method=False, differentiable=False)
def linspace(
    start: Number,
    end: Number,
    steps: int,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """`steps` evenly spaced values from `start` to `end`, both included. Shape: (steps,).

    >>> torch.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    check(steps >= 0, "number of steps must be non-negative")
    c = start.is_complex() or end.is_complex()
    d = dtype if dtype is not None else (to_complex(default_dtype()) if c else default_dtype())
    _check_fits("linspace", "start", start, d)
    _check_fits("linspace", "end", end, d)
    return empty([steps], dtype=d, device=device)


@linspace.decompose
def _(start, end, steps, dtype, device):
    c = start.is_complex() or end.is_complex()
    d = dtype if dtype is not None else (to_complex(default_dtype()) if c else default_dtype())
    if steps < 2 or not d.is_floating_point or c:
        return linspace(start, end, steps, dtype=dtype, device=device)
    kind = opmath(d) if d == float32 else float64
    first = full([], start, dtype=d, device=device).to(kind)
    last = full([], end, dtype=d, device=device).to(kind)
    step = (last - first) / float(steps - 1)
    i = arange(steps, device=device)
    low = first + step * i.to(kind)
    high = last - step * (steps - 1 - i).to(kind)
    return where(i < steps // 2, low, high).to(d)


@linspace.overload(kind="composite", method=False, factory=True, out=True, out_any_shape=True)
def linspace(
    start: Tensor | Number,
    end: Tensor | Number,
    steps: int,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """The ends given as 0-d tensors.

    >>> torch.linspace(torch.tensor(0.0), torch.tensor(1.0), 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    _check_ends("linspace", start, end)
    return linspace(start.item(), end.item(), steps, dtype=dtype, device=device)


@composite(namespaces=(), method=False)
def _check_ends(op: str, start: Tensor, end: Tensor) -> None:
    """Both ends of a sequence are single numbers.

    >>> torch.linspace(torch.tensor(0.0), 1, 2)
    tensor([0., 1.])
    """
    check(
        start.ndim == 0 and end.ndim == 0,
        f"{op} only supports 0-dimensional start and end tensors, but got start with {start.ndim} "
        f"dimension(s) and end with {end.ndim} dimension(s).",
    )


@structured(kernel="logspace", factory=True, out_any_shape=True, method=False, differentiable=False)
def logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """`steps` values from base**start to base**end, evenly spaced in the exponent. Shape: (steps,).

    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    check(steps >= 0, "number of steps must be non-negative")
    c = start.is_complex() or end.is_complex()
    d = dtype if dtype is not None else (to_complex(default_dtype()) if c else default_dtype())
    return empty([steps], dtype=d, device=device)


@logspace.overload(kind="composite", method=False, factory=True, out=True, out_any_shape=True)
def logspace(
    start: Tensor | Number,
    end: Tensor | Number,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """The ends given as 0-d tensors.

    >>> torch.logspace(torch.tensor(0.0), torch.tensor(2.0), 3)
    tensor([  1.,  10., 100.])
    """
    _check_ends("logspace", start, end)
    return logspace(start.item(), end.item(), steps, base, dtype=dtype, device=device)


@structured(kernel="eye", factory=True, method=False, differentiable=False, sizes=("n", "m"))
def eye(
    n: int, m: int | None = None, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Identity matrix. Shape: (n, m), m = n unless given.

    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    cols = m if m is not None else n
    check(n >= 0, f"n must be greater or equal to 0, got {n}")
    check(cols >= 0, f"m must be greater or equal to 0, got {cols}")
    return empty([n, cols], dtype=dtype, device=device)


@eye.decompose
def _(n, m, dtype, device):
    cols = m if m is not None else n
    kind = dtype if dtype is not None else default_dtype()
    rows = arange(n, device=device).unsqueeze(1)
    return (rows == arange(cols, device=device)).to(kind)


@composite(namespaces=(), method=False, function=False)
def _above(row: int, col: int, offset: int) -> int:
    """Entries of a matrix on and above the diagonal `offset`: whole rows, then a slope."""
    whole = min(max(1 - offset, 0), row)
    end = min(max(col - offset, whole), row)
    slope = end - whole
    return whole * col + slope * (col - offset) - slope * (whole + end - 1) // 2


@structured(kernel="tril_indices", factory=True, method=False, differentiable=False, out=False)
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Row and column numbers of a matrix's lower triangle, row by row. Shape: (2, count).

    >>> torch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    check(row >= 0, f"row must be non-negative, got{row}")
    check(col >= 0, f"col must be non-negative, got{col}")
    n = _above(col, row, -offset)
    return empty([2, n], dtype=dtype if dtype is not None else int64, device=device)


@structured(kernel="triu_indices", factory=True, method=False, differentiable=False, out=False)
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Row and column numbers of a matrix's upper triangle, row by row. Shape: (2, count).

    >>> torch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    check(row >= 0, f"row must be non-negative, got{row}")
    check(col >= 0, f"col must be non-negative, got{col}")
    n = _above(row, col, offset)
    return empty([2, n], dtype=dtype if dtype is not None else int64, device=device)
