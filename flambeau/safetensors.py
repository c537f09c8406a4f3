"""Files of safetensors, without the package of that name: `load_file`, `save_file`, `safe_open`.

Owns how tensors are made over the file's bytes and written from their memory. Invariant: a loaded
tensor has a storage of exactly its own bytes, which is a part of one map of the file; nothing of
the file runs. What a header may say stands in `_serialization.safetensors_header`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import Any

import flambeau as fb

from ._serialization import archive, storages
from ._serialization import safetensors_header as header
from ._serialization.safetensors_header import SafetensorError

__all__ = [
    "SafetensorError",
    "load",
    "load_file",
    "load_model",
    "safe_open",
    "save",
    "save_file",
    "save_model",
]

#: the format's names of our dtypes, in the order in which files have them, last first
_NAMES = {
    fb.bool: "BOOL", fb.uint8: "U8", fb.int8: "I8", fb.int16: "I16", fb.uint16: "U16",
    fb.float16: "F16", fb.bfloat16: "BF16", fb.int32: "I32", fb.uint32: "U32", fb.float32: "F32",
    fb.complex64: "C64", fb.float64: "F64", fb.int64: "I64", fb.uint64: "U64",
}  # fmt: skip
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_ORDER = {name: -place for place, name in enumerate(_NAMES.values())}
_BACKENDS = ("mmap", "pread")
_FRAMEWORKS = ("pt", "torch", "pytorch", "flambeau")
_SMALL_ENDIAN = sys.byteorder == "little"


class safe_open:  # noqa: N801
    """A file of safetensors whose tensors are made when they are asked for.

    Args:
        filename: path of the file.
        framework: "pt", or "flambeau".
        device: where tensors go; on "meta" nothing is read.
        backend: "mmap" maps the file once, so that bytes come when they are used and no tensor is
            copied (writing to one does not change the file); "pread" reads each tensor.

    Raises:
        SafetensorError: the file is malformed.
        FileNotFoundError: there is no such file.

    >>> import os, tempfile, flambeau as torch
    >>> from flambeau.safetensors import safe_open, save_file
    >>> path = os.path.join(tempfile.mkdtemp(), "a.safetensors")
    >>> save_file({"w": torch.arange(6).view(2, 3)}, path, metadata={"step": "3"})
    >>> with safe_open(path, framework="pt") as file:
    ...     file.keys(), file.metadata(), file.get_slice("w")[:, 1:].tolist()
    (['w'], {'step': '3'}, [[1, 2], [4, 5]])
    """

    def __init__(
        self, filename: Any, framework: str = "pt", device: Any = "cpu", *, backend: str = "mmap"
    ) -> None:
        if framework not in _FRAMEWORKS:
            raise SafetensorError(
                f"safe_open: expected framework as one of {', '.join(_FRAMEWORKS)}, got "
                f"{framework!r}"
            )
        if backend not in _BACKENDS:
            raise ValueError(f'safe_open: expected backend "mmap" or "pread", got {backend!r}')
        self._device = fb.device(device)
        path = os.fspath(filename)
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            length = header.header_length(stream.read(header.LENGTH.size), size)
            self._start = header.LENGTH.size + length
            self._header = header.parse(stream.read(length), size - self._start)
        self._whole = None
        if backend == "mmap" and self._device.type != "meta":
            self._whole = fb.UntypedStorage.from_file(path, False, size)
        self._path = os.path.abspath(path)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *error: Any) -> None:
        self._whole = None

    def keys(self) -> list[str]:
        """Names of the tensors, sorted."""
        return sorted(self._header.entries)

    def offset_keys(self) -> list[str]:
        """Names of the tensors, in the order of their bytes."""
        return list(self._header.entries)

    def metadata(self) -> dict[str, str] | None:
        """The texts stored beside the tensors; None where there are none."""
        return self._header.metadata

    def get_tensor(self, name: str) -> Any:
        """The tensor of a name.

        Raises:
            SafetensorError: there is none, or its dtype does not exist here.
        """
        entry = self._entry(name)
        dtype = _dtype(entry)
        if self._device.type == "meta":
            return fb.empty(entry.shape, dtype=dtype, device="meta")
        made = _tensor(self._bytes(entry), dtype, entry)
        return made.to(self._device)

    def get_tensors(self) -> dict[str, Any]:
        """All tensors, in the order of their bytes."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> SafeSlice:
        """The tensor of a name, of which parts are taken by an index."""
        return SafeSlice(self, self._entry(name))

    def _entry(self, name: str) -> header.Entry:
        entry = self._header.entries.get(name)
        if entry is None:
            raise SafetensorError(f"safe_open: File does not contain tensor {name}")
        return entry

    def _bytes(self, entry: header.Entry) -> Any:
        start, stop = self._start + entry.start, self._start + entry.stop
        if self._whole is not None:
            return self._whole[start:stop]
        part = fb.UntypedStorage(stop - start)
        with open(self._path, "rb") as stream:
            stream.seek(start)
            if stop > start and stream.readinto(memoryview(part)) != stop - start:
                raise SafetensorError(f"safe_open: the file ends within tensor {entry.name!r}")
        return part


class SafeSlice:
    """What `safe_open.get_slice` gives: `slice[index]` is that part of the tensor."""

    def __init__(self, file: safe_open, entry: header.Entry) -> None:
        self._file, self._entry = file, entry

    def get_shape(self) -> list[int]:
        """The tensor's shape."""
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        """The tensor's dtype in the format's words, such as F32."""
        return self._entry.dtype

    def __getitem__(self, index: Any) -> Any:
        return self._file.get_tensor(self._entry.name)[index]


def _dtype(entry: header.Entry) -> Any:
    dtype = _DTYPES.get(entry.dtype)
    if dtype is None:
        raise SafetensorError(
            f"safetensors: tensor {entry.name!r} has dtype {entry.dtype}, which flambeau does not "
            "have"
        )
    return dtype


def _tensor(part: Any, dtype: Any, entry: header.Entry) -> Any:
    """A tensor over bytes of a file, which are copied where they lie at an odd address."""
    if part.data_ptr() % dtype.itemsize:
        part = part.clone()
    if not _SMALL_ENDIAN:
        part = part.clone()
        part.byteswap(dtype)
    flat = fb.empty(0, dtype=fb.uint8).set_(part, 0, (part.nbytes(),), (1,))
    if dtype == fb.bool and bool((flat > 1).any()):
        raise SafetensorError(
            f"safetensors: tensor {entry.name!r} of dtype BOOL holds bytes other than 0 and 1"
        )
    return fb.empty(0, dtype=dtype).set_(part, 0, entry.shape)


def load_file(filename: Any, device: Any = "cpu", *, backend: str = "mmap") -> dict[str, Any]:
    """The tensors of a file, by name.

    Args:
        filename: path of the file.
        device: as for `safe_open`.
        backend: as for `safe_open`.

    Raises:
        SafetensorError: the file is malformed, or holds a dtype that does not exist here.
    """
    with safe_open(filename, "pt", device, backend=backend) as file:
        return file.get_tensors()


def load(data: Any) -> dict[str, Any]:
    """The tensors in the bytes of a file.

    Args:
        data: bytes, which are copied once.

    Raises:
        SafetensorError: as for `load_file`.
    """
    view = memoryview(data).cast("B")
    start = header.LENGTH.size + header.header_length(bytes(view[:8]), len(view))
    found = header.parse(bytes(view[header.LENGTH.size : start]), len(view) - start)
    whole = fb.UntypedStorage(bytes(view[start:]))
    return {
        name: _tensor(whole[entry.start : entry.stop], _dtype(entry), entry)
        for name, entry in found.entries.items()
    }


def save_file(tensors: Any, filename: Any, metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a file, which takes the place of an older one only when it is complete.

    Args:
        tensors: dict from name to contiguous tensor; none shares memory with another.
        filename: path of the file.
        metadata: texts to store beside them.

    Raises:
        ValueError: a tensor is not contiguous, or its dtype does not exist in the format.
        RuntimeError: tensors share memory; `save_model` drops the names that are too many.
    """
    prepared = _prepared(tensors, metadata)
    with archive.atomic_file(os.fspath(filename)) as stream:
        _write(stream, *prepared)


def save(tensors: Any, metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors.

    Args:
        tensors: as for `save_file`.
        metadata: as for `save_file`.

    >>> import flambeau as torch
    >>> from flambeau import safetensors
    >>> safetensors.load(safetensors.save({"w": torch.ones(2)}))
    {'w': tensor([1., 1.])}
    """
    stream = io.BytesIO()
    _write(stream, *_prepared(tensors, metadata))
    return stream.getvalue()


def _prepared(tensors: Any, metadata: Any) -> tuple[bytes, list[Any]]:
    """The header and the tensors in the order of the file: wide types first, then by name."""
    if not isinstance(tensors, dict):
        raise ValueError(
            f"safetensors: Expected a dict of [str, Tensor] but received {type(tensors)}"
        )
    if metadata is not None and not (
        isinstance(metadata, dict)
        and all(type(k) is str and type(v) is str for k, v in metadata.items())
    ):
        raise ValueError("safetensors: expected metadata as a dict from str to str")
    for name, tensor in tensors.items():
        _check(name, tensor)
    shared = [names for names in _overlapping(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(
            f"safetensors: Some tensors share memory, and would be stored twice: {shared[:4]}; "
            "save a module with save_model, or clone() what is to be kept apart"
        )
    order = sorted(tensors, key=lambda name: (_ORDER[_NAMES[tensors[name].dtype]], name))
    plain = [storages.plain(tensors[name]).cpu().contiguous() for name in order]
    described = [
        (name, _NAMES[t.dtype], [int(n) for n in t.shape], t.numel() * t.element_size())
        for name, t in zip(order, plain, strict=True)
    ]
    return header.make(described, metadata), plain


def _check(name: Any, tensor: Any) -> None:
    if type(name) is not str or name == "__metadata__":
        raise ValueError(f"safetensors: expected names of tensors as keys, got {name!r}")
    if not isinstance(tensor, fb.Tensor):
        raise ValueError(
            f"safetensors: Key `{name}` is invalid, expected Tensor but received {type(tensor)}"
        )
    if tensor.dtype not in _NAMES:
        raise ValueError(f"safetensors: the format has no dtype {tensor.dtype} (tensor {name!r})")
    if tensor.device.type == "meta":
        raise ValueError(f"safetensors: tensor {name!r} is on the meta device and has no data")
    if not tensor.is_contiguous():
        raise ValueError(
            f"safetensors: You are trying to save a non contiguous tensor: `{name}`; call "
            "contiguous() first"
        )


def _write(stream: Any, head: bytes, tensors: list[Any]) -> None:
    stream.write(head)
    for tensor in tensors:
        if tensor.numel():
            start = tensor.storage_offset() * tensor.element_size()
            part = tensor.untyped_storage()[start : start + tensor.numel() * tensor.element_size()]
            if not _SMALL_ENDIAN:
                part = part.clone()
                part.byteswap(tensor.dtype)
            stream.write(memoryview(part))


# Modules ------------------------------------------------------------------------------------------


def _overlapping(tensors: dict[str, Any]) -> list[list[str]]:
    """Names in groups whose memory overlaps, each sorted."""
    ranges = []
    for name, tensor in tensors.items():
        if tensor.device.type != "meta" and tensor.numel():
            last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
            start = tensor.data_ptr()
            stop = start + (last + 1) * tensor.element_size()
            ranges.append((str(tensor.device), start, stop, name))
    groups: list[list[str]] = []
    reached: tuple[str, int] = ("", 0)
    for device, start, stop, name in sorted(ranges):
        if groups and device == reached[0] and start < reached[1]:
            groups[-1].append(name)
            reached = (device, max(reached[1], stop))
        else:
            groups.append([name])
            reached = (device, stop)
    return [sorted(names) for names in groups]


def _dropped(state: dict[str, Any], wanted: Iterable[str] = ()) -> dict[str, str]:
    """Names whose memory another name has too, each with the one that is kept.

    Args:
        state: tensors by name.
        wanted: names to keep where there is a choice.
    """
    dropped, wanted = {}, set(wanted)
    for names in _overlapping(state):
        if len(names) < 2:
            continue
        whole = [name for name in names if _covers(state[name])]
        if not whole:
            raise RuntimeError(
                f"safetensors: {names} share memory, and none of them covers all of it; clone() "
                "those that are to be saved"
            )
        kept = min(whole, key=lambda name: (name not in wanted, name))
        dropped.update({name: kept for name in names if name != kept})
    return dropped


def _covers(tensor: Any) -> bool:
    storage = tensor.untyped_storage()
    return tensor.numel() * tensor.element_size() == storage.nbytes()


def save_model(
    model: Any, filename: Any, metadata: dict[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Write a module's state; of names that share memory one is kept, and the others are noted.

    Args:
        model: the module.
        filename: path of the file.
        metadata: texts to store beside the tensors; each dropped name is added with the kept one.
        force_contiguous: write tensors of other strides as contiguous ones.

    Raises:
        ValueError: as for `save_file`.
        RuntimeError: names share memory that none of them covers.
    """
    state = model.state_dict()
    dropped = _dropped(state)
    if dropped:
        metadata = dropped | (metadata or {})
    kept = {name: tensor for name, tensor in state.items() if name not in dropped}
    if force_contiguous:
        kept = {name: tensor.contiguous() for name, tensor in kept.items()}
    save_file(kept, filename, metadata)


def load_model(
    model: Any, filename: Any, strict: bool = True, device: Any = "cpu", *, backend: str = "mmap"
) -> tuple[set[str], list[str]]:
    """Load a file into a module; names that share memory with a loaded one are not missing.

    Args:
        model: the module.
        filename: path of the file.
        strict: raise an error for names that are missing or unexpected.
        device: as for `safe_open`.
        backend: as for `safe_open`.

    Returns:
        The names that the file lacks, and those that the module lacks.

    Raises:
        RuntimeError: such names, with `strict`; shapes that differ.
    """
    state = load_file(filename, device, backend=backend)
    dropped = _dropped(model.state_dict(), state)
    missing, unexpected = model.load_state_dict(state, strict=False)
    lacking = set(missing) - dropped.keys()
    unexpected = [*unexpected, *(name for name in dropped if name not in missing)]
    if strict and (lacking or unexpected):
        lines = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        for what, names in (("Missing", lacking), ("Unexpected", unexpected)):
            if names:
                shown = ", ".join(f'"{name}"' for name in sorted(names))
                lines.append(f"    {what} key(s) in state_dict: {shown}")
        raise RuntimeError("\n".join(lines))
    return lacking, unexpected
