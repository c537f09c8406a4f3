"""What pipes share: streams that close themselves, masks of file names, decoders, snapshots.

Owns the helpers that users import: `StreamWrapper`, `janitor`, `pin_memory_fn`, `to_graph`,
`to_text`, `watch`.
"""

from __future__ import annotations

from typing import Any

from .common import StreamWrapper

__all__ = ["StreamWrapper", "janitor", "pin_memory_fn", "to_graph", "to_text", "watch"]


def janitor(obj: Any) -> None:
    """Close the streams in `obj`, looking into dictionaries, lists and tuples.

    >>> import io
    >>> from flambeau.utils.data.datapipes.utils import StreamWrapper, janitor
    >>> stream = StreamWrapper(io.StringIO("text"))
    >>> janitor([("name", stream)])
    >>> stream.closed
    True
    """
    StreamWrapper.close_streams(obj)


def pin_memory_fn(data: Any, device: Any = None) -> Any:
    """`data` with its tensors in page-locked memory."""
    from ..._utils.pin_memory import pin_memory

    return pin_memory(data, device)


def to_graph(dp: Any, *, debug: bool = False) -> Any:
    """The graph of a pipe as a `graphviz.Digraph`.

    Args:
        dp: the last pipe.
        debug: draw the containers of `fork` and `demux` and their children apart.

    Raises:
        ModuleNotFoundError: the package graphviz is not installed.
    """
    from ._drawing import digraph

    return digraph(dp, debug=debug)


def to_text(dp: Any) -> str:
    """The graph of a pipe as text: each line reads from those that are further in below it.

    Args:
        dp: the last pipe. A pipe that several read from stands where it is met first, and is named
            with its number after that.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> from flambeau.utils.data.datapipes.utils import to_text
        >>> left, right = IterableWrapper(range(3)).fork(2)
        >>> print(to_text(left.map(str).zip(right).batch(2)))
        Batcher
        └─ Zipper
           ├─ Mapper
           │  └─ Forker #1
           │     └─ IterableWrapper
           └─ Forker #1
    """
    from ._drawing import text

    return text(dp)


def __getattr__(name: str) -> Any:
    if name == "watch":  # most programs watch nothing
        from ._watching import watch

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
