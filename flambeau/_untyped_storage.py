"""Methods of `UntypedStorage` that need no core: conversions, byte order, bytes of a buffer.

Owns what the class has beside the core's methods, and gives it to the class when the package is
imported. Invariant: a method here touches bytes only through the class's own interface. It does not
import `storage`, whose typed storages are made when they are asked for.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import _C

_ORDERS = ("native", "little", "big")


def _typed(storage: Any, dtype: Any) -> Any:
    home = importlib.import_module(f"{__package__}.storage")  # loaded when first asked for
    return home.TypedStorage(wrap_storage=storage, dtype=dtype)


def _converted(name: str, dtype: Any) -> Any:
    def convert(self: Any) -> Any:
        return _typed(self, _C.uint8)._converted(dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The bytes as numbers of dtype {name}, in a storage of that type."
    return convert


def _byteswap(self: Any, size: int) -> None:
    if size < 2:
        return
    if len(self) % size:
        raise RuntimeError(
            f"byteswap: the length of data is not a multiple of {size}, got {len(self)} bytes"
        )
    view = memoryview(self).cast("B")
    for low in range(size // 2):
        high = size - 1 - low
        kept = bytes(view[low::size])
        view[low::size] = view[high::size]
        view[high::size] = kept


def byteswap(self: Any, dtype: Any) -> None:
    """Reverse, in place, the bytes of each number of a dtype; of both parts if it is complex.

    Args:
        dtype: what the bytes hold.

    Raises:
        RuntimeError: the length is not a multiple of the numbers' size.

    >>> import flambeau as torch
    >>> storage = torch.UntypedStorage([1, 0, 2, 0])
    >>> storage.byteswap(torch.int16)
    >>> storage.tolist()
    [0, 1, 0, 2]
    """
    if self.device.type == "meta":
        raise NotImplementedError("Not available for 'meta' device type")
    self._byteswap(dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize)


def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
    """The storage itself where it is on the device, else a copy of it there."""
    device = _C.device(device)
    if device.type == self.device.type:
        return self
    if device.type == "meta":
        return _C.UntypedStorage(self.nbytes(), device=device)
    if self.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    flat = _C.empty(0, dtype=_C.uint8).set_(self, 0, (self.nbytes(),), (1,))
    return flat.to(device).untyped_storage()


def cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """A copy on a GPU."""
    return self.to(device=_C.device("cuda" if device is None else device))


def type_(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the class; with a dtype or a class of storages, the bytes converted to it."""
    if dtype is None:
        return "torch.storage.UntypedStorage"
    return _typed(self, _C.uint8).type(dtype, non_blocking)


def new(self: Any) -> Any:
    """An empty storage on the same device."""
    return _C.UntypedStorage(device=self.device)


def get_device(self: Any) -> Any:
    """Index of the device, None for one without an index."""
    return self.device.index


def is_pinned(self: Any, device: Any = None) -> bool:
    """Is the memory page-locked? It never is without an accelerator."""
    return False


def pin_memory(self: Any, device: Any = None) -> Any:
    """Refuse to lock pages, which only accelerators need."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


def from_buffer(
    buffer: Any,
    byte_order: str | None = None,
    count: int = -1,
    offset: int = 0,
    *,
    dtype: Any = None,
) -> Any:
    """A storage with a copy of the numbers in a buffer, in this machine's byte order.

    Args:
        buffer: an object with bytes.
        byte_order: "native", "little" or "big": that of the buffer; needed for numbers of two
            bytes and more.
        count: how many numbers; -1: all that there are.
        offset: where they begin, in bytes.
        dtype: what they are.

    Raises:
        ValueError: the buffer is too short, or ends within a number.

    >>> import flambeau as torch
    >>> torch.UntypedStorage.from_buffer(b"\\x00\\x01", "big", dtype=torch.int16).tolist()
    [1, 0]
    """
    if dtype is None:
        raise RuntimeError("from_buffer: argument 'dtype' cannot be None")
    size = dtype.itemsize
    if byte_order is None:
        if size > 1:
            raise RuntimeError("from_buffer: missing required argument 'byte_order' (pos 2)")
        byte_order = "native"
    if byte_order not in _ORDERS:
        raise ValueError(
            f"from_buffer: invalid byte_order '{byte_order}' (expected 'native', 'little', 'big')"
        )
    data = memoryview(buffer).cast("B")
    if not 0 <= offset < len(data):
        raise ValueError(
            f"from_buffer: offset must be non-negative and no greater than buffer length "
            f"({len(data)}) - 1, but got {offset}"
        )
    left = len(data) - offset
    if count < 0:
        if left % size:
            raise ValueError(
                f"from_buffer: buffer size ({left}) must be a multiple of element size ({size})"
            )
        count = left // size
    if count * size > left:
        raise ValueError(
            f"from_buffer: buffer has only {left // size} elements after offset {offset}, but "
            f"specified a size of {count}"
        )
    storage = _C.UntypedStorage(bytes(data[offset : offset + count * size]))
    if byte_order not in ("native", sys.byteorder):
        byteswap(storage, dtype)
    return storage


def _device_is(kind: str) -> property:
    return property(lambda self: self.device.type == kind, doc=f"Is it on {kind}?")


_NUMBERS = {
    name: getattr(_C, dtype)
    for name, dtype in {
        "double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16",
        "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
        "bool": "bool", "complex_double": "complex128", "complex_float": "complex64",
    }.items()
}  # fmt: skip
_C._extend_storage(
    {
        "_byteswap": _byteswap,
        "byteswap": byteswap,
        "to": to,
        "cuda": cuda,
        "type": type_,
        "new": new,
        "get_device": get_device,
        "is_pinned": is_pinned,
        "pin_memory": pin_memory,
        "from_buffer": staticmethod(from_buffer),
        "is_cuda": _device_is("cuda"),
        "is_hpu": _device_is("hpu"),
        "is_sparse": False,
        "is_sparse_csr": False,
        **{name: _converted(name, dtype) for name, dtype in _NUMBERS.items()},
    }
)
