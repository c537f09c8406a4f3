"""Pipes over the columns of samples: drop, slice, flatten, rows to columns, numbering.

Owns how a tuple, a list and a dictionary are cut; each stays of its kind. A column that is not
there is a warning, for samples may differ.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_like

__all__ = [
    "DropperIterDataPipe",
    "EnumeratorIterDataPipe",
    "FlattenIterDataPipe",
    "IndexAdderIterDataPipe",
    "Rows2ColumnarIterDataPipe",
    "SliceIterDataPipe",
]


class _Columns(IterDataPipe[Any]):
    """A source of samples with columns."""

    datapipe: Any

    def __len__(self) -> int:
        return length_like(self, self.datapipe)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)


def _not_iterable() -> None:
    _warn(
        "The next item was not an iterable and cannot be filtered, please be aware that no filter "
        "was done or new item created."
    )


def _check_present(item: Any, indices: Collection[Any]) -> None:
    try:
        for index in indices:
            item[index]
    except (IndexError, KeyError, TypeError):
        _warn(
            "At least one index in the filter is not present in the item being returned, please "
            "be aware that expected columns/keys may be missing."
        )


def _kept(item: Any, keep: Any) -> Any:
    """The columns for which `keep` is true."""
    if isinstance(item, dict):
        return {k: v for k, v in item.items() if keep(k)}
    kept = [x for i, x in enumerate(item) if keep(i)]
    return tuple(kept) if isinstance(item, tuple) else kept


def _places(indices: Any) -> tuple[list[int], float]:
    """The indices in their order in a sample, and how long one must be to have them all."""
    if not isinstance(indices, list) or not all(type(i) is int and i >= 0 for i in indices):
        return [], float("inf")
    return sorted(set(indices)), max(indices, default=-1) + 1


@functional_datapipe("drop")
class DropperIterDataPipe(_Columns):
    """Samples without some columns (functional name: `drop`).

    Args:
        datapipe: source of tuples, lists or dictionaries; others pass with a warning.
        indices: an index or key, or a list of them.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([(0, 1, 2), {0: "a", 2: "b"}]).drop(2))
        [(0, 1), {0: 'a'}]
    """

    def __init__(self, datapipe: Any, indices: Hashable | list[Hashable]) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = set(indices) if isinstance(indices, list) else {indices}

    def __iter__(self) -> Iterator[Any]:
        indices = self.indices
        for item in self.datapipe:
            if isinstance(item, tuple | list | dict):
                _check_present(item, indices)
                yield _kept(item, lambda i: i not in indices)
            else:
                _not_iterable()
                yield item


@functional_datapipe("slice")
class SliceIterDataPipe(_Columns):
    """Samples with some columns only (functional name: `slice`).

    Args:
        datapipe: source of tuples, lists or dictionaries; others pass with a warning.
        index: where the slice begins, or a list of indices or keys; one key of a dictionary.
        stop: where the slice ends, exclusive.
        step: its step.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> rows = IterableWrapper([(0, 1, 2), (3, 4, 5)])
        >>> list(rows.slice(0, 2)), list(rows.slice([0, 2]))
        ([(0, 1), (3, 4)], [(0, 2), (3, 5)])
        >>> list(IterableWrapper([{"a": 1, "b": 2}]).slice("a"))
        [{'a': 1}]
    """

    def __init__(
        self,
        datapipe: Any,
        index: Any,
        stop: int | None = None,
        step: int | None = None,
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.index = index
        self.stop = stop
        self.step = step
        if isinstance(index, list) and (stop or step):
            warnings.warn(
                "A list of indices was passed as well as a stop or step for the slice, these "
                "arguments can't be used together so only the indices list will be used.",
                stacklevel=2,
            )

    def __iter__(self) -> Iterator[Any]:
        index = self.index
        places, enough = _places(index)
        for item in self.datapipe:
            cls = type(item)
            if (cls is tuple or cls is list) and len(item) >= enough:
                yield cls([item[i] for i in places])
            elif not isinstance(item, tuple | list | dict):
                _not_iterable()
                yield item
            elif isinstance(index, list):
                _check_present(item, index)
                yield _kept(item, lambda i: i in index)
            elif not isinstance(item, dict):
                yield item[index : self.stop : self.step]
            elif index in item:
                yield {index: item[index]}
            else:
                _warn(
                    "Dictionaries are not sliced by steps, only direct index. Please be aware "
                    "that no filter was done or new item created."
                )
                yield item


@functional_datapipe("flatten")
class FlattenIterDataPipe(_Columns):
    """Samples whose nested columns are laid open by one level (functional name: `flatten`).

    Args:
        datapipe: source of tuples, lists or dictionaries.
        indices: the columns to open, an index or key or a list of them; all by default. A key that
            occurs twice keeps its first value, with a warning.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([(0, (1, 2), [3])]).flatten())
        [(0, 1, 2, 3)]
        >>> list(IterableWrapper([{"a": 1, "b": {"c": 2}}]).flatten("b"))
        [{'a': 1, 'c': 2}]
    """

    def __init__(self, datapipe: Any, indices: Any = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        if indices is None:
            self.indices: set[Any] = set()
        else:
            self.indices = set(indices) if isinstance(indices, list) else {indices}

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            if self.indices:
                _check_present(item, self.indices)
            yield self._opened_dict(item) if isinstance(item, dict) else self._opened(item)

    def _opened(self, item: Any) -> Any:
        opened: list[Any] = []
        for i, column in enumerate(item):
            if isinstance(column, list | tuple) and (not self.indices or i in self.indices):
                opened.extend(column)
            else:
                opened.append(column)
        return tuple(opened) if isinstance(item, tuple) else opened

    def _opened_dict(self, item: dict[Any, Any]) -> dict[Any, Any]:
        opened: dict[Any, Any] = {}

        def put(key: Any, value: Any) -> None:
            if key in opened:
                _warn(
                    "Flattener tried to insert the same key twice into the dict item, the second "
                    "key,value pair has been dropped."
                )
            else:
                opened[key] = value

        for key, value in item.items():
            if isinstance(value, dict) and (not self.indices or key in self.indices):
                for inner, inner_value in value.items():
                    if inner in item:
                        _warn(
                            "Flattener tried to insert the same key twice into the dict item, the "
                            "second key,value pair has been dropped."
                        )
                    else:
                        opened[inner] = inner_value
            else:
                put(key, value)
        return opened


@functional_datapipe("rows2columnar")
class Rows2ColumnarIterDataPipe(IterDataPipe[dict[Any, list[Any]]]):
    """Batches of rows as dictionaries of columns (functional name: `rows2columnar`).

    Args:
        source_datapipe: source of batches of dictionaries or sequences.
        column_names: names of the columns of sequences; of dictionaries, those to keep, all by
            default.

    Raises:
        IndexError, KeyError: while iterating, a row has more columns than names, or lacks one.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> rows = IterableWrapper([("a", 1), ("b", 2)]).batch(2)
        >>> [dict(columns) for columns in rows.rows2columnar(["name", "size"])]
        [{'name': ['a', 'b'], 'size': [1, 2]}]
    """

    def __init__(self, source_datapipe: Any, column_names: list[str] | None = None) -> None:
        self.source_datapipe = source_datapipe
        self.column_names = [] if column_names is None else column_names

    def __iter__(self) -> Iterator[dict[Any, list[Any]]]:
        names = self.column_names
        for batch in self.source_datapipe:
            columns: dict[Any, list[Any]] = defaultdict(list)
            for row in batch:
                if isinstance(row, dict):
                    for name in names or row:
                        columns[name].append(row[name])
                else:
                    for i, value in enumerate(row):
                        columns[names[i]].append(value)
            yield columns

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


@functional_datapipe("enumerate")
class EnumeratorIterDataPipe(IterDataPipe[tuple[int, Any]]):
    """(number, sample) (functional name: `enumerate`).

    Args:
        source_datapipe: source.
        starting_index: number of the first.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper("ab").enumerate(starting_index=1))
        [(1, 'a'), (2, 'b')]
    """

    def __init__(self, source_datapipe: Any, starting_index: int = 0) -> None:
        self.source_datapipe = source_datapipe
        self.starting_index = starting_index

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        yield from enumerate(self.source_datapipe, self.starting_index)

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)


@functional_datapipe("add_index")
class IndexAdderIterDataPipe(IterDataPipe[dict[Any, Any]]):
    """Dictionaries with their number in them (functional name: `add_index`).

    Args:
        source_datapipe: source of dictionaries, which are changed.
        index_name: key of the number.

    Raises:
        NotImplementedError: while iterating, a sample is no dictionary.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([{"a": 1}, {"a": 2}]).add_index("n"))
        [{'a': 1, 'n': 0}, {'a': 2, 'n': 1}]
    """

    def __init__(self, source_datapipe: Any, index_name: str = "index") -> None:
        self.source_datapipe = source_datapipe
        self.index_name = index_name

    def __iter__(self) -> Iterator[dict[Any, Any]]:
        for i, row in enumerate(self.source_datapipe):
            if not isinstance(row, dict):
                raise NotImplementedError(
                    "We only support adding index to row or batch in dict type"
                )
            row[self.index_name] = i
            yield row

    def __len__(self) -> int:
        return length_like(self, self.source_datapipe)
