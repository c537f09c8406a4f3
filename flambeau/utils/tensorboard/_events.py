"""Event files: protocol buffers encoded by hand, framed as records with checksums.

Owns the bytes. A message is a concatenation of fields; a field is its number and wire type, then a
value. A record is length (uint64), checksum of the length, data, checksum of the data; checksums
are CRC-32C, masked. Must not know what is worth recording.

Sources: the encoding of protocol buffers; RFC 3720, appendix B.4 (CRC-32C).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping


def _crc_table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """The data as a record of an event file."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


# ---- fields ----------------------------------------------------------------------------------


def _varint(n: int) -> bytes:
    n &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def whole(number: int, value: int) -> bytes:
    """An integer, bool or enumerator."""
    return _varint(number << 3) + _varint(int(value))


def double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    """A float of four bytes; what does not fit becomes infinite."""
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return _varint(number << 3 | 5) + packed


def blob(number: int, value: bytes | str) -> bytes:
    """Bytes, text, or a message inside a message."""
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def doubles(number: int, values: Iterable[float]) -> bytes:
    values = list(values)
    return blob(number, struct.pack(f"<{len(values)}d", *values))


# ---- messages ----------------------------------------------------------------------------------


def event(walltime: float, step: int, summary: bytes | None = None) -> bytes:
    """An event; without a summary, the one that opens a file."""
    head = double(1, walltime)
    return head + (blob(3, "brain.Event:2") if summary is None else whole(2, step) + summary)


def summary(tag: str, value: bytes, plugin: tuple[str, bytes] | None = None) -> bytes:
    """The field of an event that holds one value. `plugin`: who shows it, and what it needs."""
    fields = blob(1, tag) + value
    if plugin is not None:
        fields += blob(9, blob(1, blob(1, plugin[0]) + blob(2, plugin[1])))
    return blob(5, blob(1, fields))


def scalar(value: float) -> bytes:
    return single(2, value)


def text(value: str) -> bytes:
    """A tensor of one string."""
    return blob(8, whole(1, 7) + blob(2, blob(2, whole(1, 1))) + blob(8, value))


def image(height: int, width: int, channels: int, png: bytes) -> bytes:
    return blob(4, whole(1, height) + whole(2, width) + whole(3, channels) + blob(4, png))


def histogram(
    low: float, high: float, count: float, total: float, squares: float,
    limits: Iterable[float], counts: Iterable[float],
) -> bytes:  # fmt: skip
    """`counts[i]` values lie up to `limits[i]` and beyond the limit before."""
    moments = (low, high, count, total, squares)
    fields = b"".join(double(i, x) for i, x in enumerate(moments, 1))
    return blob(5, fields + doubles(6, limits) + doubles(7, counts))


def _value(x: object) -> bytes:
    """A `google.protobuf.Value`."""
    if isinstance(x, bool):
        return whole(4, x)
    return double(2, x) if isinstance(x, (int, float)) else blob(3, str(x))


def _kind(x: object) -> int:
    return 2 if isinstance(x, bool) else 3 if isinstance(x, (int, float)) else 1


def hparams(
    values: Mapping[str, object], metrics: Iterable[str], domains: Mapping[str, Iterable[object]],
    time: float,
) -> list[tuple[str, bytes]]:  # fmt: skip
    """Tags and contents of the three values that describe a run to the hyperparameter view."""
    infos = b""
    for name, x in values.items():
        domain = b"".join(blob(1, _value(v)) for v in domains.get(name, ()))
        listed = blob(5, domain) if domain else b""
        infos += blob(4, blob(1, name) + whole(4, _kind(x)) + listed)
    infos += b"".join(blob(5, blob(1, blob(2, tag))) for tag in metrics)
    start = b"".join(blob(1, blob(1, k) + blob(2, _value(x))) for k, x in values.items())
    return [
        ("_hparams_/experiment", blob(2, infos)),
        ("_hparams_/session_start_info", blob(3, start + double(5, time))),
        ("_hparams_/session_end_info", blob(4, whole(1, 1) + double(2, time))),
    ]
