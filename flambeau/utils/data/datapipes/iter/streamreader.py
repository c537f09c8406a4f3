"""The pipe that reads streams, whole or in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["StreamReaderIterDataPipe"]


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """(name, content) of each (name, stream) (functional name: `read_from_stream`).

    Args:
        datapipe: source of (name, stream); a stream that is read is closed.
        chunk: characters or bytes per element; None for all at once. An empty stream gives none.

    Example:
        >>> import io
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper([("a", io.StringIO("abcde"))])
        >>> list(pipe.read_from_stream(chunk=2))
        [('a', 'ab'), ('a', 'cd'), ('a', 'e')]
    """

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name, stream in self.datapipe:
            while content := stream.read(self.chunk):
                yield name, content
            stream.close()
