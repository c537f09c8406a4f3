"""Pipes that write files and check contents.

Owns how a file comes to be: under another name, then renamed, so that no reader sees half of it
and an interrupted program leaves none.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from .._late import Late
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn, length_like

__all__ = ["HashCheckerIterDataPipe", "SaverIterDataPipe"]

hashlib: Any = Late("hashlib")
_HASHES = ("sha256", "md5")


def check_hash_type(hash_type: str) -> None:
    if hash_type not in _HASHES:
        raise ValueError(f"Invalid hash_type requested, should be one of {_HASHES}")


def write_whole(path: str, content: Any, mode: str) -> None:
    """Write a file that is there whole or not at all; makes its folder."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    partial = os.path.join(folder, f".partial-{os.urandom(8).hex()}")
    try:
        with open(partial, mode.replace("w", "x")) as file:
            file.write(content)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise


@functional_datapipe("save_to_disk")
class SaverIterDataPipe(IterDataPipe[str]):
    """Writes files and hands out their paths (functional name: `save_to_disk`).

    Args:
        source_datapipe: source of (path, content).
        mode: "w", or "wb" for bytes ("b" and "t" stand for "wb" and "wt").
        filepath_fn: function of the first column: the path.

    Example:
        >>> import os, tempfile
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pipe = IterableWrapper([("a", b"1"), ("b", b"22")])
        ...     pipe = pipe.save_to_disk("wb", filepath_fn=lambda name: os.path.join(folder, name))
        ...     [os.path.getsize(path) for path in pipe]
        [1, 2]
    """

    def __init__(
        self,
        source_datapipe: Any,
        mode: str = "w",
        filepath_fn: Callable[[Any], str] | None = None,
    ) -> None:
        self.source_datapipe = source_datapipe
        self.mode = mode if "w" in mode else "w" + mode
        if filepath_fn is not None:
            _check_unpickable_fn(filepath_fn)
        self.fn = filepath_fn

    def __iter__(self) -> Iterator[str]:
        for path, content in self.source_datapipe:
            if self.fn is not None:
                path = self.fn(path)
            write_whole(path, content, self.mode)
            yield path

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


@functional_datapipe("check_hash")
class HashCheckerIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """Passes (path, content) on whose hash is right (functional name: `check_hash`).

    Args:
        source_datapipe: source of (path, content or stream).
        hash_dict: path → hash, in hexadecimal digits.
        hash_type: "sha256" or "md5".
        rewind: hand streams out at their start; one that cannot be sought in is read whole.

    Raises:
        ValueError: another `hash_type`.
        RuntimeError: while iterating, a hash is wrong or not given.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> known = {"a": "900150983cd24fb0d6963f7d28e17f72"}
        >>> list(IterableWrapper([("a", b"abc")]).check_hash(known, "md5"))
        [('a', b'abc')]
        >>> list(IterableWrapper([("a", b"abd")]).check_hash(known, "md5"))
        Traceback (most recent call last):
        ...
        RuntimeError: The computed hash 4911e516e5aa21d327512e0c8b197616 of a does not match...
    """

    def __init__(
        self,
        source_datapipe: Any,
        hash_dict: dict[str, str],
        hash_type: str = "sha256",
        rewind: bool = True,
    ) -> None:
        check_hash_type(hash_type)
        self.source_datapipe = source_datapipe
        self.hash_dict = hash_dict
        self.hash_type = hash_type
        self.rewind = rewind

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path, data in self.source_datapipe:
            digest = hashlib.new(self.hash_type)
            if isinstance(data, str):
                digest.update(data.encode())
            elif isinstance(data, bytes | bytearray):
                digest.update(data)
            else:
                data = self._hashed(data, digest)
            if path not in self.hash_dict:
                raise RuntimeError(f"Unspecified hash for file {path}")
            if digest.hexdigest() != self.hash_dict[path]:
                raise RuntimeError(
                    f"The computed hash {digest.hexdigest()} of {path} does not match the expected "
                    f"hash {self.hash_dict[path]}. Delete the file manually and retry."
                )
            yield path, data

    def _hashed(self, stream: Any, digest: Any) -> Any:
        """Feed a stream to the hash; the stream to hand out."""
        seekable = getattr(stream, "seekable", None)
        keeps = self.rewind and not (seekable is not None and seekable())
        kept = []
        for piece in stream:
            digest.update(piece)
            if keeps:
                kept.append(piece)
        if keeps:
            stream = io.BytesIO(b"".join(kept))
        elif self.rewind:
            stream.seek(0)
        return stream if isinstance(stream, StreamWrapper) else StreamWrapper(stream)

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)
