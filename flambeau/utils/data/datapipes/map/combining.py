"""Map-style pipes that read from several, or become several: concat, zip, unzip."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe
from ..iter.splitting import kept_columns
from ..utils.common import length_like

__all__ = ["ConcaterMapDataPipe", "UnZipperMapDataPipe", "ZipperMapDataPipe"]


def _check(datapipes: tuple[Any, ...]) -> None:
    if len(datapipes) == 0:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(dp, MapDataPipe) for dp in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(isinstance(dp, Sized) for dp in datapipes):
        raise TypeError("Expected all inputs to be `Sized`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe[Any]):
    """Pipes behind one another: keys count on from one to the next (functional name: `concat`).

    Args:
        *datapipes: map-style sources with lengths and keys from 0.

    Raises:
        ValueError: there is none.
        TypeError: one is no `MapDataPipe` with a length.

    Example:
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> pipe = SequenceWrapper("ab").concat(SequenceWrapper("cd"))
        >>> pipe[2], len(pipe)
        ('c', 4)
    """

    datapipes: tuple[Any, ...]

    def __init__(self, *datapipes: Any) -> None:
        _check(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        place = index
        for datapipe in self.datapipes:
            if place < len(datapipe):
                return datapipe[place]
            place -= len(datapipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe[tuple[Any, ...]]):
    """Tuples of the samples that pipes have at one key (functional name: `zip`).

    Args:
        *datapipes: map-style sources with lengths.

    Raises:
        ValueError: there is none.
        TypeError: one is no `MapDataPipe` with a length.

    Example:
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> pipe = SequenceWrapper("abc").zip(SequenceWrapper([1, 2]))
        >>> pipe[1], len(pipe)
        (('b', 2), 2)
    """

    datapipes: tuple[Any, ...]

    def __init__(self, *datapipes: Any) -> None:
        _check(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        samples = []
        for datapipe in self.datapipes:
            try:
                samples.append(datapipe[index])
            except IndexError as error:
                raise IndexError(
                    f"Index {index} is out of range for one of the input MapDataPipes {datapipe}."
                ) from error
        return tuple(samples)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


class _UnZipperMapDataPipe(MapDataPipe[Any]):
    def __init__(self, main_datapipe: Any, instance_id: int) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __getitem__(self, index: Any) -> Any:
        return self.main_datapipe[index][self.instance_id]

    def __len__(self) -> int:
        return length_like(self, self.main_datapipe)


@functional_datapipe("unzip")
class UnZipperMapDataPipe(MapDataPipe[Any]):
    """One pipe for each column of the samples (functional name: `unzip`).

    Args:
        source_datapipe: map-style source of sequences.
        sequence_length: how many columns they have.
        columns_to_skip: columns without a pipe.

    Returns:
        A list of pipes.

    Raises:
        ValueError: `sequence_length` is not positive.
        RuntimeError: no column is left.

    Example:
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> names, sizes = SequenceWrapper([("a", 1), ("b", 2)]).unzip(2)
        >>> names[1], sizes[0]
        ('b', 1)
    """

    def __new__(
        cls,
        source_datapipe: Any,
        sequence_length: int,
        columns_to_skip: Sequence[int] | None = None,
    ) -> Any:
        if sequence_length < 1:
            raise ValueError(
                f"Expected `sequence_length` larger than 0, but {sequence_length} is found"
            )
        columns = kept_columns(cls, sequence_length, columns_to_skip)
        return [_UnZipperMapDataPipe(source_datapipe, i) for i in columns]
