"""Pipes that change the order: samplers, shuffles through a buffer and within batches.

Owns the order that a seed gives, which is PyTorch's. Buffers live in the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from typing import Any, TypeVar

from ...sampler import SequentialSampler
from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe
from ..utils.common import (
    _check_unpickable_fn,
    length_like,
    no_length,
    on_columns,
    validate_input_col,
)
from ._random import RandomIterDataPipe, below
from .callable import _no_op_fn

__all__ = [
    "InBatchShufflerIterDataPipe",
    "SamplerIterDataPipe",
    "ShuffledFlatMapperIterDataPipe",
    "ShufflerIterDataPipe",
]

_T_co = TypeVar("_T_co", covariant=True)


class SamplerIterDataPipe(IterDataPipe[_T_co]):
    """What a sampler hands out of a source with a length.

    Args:
        datapipe: source, with a length.
        sampler: class of the sampler; it is made with `data_source=datapipe`.
        sampler_args: more positional arguments.
        sampler_kwargs: more keyword arguments.

    Raises:
        AssertionError: the source has no `__len__`.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper, Sampler
        >>> list(Sampler(IterableWrapper("abc")))
        [0, 1, 2]
    """

    def __init__(
        self,
        datapipe: Any,
        sampler: Any = SequentialSampler,
        sampler_args: tuple[Any, ...] | None = None,
        sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = dict(sampler_kwargs or {})
        self.sampler_kwargs["data_source"] = datapipe
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[_T_co]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return length_like(self, self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(RandomIterDataPipe[_T_co]):
    """Samples in random order, through a buffer (functional name: `shuffle`).

    The buffer is filled; then each sample of the source takes the place of one drawn from it. All
    orders can occur if the buffer is as large as the source.

    Args:
        datapipe: source.
        buffer_size: samples held back, at least 1, which changes no order.
        unbatch_level: take batches apart first, so many levels.

    Raises:
        AssertionError: `buffer_size` is not positive.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper(range(6)).shuffle()
        >>> list(pipe.set_seed(0))
        [3, 4, 0, 2, 5, 1]
        >>> list(pipe.set_seed(0)) == list(pipe.set_seed(0))
        True
    """

    datapipe: Any
    buffer_size: int

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        if unbatch_level:
            datapipe = datapipe.unbatch(unbatch_level=unbatch_level)
        self.datapipe = datapipe
        self.buffer_size = buffer_size

    def __iter__(self) -> Iterator[_T_co]:
        if not self._enabled:
            yield from self.datapipe
            return
        size, rng = self.buffer_size, self._rng
        source = iter(self.datapipe)
        buffer: list[Any] = []
        for sample in source:
            buffer.append(sample)
            if len(buffer) == size:
                break
        draw, bits = rng.getrandbits, size.bit_length()
        for sample in source:  # as `rng.randint(0, size - 1)` draws
            place = draw(bits)
            while place >= size:
                place = draw(bits)
            chosen = buffer[place]
            buffer[place] = sample
            yield chosen
        for left in range(len(buffer), 0, -1):
            bits = left.bit_length()
            place = draw(bits)
            while place >= left:
                place = draw(bits)
            yield buffer.pop(place)

    def __len__(self) -> int:
        return length_like(self, self.datapipe)


@functional_datapipe("in_batch_shuffle")
class InBatchShufflerIterDataPipe(RandomIterDataPipe[Any]):
    """Batches whose samples change places (functional name: `in_batch_shuffle`).

    Args:
        datapipe: source of batches.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper(range(6)).batch(3).in_batch_shuffle()
        >>> list(pipe.set_seed(0))
        [[1, 2, 0], [4, 5, 3]]
    """

    def __init__(self, datapipe: Any) -> None:
        super().__init__()
        self.datapipe = datapipe

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        sample = self._rng.sample
        for batch in self.datapipe:
            yield DataChunk(sample(batch, len(batch)))

    def __len__(self) -> int:
        return length_like(self, self.datapipe)


@functional_datapipe("shuffled_flatmap")
class ShuffledFlatMapperIterDataPipe(RandomIterDataPipe[Any]):
    """As `flatmap`, from several samples at once in random turn (functional name:
    `shuffled_flatmap`).

    Args:
        datapipe: source.
        fn: function that returns something iterable; by default the sample itself is.
        input_col: the columns it is given, as for `map`.
        buffer_size: so many samples are open at a time.

    Raises:
        AssertionError: `buffer_size` is not positive.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper([[1, 2, 3], "ab"]).shuffled_flatmap(buffer_size=2)
        >>> list(pipe.set_seed(0))
        ['a', 1, 'b', 2, 3]
    """

    def __init__(
        self,
        datapipe: Any,
        fn: Callable[..., Any] | None = None,
        input_col: Any = None,
        buffer_size: int = 100,
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        if fn is None:
            fn = _no_op_fn
        _check_unpickable_fn(fn)
        self.fn = fn
        self.input_col = input_col
        validate_input_col(fn, input_col)
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.buffer_size = buffer_size

    def __iter__(self) -> Iterator[Any]:
        apply = on_columns(self.fn, self.input_col)
        if not self._enabled:
            for sample in self.datapipe:
                yield from apply(sample)
            return
        size, randint = self.buffer_size, self._rng.randint
        draw = below(self._rng, size)
        buffer: list[Iterator[Any]] = []
        place = draw()
        for sample in self.datapipe:
            while len(buffer) == size:
                try:
                    element = next(buffer[place])
                except StopIteration:
                    buffer.pop(place)
                else:
                    yield element
                    place = draw()
            buffer.append(iter(apply(sample)))
        while buffer:
            place = randint(0, len(buffer) - 1)
            try:
                element = next(buffer[place])
            except StopIteration:
                buffer.pop(place)
            else:
                yield element

    def __len__(self) -> int:
        if self.fn is _no_op_fn:
            return sum(map(len, self.datapipe))
        raise no_length(self)
