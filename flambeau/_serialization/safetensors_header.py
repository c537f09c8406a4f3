"""The header of a safetensors file: what it says of each tensor, checked.

Owns the layout: eight bytes with the header's length, JSON, the tensors' bytes; the JSON is read
in C++ (`csrc/files/safetensors.h`). Invariant of what `parse` returns: the tensors' ranges lie
inside the data, follow one another without gaps, and each has exactly the bytes that its shape and
type need. It knows no tensors and no files.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

from flambeau import _C

LENGTH = struct.Struct("<Q")
LONGEST = 100_000_000  # bytes of a header, as the format has it
_ALIGNMENT = 8
_METADATA = "__metadata__"


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
        tensors, metadata = _C._safetensors_header(text, size)
    except ValueError as error:
        raise SafetensorError(f"safetensors: {error}") from None
    return Header({name: Entry(name, *rest) for name, *rest in tensors}, metadata)


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
