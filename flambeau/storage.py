"""Storages with a type: the older way to look at a tensor's memory.

`UntypedStorage` (bytes) is the core's; `TypedStorage` shows the same bytes as numbers of a dtype.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Iterator
from typing import Any

from . import _C

UntypedStorage = _C.UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage", "from_file"]


class TypedStorage:
    """The memory of a tensor as numbers of one dtype, shared with it.

    Args:
        size: number of elements of a new storage.
        wrap_storage: bytes to look at instead.
        dtype: type of the elements.
    """

    def __init__(self, size: int = 0, *, wrap_storage: Any = None, dtype: Any = None) -> None:
        self.dtype = _C.get_default_dtype() if dtype is None else dtype
        self._untyped_storage = wrap_storage
        if wrap_storage is None:
            self._untyped_storage = UntypedStorage(size * self.dtype.itemsize)

    def untyped(self) -> Any:
        """The same memory as bytes."""
        return self._untyped_storage

    @property
    def device(self) -> Any:
        return self._untyped_storage.device

    def _tensor(self) -> Any:
        return _C.empty(0, dtype=self.dtype).set_(self._untyped_storage, 0, (len(self),), (1,))

    def __len__(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    size = __len__

    def nbytes(self) -> int:
        """Length in bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first element."""
        return self._untyped_storage.data_ptr()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._tensor()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._tensor()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return self._tensor().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        self._tensor().fill_(value)
        return self

    def resize_(self, size: int) -> TypedStorage:
        """Changes the number of elements, keeping the common part."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """The storage itself: it is in main memory."""
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Copies the elements of a storage of the same length, converting them."""
        self._tensor().copy_(source._tensor(), non_blocking)
        return self

    def share_memory_(self) -> TypedStorage:
        """Moves the memory, in place, to where other processes see it."""
        self._untyped_storage.share_memory_()
        return self

    def resizable(self) -> bool:
        """Can `resize_` change the length?"""
        return self._untyped_storage.resizable()

    @property
    def filename(self) -> str | None:
        return self._untyped_storage.filename

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return TypedStorage(
            wrap_storage=copy.deepcopy(self._untyped_storage, memo), dtype=self.dtype
        )

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def is_shared(self) -> bool:
        """Is the memory shared between processes?"""
        return self._untyped_storage.is_shared()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __repr__(self) -> str:
        values = "\n ".join(str(v) for v in self.tolist())
        return (
            f" {values}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) "
            f"of size {len(self)}]"
        )


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        "Tensor.storage() is deprecated: memory with a type will go away; "
        "Tensor.untyped_storage() shows the bytes. (Shown once per process.)",
        stacklevel=3,
    )


def storage_of(tensor: Any) -> TypedStorage:
    """`tensor.storage()`."""
    _warn_once()
    return TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)


def from_file(
    filename: Any, shared: bool | None = None, size: int = 0, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A one-dimensional tensor whose memory is a file's.

    Args:
        filename: its name.
        shared: whether writes go to the file, which is then made or made longer as needed.
        size: number of elements.
        dtype: their type; by default the default dtype.
        layout: strided.
        device: the CPU.
        pin_memory: False.
        requires_grad: whether operations on it are recorded.

    Raises:
        RuntimeError: the file cannot be opened, or is too short and not shared.

    >>> torch.from_file("/dev/zero", size=0).shape
    torch.Size([0])
    """
    like = _C.empty(0, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    if like.device.type != "cpu":
        raise RuntimeError(f"from_file: expected the CPU as device, got {like.device}")
    storage = UntypedStorage.from_file(filename, bool(shared), size * like.element_size())
    return like.set_(storage, 0, (size,), (1,)).requires_grad_(requires_grad)
