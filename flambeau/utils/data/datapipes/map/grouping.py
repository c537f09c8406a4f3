"""The map-style pipe of batches."""

from __future__ import annotations

from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, MapDataPipe
from ..utils.common import length_like

__all__ = ["BatcherMapDataPipe"]


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe[Any]):
    """Batches of the samples at successive keys (functional name: `batch`).

    Args:
        datapipe: map-style source with keys from 0.
        batch_size: samples per batch.
        drop_last: leave out a last batch that is not full.
        wrapper_class: what a batch is made of a list by.

    Raises:
        AssertionError: `batch_size` is not positive.
        IndexError: there is no batch of that number.

    Example:
        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> pipe = SequenceWrapper(range(5)).batch(2)
        >>> pipe[1], pipe[2], len(pipe)
        ([2, 3], [4], 3)
    """

    datapipe: Any
    batch_size: int
    drop_last: bool

    def __init__(
        self,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Any = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> Any:
        batch: list[Any] = []
        try:
            for key in range(index * self.batch_size, (index + 1) * self.batch_size):
                batch.append(self.datapipe[key])
        except IndexError as error:
            if self.drop_last or not batch:
                raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(batch)

    def __len__(self) -> int:
        length = length_like(self, self.datapipe)
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)
