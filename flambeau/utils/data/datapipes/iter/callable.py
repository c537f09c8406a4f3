"""Pipes that apply a function to each sample: map, collate, flatmap.

Owns how a function meets the columns of a sample. A function may raise anything, `StopIteration`
included, without the stream ending quietly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..._utils.collate import default_collate
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import (
    _check_unpickable_fn,
    length_like,
    on_columns,
    on_sample,
    single_column,
    validate_input_col,
)

__all__ = ["CollatorIterDataPipe", "FlatMapperIterDataPipe", "MapperIterDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[_T_co]):
    """Each sample after a function (functional name: `map`).

    Args:
        datapipe: source.
        fn: function of a sample, or of the columns that `input_col` names.
        input_col: index or key of a sample, or a list of them; None for the whole sample.
        output_col: where the result goes: an index or key, -1 to append. By default it replaces the
            (first) input column, and the other input columns go.

    Raises:
        ValueError: `output_col` without `input_col`; `fn` takes another number of arguments.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(3)).map(lambda x: x + 1))
        [1, 2, 3]
        >>> list(IterableWrapper([(1, 2), (3, 4)]).map(lambda a, b: a + b, [0, 1], -1))
        [(1, 2, 3), (3, 4, 7)]
    """

    datapipe: Any
    fn: Callable[..., Any]

    def __init__(
        self,
        datapipe: Any,
        fn: Callable[..., Any],
        input_col: Any = None,
        output_col: Any = None,
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        _check_unpickable_fn(fn)
        self.fn = fn
        self.input_col = input_col
        self.output_col = single_column(input_col, output_col)
        validate_input_col(fn, input_col)

    def __iter__(self) -> Iterator[_T_co]:
        apply = on_sample(self.fn, self.input_col, self.output_col)
        for data in self.datapipe:
            yield apply(data)

    def __len__(self) -> int:
        return length_like(self, self.datapipe)


def _collate_columns(conversion: dict[Any, Any], batch: Any) -> Any:
    raise NotImplementedError(
        "collate: expected a function as conversion, got a dictionary of columns, which belongs to "
        "data frames; these are not supported"
    )


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe[Any]):
    """Each batch as tensors (functional name: `collate`).

    Args:
        datapipe: source of batches.
        conversion: function of a batch, `default_collate` by default.
        collate_fn: the same; it goes before `conversion`.

    Raises:
        NotImplementedError: `conversion` is a dictionary: that is for data frames.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(3)).batch(2).collate())
        [tensor([0, 1]), tensor([2])]
    """

    def __init__(
        self,
        datapipe: Any,
        conversion: Any = default_collate,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        if collate_fn is None:
            collate_fn = conversion
        if isinstance(collate_fn, dict):
            _collate_columns(collate_fn, None)
        super().__init__(datapipe, fn=collate_fn)


def _no_op_fn(*args: Any) -> Any:
    return args[0] if len(args) == 1 else args


@functional_datapipe("flatmap")
class FlatMapperIterDataPipe(IterDataPipe[_T_co]):
    """The elements of what a function makes of each sample (functional name: `flatmap`).

    Args:
        datapipe: source.
        fn: function that returns something iterable; by default the sample itself is.
        input_col: the columns it is given, as for `map`.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(3)).flatmap(lambda x: [x, x * 10]))
        [0, 0, 1, 10, 2, 20]
    """

    datapipe: Any

    def __init__(
        self, datapipe: Any, fn: Callable[..., Any] | None = None, input_col: Any = None
    ) -> None:
        self.datapipe = datapipe
        if fn is None:
            fn = _no_op_fn
        _check_unpickable_fn(fn)
        self.fn = fn
        self.input_col = input_col
        validate_input_col(fn, input_col)

    def __iter__(self) -> Iterator[_T_co]:
        apply = on_columns(self.fn, self.input_col)
        for data in self.datapipe:
            yield from apply(data)

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__}'s length relies on the output of its function.")
