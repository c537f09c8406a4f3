"""The pipe of TFRecord files, and the little of protocol buffers that they need.

Owns the two formats: records framed by their length, and `Example` and `SequenceExample` in them.
The checksums of records are not verified.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import flambeau as fb

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, no_length, validate_pathname_binary_tuple

__all__ = ["TFRecordExample", "TFRecordExampleSpec", "TFRecordLoaderIterDataPipe"]

TFRecordExampleSpec = dict[str, tuple[tuple[int, ...], Any]]
TFRecordExample = dict[str, Any]


def records(stream: Any) -> Iterator[bytes]:
    """The records of a TFRecord file."""
    while head := stream.read(12):
        if len(head) != 12:
            raise RuntimeError("Invalid tfrecord file: failed to read the record size.")
        (length,) = struct.unpack("<Q", head[:8])
        record = stream.read(length)
        if len(record) != length:
            raise RuntimeError("Invalid tfrecord file: failed to read the record.")
        if len(stream.read(4)) != 4:
            raise RuntimeError("Invalid tfrecord file: failed to read the end token.")
        yield record


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number of seven bits per byte, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise RuntimeError("Invalid tfrecord file: a record is no Example.")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field of a message: a view of bytes, or a number."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise RuntimeError("Invalid tfrecord file: a record is no Example.")
        if at + length > len(data):
            raise RuntimeError("Invalid tfrecord file: a record is no Example.")
        yield number, data[at : at + length]
        at += length


def _values(data: memoryview) -> Any:
    """A `Feature`: a tensor of its numbers, or a list of its bytes."""
    for kind, content in _fields(data):
        if kind == 1:
            return [bytes(value) for _, value in _fields(content)]
        if kind == 2:  # packed, or each by itself
            floats = b"".join(bytes(value) for _, value in _fields(content))
            return fb.tensor(struct.unpack(f"<{len(floats) // 4}f", floats), dtype=fb.float32)
        if kind == 3:
            return fb.tensor([_signed(n) for n in _integers(content)], dtype=fb.int64)
    return []


def _integers(data: memoryview) -> Iterator[int]:
    for _, value in _fields(data):
        if isinstance(value, int):
            yield value
        else:
            at = 0
            while at < len(value):
                number, at = _varint(value, at)
                yield number


def _signed(n: int) -> int:
    return n - (1 << 64) if n >> 63 else n


def _entries(data: memoryview) -> Iterator[tuple[str, memoryview]]:
    """(key, value) of a message that is one map."""
    for _, entry in _fields(data):
        parts = dict(_fields(entry))
        yield bytes(parts.get(1, b"")).decode(), parts.get(2, memoryview(b""))


def _reshaped(values: list[Any], shape: tuple[int, ...]) -> Any:
    flat: list[Any] = []

    def flatten(value: Any) -> None:
        if isinstance(value, str | bytes):
            flat.append(value)
        else:
            for inner in value:
                flatten(inner)

    flatten(values)
    if sum(n == -1 for n in shape) > 1:
        raise RuntimeError("Shape can contain at most one dynamic dimension (-1).")
    known = math.prod(n for n in shape if n != -1)
    if len(flat) % max(known, 1) or (-1 not in shape and len(flat) != known):
        raise RuntimeError(f"Cannot reshape {len(flat)} values into shape {shape}")
    sizes = [len(flat) // known if n == -1 else n for n in shape]

    def nest(part: list[Any], sizes: list[int]) -> Any:
        if not sizes:
            return part[0]
        if len(sizes) == 1:
            return part
        step = len(part) // sizes[0]
        return [nest(part[i * step : (i + 1) * step], sizes[1:]) for i in range(sizes[0])]

    return nest(flat, sizes)


def _as_specified(value: Any, spec: tuple[Any, Any] | None) -> Any:
    if spec is None:
        return value
    shape, dtype = spec
    if isinstance(dtype, fb.dtype):
        if shape is not None:
            value = value.reshape(shape)
        return value.to(dtype)
    return value if shape is None else _reshaped(value, shape)


def parse_example(record: bytes, spec: TFRecordExampleSpec | None) -> TFRecordExample:
    """Key → values of an `Example` or `SequenceExample`.

    Args:
        record: the message.
        spec: key → (shape, dtype) of what is wanted; a dtype of None is for bytes.

    Raises:
        RuntimeError: a key that is wanted is not there, or a key comes twice.
    """
    result: TFRecordExample = {}
    for number, part in _fields(memoryview(record)):
        for key, content in _entries(part):
            if spec is not None and key not in spec:
                continue
            wanted = None if spec is None else spec[key]
            if number == 1:
                value = _values(content)
            else:
                if key in result:
                    raise RuntimeError(
                        f"TFRecord example's key {key} is contained in both the context and "
                        "feature lists. This is not supported."
                    )
                value = [_values(step) for _, step in _fields(content)]
                if wanted is not None and isinstance(wanted[1], fb.dtype):
                    value = fb.stack(value)
            result[key] = _as_specified(value, wanted)
    if spec is not None and len(result) != len(spec):
        raise RuntimeError(
            f"Example is missing some required keys: {sorted(result)} != {sorted(spec)}"
        )
    return result


@functional_datapipe("load_from_tfrecord")
class TFRecordLoaderIterDataPipe(IterDataPipe[TFRecordExample]):
    """The examples of TFRecord files, as dictionaries (functional name: `load_from_tfrecord`).

    Numbers become tensors (float32, int64), bytes lists; of a `SequenceExample`, feature lists
    become lists of them.

    Args:
        datapipe: source of (path, binary stream).
        spec: key → (shape, dtype) of what is wanted: tensors are reshaped, converted and stacked,
            bytes (dtype None) nested.
        length: what `len` answers; -1 for no length.

    Raises:
        RuntimeError: while iterating, a file is damaged or lacks a key of `spec`.

    Example:
        >>> import io, struct
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> message = bytes.fromhex("0a0f0a0d0a01781208" "1a060a0401020304")
        >>> file = io.BytesIO(struct.pack("<Q4x", len(message)) + message + bytes(4))
        >>> pipe = IterableWrapper([("a.tfrecord", file)], deepcopy=False)
        >>> list(pipe.load_from_tfrecord({"x": ((2, 2), torch.int32)}))
        [{'x': tensor([[1, 2],
                [3, 4]], dtype=torch.int32)}]
    """

    def __init__(
        self, datapipe: Any, spec: TFRecordExampleSpec | None = None, length: int = -1
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.length = length
        self.spec = spec

    def __iter__(self) -> Iterator[TFRecordExample]:
        for data in self.datapipe:
            validate_pathname_binary_tuple(data)
            path, stream = data
            try:
                for record in records(stream):
                    yield parse_example(record, self.spec)
            except RuntimeError as error:
                error.add_note(f"while records were read from {path}")
                raise
            finally:
                if isinstance(stream, StreamWrapper):
                    stream.autoclose()

    def __len__(self) -> int:
        if self.length == -1:
            raise no_length(self)
        return self.length
