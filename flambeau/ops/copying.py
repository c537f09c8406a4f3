"""Copies, conversions and fills: what moves whole tensors. Kernels: csrc/kernels/copy.h."""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_fits


@composite(namespaces=(), method=False)
def _check_has_data(input: Tensor, to_meta: bool) -> None:
    """Refuses to copy values out of a tensor that has none."""
    check_not_implemented(to_meta or not input.is_meta, "Cannot copy out of meta tensor; no data!")


@structured(
    kernel="copy_", inplace_kernel=True, namespaces=(), method=True, cpu_params=("src",),
    nothing_from_itself="src", element="taken",
)  # fmt: skip
def copy_(self: Tensor, src: Tensor | Number, non_blocking: bool = False) -> Tensor:
    """Overwrites `self` with `src`, broadcast and converted.

    >>> torch.zeros(2).copy_(torch.ones(1))
    tensor([1., 1.])
    """
    shape = broadcast_shapes(self.shape, src.shape)
    check(
        shape == self.shape,
        f"output with shape {self.shape} doesn't match the broadcast shape {shape}",
    )
    _check_has_data(src, self.is_meta)
    if src.is_complex() and not self.is_complex() and not self.dtype.is_bool:
        warn("Casting complex values to real discards the imaginary part")


@copy_.vjp
def _(g, src):
    kind = real(g) if g.is_complex() and not src.is_complex() else g
    return zeros(g.shape, dtype=g.dtype), sum_to(kind, src.shape).to(src.dtype, device=src.device)


@copy_.vmap
def _(self, src, non_blocking, src_b):
    return self.copy_(_aligned(src, src_b, self.ndim - 1), non_blocking)


@structured(
    kernel="copy_into", namespaces=(), method=False, out=False, batch=True, cpu_params=("self",),
    named_without=("CloneBackward", "dtype", "device"), element="copied", layout="follows",
)  # fmt: skip
def _to_copy(
    self: Tensor,
    dtype: DType | None = None,
    memory_format: MemoryFormat | None = None,
    device: Device | None = None,
) -> Tensor:
    """Copy in another dtype or layout, or on another device.

    >>> torch.ones(2).to(torch.int64)
    tensor([1, 1])
    """
    out = empty_as(self, dtype=dtype, memory_format=memory_format, device=device)
    _check_has_data(self, out.is_meta)
    if self.is_complex() and not out.is_complex() and not out.dtype.is_bool:
        warn("Casting complex values to real discards the imaginary part")
    return out


@_to_copy.vjp
def _(g, self):
    kind = real(g) if g.is_complex() and not self.is_complex() else g
    return kind.to(self.dtype, device=self.device)


@composite(namespaces=(), method=False)
def to(
    self: Tensor,
    dtype: DType | None = None,
    copy: bool = False,
    memory_format: MemoryFormat | None = None,
    device: Device | None = None,
) -> Tensor:
    """`self` itself when it has the dtype, layout and device already, else a copy that has.

    >>> torch.ones(2).to(torch.int64)
    tensor([1, 1])
    """
    same = dtype is None or self.dtype == dtype
    if memory_format is not None:
        if memory_format != preserve_format:
            same = same and self.suggest_memory_format() == memory_format
    if device is not None:
        same = same and self.device == device
    if same and not copy:
        return self
    return _to_copy(self, dtype, memory_format, device)


@composite()
def clone(input: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """Copy with the same values; gradients pass through.

    >>> torch.ones(2).clone()
    tensor([1., 1.])
    """
    return _to_copy(input, None, memory_format)


@composite(namespaces=(), method=True)
def contiguous(self: Tensor, memory_format: MemoryFormat = contiguous_format) -> Tensor:
    """`self` when its memory is laid out in that order, else a copy that is.

    >>> torch.ones(2, 3).t().contiguous().is_contiguous()
    True
    """
    check(
        memory_format != preserve_format,
        "preserve memory format is unsupported by the contiguous operator",
    )
    if self.is_contiguous(memory_format):
        return self
    return _to_copy(self, None, memory_format)


@structured(
    kernel="fill_", element="given", inplace_kernel=True, method=True, batch=True, idempotent=True
)
def fill_(self: Tensor, value: Number) -> Tensor:
    """Sets every entry to `value`.

    >>> torch.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    _check_fits("fill_", "value", value, self.dtype)


@fill_.vjp
def _(g):
    return zeros(g.shape, dtype=g.dtype)


@fill_.overload(kernel="fill_tensor_", inplace_kernel=True, method=True, idempotent=True)
def fill_(self: Tensor, value: Tensor) -> Tensor:
    """The value given as a 0-d tensor.

    >>> torch.zeros(2).fill_(torch.tensor(3.0))
    tensor([3., 3.])
    """
    check(
        value.ndim == 0,
        f"fill_: expected a 0-d tensor as value, got shape {value.shape}",
    )


@fill_.vjp
def _(g, value):
    return zeros(g.shape, dtype=g.dtype), g.sum().to(value.dtype)


@fill_.vmap
def _(self, value, value_b):
    return self.copy_(_aligned(value, value_b, self.ndim - 1))


@composite(method=False)
def fill(input: Tensor, value: Number) -> Tensor:
    """Copy of the shape of `input` filled with `value`.

    >>> torch.fill(torch.zeros(2), 3)
    tensor([3., 3.])
    """
    return input.clone().fill_(value)


@fill.overload(method=False)
def fill(input: Tensor, value: Tensor) -> Tensor:
    """The value given as a 0-d tensor.

    >>> torch.fill(torch.zeros(2), torch.tensor(3.0))
    tensor([3., 3.])
    """
    return input.clone().fill_(value)


@composite(namespaces=("torch",), method=True)
def zero_(self: Tensor) -> Tensor:
    """Sets every entry to zero.

    >>> torch.ones(2).zero_()
    tensor([0., 0.])
    """
    return self.fill_(0)


@composite(namespaces=(), method=True)
def fill_diagonal_(self: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Writes `fill_value` to the entries whose indices are all equal.

    Args:
        wrap: in a matrix with more rows than columns, begin again below, after a free row.

    >>> torch.zeros(2, 2).fill_diagonal_(1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    check(self.ndim >= 2, f"fill_diagonal_: dimensions must larger than 1, got {self.ndim}")
    for d in range(self.ndim):
        check(
            self.size(d) <= 1 or self.stride(d) != 0,
            "fill_diagonal_: unsupported operation: more than one element of the written-to tensor "
            "refers to a single memory location. Please clone() the tensor before performing the "
            "operation.",
        )
    n = self.size(0)
    width = self.size(1)
    if self.ndim > 2:
        step = 0
        for d in range(self.ndim):
            check(
                self.size(d) == n,
                "fill_diagonal_: all dimensions of input must be of equal length, got "
                f"{self.shape}",
            )
            step += self.stride(d)
        self.as_strided([n], [step]).fill_(fill_value)
        return self
    period = width + 1
    blocks = (n + period - 1) // period if wrap else 1
    for b in range(blocks):
        rows = period if (b + 1) * period <= n else n - b * period
        self.narrow(0, b * period, rows).diagonal().fill_(fill_value)
    return self
