"""Batches on their way from a worker process: tensors through shared memory, the rest as a pickle.

Owns the slots of shared memory that a worker writes to and the loading process reads from.
Invariant: a slot is written to again only after the reader has given it back, and the reader
copies before it does. Slots have no names in the file system, so nothing is left behind however
the processes end.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
from dataclasses import dataclass, field
from typing import Any

import flambeau as fb
from flambeau import _tensor_pickle

_SMALL = 1 << 15  # bytes below which the pipe is as quick as shared memory
_ALIGNMENT = 64


@dataclass
class Parcel:
    """A packed batch.

    Attributes:
        worker_id: who packed it.
        pickled: the batch, with tensors replaced by references.
        tensors: for each reference, (place, fields): arguments of ``rebuild_tensor``, with the data
            itself or, where a slot is used, its (offset, size).
        slot: (number, file descriptor in the worker, size), or None.
    """

    worker_id: int
    pickled: bytes
    tensors: list[tuple[Any, tuple[Any, ...]]] = field(default_factory=list)
    slot: tuple[int, int, int] | None = None


class _Pickler(pickle.Pickler):
    """Takes plain tensors out of what it pickles; each object once."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.taken: list[tuple[Any, tuple[Any, ...]]] = []
        self._numbers: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        if type(obj) is not fb.Tensor:
            return None
        number = self._numbers.get(id(obj))
        if number is None:
            _, (data, *fields), *_ = _tensor_pickle.reduce_tensor(obj, 5)
            number = self._numbers[id(obj)] = len(self.taken)
            self.taken.append((None if data is None else data.raw(), tuple(fields)))
        return number


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, tensors: list[Any]) -> None:
        super().__init__(file)
        self._tensors = tensors

    def persistent_load(self, pid: Any) -> Any:
        return self._tensors[pid]


class Sender:
    """The worker's side: packs batches into slots that are free, and makes new ones."""

    def __init__(self, worker_id: int) -> None:
        self._worker_id = worker_id
        self._slots: dict[int, tuple[int, mmap.mmap]] = {}
        self._free: list[int] = []
        self._next = 0

    def release(self, slots: list[int]) -> None:
        """Takes slots back that the reader has emptied."""
        self._free += slots

    def pack(self, batch: Any) -> Parcel:
        """Packs a batch; raises what pickling raises."""
        file = io.BytesIO()
        pickler = _Pickler(file)
        pickler.dump(batch)
        sizes = [0 if raw is None else raw.nbytes for raw, _ in pickler.taken]
        places, total = [], 0
        for size in sizes:
            places.append((total, size))
            total += size + -size % _ALIGNMENT
        slot = self._slot(total) if total >= _SMALL else None
        parcel = Parcel(self._worker_id, file.getvalue())
        if slot is None:
            parcel.tensors = [
                (None if raw is None else raw.tobytes(), fields) for raw, fields in pickler.taken
            ]
            return parcel
        descriptor, memory = self._slots[slot]
        for (raw, fields), (offset, size) in zip(pickler.taken, places, strict=True):
            if size:
                memory[offset : offset + size] = raw
            parcel.tensors.append((None if raw is None else (offset, size), fields))
        parcel.slot = (slot, descriptor, len(memory))
        return parcel

    def _slot(self, size: int) -> int | None:
        """The number of a free slot of at least ``size`` bytes; None if there is no such memory."""
        for number in self._free:
            if len(self._slots[number][1]) >= size:
                self._free.remove(number)
                return number
        if self._free:  # too small, all of them: make room for a larger one
            descriptor, memory = self._slots.pop(self._free.pop())
            memory.close()
            os.close(descriptor)
        try:
            descriptor = os.memfd_create("flambeau-batch", os.MFD_CLOEXEC)
            size = 1 << size.bit_length()  # pages that are never used take no memory
            os.ftruncate(descriptor, size)
            memory = mmap.mmap(descriptor, size)
        except (AttributeError, OSError):
            return None
        number, self._next = self._next, self._next + 1
        self._slots[number] = (descriptor, memory)
        return number


class Receiver:
    """The loading process's side: unpacks parcels and notes which slots may be used again."""

    def __init__(self) -> None:
        self._maps: dict[tuple[int, int], mmap.mmap] = {}
        self._emptied: dict[int, list[int]] = {}

    def emptied(self, worker_id: int) -> list[int]:
        """Slots of a worker that were emptied since the last call."""
        return self._emptied.pop(worker_id, [])

    def unpack(self, parcel: Parcel, pid: int) -> Any:
        """The batch in a parcel of the worker with process number ``pid``."""
        memory = memoryview(b"")
        if parcel.slot is not None:
            memory = memoryview(self._map(parcel, pid))
        tensors = []
        for place, fields in parcel.tensors:
            if isinstance(place, tuple):
                offset, size = place
                place = memory[offset : offset + size]
            tensors.append(_tensor_pickle.rebuild_tensor(place, *fields))
        if parcel.slot is not None:
            self._emptied.setdefault(parcel.worker_id, []).append(parcel.slot[0])
        return _Unpickler(io.BytesIO(parcel.pickled), tensors).load()

    def _map(self, parcel: Parcel, pid: int) -> mmap.mmap:
        number, descriptor, size = parcel.slot  # type: ignore[misc]
        key = (parcel.worker_id, number)
        if key not in self._maps:
            # The worker's descriptor, opened through its process: the memory has no other name.
            with open(f"/proc/{pid}/fd/{descriptor}", "rb") as file:
                self._maps[key] = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        return self._maps[key]
