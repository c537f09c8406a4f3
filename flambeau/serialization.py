"""``save`` and ``load``: one file for a tree of Python data and tensors.

Owns the public functions and where the bytes go. Loading never imports a module or calls code that
the file names, unless the user says ``weights_only=False``. See Note [The file format].
"""

# Note [The file format]
# ----------------------
# By default PyTorch's: see Note [PyTorch's files]. With format="flambeau":
# A zip archive without compression, each entry aligned to 64 bytes so that it can be mapped:
#   index.json   {"format": "flambeau", "version": 1, "root": value, "nodes": [...],
#                 "storages": [{"nbytes": n, "device": text, "entry": name or null}, ...]}
#   data/0 ...   the storages' bytes, little-endian, in the order of the table.
# A value is a JSON scalar or a dict with one key that names its kind; {"node": i} refers to an
# earlier node. Readers check every number: see the invariants of the parts in `_serialization`.

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import flambeau as fb

from ._serialization import (
    archive,
    builders,
    locations,
    python_pickle,
    pytorch_files,
    pytorch_out,
    tree,
)

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
]

DEFAULT_PROTOCOL = 2
MAP_LOCATION = Callable[[Any, str], Any] | str | dict[str, str] | None

_INDEX = "index.json"
_VERSION = 1
_ENCODINGS = ("utf-8", "ascii", "latin1", "bytes")
_FORBIDDING = ("FLAMBEAU_NO_UNSAFE_LOAD", "TORCH_FORCE_WEIGHTS_ONLY_LOAD")
_TRUE = ("1", "y", "yes", "true")


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    *,
    format: str = "torch",
) -> None:
    """Saves an object to a file that PyTorch reads too.

    Tensors keep dtype, size, strides, device and attributes; those that share memory share it after
    loading. A file at ``f`` is replaced only once the new one is complete on the disk.

    Args:
        obj: tensors, parameters and plain data in containers, or whole modules and other objects
            that `pickle` can describe; `load` builds plain data alone unless told otherwise.
        f: a path, or a binary stream with ``write``.
        pickle_module: None or `pickle`; the pickle is written by a writer of our own.
        pickle_protocol: what the pickle states, 2 to 5; PyTorch's checked reader knows 2.
        _use_new_zipfile_serialization: False writes the format of PyTorch before 1.6.
        format: "torch", or "flambeau" for a file with a JSON index, which can hold data alone.

    Raises:
        TypeError: something in ``obj`` cannot be saved.
        ValueError: with format "flambeau", a container in ``obj`` contains itself.
        RuntimeError: the folder of ``f`` does not exist.

    Example:
        >>> import io
        >>> buffer = io.BytesIO()
        >>> save({"step": 3, "w": fb.ones(2)}, buffer)
        >>> load(buffer)
        {'step': 3, 'w': tensor([1., 1.])}
    """
    if pickle_module not in (None, pickle):
        raise ValueError(f"save: expected None or pickle as pickle_module, got {pickle_module!r}")
    if pickle_protocol not in (2, 3, 4, 5):
        raise ValueError(f"save: expected pickle_protocol from 2 to 5, got {pickle_protocol!r}")
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    if path is None and not hasattr(f, "write"):
        raise AttributeError(
            f"save: expected a path or an object with a write method as f, got {type(f).__name__}"
        )
    # All of it is checked before a byte is written.
    if format == "flambeau":
        encoder = tree.Encoder()
        write = functools.partial(_write, root=encoder.encode(obj), encoder=encoder)
    elif format == "torch":
        prepared = pytorch_out.Prepared(obj, pickle_protocol, not _use_new_zipfile_serialization)
        stem = os.path.splitext(os.path.basename(path))[0] if path else ""
        write = functools.partial(prepared.write, top=stem or "archive")
    else:
        raise ValueError(f'save: expected format "torch" or "flambeau", got {format!r}')
    if path is None:
        write(f)
    else:
        with archive.atomic_file(path) as stream:
            write(stream)


def _write(stream: Any, root: Any, encoder: tree.Encoder) -> None:
    table, writer = encoder.table, archive.ArchiveWriter(stream)
    records = []
    for number, device in enumerate(table.devices):
        data = table.payload(number)
        entry = None if data is None else f"data/{number}"
        if entry is not None:
            writer.add(entry, data)
        records.append(
            {"nbytes": 0 if data is None else data.nbytes, "device": device, "entry": entry}
        )
    index = {
        "format": "flambeau",
        "version": _VERSION,
        "root": root,
        "nodes": encoder.nodes,
        "storages": records,
    }
    writer.add(_INDEX, json.dumps(index, separators=(",", ":"), allow_nan=False).encode())
    writer.close()


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Loads what ``save`` or PyTorch wrote.

    Args:
        f: a path, or a seekable binary stream.
        map_location: where tensors go: a device or its name; a dict from saved to wanted names; or
            a function of (storage, saved name) that returns a storage on the wanted device, or None
            to leave it. By default they return to the device they were saved from.
        pickle_module: None, or `pickle`, which needs ``weights_only=False``.
        weights_only: build data alone: tensors, numbers, containers and other plain data, and what
            `add_safe_globals` allowed. False: run Python's pickle, by which a file can run any
            code. By default True.
        mmap: map the file into memory instead of reading it: bytes are read when they are first
            used. Writing to such a tensor does not change the file. Needs a path.
        pickle_load_args: ``encoding`` of texts that Python 2 wrote: "utf-8", "ascii", "latin1" or
            "bytes".

    Raises:
        pickle.UnpicklingError: the file's pickle is malformed, or names something not allowed.
        RuntimeError: the file is of no known kind, truncated or damaged, or a device is missing.
        ValueError: the file's index describes something impossible.
        FileNotFoundError: there is no such file.
    """
    unpickle = _reader(pickle_module, weights_only, pickle_load_args)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as stream:
            return _read(stream, map_location, os.fspath(f), bool(mmap), unpickle)
    if mmap:
        raise ValueError("load: f must be a path (str or os.PathLike) in order to use mmap=True")
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"load: expected a path or a seekable binary stream as f, got {type(f).__name__} "
                f"without {method}; read it into an io.BytesIO first"
            )
    return _read(f, map_location, None, False, unpickle)


def _reader(pickle_module: Any, weights_only: bool | None, options: dict[str, Any]) -> Any:
    encoding = options.pop("encoding", "utf-8")
    if options or encoding not in _ENCODINGS:
        raise TypeError(
            f"load: expected encoding as one of {', '.join(_ENCODINGS)} and no other option, got "
            f"{encoding!r} and {sorted(options)}"
        )
    if pickle_module not in (None, pickle):
        raise ValueError(f"load: expected None or pickle as pickle_module, got {pickle_module!r}")
    forced = [name for name in _FORBIDDING if os.environ.get(name, "0").lower() in _TRUE]
    if weights_only is None or weights_only or forced:
        if pickle_module is not None:
            raise RuntimeError(
                "load: can not safely load weights when explicit pickle_module is passed; leave "
                "it out or pass weights_only=False"
            )
        if forced and weights_only is False:
            warnings.warn(
                f"load: {forced[0]} is set, so the file is read with weights_only=True",
                stacklevel=3,
            )
        return pytorch_files.safe_reader(_safe_globals, encoding)
    warnings.warn(
        "load: weights_only=False: the file can run any code while it is read; do this only with "
        "files whose origin you trust",
        stacklevel=3,
    )
    return python_pickle.reader(encoding)


def _read(stream: Any, map_location: Any, path: Any, mapped: bool, unpickle: Any) -> Any:
    if isinstance(stream, io.BytesIO):
        stream.seek(0)
    start = stream.tell()
    head = stream.read(512)
    if pytorch_files.is_legacy(head):
        if mapped:
            raise RuntimeError("load: mmap=True needs a zip file; this one is of the older kind")
        if path is not None:
            return pytorch_files.read_legacy(
                pytorch_files.mapped(path), start, map_location, unpickle
            )[0]
        data = head + stream.read()
        value, end = pytorch_files.read_legacy(data, 0, map_location, unpickle)
        stream.seek(start + end)
        return value
    pytorch_files.refuse_foreign(head, [])
    stream.seek(start)
    mapped_path = path if mapped else None
    return read_archive(archive.ArchiveReader(stream), map_location, mapped_path, unpickle)


def read_archive(
    reader: archive.ArchiveReader, map_location: Any, mapped_path: Any = None, unpickle: Any = None
) -> Any:
    """The object of an archive that is open; ``unpickle``: by default builds plain data alone."""
    if _INDEX in reader.names():
        index = _index(reader.read(_INDEX))
        pool = _StoragePool(reader, index["storages"], map_location, mapped_path)
        return tree.Decoder(pool).decode(index["nodes"], index["root"])
    pytorch_files.refuse_foreign(b"", reader.names())
    top = pytorch_files.top_folder(reader.names())
    if top is None:
        raise RuntimeError(
            "load: this is neither a file of flambeau.save nor one of torch.save: it has no "
            f"{_INDEX} and no data.pkl"
        )
    if unpickle is None:
        unpickle = _reader(None, None, {})
    return pytorch_files.read_zip(reader, top, map_location, mapped_path, unpickle)


def _index(raw: bytes) -> dict[str, Any]:
    try:
        index = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"load: the index is not valid JSON ({error})") from error
    if not isinstance(index, dict) or index.get("format") != "flambeau":
        raise ValueError("load: the index is not one of flambeau.save")
    if index.get("version") != _VERSION:
        raise RuntimeError(
            f"load: expected a file of version {_VERSION}, got version {index.get('version')!r}; "
            "a newer flambeau may have written it"
        )
    missing = {"root", "nodes", "storages"} - index.keys()
    if missing:
        raise ValueError(f"load: the index lacks {', '.join(sorted(missing))}")
    return index


class _StoragePool:
    """Hands out each storage of a file, read once, on the device where its tensors belong."""

    def __init__(
        self, reader: archive.ArchiveReader, records: Any, map_location: Any, mapped_path: Any
    ) -> None:
        if not isinstance(records, list):
            raise ValueError("load: the index has no list of storages")
        self._reader, self._records = reader, records
        self._map_location = map_location
        self._file = _map_file(mapped_path) if mapped_path is not None else None
        self._loaded: dict[int, tuple[Any, str]] = {}

    def __call__(self, number: Any) -> tuple[Any, str]:
        if type(number) is not int or not 0 <= number < len(self._records):
            raise ValueError(f"load: a tensor refers to storage {number!r}, which does not exist")
        if number not in self._loaded:
            self._loaded[number] = self._load(self._records[number])
        return self._loaded[number]

    def _load(self, record: Any) -> tuple[Any, str]:
        if not isinstance(record, dict) or not isinstance(record.get("device"), str):
            raise ValueError("load: the record of a storage is malformed")
        entry, saved = record.get("entry"), record["device"]
        if entry is None:
            return None, "meta"
        if not isinstance(entry, str):
            raise ValueError(f"load: a storage's entry should be a name, got {entry!r}")
        if self._reader.size(entry) != record.get("nbytes"):
            raise ValueError(
                f"load: storage {entry!r} should have {record.get('nbytes')!r} bytes, the file "
                f"holds {self._reader.size(entry)}"
            )
        flat = self._bytes(entry)
        flat = locations.place(flat, saved, self._map_location)
        return flat, str(flat.device)

    def _bytes(self, entry: str) -> Any:
        start, size = self._reader.span(entry)
        if self._file is not None and size:
            return fb.from_numpy(self._file[start : start + size])
        flat = fb.empty(size, dtype=fb.uint8)
        self._reader.read_into(entry, flat.numpy())
        return flat


def _map_file(path: Any) -> Any:
    import numpy as np

    # Copy on write: tensors can be changed in memory, the file cannot.
    return np.asarray(np.memmap(path, dtype=np.uint8, mode="c"))


_safe_globals: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allows classes and functions to files read with ``weights_only=True``.

    Args:
        safe_globals: classes and functions, or pairs of one and the full name that files use.

    Raises:
        TypeError: an item has no name and none was given.
    """
    for item in safe_globals:
        builders.full_name(item)
    _safe_globals.extend(item for item in safe_globals if item not in _safe_globals)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` allowed."""
    return list(_safe_globals)


def clear_safe_globals() -> None:
    """Forgets what `add_safe_globals` allowed."""
    _safe_globals.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Allows classes and functions as `add_safe_globals` does, within a ``with`` block."""
    before = list(_safe_globals)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe_globals[:] = before


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that `load` would refuse; nothing of the file is built.

    Args:
        f: a path or a seekable binary stream.

    Raises:
        RuntimeError: the file is of no known kind.
        pickle.UnpicklingError: its pickle is malformed.
    """
    recorder = builders.Recorder()
    unpickle = pytorch_files.recording_reader(recorder)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as stream:
            _read(stream, "meta", None, False, unpickle)
    else:
        _read(f, "meta", None, False, unpickle)
    return builders.unknown_names(_safe_globals, recorder)
