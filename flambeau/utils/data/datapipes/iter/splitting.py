"""Pipes that become several: fork, demux, unzip, round robin.

Owns what children of one source share: its iterator and the elements that wait for a child, which
live in a run. Invariant: children of one generation read one pass over the source; a child that
is iterated twice begins a new generation, and iterators of the old one are errors.
"""

from __future__ import annotations

import copy as copymodule
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from .._decorator import functional_datapipe
from .._hook_iterator import _Pass, _SnapshotState, watched
from .._notes import describe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn, no_length

__all__ = [
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "RoundRobinDemultiplexerIterDataPipe",
    "UnZipperIterDataPipe",
]


class _Run:
    """One pass over the source: its iterator, and what waits for each child."""

    def __init__(self, source: Iterator[Any], children: int) -> None:
        self.source = source
        self.waiting: list[deque[Any]] = [deque() for _ in range(children)]
        self.open = [True] * children
        self.ended = False
        self.held = 0
        self.turn = 0


def _overflown(text: str) -> Iterator[Any]:
    raise BufferError(text)
    yield


class _Container(IterDataPipe[Any]):
    """What children share. A subclass says which elements a child gets."""

    _run: _Run | None = None

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int, name: str) -> None:
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random "
                "places",
                UserWarning,
                stacklevel=4,
            )
        self._passes: list[_Pass] = []

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        """The elements of a child."""
        run = self._run
        if run is None:
            run = self._run = _Run(iter(self.main_datapipe), self.num_instances)
            self._snapshot_state = _SnapshotState.Iterating
        try:
            yield from self._share(run, instance_id)
        finally:
            run.open[instance_id] = False
            run.held -= len(run.waiting[instance_id])
            if run.waiting[instance_id]:
                StreamWrapper.close_streams(list(run.waiting[instance_id]))
                run.waiting[instance_id].clear()

    def _share(self, run: _Run, child: int) -> Iterator[Any]:
        raise NotImplementedError

    def _overflow(self, run: _Run, name: str) -> BufferError:
        """The error, which the other children meet too: what they shared has come apart."""
        text = f"{name} buffer overflow, buffer size {self.buffer_size} is insufficient."
        run.source = _overflown(text)
        return BufferError(text)

    def is_every_instance_exhausted(self) -> bool:
        """Whether nothing of the present generation is left to read."""
        run = self._run
        return run is not None and run.ended and not any(run.open)

    def get_length_by_instance(self, instance_id: int) -> int:
        """The length of a child."""
        return len(self.main_datapipe)

    def reset(self) -> None:
        self._run = None

    def _begin_generation(self) -> None:
        for each in self._passes:
            each.stale = True
        self._passes.clear()
        if self._run is not None and not self.is_every_instance_exhausted():
            warnings.warn(
                "Some child DataPipes are not exhausted when __iter__ is called. We are resetting "
                "the buffer and each child DataPipe will read from the start again.",
                UserWarning,
                stacklevel=5,
            )
        self.reset()


class _ChildDataPipe(IterDataPipe[Any]):
    """One of the pipes that `fork`, `demux` and the like return."""

    _is_child_datapipe: bool = True

    def __init__(self, main_datapipe: Any, instance_id: int) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __len__(self) -> int:
        return self.main_datapipe.get_length_by_instance(self.instance_id)

    def _begin_pass(self) -> _Pass:
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:
            main._valid_iterator_id += 1
            main._begin_generation()
        self._valid_iterator_id = main._valid_iterator_id
        self._snapshot_state = _SnapshotState.Iterating
        this = self.__dict__["_pass"] = _Pass()
        main._passes.append(this)
        return this

    def _invalidated(self) -> RuntimeError:
        return RuntimeError(
            "This iterator has been invalidated, because a new iterator has been created from one "
            f"of the ChildDataPipes of {describe(self.main_datapipe)}."
        )


def _iterate_child(self: _ChildDataPipe) -> Iterator[Any]:
    # The generation begins when `iter` is called, not with the first element.
    this = self._begin_pass()
    return watched(self, self.main_datapipe.get_next_element_by_instance(self.instance_id), this)


_ChildDataPipe.__iter__ = _iterate_child  # type: ignore[method-assign, assignment]


def _children(container: _Container) -> list[Any]:
    return [_ChildDataPipe(container, i) for i in range(container.num_instances)]


def _identity(x: Any) -> Any:
    return x


class _ForkerIterDataPipe(_Container):
    def __init__(
        self,
        datapipe: Any,
        num_instances: int,
        buffer_size: int = 1000,
        copy: Literal["shallow", "deep"] | None = None,
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size, "fork")
        copies = {None: _identity, "shallow": copymodule.copy, "deep": copymodule.deepcopy}
        if copy not in copies:
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        self.copy_fn: Callable[[Any], Any] = copies[copy]

    def __len__(self) -> int:
        return len(self.main_datapipe)

    def _share(self, run: _Run, child: int) -> Iterator[Any]:
        mine = run.waiting[child]
        others = [(i, queue) for i, queue in enumerate(run.waiting) if i != child]
        limit, opened = self.buffer_size, run.open
        copy = None if self.copy_fn is _identity else self.copy_fn
        while True:
            if mine:
                value = mine.popleft()
            else:
                try:
                    value = next(run.source)
                except StopIteration:
                    run.ended = True
                    return
                for i, queue in others:
                    if opened[i]:
                        queue.append(value)
                        if len(queue) > limit >= 0:
                            raise self._overflow(run, "ForkerIterDataPipe")
            yield value if copy is None else copy(value)


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Several pipes that each hand out all elements of one (functional name: `fork`).

    Args:
        datapipe: source, which is read once.
        num_instances: how many; the source itself comes back for 1.
        buffer_size: how far the fastest may be ahead of the slowest; -1 for any distance.
        copy: None hands one object to all, "shallow" and "deep" copy it for each.

    Returns:
        A list of pipes.

    Raises:
        ValueError: `num_instances` or `copy` is out of range.
        BufferError: while iterating, the slowest is further behind than `buffer_size`.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> a, b = IterableWrapper(range(3)).fork(2)
        >>> list(a.zip(b.map(lambda x: x * x)))
        [(0, 0), (1, 1), (2, 4)]
    """

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        buffer_size: int = 1000,
        copy: Literal["shallow", "deep"] | None = None,
    ) -> Any:
        _check_number(num_instances)
        if num_instances == 1:
            return datapipe
        return _children(_ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy))


def _check_number(num_instances: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


class _DemultiplexerIterDataPipe(_Container):
    def __init__(
        self,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool,
        buffer_size: int,
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size, "demux")
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none

    def get_length_by_instance(self, instance_id: int) -> int:
        raise no_length(self)

    def _share(self, run: _Run, child: int) -> Iterator[Any]:
        mine, waiting = run.waiting[child], run.waiting
        n, limit, classify = self.num_instances, self.buffer_size, self.classifier_fn
        while True:
            while mine:
                run.held -= 1
                yield mine.popleft()
            for value in run.source:
                place = classify(value)
                if place == child:
                    yield value
                    break
                if place is None and self.drop_none:
                    StreamWrapper.close_streams(value)
                    continue
                if place is None or not 0 <= place < n:
                    raise ValueError(
                        f"Output of the classification fn should be between 0 and {n - 1}. "
                        f"{place} is returned."
                    )
                if not run.open[place]:
                    StreamWrapper.close_streams(value)
                    continue
                waiting[place].append(value)
                run.held += 1
                if run.held > limit >= 0:
                    raise self._overflow(run, "DemultiplexerIterDataPipe")
            else:
                run.ended = True
                return


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several pipes among which the elements are dealt out (functional name: `demux`).

    Args:
        datapipe: source, which is read once.
        num_instances: how many pipes.
        classifier_fn: function of an element: the number of the pipe that gets it, or None.
        drop_none: leave out elements of class None, which are an error otherwise.
        buffer_size: elements that may wait for the other pipes; -1 for any number.

    Returns:
        A list of pipes.

    Raises:
        ValueError: `num_instances` or, while iterating, a class is out of range.
        BufferError: while iterating, more than `buffer_size` elements wait.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> even, odd = IterableWrapper(range(5)).demux(2, lambda n: n % 2)
        >>> list(even), list(odd)
        ([0, 2, 4], [1, 3])
    """

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        _check_number(num_instances)
        _check_unpickable_fn(classifier_fn)
        return _children(
            _DemultiplexerIterDataPipe(
                datapipe, num_instances, classifier_fn, drop_none, buffer_size
            )
        )


class _RoundRobinDemultiplexerIterDataPipe(_Container):
    """The i-th element goes to child i modulo their number."""

    def get_length_by_instance(self, instance_id: int) -> int:
        whole, rest = divmod(len(self.main_datapipe), self.num_instances)
        return whole + (instance_id < rest)

    def _share(self, run: _Run, child: int) -> Iterator[Any]:
        mine, limit = run.waiting[child], self.buffer_size
        while True:
            while mine:
                run.held -= 1
                yield mine.popleft()
            for value in run.source:
                turn = run.turn
                run.turn = (turn + 1) % self.num_instances
                if turn == child:
                    yield value
                    break
                if not run.open[turn]:
                    StreamWrapper.close_streams(value)
                    continue
                run.waiting[turn].append(value)
                run.held += 1
                if run.held > limit >= 0:
                    raise self._overflow(run, "RoundRobinDemultiplexerIterDataPipe")
            else:
                run.ended = True
                return


@functional_datapipe("round_robin_demux")
class RoundRobinDemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several pipes that get the elements in turn (functional name: `round_robin_demux`).

    Args:
        datapipe: source, which is read once.
        num_instances: how many pipes; 1 is the source in a list, with a warning.
        buffer_size: elements that may wait for the other pipes; -1 for any number.

    Returns:
        A list of pipes.

    Raises:
        ValueError: `num_instances` is not positive.
        BufferError: while iterating, more than `buffer_size` elements wait.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> a, b = IterableWrapper(range(5)).round_robin_demux(2)
        >>> list(a), list(b), len(a), len(b)
        ([0, 2, 4], [1, 3], 3, 2)
    """

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000) -> Any:
        _check_number(num_instances)
        if num_instances == 1:
            warnings.warn(
                "The operation of `round_robin_demux` with `num_instances=1` is an no-op and "
                "returns the provided `datapipe` in a list directly",
                stacklevel=2,
            )
            return [datapipe]
        return _children(
            _RoundRobinDemultiplexerIterDataPipe(
                datapipe, num_instances, buffer_size, "round_robin_demux"
            )
        )


class _UnZipperIterDataPipe(_ForkerIterDataPipe):
    def __init__(self, datapipe: Any, instance_ids: list[int], buffer_size: int = 1000) -> None:
        super().__init__(datapipe, len(instance_ids), buffer_size)
        self.instance_ids = instance_ids

    def _share(self, run: _Run, child: int) -> Iterator[Any]:
        column = self.instance_ids[child]
        for value in super()._share(run, child):
            yield value[column]


@functional_datapipe("unzip")
class UnZipperIterDataPipe(IterDataPipe[Any]):
    """One pipe for each column of the elements (functional name: `unzip`).

    Args:
        source_datapipe: source of sequences.
        sequence_length: how many columns they have.
        buffer_size: how far the fastest pipe may be ahead of the slowest; -1 for any distance.
        columns_to_skip: columns without a pipe.

    Returns:
        A list of pipes.

    Raises:
        RuntimeError: no column is left.
        BufferError: while iterating, the slowest is further behind than `buffer_size`.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> rows = IterableWrapper([("a", 1, "x"), ("b", 2, "y")])
        >>> names, sizes = rows.unzip(3, columns_to_skip=[2])
        >>> list(names), list(sizes)
        (['a', 'b'], [1, 2])
    """

    def __new__(
        cls,
        source_datapipe: Any,
        sequence_length: int,
        buffer_size: int = 1000,
        columns_to_skip: Sequence[int] | None = None,
    ) -> Any:
        columns = kept_columns(cls, sequence_length, columns_to_skip)
        return _children(_UnZipperIterDataPipe(source_datapipe, columns, buffer_size))


def kept_columns(cls: type, length: int, skip: Sequence[int] | None) -> list[int]:
    """The columns that are not skipped, at least one."""
    columns = [i for i in range(length) if i not in set(skip or ())]
    if not columns:
        raise RuntimeError(
            f"All instances are being filtered out in {cls.__name__}. Please check the input "
            "`sequence_length` and `columns_to_skip`."
        )
    return columns
