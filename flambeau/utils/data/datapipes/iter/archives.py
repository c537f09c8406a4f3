"""Pipes that open archives and compressed files: tar, zip, gzip, bzip2, xz.

Owns the streams' parentage: an archive is closed with the last of its files. An archive that
cannot be read is an error with the path in a note.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, ClassVar

from .._decorator import functional_datapipe
from .._late import Late
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, no_length, validate_pathname_binary_tuple

__all__ = [
    "Bz2FileLoaderIterDataPipe",
    "CompressionType",
    "DecompressorIterDataPipe",
    "ExtractorIterDataPipe",
    "RarArchiveLoaderIterDataPipe",
    "TarArchiveLoaderIterDataPipe",
    "XzFileLoaderIterDataPipe",
    "ZipArchiveLoaderIterDataPipe",
]


bz2: Any = Late("bz2")
gzip: Any = Late("gzip")
lzma: Any = Late("lzma")
tarfile: Any = Late("tarfile")
zipfile: Any = Late("zipfile")


class _Archives(IterDataPipe[tuple[str, StreamWrapper]]):
    """A source of (path, stream), each of which becomes some (path, stream)."""

    def __init__(self, datapipe: Any, length: int = -1) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.length = length

    def _files(self, path: str, stream: Any) -> Iterator[tuple[str, StreamWrapper]]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[tuple[str, StreamWrapper]]:
        for data in self.datapipe:
            validate_pathname_binary_tuple(data)
            path, stream = data
            if not isinstance(stream, StreamWrapper):
                # Closed by whoever made it; kept apart so that only its own children count.
                stream = StreamWrapper(_Unclosed(stream), name=path)
            with _reading(path, stream):
                yield from self._files(path, stream)

    def __len__(self) -> int:
        if self.length == -1:
            raise no_length(self)
        return self.length


class _Unclosed:
    """A stream that is left open."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._stream)

    def close(self) -> None:
        pass


@contextlib.contextmanager
def _reading(path: str, stream: StreamWrapper) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"while files were extracted from {path}")
        raise
    finally:
        stream.autoclose()


@functional_datapipe("load_from_tar")
class TarArchiveLoaderIterDataPipe(_Archives):
    """(path, stream) of each file in tar archives (functional name: `load_from_tar`).

    Args:
        datapipe: source of (path, binary stream). Files of one that cannot be sought in must be
            read before the next is asked for.
        mode: as `tarfile.open` takes it; "r:*" finds the compression.
        length: what `len` answers; -1 for no length.

    Raises:
        TypeError: while iterating, an element is no (path, stream).
        tarfile.ReadError: while iterating, a stream is no archive.

    Example:
        >>> import io, tarfile
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> archive = io.BytesIO()
        >>> with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        ...     entry = tarfile.TarInfo("a.txt")
        ...     entry.size = 3
        ...     tar.addfile(entry, io.BytesIO(b"abc"))
        >>> _ = archive.seek(0)
        >>> files = IterableWrapper([("some.tar.gz", archive)], deepcopy=False).load_from_tar()
        >>> [(path, stream.read()) for path, stream in files]
        [('some.tar.gz/a.txt', b'abc')]
    """

    def __init__(self, datapipe: Any, mode: str = "r:*", length: int = -1) -> None:
        super().__init__(datapipe, length)
        self.mode = mode

    def _files(self, path: str, stream: Any) -> Iterator[tuple[str, StreamWrapper]]:
        if isinstance(stream.file_obj, tarfile.TarFile):
            tar = stream.file_obj
        else:
            seekable = getattr(stream, "seekable", None)
            mode = self.mode if seekable and seekable() else self.mode.replace(":", "|")
            tar = tarfile.open(fileobj=stream, mode=mode)
        for entry in tar:
            if entry.isfile():
                inner = os.path.normpath(os.path.join(path, entry.name))
                yield inner, StreamWrapper(tar.extractfile(entry), stream, name=inner)


@functional_datapipe("load_from_zip")
class ZipArchiveLoaderIterDataPipe(_Archives):
    """(path, stream) of each file in zip archives (functional name: `load_from_zip`).

    Args:
        datapipe: source of (path, binary stream that can be sought in).
        length: what `len` answers; -1 for no length.

    Raises:
        TypeError: while iterating, an element is no (path, stream).
        zipfile.BadZipFile: while iterating, a stream is no archive.

    Example:
        >>> import io, zipfile
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> archive = io.BytesIO()
        >>> with zipfile.ZipFile(archive, "w") as file:
        ...     file.writestr("in/a.txt", "abc")
        >>> files = IterableWrapper([("some.zip", archive)], deepcopy=False).load_from_zip()
        >>> [(path, stream.read()) for path, stream in files]
        [('some.zip/in/a.txt', b'abc')]
    """

    def _files(self, path: str, stream: Any) -> Iterator[tuple[str, StreamWrapper]]:
        archive = zipfile.ZipFile(stream)
        for entry in archive.infolist():
            if not entry.is_dir():
                inner = os.path.normpath(os.path.join(path, entry.filename))
                yield inner, StreamWrapper(archive.open(entry), stream, name=inner)


@functional_datapipe("load_from_bz2")
class Bz2FileLoaderIterDataPipe(_Archives):
    """(path, stream) of bzip2 files, without `.bz2` in the path (functional name:
    `load_from_bz2`).

    Args:
        datapipe: source of (path, binary stream).
        length: what `len` answers; -1 for no length.

    Raises:
        TypeError: while iterating, an element is no (path, stream).

    Example:
        >>> import bz2, io
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> file = io.BytesIO(bz2.compress(b"abc"))
        >>> pipe = IterableWrapper([("a2.bz2", file)], deepcopy=False).load_from_bz2()
        >>> [(path, stream.read()) for path, stream in pipe]
        [('a2', b'abc')]
    """

    def _files(self, path: str, stream: Any) -> Iterator[tuple[str, StreamWrapper]]:
        inner = path.removesuffix(".bz2")
        yield inner, StreamWrapper(bz2.open(stream, mode="rb"), stream, name=inner)


@functional_datapipe("load_from_xz")
class XzFileLoaderIterDataPipe(_Archives):
    """(path, stream) of xz files, without `.xz` in the path (functional name: `load_from_xz`).

    Args:
        datapipe: source of (path, binary stream).
        length: what `len` answers; -1 for no length.

    Raises:
        TypeError: while iterating, an element is no (path, stream).

    Example:
        >>> import io, lzma
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> file = io.BytesIO(lzma.compress(b"abc"))
        >>> pipe = IterableWrapper([("a.xz", file)], deepcopy=False).load_from_xz()
        >>> [(path, stream.read()) for path, stream in pipe]
        [('a', b'abc')]
    """

    def _files(self, path: str, stream: Any) -> Iterator[tuple[str, StreamWrapper]]:
        inner = path.removesuffix(".xz")
        yield inner, StreamWrapper(lzma.open(stream, mode="rb"), stream, name=inner)


@functional_datapipe("load_from_rar")
class RarArchiveLoaderIterDataPipe(_Archives):
    """RAR archives are refused: their format is not free, and needs a program of its own.

    Raises:
        NotImplementedError: always.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> IterableWrapper([]).load_from_rar()
        Traceback (most recent call last):
        ...
        NotImplementedError: load_from_rar: RAR archives are not supported; pack the files as tar...
    """

    def __init__(self, datapipe: Any, *, length: int = -1) -> None:
        raise NotImplementedError(
            "load_from_rar: RAR archives are not supported; pack the files as tar or zip"
        )


class CompressionType(Enum):
    """What `decompress` can undo."""

    GZIP = "gzip"
    LZMA = "lzma"
    TAR = "tar"
    ZIP = "zip"
    BZIP2 = "bz2"


_ENDINGS = {
    ".tar.gz": CompressionType.TAR,
    ".tar.xz": CompressionType.TAR,
    ".tar": CompressionType.TAR,
    ".xz": CompressionType.LZMA,
    ".gz": CompressionType.GZIP,
    ".zip": CompressionType.ZIP,
    ".bz2": CompressionType.BZIP2,
}


@functional_datapipe("decompress")
class DecompressorIterDataPipe(IterDataPipe[tuple[str, StreamWrapper]]):
    """(path, stream of the content) of compressed files (functional name: `decompress`).

    Args:
        source_datapipe: source of (path, binary stream).
        file_type: how they are compressed: "gzip", "lzma", "bz2", "tar" or "zip" (streams are then
            `tarfile.TarFile` and `zipfile.ZipFile`); found by the ending of the path by default.

    Raises:
        ValueError: an unknown `file_type`.
        RuntimeError: while iterating, a path has an unknown ending.

    Example:
        >>> import gzip, io
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> file = io.BytesIO(gzip.compress(b"abc"))
        >>> pipe = IterableWrapper([("a.txt.gz", file)], deepcopy=False).decompress()
        >>> [(path, stream.read()) for path, stream in pipe]
        [('a.txt.gz', b'abc')]
    """

    types = CompressionType
    _openers: ClassVar[dict[CompressionType, Callable[[Any], Any]]] = {
        CompressionType.GZIP: lambda file: gzip.GzipFile(fileobj=file),
        CompressionType.LZMA: lambda file: lzma.LZMAFile(file),
        CompressionType.TAR: lambda file: tarfile.open(fileobj=file, mode="r:*"),
        CompressionType.ZIP: lambda file: zipfile.ZipFile(file),
        CompressionType.BZIP2: lambda file: bz2.BZ2File(file),
    }

    def __init__(
        self, source_datapipe: Any, file_type: str | CompressionType | None = None
    ) -> None:
        self.source_datapipe = source_datapipe
        if isinstance(file_type, str):
            file_type = CompressionType(file_type.lower())
        self.file_type = file_type

    def _type_of(self, path: str) -> CompressionType:
        if self.file_type is not None:
            return self.file_type
        for ending, kind in _ENDINGS.items():
            if path.endswith(ending):
                return kind
        raise RuntimeError(
            f"File at {path} has file extension {os.path.splitext(path)[1]}, which does not match "
            f"what are supported by {type(self).__name__}: {', '.join(_ENDINGS)}."
        )

    def __iter__(self) -> Iterator[tuple[str, StreamWrapper]]:
        for path, file in self.source_datapipe:
            parent = file if isinstance(file, StreamWrapper) else None
            try:
                content = self._openers[self._type_of(path)](file)
                yield path, StreamWrapper(content, parent, name=path)
            finally:
                if parent is not None:
                    parent.autoclose()


@functional_datapipe("extract")
class ExtractorIterDataPipe(IterDataPipe[tuple[str, StreamWrapper]]):
    """An old name of `decompress` (functional name: `extract`).

    Example:
        >>> import gzip, io
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> file = io.BytesIO(gzip.compress(b"abc"))
        >>> pipe = IterableWrapper([("a.gz", file)], deepcopy=False).extract()
        >>> [stream.read() for path, stream in pipe]
        [b'abc']
    """

    def __new__(cls, source_datapipe: Any, file_type: str | CompressionType | None = None) -> Any:
        return DecompressorIterDataPipe(source_datapipe, file_type)
