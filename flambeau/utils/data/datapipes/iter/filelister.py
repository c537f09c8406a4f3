"""The pipe of file names in folders.

Owns their order, which is sorted within each folder unless asked otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import get_file_pathnames_from_root, no_length
from .utils import IterableWrapperIterDataPipe

__all__ = ["FileListerIterDataPipe"]


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe[str]):
    """Paths of the files in folders (functional name: `list_files`).

    Args:
        root: a folder or file, a sequence of them, or a pipe.
        masks: pattern of a shell, or a list of them, that the name must fit; "" for all.
        recursive: look into folders within.
        abspath: absolute paths.
        non_deterministic: in the order of the file system rather than sorted.
        length: what `len` answers; -1 for no length.

    Raises:
        OSError: while iterating, a folder cannot be read (with a warning that names it).

    Example:
        >>> import os, tempfile
        >>> from flambeau.utils.data.datapipes.iter import FileLister
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("b.txt", "a.txt", "c.csv"):
        ...         open(os.path.join(folder, name), "w").close()
        ...     [os.path.basename(path) for path in FileLister(folder, "*.txt")]
        ['a.txt', 'b.txt']
    """

    def __init__(
        self,
        root: str | Sequence[str] | IterDataPipe[str] = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        super().__init__()
        if isinstance(root, str):
            root = [root]
        if not isinstance(root, IterDataPipe):
            root = IterableWrapperIterDataPipe(root)
        self.datapipe: Any = root
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )

    def __len__(self) -> int:
        if self.length == -1:
            raise no_length(self)
        return self.length
