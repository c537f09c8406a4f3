"""Writing the files that PyTorch reads: zip archives, and the streams before 1.6.

Owns the order of the records. Invariant: the whole object is turned into a pickle before a byte is
written. See Note [PyTorch's files].
"""

from __future__ import annotations

import hashlib
import pickle
import struct
import sys
from typing import Any

from . import archive, pickle_writer, pytorch_files, tensors_out


class Prepared:
    """An object ready to be written.

    Args:
        obj: the object.
        protocol: of the pickle.
        legacy: write the older format.

    Raises:
        TypeError: something inside cannot be saved.
    """

    def __init__(self, obj: Any, protocol: int, legacy: bool) -> None:
        self._tensors = tensors_out.TensorsOut(legacy)
        self._pickle = pickle_writer.write(obj, self._tensors.special, protocol)
        self._legacy = legacy

    def write(self, stream: Any, top: str) -> None:
        """Writes the file; ``top`` names the archive's folder."""
        payloads = self._tensors.payloads()
        if self._legacy:
            self._write_legacy(stream, payloads)
            return
        writer = archive.ArchiveWriter(stream)
        writer.add(f"{top}/data.pkl", self._pickle)
        writer.add(f"{top}/.format_version", b"1")
        writer.add(f"{top}/.storage_alignment", str(archive.ALIGNMENT).encode())
        writer.add(f"{top}/byteorder", sys.byteorder.encode())
        for number, data in enumerate(payloads):
            writer.add(f"{top}/data/{number}", data)
        writer.add(f"{top}/version", b"3\n")
        mark = hashlib.blake2b(self._pickle, digest_size=20).digest()
        text = str(int.from_bytes(mark, "big"))[:40].zfill(40)
        writer.add(f"{top}/.data/serialization_id", text.encode())
        writer.close()

    def _write_legacy(self, stream: Any, payloads: list[Any]) -> None:
        system = {
            "protocol_version": 1001,
            "little_endian": sys.byteorder == "little",
            "type_sizes": {"short": 2, "int": 4, "long": 4},
        }
        for part in (pytorch_files.LEGACY_MAGIC, 1001, system):
            stream.write(pickle.dumps(part, 2))
        stream.write(self._pickle)
        stream.write(pickle.dumps([str(number) for number in range(len(payloads))], 2))
        for number, data in enumerate(payloads):
            size = self._tensors.itemsize(number)
            stream.write(struct.pack("=q", data.nbytes // size))
            stream.write(memoryview(data).cast("B") if data.nbytes else b"")
