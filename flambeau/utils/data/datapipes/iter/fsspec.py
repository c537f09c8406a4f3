"""Pipes over file systems that the package fsspec knows, and those that we leave to it.

Owns the paths: a file is handed out with the protocol of the folder it is in. fsspec is imported
when such a pipe is made.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn, length_like, match_masks
from .utils import IterableWrapperIterDataPipe

__all__ = [
    "AISFileListerIterDataPipe",
    "AISFileLoaderIterDataPipe",
    "FSSpecFileListerIterDataPipe",
    "FSSpecFileOpenerIterDataPipe",
    "FSSpecSaverIterDataPipe",
    "IoPathFileListerIterDataPipe",
    "IoPathFileOpenerIterDataPipe",
    "IoPathSaverIterDataPipe",
    "S3FileListerIterDataPipe",
    "S3FileLoaderIterDataPipe",
]


def _fsspec() -> Any:
    try:
        import fsspec
    except ImportError:
        raise ModuleNotFoundError(
            "Package `fsspec` is required to be installed to use this datapipe. Please use `pip "
            "install fsspec` to install the package"
        ) from None
    return fsspec


def _file_system(uri: str, options: dict[str, Any]) -> tuple[Any, str]:
    found: tuple[Any, str] = _fsspec().core.url_to_fs(uri, **options)
    return found


@functional_datapipe("list_files_by_fsspec")
class FSSpecFileListerIterDataPipe(IterDataPipe[str]):
    """Paths of the files in folders of any file system (functional name: `list_files_by_fsspec`).

    Args:
        root: a folder or file with its protocol, a sequence of them, or a pipe.
        masks: pattern of a shell, or a list of them, that the path must fit; "" for all.
        **kwargs: arguments of the file system.

    Raises:
        ModuleNotFoundError: fsspec is not installed.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import FSSpecFileLister
        >>> list(FSSpecFileLister("s3://bucket/folder"))  # doctest: +SKIP
        ['s3://bucket/folder/a.csv']
    """

    def __init__(
        self,
        root: str | Sequence[str] | IterDataPipe[str],
        masks: str | list[str] = "",
        **kwargs: Any,
    ) -> None:
        _fsspec()
        if isinstance(root, str):
            root = [root]
        if not isinstance(root, IterDataPipe):
            root = IterableWrapperIterDataPipe(root)
        self.datapipe: Any = root
        self.masks = masks
        self.kwargs_for_connection = kwargs

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            system, path = _file_system(root, self.kwargs_for_connection)
            if system.isfile(path):
                yield root
                continue
            protocol, separator, _ = root.partition("://")
            prefix = protocol + separator if separator else ""
            for name in system.ls(path, detail=False):
                if not match_masks(name, self.masks):
                    continue
                if prefix and name.startswith(prefix):
                    yield name
                elif name.startswith(path):
                    yield prefix + name
                else:
                    yield prefix + posixpath.join(path, name)


@functional_datapipe("open_files_by_fsspec")
class FSSpecFileOpenerIterDataPipe(IterDataPipe[tuple[str, StreamWrapper]]):
    """(path, stream) of each path of any file system (functional name: `open_files_by_fsspec`).

    Args:
        source_datapipe: source of paths with their protocols.
        mode: as `open` takes it.
        kwargs_for_open: more arguments of the file system's `open`.
        **kwargs: arguments of the file system.

    Raises:
        ModuleNotFoundError: fsspec is not installed.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> paths = IterableWrapper(["s3://bucket/a.csv"])
        >>> list(paths.open_files_by_fsspec())  # doctest: +SKIP
        [('s3://bucket/a.csv', StreamWrapper<...>)]
    """

    def __init__(
        self,
        source_datapipe: Any,
        mode: str = "r",
        *,
        kwargs_for_open: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        _fsspec()
        self.source_datapipe = source_datapipe
        self.mode = mode
        self.kwargs_for_open = kwargs_for_open or {}
        self.kwargs_for_connection = kwargs

    def __iter__(self) -> Iterator[tuple[str, StreamWrapper]]:
        for uri in self.source_datapipe:
            system, path = _file_system(uri, self.kwargs_for_connection)
            file = system.open(path, self.mode, **self.kwargs_for_open)
            yield uri, StreamWrapper(file, name=uri)

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


@functional_datapipe("save_by_fsspec")
class FSSpecSaverIterDataPipe(IterDataPipe[str]):
    """Writes files to any file system and hands out their paths (functional name:
    `save_by_fsspec`).

    Args:
        source_datapipe: source of (path, content).
        mode: as `open` takes it.
        filepath_fn: function of the first column: the path.
        kwargs_for_open: more arguments of the file system's `open`.
        **kwargs: arguments of the file system.

    Raises:
        ModuleNotFoundError: fsspec is not installed.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> contents = IterableWrapper([("memory://a.csv", "1,2")])
        >>> list(contents.save_by_fsspec())  # doctest: +SKIP
        ['memory://a.csv']
    """

    def __init__(
        self,
        source_datapipe: Any,
        mode: str = "w",
        filepath_fn: Callable[[Any], str] | None = None,
        *,
        kwargs_for_open: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        _fsspec()
        if filepath_fn is not None:
            _check_unpickable_fn(filepath_fn)
        self.source_datapipe = source_datapipe
        self.mode = mode
        self.filepath_fn = filepath_fn
        self.kwargs_for_open = kwargs_for_open or {}
        self.kwargs_for_connection = kwargs

    def __iter__(self) -> Iterator[str]:
        for name, content in self.source_datapipe:
            uri = name if self.filepath_fn is None else self.filepath_fn(name)
            system, path = _file_system(uri, self.kwargs_for_connection)
            with system.open(path, self.mode, **self.kwargs_for_open) as file:
                file.write(content)
            yield uri

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


class _LeftToFsspec(IterDataPipe[Any]):
    """A pipe of torchdata for which a pipe of fsspec stands."""

    _instead = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}: not supported; use {self._instead}, which reaches the same "
            "files through fsspec"
        )


@functional_datapipe("list_files_by_s3")
class S3FileListerIterDataPipe(_LeftToFsspec):
    """Refused: `list_files_by_fsspec` with `s3://` does it, where s3fs is installed.

    >>> from flambeau.utils.data.datapipes.iter import S3FileLister
    >>> S3FileLister([])
    Traceback (most recent call last):
    ...
    NotImplementedError: S3FileListerIterDataPipe: not supported; use FSSpecFileLister, which...
    """

    _instead = "FSSpecFileLister"


@functional_datapipe("load_files_by_s3")
class S3FileLoaderIterDataPipe(_LeftToFsspec):
    """Refused: `open_files_by_fsspec` with `s3://` does it, where s3fs is installed.

    >>> from flambeau.utils.data.datapipes.iter import S3FileLoader
    >>> S3FileLoader([])
    Traceback (most recent call last):
    ...
    NotImplementedError: S3FileLoaderIterDataPipe: not supported; use FSSpecFileOpener, which...
    """

    _instead = "FSSpecFileOpener"


@functional_datapipe("list_files_by_ais")
class AISFileListerIterDataPipe(_LeftToFsspec):
    """Refused: `list_files_by_fsspec` with the protocol of the bucket does it.

    >>> from flambeau.utils.data.datapipes.iter import AISFileLister
    >>> AISFileLister([])
    Traceback (most recent call last):
    ...
    NotImplementedError: AISFileListerIterDataPipe: not supported; use FSSpecFileLister, which...
    """

    _instead = "FSSpecFileLister"


@functional_datapipe("load_files_by_ais")
class AISFileLoaderIterDataPipe(_LeftToFsspec):
    """Refused: `open_files_by_fsspec` with the protocol of the bucket does it.

    >>> from flambeau.utils.data.datapipes.iter import AISFileLoader
    >>> AISFileLoader([])
    Traceback (most recent call last):
    ...
    NotImplementedError: AISFileLoaderIterDataPipe: not supported; use FSSpecFileOpener, which...
    """

    _instead = "FSSpecFileOpener"


@functional_datapipe("list_files_by_iopath")
class IoPathFileListerIterDataPipe(_LeftToFsspec):
    """Refused: `list_files_by_fsspec` does it.

    >>> from flambeau.utils.data.datapipes.iter import IoPathFileLister
    >>> IoPathFileLister("s3://bucket")
    Traceback (most recent call last):
    ...
    NotImplementedError: IoPathFileListerIterDataPipe: not supported; use FSSpecFileLister, which...
    """

    _instead = "FSSpecFileLister"


@functional_datapipe("open_files_by_iopath")
class IoPathFileOpenerIterDataPipe(_LeftToFsspec):
    """Refused: `open_files_by_fsspec` does it.

    >>> from flambeau.utils.data.datapipes.iter import IoPathFileOpener
    >>> IoPathFileOpener([])
    Traceback (most recent call last):
    ...
    NotImplementedError: IoPathFileOpenerIterDataPipe: not supported; use FSSpecFileOpener, which...
    """

    _instead = "FSSpecFileOpener"


@functional_datapipe("save_by_iopath")
class IoPathSaverIterDataPipe(_LeftToFsspec):
    """Refused: `save_by_fsspec` does it.

    >>> from flambeau.utils.data.datapipes.iter import IoPathSaver
    >>> IoPathSaver([])
    Traceback (most recent call last):
    ...
    NotImplementedError: IoPathSaverIterDataPipe: not supported; use FSSpecSaver, which reaches...
    """

    _instead = "FSSpecSaver"
