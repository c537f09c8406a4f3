"""Storages with a type: the older way to look at a tensor's memory.

`UntypedStorage` (bytes) is the core's; `TypedStorage` shows the same bytes as numbers of a dtype.
"""

from __future__ import annotations

import copy
import functools
import importlib
import io
import numbers
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from . import _C, _untyped_storage

UntypedStorage = _C.UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage", "from_file"]


_ARGUMENTS = """received an invalid combination of arguments. Expected one of:
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)
"""


def _untyped_of(args: tuple[Any, ...], dtype: Any, device: Any) -> Any:
    """New memory for the arguments of a constructor: nothing, a size or a sequence of numbers."""
    device = _C.device("cpu" if device is None else device)
    if len(args) > 1:
        raise RuntimeError(f"TypedStorage.__init__ {_ARGUMENTS}Too many positional arguments")
    if not args or isinstance(args[0], numbers.Integral):
        size = int(args[0]) if args else 0
        return UntypedStorage(size * dtype.itemsize, device=device)
    if isinstance(args[0], (str, bytes)):
        raise TypeError(f"new(): invalid data type {type(args[0]).__name__!r}")
    if not isinstance(args[0], Sequence):
        raise TypeError(
            f"TypedStorage.__init__ {_ARGUMENTS}Argument type not recognized: {type(args[0])}"
        )
    return _C.tensor(args[0], dtype=dtype, device=device).untyped_storage()


class TypedStorage:
    """The memory of a tensor as numbers of one dtype, shared with it.

    Args:
        *args: number of elements of a new storage, or a sequence of them; none: no elements.
        wrap_storage: bytes to look at instead; needs `dtype`.
        dtype: type of the elements.
        device: where new memory is.

    Raises:
        RuntimeError: arguments that do not go together.
        TypeError: an argument of another type.

    >>> import flambeau as torch
    >>> torch.TypedStorage([1, 2], dtype=torch.int16).untyped().tolist()
    [1, 0, 2, 0]
    """

    is_sparse = False

    def __init__(
        self,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        wrap_storage: Any = None,
        _internal: bool = False,
    ) -> None:
        if wrap_storage is None:
            self.dtype = _C.get_default_dtype() if dtype is None else dtype
            self._untyped_storage = _untyped_of(args, self.dtype, device)
            return
        wrong = f"TypedStorage.__init__ {_ARGUMENTS}"
        if args:
            raise RuntimeError(
                f"{wrong}No positional arguments should be given when using 'wrap_storage'"
            )
        if dtype is None:
            raise RuntimeError(f"{wrong}Argument 'dtype' must be specified")
        if not isinstance(dtype, _C.dtype):
            raise TypeError(f"{wrong}Argument 'dtype' must be torch.dtype, not {type(dtype)}")
        if device is not None:
            raise RuntimeError(
                f"{wrong}Argument 'device' should not be specified when 'wrap_storage' is given"
            )
        if not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(
                f"{wrong}Argument 'wrap_storage' must be UntypedStorage, but got "
                f"{type(wrap_storage)}"
            )
        self.dtype = dtype
        self._untyped_storage = wrap_storage

    def _of_same_type(self, untyped: Any) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype)

    def untyped(self) -> Any:
        """The same memory as bytes."""
        return self._untyped_storage

    @property
    def device(self) -> Any:
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def _dtype(self) -> Any:
        return self.dtype

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def get_device(self) -> Any:
        """Index of the device, None for one without an index."""
        return self.device.index

    def _tensor(self) -> Any:
        empty = _C.empty(0, dtype=self.dtype, device=self.device)
        return empty.set_(self._untyped_storage, 0, (len(self),), (1,))

    def __len__(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    size = _size = __len__

    def nbytes(self) -> int:
        """Length in bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first element."""
        return self._untyped_storage.data_ptr()

    _nbytes, _element_size, _data_ptr = nbytes, element_size, data_ptr

    def __getitem__(self, index: Any) -> Any:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return self._tensor()[index].item()

    _getitem = __getitem__

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(value, (TypedStorage, UntypedStorage)):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
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
        return self._of_same_type(self._untyped_storage.clone())

    def cpu(self) -> TypedStorage:
        """The storage itself where it is in main memory, else a copy there."""
        untyped = self._untyped_storage.cpu()
        return self if untyped is self._untyped_storage else self._of_same_type(untyped)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The storage itself where it is on the device, else a copy of it there."""
        untyped = self._untyped_storage.to(device=device, non_blocking=non_blocking)
        return self if untyped is self._untyped_storage else self._of_same_type(untyped)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """A copy on a GPU."""
        return self._of_same_type(self._untyped_storage.cuda(device, non_blocking))

    def is_pinned(self, device: Any = None) -> bool:
        """Is the memory page-locked? It never is without an accelerator."""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """Refuse to lock pages, which only accelerators need."""
        return self._of_same_type(self._untyped_storage.pin_memory(device))

    def copy_(self, source: Any, non_blocking: bool = False) -> TypedStorage:
        """Copies the elements of a storage of the same length, converting them.

        Bytes without a type are copied as they are.
        """
        if isinstance(source, UntypedStorage):
            self._untyped_storage.copy_(source, non_blocking)
        elif self.device.type != "meta":
            self._tensor().copy_(source._tensor(), non_blocking)
        return self

    def _converted(self, dtype: Any) -> TypedStorage:
        if dtype == self.dtype:
            return self
        made = self._tensor().to(dtype)
        return TypedStorage(wrap_storage=made.untyped_storage(), dtype=dtype)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class of storages with this dtype, or a copy of another type.

        Args:
            dtype: a dtype, a class such as `FloatStorage`, or its name; None asks for the name.
            non_blocking: as for `Tensor.to`.
        """
        if dtype is None:
            name = _dtype_to_storage_type_map().get(self.dtype)
            return "torch.storage.TypedStorage" if name is None else f"torch.{name}"
        if isinstance(dtype, str):
            name = dtype.rpartition(".")[2]
            if name not in _storage_type_to_dtype_map():
                raise ValueError(f"type: expected a class of storages or its name, got {dtype!r}")
            dtype = _storage_type_to_dtype_map()[name]
        return self._converted(getattr(dtype, "dtype", dtype))

    def pickle_storage_type(self) -> str:
        """What files call this type of storage.

        Raises:
            KeyError: they have no name for it.
        """
        try:
            return _dtype_to_storage_type_map()[self.dtype]
        except KeyError:
            raise KeyError(f"dtype {self.dtype} is not recognized") from None

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

    @classmethod
    def from_buffer(cls, *args: Any, dtype: Any = None, **kwargs: Any) -> TypedStorage:
        """As `UntypedStorage.from_buffer`; a class such as `FloatStorage` has its own dtype."""
        own = cls.__dict__.get("dtype")
        if own is not None and dtype is not None:
            raise RuntimeError("from_buffer: 'dtype' can only be specified for TypedStorage")
        dtype = own or dtype or _C.get_default_dtype()
        untyped = UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs)
        return TypedStorage(wrap_storage=untyped, dtype=dtype)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The numbers of a file, as `UntypedStorage.from_file`, for classes with a dtype."""
        own = cls.__dict__.get("dtype")
        if own is None:
            raise RuntimeError("from_file can only be called on derived classes")
        untyped = UntypedStorage.from_file(filename, shared, size * own.itemsize)
        return TypedStorage(wrap_storage=untyped, dtype=own)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return self._of_same_type(copy.deepcopy(self._untyped_storage, memo))

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
        meta = self.device.type == "meta"
        values = "..." if meta else " " + "\n ".join(str(v) for v in self.tolist())
        return (
            f"{values}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) "
            f"of size {len(self)}]"
        )


def _converter(name: str, dtype: Any) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._converted(dtype)

    convert.__name__, convert.__qualname__ = name, f"TypedStorage.{name}"
    convert.__doc__ = f"The elements converted to {dtype}."
    return convert


for _name, _dtype in _untyped_storage._NUMBERS.items():
    setattr(TypedStorage, _name, _converter(_name, _dtype))


class _LegacyStorageMeta(type):
    """Metaclass: calls make typed storages, isinstance asks for the dtype."""

    dtype: Any

    def __call__(cls, *args: Any, **options: Any) -> Any:
        wrong = f"{cls}.__new__ {_ARGUMENTS}"
        if not hasattr(cls, "dtype"):
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        for name in options:
            if name != "wrap_storage":
                raise RuntimeError(f"{wrong}Keyword argument '{name}' cannot be specified")
        return TypedStorage(*args, dtype=cls.dtype, **options)

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, TypedStorage) or instance.device.type != "cpu":
            return False
        return not hasattr(cls, "dtype") or instance.dtype == cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """Base of `FloatStorage` and its like, which stand for `TypedStorage` with one dtype."""

    @classmethod
    def _new_shared(cls, size: int) -> TypedStorage:
        untyped = UntypedStorage._new_shared(size * cls.dtype.itemsize)
        return TypedStorage(wrap_storage=untyped, dtype=cls.dtype)


def _legacy(name: str, dtype: Any) -> Any:
    members = {"dtype": dtype, "_dtype": dtype, "__module__": "flambeau"}
    return _LegacyStorageMeta(name, (_LegacyStorage,), members)


BFloat16Storage = _legacy("BFloat16Storage", _C.bfloat16)
BoolStorage = _legacy("BoolStorage", _C.bool)
ByteStorage = _legacy("ByteStorage", _C.uint8)
CharStorage = _legacy("CharStorage", _C.int8)
ComplexDoubleStorage = _legacy("ComplexDoubleStorage", _C.complex128)
ComplexFloatStorage = _legacy("ComplexFloatStorage", _C.complex64)
DoubleStorage = _legacy("DoubleStorage", _C.float64)
FloatStorage = _legacy("FloatStorage", _C.float32)
HalfStorage = _legacy("HalfStorage", _C.float16)
IntStorage = _legacy("IntStorage", _C.int32)
LongStorage = _legacy("LongStorage", _C.int64)
ShortStorage = _legacy("ShortStorage", _C.int16)

_StorageBase = UntypedStorage  # what programs ask isinstance of


@functools.cache
def _storage_type_to_dtype_map() -> dict[str, Any]:
    return {cls.__name__: cls.dtype for cls in _LegacyStorage.__subclasses__()}


@functools.cache
def _dtype_to_storage_type_map() -> dict[Any, str]:
    return {dtype: name for name, dtype in _storage_type_to_dtype_map().items()}


def _load_from_bytes(data: bytes) -> Any:
    """What PyTorch's pickles of storages call: the storage in a file of `save`."""
    files = importlib.import_module(f"{__package__}.serialization")  # which imports this module
    return files.load(io.BytesIO(data), weights_only=True)


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
