"""Batches on their way from a worker process: what is large goes through shared memory.

Owns the slots of shared memory that a worker writes to and the loading process reads from: the
pickled batch, the data of its tensors and of its arrays. Invariant: a slot is written to again only
after the reader has given it back, and the reader copies before it does. Slots have no names in the
file system and do not count against /dev/shm, so nothing is left behind however the processes end.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
from collections.abc import Callable
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
        parts: the pickled batch, with tensors replaced by references, then the data of tensors
            (None for one without), then of arrays: bytes or, where a slot is used, (offset, size).
        tensors: for each reference, arguments of ``rebuild_tensor`` after the data.
        slot: (number, size), or None. The first time, its descriptor comes along.
        dropped: slots that are used no more.
    """

    worker_id: int
    parts: list[Any]
    tensors: list[tuple[Any, ...]] = field(default_factory=list)
    slot: tuple[int, int] | None = None
    dropped: list[int] = field(default_factory=list)


class _Pickler(pickle.Pickler):
    """Takes plain tensors out of what it pickles; each object once."""

    def __init__(self, file: Any) -> None:
        self.arrays: list[Any] = []
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=self._take_array)
        self.taken: list[tuple[Any, tuple[Any, ...]]] = []
        self._numbers: dict[int, int] = {}

    def _take_array(self, buffer: pickle.PickleBuffer) -> bool:
        """Whether to pickle a buffer where it stands: all but what is contiguous."""
        try:
            self.arrays.append(buffer.raw())
        except BufferError:
            return True
        return False

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
    def __init__(self, file: Any, tensors: list[Any], arrays: list[Any]) -> None:
        super().__init__(file, buffers=arrays)
        self._tensors = tensors

    def persistent_load(self, pid: Any) -> Any:
        return self._tensors[pid]


class Sender:
    """The worker's side: packs batches into slots that are free, and makes new ones."""

    def __init__(self, worker_id: int) -> None:
        self._worker_id = worker_id
        self._slots: dict[int, tuple[int, mmap.mmap]] = {}
        self._free: list[int] = []
        self._opened: list[int] = []
        self._dropped: list[int] = []
        self._next = 0

    def release(self, slots: list[int]) -> None:
        """Takes slots back that the reader has emptied."""
        self._free += slots

    def opened(self) -> list[int]:
        """Descriptors of slots that the last parcel is the first to use."""
        opened, self._opened = self._opened, []
        return opened

    def pack(self, batch: Any) -> Parcel:
        """Packs a batch; raises what pickling raises."""
        file = io.BytesIO()
        pickler = _Pickler(file)
        pickler.dump(batch)
        raws = [file.getbuffer(), *(raw for raw, _ in pickler.taken), *pickler.arrays]
        places, total = [], 0
        for raw in raws:
            size = 0 if raw is None else raw.nbytes
            places.append((total, size))
            total += size + -size % _ALIGNMENT
        slot = self._slot(total) if total >= _SMALL else None
        parcel = Parcel(self._worker_id, [], [fields for _, fields in pickler.taken])
        if slot is None:
            parcel.parts = [None if raw is None else bytes(raw) for raw in raws]
            return parcel
        memory = self._slots[slot][1]
        for raw, (offset, size) in zip(raws, places, strict=True):
            if size:
                memory[offset : offset + size] = raw
            parcel.parts.append(None if raw is None else (offset, size))
        parcel.slot = (slot, len(memory))
        parcel.dropped, self._dropped = self._dropped, []
        return parcel

    def _slot(self, size: int) -> int | None:
        """The number of a free slot of at least ``size`` bytes; None if there is no such memory."""
        for number in self._free:
            if len(self._slots[number][1]) >= size:
                self._free.remove(number)
                return number
        if self._free:  # too small, all of them: make room for a larger one
            self._dropped.append(self._free.pop())
            descriptor, memory = self._slots.pop(self._dropped[-1])
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
        self._opened.append(descriptor)
        return number


class Receiver:
    """The loading process's side: unpacks parcels and notes which slots may be used again."""

    def __init__(self) -> None:
        self._maps: dict[tuple[int, int], mmap.mmap] = {}
        self._emptied: dict[int, list[int]] = {}

    def emptied(self, worker_id: int) -> list[int]:
        """Slots of a worker that were emptied since the last call."""
        return self._emptied.pop(worker_id, [])

    def unpack(self, parcel: Parcel, descriptor: Callable[[], int]) -> Any:
        """The batch in a parcel.

        Args:
            parcel: what a worker packed.
            descriptor: gives the next of the descriptors that came from it.
        """
        parts: list[Any] = parcel.parts
        for number in parcel.dropped:
            self._maps.pop((parcel.worker_id, number), None)
        if parcel.slot is not None:
            memory = memoryview(self._map(parcel, descriptor))
            parts = [None if p is None else memory[p[0] : p[0] + p[1]] for p in parts]
        count = 1 + len(parcel.tensors)
        tensors = [
            _tensor_pickle.rebuild_tensor(data, *fields)
            for data, fields in zip(parts[1:count], parcel.tensors, strict=True)
        ]
        arrays = [bytearray(data) for data in parts[count:]]
        batch = _Unpickler(io.BytesIO(parts[0]), tensors, arrays).load()
        if parcel.slot is not None:
            self._emptied.setdefault(parcel.worker_id, []).append(parcel.slot[0])
        return batch

    def _map(self, parcel: Parcel, descriptor: Callable[[], int]) -> mmap.mmap:
        number, size = parcel.slot  # type: ignore[misc]
        key = (parcel.worker_id, number)
        if key not in self._maps:
            opened = descriptor()
            try:
                self._maps[key] = mmap.mmap(opened, size, access=mmap.ACCESS_READ)
            finally:
                os.close(opened)
        return self._maps[key]
