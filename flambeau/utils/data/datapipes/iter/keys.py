"""Pipes that join by keys, and the iterable pipe that a map-style one becomes.

Owns how long elements wait for their partner.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, MapDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn, length_like

__all__ = [
    "IterKeyZipperIterDataPipe",
    "MapKeyZipperIterDataPipe",
    "MapToIterConverterIterDataPipe",
]


@functional_datapipe("zip_with_iter")
class IterKeyZipperIterDataPipe(IterDataPipe[Any]):
    """Each element with that of another pipe that has its key (functional name:
    `zip_with_iter`).

    Args:
        source_datapipe: source; its order is kept.
        ref_datapipe: the other pipe, in which each key occurs once.
        key_fn: function of an element of the source: its key.
        ref_key_fn: the same for the other pipe; `key_fn` by default.
        keep_key: hand out (key, result).
        buffer_size: elements of the other pipe that may wait, the oldest is dropped for one more,
            with a warning; None for any number.
        merge_fn: function of the two; a pair by default.

    Raises:
        TypeError: the other pipe is no `IterDataPipe`.
        ValueError: `buffer_size` is not positive; while iterating, a key comes twice.
        BufferError: while iterating, a key has no partner.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> prices = IterableWrapper([("b", 2), ("a", 1)])
        >>> names = IterableWrapper(["a", "b"])
        >>> first = lambda pair: pair[0]
        >>> list(names.zip_with_iter(prices, key_fn=str, ref_key_fn=first))
        [('a', ('a', 1)), ('b', ('b', 2))]
    """

    def __init__(
        self,
        source_datapipe: Any,
        ref_datapipe: Any,
        key_fn: Callable[[Any], Any],
        ref_key_fn: Callable[[Any], Any] | None = None,
        keep_key: bool = False,
        buffer_size: int | None = 10000,
        merge_fn: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        if not isinstance(ref_datapipe, IterDataPipe):
            raise TypeError(
                "ref_datapipe must be a IterDataPipe, but its type is "
                f"{type(ref_datapipe)} instead."
            )
        for function in (key_fn, ref_key_fn, merge_fn):
            if function is not None:
                _check_unpickable_fn(function)
        if buffer_size is not None and buffer_size <= 0:
            raise ValueError("'buffer_size' is required to be either None or a positive integer.")
        self.source_datapipe = source_datapipe
        self.ref_datapipe = ref_datapipe
        self.key_fn = key_fn
        self.ref_key_fn = key_fn if ref_key_fn is None else ref_key_fn
        self.keep_key = keep_key
        self.merge_fn = merge_fn
        self.buffer_size = buffer_size

    def __iter__(self) -> Iterator[Any]:
        waiting: dict[Any, Any] = {}
        references = iter(self.ref_datapipe)
        dropped = False
        try:
            for data in self.source_datapipe:
                key = self.key_fn(data)
                while key not in waiting:
                    try:
                        reference = next(references)
                    except StopIteration:
                        raise BufferError(
                            "No matching key can be found from reference DataPipe for the data "
                            f"{data}. Please consider increasing the buffer size."
                        ) from None
                    ref_key = self.ref_key_fn(reference)
                    if ref_key in waiting:
                        raise ValueError("Duplicate key is found in reference DataPipe")
                    if self.buffer_size is not None and len(waiting) > self.buffer_size:
                        if not dropped:
                            dropped = True
                            warnings.warn(
                                "Buffer reaches the upper limit, so reference key-data pair "
                                "begins to be removed from buffer in FIFO order. Please consider "
                                "increase buffer size.",
                                stacklevel=2,
                            )
                        waiting.pop(next(iter(waiting)))
                    waiting[ref_key] = reference
                partner = waiting.pop(key)
                result = self.merge_fn(data, partner) if self.merge_fn else (data, partner)
                yield (key, result) if self.keep_key else result
        finally:
            StreamWrapper.close_streams(waiting)

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


@functional_datapipe("zip_with_map")
class MapKeyZipperIterDataPipe(IterDataPipe[Any]):
    """Each element with that of a map-style pipe at its key (functional name: `zip_with_map`).

    Args:
        source_iterdatapipe: source.
        map_datapipe: the map-style pipe.
        key_fn: function of an element: its key there.
        merge_fn: function of the two; a pair by default.
        keep_key: hand out (key, result).

    Raises:
        TypeError: the other pipe is no `MapDataPipe`.
        KeyError: while iterating, a key is not there.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> prices = SequenceWrapper({"a": 1, "b": 2})
        >>> list(IterableWrapper(["b", "a"]).zip_with_map(prices, key_fn=str))
        [('b', 2), ('a', 1)]
    """

    def __init__(
        self,
        source_iterdatapipe: Any,
        map_datapipe: Any,
        key_fn: Callable[[Any], Any],
        merge_fn: Callable[[Any, Any], Any] | None = None,
        keep_key: bool = False,
    ) -> None:
        if not isinstance(map_datapipe, MapDataPipe):
            raise TypeError(
                f"map_datapipe must be a MapDataPipe, but its type is {type(map_datapipe)} instead."
            )
        _check_unpickable_fn(key_fn)
        if merge_fn is not None:
            _check_unpickable_fn(merge_fn)
        self.source_iterdatapipe = source_iterdatapipe
        self.map_datapipe = map_datapipe
        self.key_fn = key_fn
        self.merge_fn = merge_fn
        self.keep_key = keep_key

    def __iter__(self) -> Iterator[Any]:
        for item in self.source_iterdatapipe:
            key = self.key_fn(item)
            try:
                partner = self.map_datapipe[key]
            except (KeyError, IndexError):
                raise KeyError(
                    f"key_fn maps {item} to {key}, which is not a valid key in the given "
                    "MapDataPipe."
                ) from None
            result = self.merge_fn(item, partner) if self.merge_fn else (item, partner)
            yield (key, result) if self.keep_key else result

    def __len__(self) -> int:
        return length_like(self, self.source_iterdatapipe)


class MapToIterConverterIterDataPipe(IterDataPipe[Any]):
    """The samples of a map-style pipe one after another (functional name: `to_iter_datapipe`).

    Args:
        datapipe: map-style source.
        indices: its keys; 0, 1, … by default.

    Raises:
        TypeError: the source is no `MapDataPipe`.

    Example:
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> pipe = SequenceWrapper("abc")
        >>> list(pipe.to_iter_datapipe()), list(pipe.to_iter_datapipe([2, 0]))
        (['a', 'b', 'c'], ['c', 'a'])
    """

    def __init__(self, datapipe: Any, indices: list[Any] | None = None) -> None:
        if not isinstance(datapipe, MapDataPipe):
            raise TypeError(
                f"MapToIterConverter can only apply on MapDataPipe, but found {type(datapipe)}"
            )
        self.datapipe: Any = datapipe
        self.indices = indices if indices else range(len(self.datapipe))

    def __iter__(self) -> Iterator[Any]:
        for key in self.indices:
            yield self.datapipe[key]

    def __len__(self) -> int:
        return len(self.indices)


MapDataPipe.register_datapipe_as_function("to_iter_datapipe", MapToIterConverterIterDataPipe)
