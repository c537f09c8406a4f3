"""The header of a safetensors file: what it says of each tensor, checked.

Owns the layout: eight bytes with the header's length, JSON, the tensors' bytes. Invariant of what
`parse` returns: the tensors' ranges lie inside the data, follow one another without gaps, and each
has exactly the bytes that its shape and type need. It knows no tensors and no files.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any, NamedTuple

#: bits of one element, by the format's names; in the order in which files have them, last first
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
LENGTH = struct.Struct("<Q")
LONGEST = 100_000_000  # bytes of a header, as the format has it
_ALIGNMENT = 8
_METADATA = "__metadata__"
_MOST_DIMS = 64
_FIELDS = {"dtype", "shape", "data_offsets"}


class SafetensorError(ValueError):
    """A file of safetensors that is malformed, or that cannot be read here."""


class Entry(NamedTuple):
    """A tensor of the file; `start` and `stop` count from the first byte after the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """Entries in the order of their bytes, and the texts of `__metadata__`, None without."""

    entries: dict[str, Entry]
    metadata: dict[str, str] | None


def header_length(first: bytes, size: int) -> int:
    """The length of the header of a file of `size` bytes that begins with `first`."""
    if len(first) < LENGTH.size:
        raise SafetensorError(f"safetensors: the file has {size} bytes, its header needs 8")
    (length,) = LENGTH.unpack(first[: LENGTH.size])
    if length > LONGEST:
        raise SafetensorError(
            f"safetensors: expected a header of at most {LONGEST} bytes, got {length}"
        )
    if length > size - LENGTH.size:
        raise SafetensorError(
            f"safetensors: the header should have {length} bytes, the file has "
            f"{size - LENGTH.size} after its first 8"
        )
    return length


def parse(text: bytes, size: int) -> Header:
    """What a header says of `size` bytes of data that follow it.

    Raises:
        SafetensorError: it is no JSON of this kind, or its ranges and shapes do not agree.
    """
    try:
        fields = json.loads(text.decode(), object_pairs_hook=_distinct, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise SafetensorError(f"safetensors: the header is not UTF-8 ({error})") from error
    except RecursionError as error:
        raise SafetensorError("safetensors: the header is nested too deeply") from error
    except SafetensorError:
        raise
    except ValueError as error:
        raise SafetensorError(f"safetensors: the header is not valid JSON ({error})") from error
    if type(fields) is not dict:
        raise SafetensorError(f"safetensors: the header is a {type(fields).__name__}, not a dict")
    metadata = _checked_metadata(fields.pop(_METADATA, None))
    entries = sorted((_entry(n, f) for n, f in fields.items()), key=lambda e: (e.start, e.stop))
    at = 0
    for entry in entries:
        if entry.start != at:
            what = "overlaps the one before" if entry.start < at else "leaves a gap before it"
            raise SafetensorError(
                f"safetensors: tensor {entry.name!r} begins at byte {entry.start} of the data, "
                f"expected {at}: it {what}"
            )
        at = entry.stop
    if at != size:
        raise SafetensorError(
            f"safetensors: the tensors have {at} bytes, the file holds {size} for them"
        )
    return Header({entry.name: entry for entry in entries}, metadata)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SafetensorError(f"safetensors: the header names {twice[:80]!r} twice")
    return found


def _no_constant(text: str) -> Any:
    raise SafetensorError(f"safetensors: the header holds {text}, which is not JSON")


def _checked_metadata(metadata: Any) -> dict[str, str] | None:
    if metadata is None:
        return None
    if type(metadata) is not dict or any(type(v) is not str for v in metadata.values()):
        raise SafetensorError("safetensors: __metadata__ should be a dict from text to text")
    return metadata


def _entry(name: str, fields: Any) -> Entry:
    shown = f"tensor {name[:80]!r}"
    if type(fields) is not dict or not fields.keys() >= _FIELDS:
        raise SafetensorError(f"safetensors: {shown} needs {', '.join(sorted(_FIELDS))}")
    dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if type(dtype) is not str or dtype not in BITS:
        raise SafetensorError(f"safetensors: {shown} has the unknown dtype {str(dtype)[:40]!r}")
    if not _are_counts(shape) or len(shape) > _MOST_DIMS:
        raise SafetensorError(
            f"safetensors: the shape of {shown} should be at most {_MOST_DIMS} counts, got "
            f"{str(shape)[:80]}"
        )
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise SafetensorError(
            f"safetensors: the data_offsets of {shown} should be where it begins and ends, got "
            f"{str(offsets)[:80]}"
        )
    start, stop = offsets
    bits = math.prod(shape) * BITS[dtype]
    if bits != 8 * (stop - start):
        raise SafetensorError(
            f"safetensors: {shown} of shape {shape} and dtype {dtype} needs {-(-bits // 8)} bytes, "
            f"its data_offsets give it {stop - start}"
        )
    return Entry(name, dtype, tuple(shape), start, stop)


def _are_counts(values: Any) -> bool:
    return type(values) is list and all(type(n) is int and 0 <= n < 1 << 63 for n in values)


def make(tensors: list[tuple[str, str, list[int], int]], metadata: dict[str, str] | None) -> bytes:
    """The first bytes of a file, with its length and header, for tensors in this order.

    Args:
        tensors: name, dtype in the format's words, shape and number of bytes of each.
        metadata: texts to store beside them.
    """
    fields: dict[str, Any] = {} if metadata is None else {_METADATA: dict(sorted(metadata.items()))}
    at = 0
    for name, dtype, shape, size in tensors:
        fields[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > LONGEST:
        raise SafetensorError(f"safetensors: the header has {len(text)} bytes, at most {LONGEST}")
    return LENGTH.pack(len(text)) + text
