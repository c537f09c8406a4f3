"""The map-style pipe that an iterable one of (key, value) becomes.

Owns when the source is read: once, at the first look-up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..datapipe import IterDataPipe, MapDataPipe
from ..utils.common import _check_unpickable_fn

__all__ = ["IterToMapConverterMapDataPipe"]


class IterToMapConverterMapDataPipe(MapDataPipe[Any]):
    """The values of an iterable pipe by key (functional name: `to_map_datapipe`).

    Args:
        datapipe: source.
        key_value_fn: function of an element: (key, value); None if the elements are such pairs.

    Raises:
        TypeError: the source is no `IterDataPipe`; at the first look-up, an element is no pair.
        ValueError: at the first look-up, an element is a sequence of another length.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper([("a", 1), ("b", 2)]).to_map_datapipe()
        >>> pipe["b"], len(pipe)
        (2, 2)
    """

    datapipe: Any

    def __init__(self, datapipe: Any, key_value_fn: Callable[[Any], Any] | None = None) -> None:
        if not isinstance(datapipe, IterDataPipe):
            raise TypeError(
                f"IterToMapConverter can only apply on IterDataPipe, but found {type(datapipe)}"
            )
        self.datapipe = datapipe
        if key_value_fn is not None:
            _check_unpickable_fn(key_value_fn)
        self.key_value_fn = key_value_fn
        self._map: dict[Any, Any] | None = None

    def _load_map(self) -> dict[Any, Any]:
        if self._map is not None:
            return self._map
        loaded: dict[Any, Any] = {}
        for element in self.datapipe:
            pair = element if self.key_value_fn is None else self.key_value_fn(element)
            try:
                length = len(pair)
            except TypeError:
                raise TypeError(
                    f"Cannot convert dictionary update element {type(pair)} ({pair}) to a sequence"
                ) from None
            if length != 2:
                raise ValueError(
                    f"dictionary update sequence element has length {length}, 2 is required"
                )
            key, value = pair
            if key in loaded:
                warnings.warn(
                    f"Found duplicate key {key}. Please check your `key_value_fn`", stacklevel=3
                )
            loaded[key] = value
        self._map = loaded
        return loaded

    def __getitem__(self, index: Any) -> Any:
        loaded = self._load_map()
        try:
            return loaded[index]
        except KeyError:
            raise IndexError(f"Index {index} is invalid for IterToMapConverter.") from None

    def __len__(self) -> int:
        if self._map is not None:
            return len(self._map)
        try:
            return len(self.datapipe)
        except (TypeError, NotImplementedError):
            pass
        warnings.warn(
            "Data from prior DataPipe are loaded to get length of IterToMapConverter before "
            "execution of the pipeline. Please consider removing len().",
            stacklevel=2,
        )
        return len(self._load_map())


IterDataPipe.register_datapipe_as_function("to_map_datapipe", IterToMapConverterMapDataPipe)
