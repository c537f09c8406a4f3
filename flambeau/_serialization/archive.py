"""The container of a saved file: a zip of uncompressed entries, each aligned to 64 bytes.

Owns byte layout and its checks; the directory is read in C++ (`csrc/files/zip.h`). Invariant of the
reader: every byte range it hands out lies inside the file, belongs to one entry alone, and has the
size the directory states, so no later step can read or allocate more than the file holds. It knows
nothing of tensors or of what the entries mean.

Source: PKWARE, APPNOTE 6.3.9.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

from flambeau import _C

ALIGNMENT = 64
_LOCAL = struct.Struct("<4s5H3I2H")  # a zip entry's local header
_CENTRAL = struct.Struct("<4s6H3I5H2I")  # its record in the directory
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_DATE = 0x21  # 1980-01-01
_UTF8 = 0x800
_MAX_16, _MAX_32 = (1 << 16) - 1, (1 << 32) - 1
# What one call writes, see kPiece in csrc/files/zip_writer.cpp.
_PIECE = 1 << 20
_STRETCH = 16 << 20  # bytes after which a file that is synced begins to be written to the disk
_PADDING_ID = 0xFBFB  # extra field that only fills up to the alignment


class ArchiveWriter:
    """Writes entries one after another to a binary stream; ``close`` writes the directory."""

    def __init__(self, stream: Any) -> None:
        self._stream = _Counted(stream)
        self._directory: list[bytes] = []

    def add(self, name: str, data: Any) -> None:
        """Stores the bytes of ``data`` (anything with the buffer protocol) under ``name``."""
        view = memoryview(data).cast("B") if len(memoryview(data)) else memoryview(b"")
        self.add_parts(name, [view])

    def add_parts(self, name: str, parts: list[Any]) -> None:
        """Stores the bytes of several buffers, one after another, under ``name``."""
        size, crc, raw = sum(len(part) for part in parts), 0, name.encode()
        for part in parts:
            crc = _C._crc32(part, crc)
        if len(raw) > _MAX_16:
            raise ValueError(f"save: a name of {len(raw)} bytes in an archive")
        flags = 0 if raw.isascii() else _UTF8
        header = self._stream.written
        wide = struct.pack("<2H2Q", 1, 16, size, size) if size >= _MAX_32 else b""
        fill = -(header + _LOCAL.size + len(raw) + len(wide) + 4) % ALIGNMENT
        extra = wide + struct.pack("<HH", _PADDING_ID, fill) + bytes(fill)
        version, shown = (45, _MAX_32) if wide else (20, size)
        common = (version, flags, 0, 0, _DATE, crc, shown, shown, len(raw))
        self._stream.write(_LOCAL.pack(b"PK\3\4", *common, len(extra)) + raw + extra)
        for part in parts:
            self._stream.write(part)
        values = [size, size] if wide else []
        values += [header] if header >= _MAX_32 else []
        more = struct.pack(f"<2H{len(values)}Q", 1, 8 * len(values), *values) if values else b""
        where = min(header, _MAX_32)
        record = (45 if more else 20, *common, len(more), 0, 0, 0, 0o644 << 16, where)
        self._directory.append(_CENTRAL.pack(b"PK\1\2", *record) + raw + more)

    def close(self) -> None:
        """Writes the directory that makes the archive complete."""
        start, directory, count = self._stream.written, b"".join(self._directory), 0
        count, size = len(self._directory), len(directory)
        end = b""
        if count > _MAX_16 or size >= _MAX_32 or start >= _MAX_32:
            at = start + size
            end = _END_64.pack(
                b"PK\6\6", _END_64.size - 12, 45, 45, 0, 0, count, count, size, start
            ) + _LOCATOR.pack(b"PK\6\7", 0, at, 1)
        count = min(count, _MAX_16)
        sizes = (min(size, _MAX_32), min(start, _MAX_32))
        end += _END.pack(b"PK\5\6", 0, 0, count, count, *sizes, 0)
        self._stream.write(directory + end)
        self._stream.flush()


class Parts:
    """A stream that keeps what is written to it as it is: the buffers, which are not copied."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def write(self, data: Any) -> int:
        self.parts.append(data)
        return len(data)


class _Counted:
    """A stream, whose writes may take a part of what they are given, and how much it took."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.written = stream, 0

    def write(self, data: Any) -> None:
        view = memoryview(data)
        done = 0
        while done < view.nbytes:
            # Raw files may take only a part; other file-like objects may return None.
            count = self._stream.write(view[done:])
            done = view.nbytes if count is None else done + count
        self.written += done

    def flush(self) -> None:
        if hasattr(self._stream, "flush"):
            self._stream.flush()


@contextlib.contextmanager
def atomic_file(path: str) -> Iterator[BinaryIO]:
    """Opens a file that takes the place of ``path`` only when the block ends without an exception.

    However the process ends, there is either the old file or the new one, whole. Where there is an
    old one, the bytes of the new are on the disk before it goes, so that a crash of the machine
    loses neither; else the system writes them in its own time. What a killed process left half
    written is removed by the next save to the path. Devices and pipes cannot be replaced and are
    written to directly.
    """
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"save: Parent directory {folder} does not exist.")
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:
            yield device
        return
    start = f".{os.path.basename(path)[:100]}."
    _drop_abandoned(folder, start)
    part, file = _new_part(folder, start, synced=os.path.exists(path))
    try:
        with file:
            yield file
            if os.path.exists(path):
                file.flush()
                os.fsync(file.fileno())
        if os.path.exists(path):
            os.chmod(part, os.stat(path).st_mode & 0o7777)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise


class _Pieces(io.FileIO):
    """A file that is written piece by piece.

    Where it will be synced, what is written is on its way to the disk while the next pieces come;
    the sync then waits for the last stretch, not for the whole file.
    """

    def __init__(self, path: str, synced: bool) -> None:
        super().__init__(path, "xb")
        self._synced, self._begun = synced, 0

    def write(self, data: Any, /) -> int:
        count = super().write(memoryview(data)[:_PIECE])
        if self._synced and (end := self.tell()) - self._begun >= _STRETCH:
            _C._begin_writing(self.fileno(), self._begun, end - self._begun)
            self._begun = end
        return count


def _new_part(folder: str, start: str, synced: bool) -> tuple[str, BinaryIO]:
    """A file to write to, which is locked as long as its writer lives."""
    while True:
        part = os.path.join(folder, f"{start}{os.urandom(6).hex()}.part")
        file: Any = io.BufferedWriter(_Pieces(part, synced))
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)  # waits for a save that takes it for abandoned
        # Which has removed it then.
        if os.path.exists(part):
            return part, file
        file.close()


def _drop_abandoned(folder: str, start: str) -> None:
    """Removes parts that nobody writes to any more."""
    with os.scandir(folder) as found:
        parts = [e.path for e in found if e.name.startswith(start) and e.name.endswith(".part")]
    for part in parts:
        with contextlib.suppress(OSError), open(part, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(part)


class ArchiveReader:
    """Checked access to the entries of an archive in a seekable binary stream.

    Raises:
        RuntimeError: the stream does not hold a sound archive of ours; the text says why.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._open(stream, _source(stream))

    def _open(self, stream: BinaryIO, source: Any) -> None:
        self._stream, self._source = stream, source  # the stream keeps the descriptor
        try:
            self._entries: dict[str, tuple[int, int, int]] = _C._zip_directory(self._source)
        except (RuntimeError, ValueError, MemoryError) as error:
            raise _broken(str(error)) from error

    def inside(self, name: str) -> ArchiveReader:
        """The archive that an entry is, whose bytes are read when they are asked for; its entries
        have checksums of their own."""
        if isinstance(self._source, tuple):
            raise _broken("an archive in an archive in an archive")
        found = ArchiveReader.__new__(ArchiveReader)
        found._open(self._stream, (self._source, *self.span(name)))
        return found

    def names(self) -> list[str]:
        """All entries, in the order of the directory."""
        return list(self._entries)

    def size(self, name: str) -> int:
        """Size of an entry in bytes."""
        return self.span(name)[1]

    def span(self, name: str) -> tuple[int, int]:
        """Where an entry's bytes lie: (start, size) in the stream."""
        found = self._entries.get(name)
        if found is None:
            raise _broken(f"entry {name!r} is missing")
        return found[0], found[1]

    def read_into(self, name: str, to: Any) -> None:
        """Reads an entry into a writable buffer of its size; checks its checksum."""
        start, size, crc = self._entries[name]
        try:
            found = _C._read_range(self._source, start, to)
        except RuntimeError as error:
            raise _broken(f"entry {name!r}: {error}") from error
        # PyTorch writes zero where it was told to leave checksums out.
        if crc not in (found, 0):
            raise _broken(f"entry {name!r} is damaged (its checksum does not match)")

    def read(self, name: str) -> bytes:
        """The bytes of an entry."""
        data = bytearray(self.span(name)[1])
        self.read_into(name, data)
        return bytes(data)


def _source(stream: Any) -> Any:
    """The descriptor of a file, or the bytes of another stream."""
    if type(stream) in (io.BufferedReader, io.BufferedRandom) and type(stream.raw) is io.FileIO:
        stream.flush()
        return stream.fileno()
    if type(stream) is io.BytesIO:
        return stream.getvalue()
    stream.seek(0)
    return stream.read()


def _broken(why: str) -> RuntimeError:
    return RuntimeError(f"load: this is not a sound file of flambeau.save or torch.save: {why}")
