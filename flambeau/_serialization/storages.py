"""Tensors as raw bytes and back: one payload per storage, views described by size, stride, offset.

Owns the record of a tensor and the check that a view stays inside its storage. Invariant: tensors
that shared memory when saved share it when loaded. It knows neither the zip layout nor the object
tree.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import _C

DTYPES: list[str] = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128"
).split()

Record = dict[str, Any]


def dtype_name(dtype: Any) -> str:
    """The bare name of a dtype, such as ``float32``."""
    return str(dtype).rpartition(".")[2]


def dtype_of(name: Any) -> Any:
    """The dtype of a bare name; ValueError for one that files do not hold."""
    if name not in DTYPES:
        raise ValueError(f"load: unknown dtype {name!r}")
    return getattr(fb, name)


def storage_bytes(tensor: Any) -> Any:
    """The whole storage of a CPU tensor as a flat NumPy array of bytes that shares its memory."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    flat = tensor.detach().as_strided((count,), (1,), 0)
    return flat.view(fb.uint8).numpy()


def plain(tensor: Any) -> Any:
    """The tensor without pending conjugation or negation, which raw bytes cannot express."""
    tensor = tensor.detach()
    if tensor.is_complex() and tensor.is_conj():
        tensor = tensor.resolve_conj()
    return tensor.resolve_neg() if tensor.is_neg() else tensor


class StorageTable:
    """Collects the distinct storages of the tensors being saved."""

    def __init__(self) -> None:
        if sys.byteorder != "little":
            raise RuntimeError("save: files hold little-endian data, this machine is big-endian")
        self._numbers: dict[Any, int] = {}
        self.owners: list[Any] = []  # one tensor per storage keeps it alive until it is written
        self.devices: list[str] = []

    def describe(self, tensor: Any) -> Record:
        """The record of a tensor; its storage is put into the table.

        Raises:
            TypeError: a layout or dtype that is not plain strided memory.
        """
        if tensor.layout != fb.strided:
            raise TypeError(
                f"save: expected a strided tensor, got layout {tensor.layout}; convert it with "
                "to_dense() first"
            )
        name = dtype_name(tensor.dtype)
        if name not in DTYPES:
            raise TypeError(f"save: tensors of dtype {tensor.dtype} cannot be saved")
        requires_grad = bool(tensor.requires_grad)
        tensor = plain(tensor)
        return {
            "dtype": name,
            "size": list(tensor.shape),
            "stride": list(tensor.stride()),
            "offset": int(tensor.storage_offset()),
            "storage": self.number(tensor),
            "requires_grad": requires_grad,
        }

    def number(self, tensor: Any) -> int:
        """The place of a tensor's storage in the table, where it is put if it is new."""
        device = str(tensor.device)
        if tensor.device.type == "meta":
            key: Any = ("meta", len(self.owners))
        else:
            storage = tensor.untyped_storage()
            empty = storage.nbytes() == 0
            key = (device, len(self.owners) if empty else storage.data_ptr(), empty)
        number = self._numbers.setdefault(key, len(self.owners))
        if number == len(self.owners):
            self.owners.append(tensor)
            self.devices.append(device)
        return number

    def payload(self, number: int) -> Any:
        """The bytes of a storage, copied to the CPU if they are elsewhere; None if it has none."""
        tensor = self.owners[number]
        if tensor.device.type == "meta":
            return None
        if tensor.device.type != "cpu":
            count = tensor.untyped_storage().nbytes() // tensor.element_size()
            tensor = tensor.as_strided((count,), (1,), 0).cpu()
        return storage_bytes(tensor)


def allocate(size: int, receive: Callable[[memoryview], None]) -> Any:
    """A new CPU tensor of ``size`` bytes, filled by ``receive``."""
    flat = fb.empty(size, dtype=fb.uint8)
    receive(memoryview(flat.untyped_storage()))
    return flat


def view_of(flat: Any, record: Record) -> Any:
    """The tensor that ``record`` describes inside ``flat``, a one-dimensional tensor of bytes.

    Args:
        flat: the storage, or None for a tensor without data (device "meta").
        record: what ``StorageTable.describe`` wrote, from a file that nobody vouches for.

    Raises:
        ValueError: the record is malformed or reaches outside the storage.
    """
    place = (record.get("offset"), record.get("size"), record.get("stride"))
    return _C._tensor_in(flat, dtype_of(record.get("dtype")), *place)
