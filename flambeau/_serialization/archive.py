"""The container of a saved file: a zip of uncompressed entries, each aligned to 64 bytes.

Owns byte layout and its checks. Invariant of the reader: every byte range it hands out lies inside
the file, belongs to one entry alone, and has the size the directory states, so no later step can
read or allocate more than the file holds. It knows nothing of tensors or of what the entries mean.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

ALIGNMENT = 64
_LOCAL = struct.Struct("<4s5H3I2H")  # a zip entry's local header
_PADDING_ID = 0xFBFB  # extra field that only fills up to the alignment
_CHUNK = 1 << 20


class ArchiveWriter:
    """Writes entries one after another to a binary stream; ``close`` writes the directory."""

    def __init__(self, stream: Any) -> None:
        self._stream = _Counted(stream)
        self._zip = zipfile.ZipFile(self._stream, "w", zipfile.ZIP_STORED, allowZip64=True)

    def add(self, name: str, data: Any) -> None:
        """Stores the bytes of ``data`` (anything with the buffer protocol) under ``name``."""
        view = memoryview(data).cast("B") if len(memoryview(data)) else memoryview(b"")
        info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
        info.external_attr = 0o644 << 16
        info.file_size = view.nbytes
        zip64 = view.nbytes >= 1 << 31
        # zipfile appends a field of 20 bytes of its own to the local header of large entries.
        start = self._stream.tell() + _LOCAL.size + len(name.encode()) + 4 + (20 if zip64 else 0)
        fill = -start % ALIGNMENT
        info.extra = struct.pack("<HH", _PADDING_ID, fill) + bytes(fill)
        with self._zip.open(info, "w", force_zip64=zip64) as entry:
            for at in range(0, view.nbytes, _CHUNK):
                entry.write(view[at : at + _CHUNK])

    def close(self) -> None:
        """Writes the directory that makes the archive complete."""
        self._zip.close()


class _Counted(io.RawIOBase):
    """A stream whose position starts at zero wherever the real one stands.

    Seeking passes through where the stream can; zipfile copes with a stream that cannot.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        try:
            self._start = stream.tell()
            stream.seek(self._start)
        except (AttributeError, OSError):
            self._start = None
        self._written = 0

    def tell(self) -> int:
        return self._written if self._start is None else self._stream.tell() - self._start

    def seek(self, offset: int, whence: int = 0) -> int:
        if self._start is None:
            raise io.UnsupportedOperation("seek")
        if whence == 0:
            offset += self._start
        return self._stream.seek(offset, whence) - self._start

    def seekable(self) -> bool:
        return self._start is not None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        done = 0
        while done < view.nbytes:
            # Raw files may take only a part; other file-like objects may return None.
            count = self._stream.write(view[done:])
            done = view.nbytes if count is None else done + count
        self._written += done
        return done

    def flush(self) -> None:
        if hasattr(self._stream, "flush"):
            self._stream.flush()


@contextlib.contextmanager
def atomic_file(path: str) -> Iterator[BinaryIO]:
    """Opens a file that takes the place of ``path`` only when the block ends without an exception.

    The bytes are on the disk before the name changes hands, so that a crash leaves either the old
    file or the new one. Devices and pipes cannot be replaced and are written to directly.
    """
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"save: Parent directory {folder} does not exist.")
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            yield file
        return
    part = os.path.join(folder, f".{os.path.basename(path)[:100]}.{os.urandom(6).hex()}.part")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            os.chmod(part, os.stat(path).st_mode & 0o7777)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise
    with contextlib.suppress(OSError):  # not every file system can sync a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class ArchiveReader:
    """Checked access to the entries of an archive in a seekable binary stream.

    Raises:
        RuntimeError: the stream does not hold a sound archive of ours; the text says why.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        try:
            self._zip = zipfile.ZipFile(stream, "r")
        except (zipfile.BadZipFile, struct.error, ValueError, OverflowError, EOFError) as error:
            raise _broken(f"not a readable zip archive ({error})") from error
        except (NotImplementedError, MemoryError, OSError) as error:
            raise _broken(f"its zip directory cannot be read ({error})") from error
        self._entries: dict[str, tuple[int, int, int]] = {}  # name -> (start, size, crc)
        self._scan()

    def _scan(self) -> None:
        taken = []
        for info in self._zip.infolist():
            if info.filename in self._entries:
                raise _broken(f"two entries are named {info.filename!r}")
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
                raise _broken(f"entry {info.filename!r} is compressed or encrypted")
            if info.file_size != info.compress_size:
                raise _broken(f"entry {info.filename!r} states two different sizes")
            start = self._data_start(info)
            end = start + info.file_size
            if end > self._zip.start_dir:
                raise _broken(f"entry {info.filename!r} reaches beyond the end of the data")
            taken.append((info.header_offset, end, info.filename))
            self._entries[info.filename] = (start, info.file_size, info.CRC)
        taken.sort()
        for (_, end, one), (begin, _, other) in zip(taken, taken[1:], strict=False):
            if begin < end:
                raise _broken(f"entries {one!r} and {other!r} overlap")

    def _data_start(self, info: zipfile.ZipInfo) -> int:
        if info.header_offset < 0:
            raise _broken(f"entry {info.filename!r} starts before the file")
        self._stream.seek(info.header_offset)
        raw = self._stream.read(_LOCAL.size)
        if len(raw) != _LOCAL.size or raw[:4] != b"PK\3\4":
            raise _broken(f"entry {info.filename!r} has no header where the directory says")
        name_size, extra_size = _LOCAL.unpack(raw)[-2:]
        if self._stream.read(name_size) != info.orig_filename.encode("utf-8", "surrogateescape"):
            raise _broken(f"entry {info.filename!r} has another name in its own header")
        return info.header_offset + _LOCAL.size + name_size + extra_size

    def names(self) -> list[str]:
        """All entries, in the order of the directory."""
        return list(self._entries)

    def size(self, name: str) -> int:
        """Size of an entry in bytes."""
        return self.span(name)[1]

    def span(self, name: str) -> tuple[int, int]:
        """Where an entry's bytes lie: (start, size) in the stream."""
        if name not in self._entries:
            raise _broken(f"entry {name!r} is missing")
        start, size, _ = self._entries[name]
        return start, size

    def read_into(self, name: str, allocate: Callable[[int], memoryview]) -> None:
        """Reads an entry into the memory that ``allocate(size)`` returns; checks its checksum."""
        start, size = self.span(name)
        view = allocate(size)
        self._stream.seek(start)
        crc, at = 0, 0
        while at < size:
            part = view[at : at + _CHUNK]
            count = _read_into(self._stream, part)
            if not count:
                raise _broken(f"entry {name!r} ends after {at} of {size} bytes")
            crc = zlib.crc32(part[:count], crc)
            at += count
        # PyTorch writes zero where it was told to leave checksums out.
        if self._entries[name][2] not in (crc, 0):
            raise _broken(f"entry {name!r} is damaged (its checksum does not match)")

    def read(self, name: str) -> bytes:
        """The bytes of an entry."""
        data = bytearray()

        def allocate(size: int) -> memoryview:
            data.extend(bytes(size))
            return memoryview(data)

        self.read_into(name, allocate)
        return bytes(data)


def _read_into(stream: Any, view: memoryview) -> int:
    if hasattr(stream, "readinto"):
        return stream.readinto(view) or 0
    data = stream.read(view.nbytes)
    view[: len(data)] = data
    return len(data)


def _broken(why: str) -> RuntimeError:
    return RuntimeError(f"load: this is not a sound file of flambeau.save or torch.save: {why}")
