"""PyTorch's files: the zip archives of today and the streams before 1.6.

Owns where in a file its pickle and its storages lie. Invariant: a storage is read once, has exactly
the bytes that its record in the file has, and no size is believed before it is compared with the
file. What the pickle may build is the builders' matter. See Note [PyTorch's files].
"""

# Note [PyTorch's files]
# ----------------------
# Zip: TOP/data.pkl (a pickle; storages are persistent ids ("storage", type, key, device, count)),
#   TOP/data/KEY (their bytes), TOP/byteorder ("little" or "big"), TOP/version; more is ignored.
# Legacy: pickles of a magic number, 1001, a dict about the system, the object and the list of keys,
#   then for each key a count (8 bytes) and the elements; ids end with the position of a view.

from __future__ import annotations

import mmap
import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any

import flambeau as fb
import flambeau.storage

from . import archive, builders, locations, pickle_machine, torch_names

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_LEGACY_PROTOCOL = 1001

Reader = Callable[[Any, int, Any], Any]  # (bytes, start, pool) -> object


def top_folder(names: list[str]) -> str | None:
    """The folder of a zip archive that holds the pickle; None: this is no file of PyTorch."""
    tops = [name.removesuffix("data.pkl") for name in names if name.endswith("/data.pkl")]
    if "data.pkl" in names:
        tops.append("")
    return min(tops, key=len) if tops else None


def is_legacy(head: bytes) -> bool:
    """Whether bytes begin as a legacy file does."""
    return head.startswith(_LEGACY_START)


def refuse_foreign(head: bytes, names: list[str]) -> None:
    """Raises RuntimeError for files of neighbours, by their name."""
    if head[257:262] == b"ustar":
        raise RuntimeError(
            "load: this is a tar archive: either a file of PyTorch before 0.1.10, which is not "
            "read (load and save it with a PyTorch of today), or one to unpack first"
        )
    if len(head) > 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 30:
        raise RuntimeError(
            "load: this looks like a file of safetensors; read it with "
            "flambeau.safetensors.load_file, or that of safetensors.torch"
        )
    if any(name.endswith("/constants.pkl") for name in names):
        raise RuntimeError("load: this is an archive of TorchScript, which holds a program")


class _Pool:
    """The storages of one file, each read once and put on its device."""

    def __init__(self, map_location: Any, swapped: bool) -> None:
        self._map_location, self._swapped = map_location, swapped
        self._loaded: dict[str, tuple[Any, int, str]] = {}
        # By identity of the typed storage handed out; holding it keeps the identity unique.
        self._handed: dict[int, tuple[Any, Any]] = {}

    def read(self, key: str, size: int) -> Any:
        """The bytes of a storage as a flat tensor."""
        raise NotImplementedError

    def persistent_load(self, pid: Any) -> Any:
        if type(pid) is tuple and len(pid) == 4 and pid[0] == "module" and isinstance(pid[1], type):
            return pid[1]  # a class, whose source the older format keeps beside it
        kind, key, device, count = _checked_pid(pid)
        size = count * kind.itemsize
        if key not in self._loaded:
            flat = self.read(key, size)
            if self._swapped and kind.itemsize > 1:
                _swap(flat, kind.dtype)
            self._loaded[key] = (locations.place(flat, device, self._map_location), size, device)
        flat, whole, _ = self._loaded[key]
        if size != whole:
            raise ValueError(f"load: storage {key!r} has {whole} bytes and elsewhere {size}")
        if len(pid) > 5 and pid[5] is not None:
            flat = self._part(flat, kind, pid[5])
        typed = fb.storage.TypedStorage(
            wrap_storage=flat.untyped_storage(), dtype=kind.dtype or fb.uint8
        )
        self._handed[id(typed)] = (typed, flat)
        return typed

    def _part(self, flat: Any, kind: torch_names.StorageType, view: Any) -> Any:
        if type(view) is not tuple or len(view) != 3:
            raise ValueError("load: the record of a storage's part is malformed")
        _, offset, count = view
        if type(offset) is not int or type(count) is not int or min(offset, count) < 0:
            raise ValueError("load: the record of a storage's part is malformed")
        start, stop = offset * kind.itemsize, (offset + count) * kind.itemsize
        if stop > flat.numel():
            raise ValueError("load: a part of a storage reaches beyond its end")
        return flat[start:stop]

    def flat_of(self, storage: Any) -> Any:
        """The bytes of a storage that ``persistent_load`` handed out."""
        found = self._handed.get(id(storage))
        if found is None:
            raise TypeError("a tensor without a storage")
        return found[1]

    def release(self) -> None:
        """Lets go of all storages: what builds the object refers to itself, and would keep them."""
        self._loaded.clear()
        self._handed.clear()


def _checked_pid(pid: Any) -> tuple[torch_names.StorageType, str, str, int]:
    if type(pid) is not tuple or len(pid) not in (5, 6) or pid[0] != "storage":
        # Only what kinds it has: an object's own text is made by its class.
        kinds = [type(part).__name__ for part in pid] if type(pid) is tuple else type(pid).__name__
        raise ValueError(f"load: unknown persistent id of {str(kinds)[:80]}")
    kind, key, device, count = pid[1:5]
    if not isinstance(kind, torch_names.StorageType):
        raise TypeError("a storage of something that is not a storage class")
    if type(key) is int:
        key = str(key)
    if type(key) is not str or type(device) is not str or type(count) is not int or count < 0:
        raise ValueError("load: the record of a storage is malformed")
    return kind, key, device, count


def _swap(flat: Any, dtype: Any) -> None:
    size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    flat.numpy().view(f"u{size}").byteswap(inplace=True)


class _ZipPool(_Pool):
    def __init__(
        self, reader: archive.ArchiveReader, top: str, map_location: Any, path: Any
    ) -> None:
        order: str = sys.byteorder
        if f"{top}byteorder" in reader.names():
            order = reader.read(f"{top}byteorder").decode("ascii", "replace").strip()
        if order not in ("little", "big"):
            raise RuntimeError(f"load: unknown byte order {order!r}")
        super().__init__(map_location, order != sys.byteorder)
        self._reader, self._top = reader, top
        # Copy on write: tensors can be changed in memory, the file cannot.
        self._file = None
        if path is not None:
            import numpy as np  # which takes longer to import than most files to read

            self._file = np.asarray(np.memmap(path, dtype=np.uint8, mode="c"))

    def read(self, key: str, size: int) -> Any:
        name = f"{self._top}data/{key}"
        start, found = self._reader.span(name)
        if found != size:
            raise ValueError(
                f"load: storage {key!r} should have {size} bytes, the file holds {found}"
            )
        if self._file is not None and size and start % 16 == 0:
            return fb.from_numpy(self._file[start : start + size])
        flat = fb.empty(size, dtype=fb.uint8)
        self._reader.read_into(name, flat.numpy())
        return flat


class _LegacyPool(_Pool):
    def __init__(self, spans: dict[str, tuple[int, int]], data: Any, *options: Any) -> None:
        super().__init__(*options)
        self._spans, self._data = spans, data

    def read(self, key: str, size: int) -> Any:
        if key not in self._spans:
            raise ValueError(f"load: storage {key!r} is missing")
        start, found = self._spans[key]
        if found != size:
            raise ValueError(
                f"load: storage {key!r} should have {size} bytes, the file holds {found}"
            )
        flat = fb.empty(size, dtype=fb.uint8)
        if size:
            memoryview(flat.numpy()).cast("B")[:] = self._data[start : start + size]
        return flat


def read_zip(
    reader: archive.ArchiveReader, top: str, map_location: Any, path: Any, unpickle: Reader
) -> Any:
    """The object of a zip archive.

    Args:
        reader: the archive.
        top: see `top_folder`.
        map_location: where storages go.
        path: of the file to map, or None to read it.
        unpickle: reads the pickle.
    """
    data = reader.read(f"{top}data.pkl")
    pool = _ZipPool(reader, top, map_location, path)
    try:
        return unpickle(data, 0, pool)
    finally:
        pool.release()


def read_legacy(data: Any, start: int, map_location: Any, unpickle: Reader) -> tuple[Any, int]:
    """The object of a legacy file in ``data`` (bytes or a mapped file), and where it ends.

    Raises:
        pickle.UnpicklingError: the file is malformed.
    """
    at, spans, system, end = _legacy_layout(data, start)
    swapped = system != (sys.byteorder == "little")
    pool = _LegacyPool(spans, data, map_location, swapped)
    try:
        return unpickle(data, at, pool), end
    finally:
        pool.release()


def _legacy_layout(data: Any, start: int) -> tuple[int, dict[str, tuple[int, int]], bool, int]:
    """Where the object's pickle starts, where each storage lies, the byte order, and the end."""
    plain = builders.Recorder()
    magic, at = pickle_machine.read(data, start, plain)
    protocol, at = pickle_machine.read(data, at, plain)
    if magic != LEGACY_MAGIC or protocol != _LEGACY_PROTOCOL:
        raise pickle.UnpicklingError("load: this is not a legacy file of torch.save")
    system, at = pickle_machine.read(data, at, plain)
    if type(system) is not dict:
        raise pickle.UnpicklingError("load: what the file says of its machine is malformed")
    little = system.get("little_endian") is not False
    root = at
    recorder = builders.Recorder()
    _, at = pickle_machine.read(data, at, recorder)
    keys, at = pickle_machine.read(data, at, plain)
    itemsizes = _itemsizes(recorder.pids)
    if type(keys) is not list or any(type(key) not in (str, int) for key in keys):
        raise pickle.UnpicklingError("load: the list of storages is malformed")
    spans = {}
    for key in map(str, keys):
        if len(data) - at < 8:
            raise pickle.UnpicklingError(f"load: the file ends before storage {key!r}")
        (count,) = struct.unpack_from("<q" if little else ">q", data, at)
        at += 8
        size = count * itemsizes.get(key, 1)
        if not 0 <= size <= len(data) - at:
            raise pickle.UnpicklingError(
                f"load: storage {key!r} has {size} bytes, the file has {len(data) - at} left"
            )
        spans[key] = (at, size)
        at += size
    return root, spans, little, at


def _itemsizes(pids: list[Any]) -> dict[str, int]:
    sizes = {}
    for pid in pids:
        if type(pid) is tuple and len(pid) > 2 and isinstance(pid[1], builders.Named):
            name = pid[1].name.removeprefix("torch.").removesuffix("Storage")
            dtype = torch_names.STORAGE_DTYPES.get(name)
            sizes[str(pid[2])] = getattr(fb, dtype).itemsize if dtype else 1
    return sizes


def mapped(path: Any) -> Any:
    """A whole file as memory, without reading it."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def safe_reader(user: list[Any], encoding: str) -> Reader:
    """Reads pickles by our machine: with ``weights_only=True``."""

    def unpickle(data: Any, start: int, pool: _Pool) -> Any:
        budget = 1_000_000 + 16 * (len(data) if isinstance(data, bytes) else 1 << 20)
        builder = builders.SafeBuilder(user, pool.persistent_load, pool.flat_of, budget)
        return pickle_machine.read(data, start, builder, encoding)[0]

    return unpickle


def recording_reader(recorder: builders.Recorder) -> Reader:
    """Builds nothing, and notes the names in the pickle."""
    return lambda data, start, pool: pickle_machine.read(data, start, recorder)[0]
