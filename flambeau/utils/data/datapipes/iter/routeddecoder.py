"""The pipe that decodes files by the endings of their names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_like
from ..utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """(path, decoded content) of each (path, bytes or stream) (functional name: `routed_decode`).

    Deprecated, as in PyTorch: `map` with a function of one's own does the same.

    Args:
        datapipe: source of (path, bytes or binary stream).
        *handlers: functions of (key, bytes) that return None for what is not theirs; the first that
            does not decides. By default text, numbers, JSON, pickles, and images as tensors.
        key_fn: function of a path: the key, its ending by default.

    Example:
        >>> import warnings
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     pipe = IterableWrapper([("a.txt", b"abc"), ("n.cls", b"7")]).routed_decode()
        >>> list(pipe)
        [('a.txt', 'abc'), ('n.cls', 7)]
    """

    def __init__(
        self,
        datapipe: Any,
        *handlers: Callable[..., Any],
        key_fn: Callable[[str], str] = extension_extract_fn,
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        if not handlers:
            handlers = (basichandlers, imagehandler("torch"))
        self.decoder = Decoder(*handlers, key_fn=key_fn)
        warnings.warn(
            f"`{type(self).__name__}()` and its functional API `.routed_decode()` are deprecated "
            "since 1.12 and will be removed in 1.13.",
            FutureWarning,
            stacklevel=2,
        )

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Put handlers before the others."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for data in self.datapipe:
            yield data[0], self.decoder(data)[data[0]]

    def __len__(self) -> int:
        return length_like(self, self.datapipe)
