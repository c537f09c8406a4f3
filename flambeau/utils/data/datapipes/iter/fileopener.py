"""The pipe that opens files.

Owns the modes that may be asked for. Streams close themselves when nothing holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import get_file_binaries_from_pathnames, no_length

__all__ = ["FileOpenerIterDataPipe"]


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """(path, stream) of each path (functional name: `open_files`).

    Args:
        datapipe: source of paths.
        mode: "r", "rt" or "t" for text, "rb" or "b" for bytes.
        encoding: of text; that of `open` by default.
        length: what `len` answers; -1 for no length.

    Raises:
        ValueError: another mode, or an encoding of bytes.
        TypeError: while iterating, a path is no string.

    Example:
        >>> import os, tempfile
        >>> from flambeau.utils.data.datapipes.iter import FileOpener
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "a.txt")
        ...     with open(path, "w") as file:
        ...         _ = file.write("abc")
        ...     [stream.read() for path, stream in FileOpener([path])]
        ['abc']
    """

    def __init__(
        self,
        datapipe: Iterable[str],
        mode: str = "r",
        encoding: str | None = None,
        length: int = -1,
    ) -> None:
        super().__init__()
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe = datapipe
        self.mode = mode
        self.encoding = encoding
        self.length = length

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        if self.length == -1:
            raise no_length(self)
        return self.length
