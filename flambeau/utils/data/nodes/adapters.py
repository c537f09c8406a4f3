"""Nodes that are sources: of iterables, of samplers, of datasets with keys.

Owns how something that is no node is put back: by its own state where it knows it, else by reading
again. Its first element is read when the pass begins, by the thread that begins it: what it draws
from the global generators then has its place among the program's draws, and is drawn again when a
state of that place is put back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from .. import _pipes
from .._utils import snapshot as _snapshot
from ..dataloader import DataLoader
from .base_node import BaseNode, T
from .map import Mapper

__all__ = ["IterableWrapper", "MapStyleWrapper", "SamplerWrapper"]


def _knows(value: Any) -> bool:
    """Pipes too: they are put back from their seeds."""
    return callable(getattr(value, "state_dict", None)) and callable(
        getattr(value, "load_state_dict", None)
    )


class _Source(BaseNode[T]):
    """An iterable, read once more in each pass."""

    NUM_YIELDED_KEY = "_num_yielded"
    START_KEY = "start"
    ENDED_KEY = "ended"

    def __init__(self, iterable: Iterable[T]) -> None:
        super().__init__()
        self._read: Any = iterable
        self._num_yielded = 0
        self._ended = False  # the end was seen: going on must not begin another pass
        self._it: Iterator[T] = iter(())
        self._start: dict[str, Any] | None = None
        self._first: list[Any] = []  # the first element, or its error, until it is handed out
        self._before: dict[str, Any] | None = None  # what the source said of itself before that

    def _begin(self) -> None:
        """Start a pass from its beginning."""
        if _pipes.waits_to_go_on(self._read):  # in a pass that was put back and never read
            next(self._it, None)
        generators = _snapshot.generators_of(self._read, None)
        self._start = {
            "global": _snapshot.read_global(),
            "generators": {k: _snapshot.read_generator(g) for k, g in generators.items()},
        }
        self._num_yielded, self._ended = 0, False
        self._before = self._at_start() if not isinstance(self._read, DataLoader) else None
        self._it = iter(self._read)
        if isinstance(self._read, DataLoader):  # it puts back itself what its iterator draws
            self._before = self._at_start()
            self._start["global"] = _snapshot.read_global()
        self._read_first()

    def _at_start(self) -> dict[str, Any] | None:
        """The state from which a source that knows its own begins this pass."""
        if _pipes.is_pipe(self._read):
            return _pipes.state_of_next_pass(self._read)  # a pass may have been broken off
        return copy.deepcopy(self._read.state_dict()) if _knows(self._read) else None

    def _read_first(self) -> None:
        """Read an element ahead; what is its own iterator would lose it if it began again."""
        self._first = []
        if self._it is self._read or (_knows(self._it) and not _knows(self._read)):
            return
        try:
            self._first.append((next(self._it), None))
        except Exception as error:
            self._first.append((None, error))

    def _go_on(self, state: dict[str, Any], own_key: str, iterator_key: str) -> None:
        """Start a pass where a state was taken."""
        self._num_yielded, self._start = state[self.NUM_YIELDED_KEY], state.get(self.START_KEY)
        self._first, self._before = [], None
        self._ended = state.get(self.ENDED_KEY, False)
        start = self._start or {"global": None, "generators": {}}
        if state.get(own_key) is not None:
            self._before = state[own_key]
            self._read.load_state_dict(copy.deepcopy(state[own_key]))
            if self._ended:
                self._it = iter(())
                return
            if isinstance(self._read, DataLoader):
                self._it = iter(self._read)
            with _snapshot.global_as(start["global"]):
                if not isinstance(self._read, DataLoader):
                    self._it = iter(self._read)
                if not self._num_yielded:
                    self._read_first()
            return
        for path, generator in _snapshot.generators_of(self._read, None).items():
            if path in start["generators"]:
                _snapshot.write_generator(generator, start["generators"][path])
        with _snapshot.global_as(start["global"]):
            self._it = iter(self._read)
            if state.get(iterator_key) is not None:
                self._it.load_state_dict(state[iterator_key])  # type: ignore[attr-defined]
                return
            passed = sum(1 for _ in islice(self._it, self._num_yielded))
            if self._ended:
                next(self._it, None)  # a sampler may draw at its end
            elif not passed:
                self._read_first()
        if passed < self._num_yielded:
            raise RuntimeError(
                f"{type(self).__name__}.reset: expected at least {self._num_yielded} elements, "
                f"which the state has handed out, got {passed}"
            )

    def next(self) -> T:
        try:
            item, error = self._first.pop() if self._first else (next(self._it), None)
            if error is not None:
                raise error
        except StopIteration:
            self._ended = True
            raise
        self._num_yielded += 1
        return item

    def _state(self, own_key: str, iterator_key: str) -> dict[str, Any]:
        state: dict[str, Any] = {self.NUM_YIELDED_KEY: self._num_yielded}
        if self._ended:
            state[self.ENDED_KEY] = True
        if _knows(self._read):
            if self._first:
                state |= {own_key: copy.deepcopy(self._before), self.START_KEY: self._start}
            else:
                state[own_key] = copy.deepcopy(self._read.state_dict())
        elif _knows(self._it):
            known = self._it.state_dict()  # type: ignore[attr-defined]
            state[iterator_key] = copy.deepcopy(known)
        else:
            state[self.START_KEY] = self._start
        return state


class IterableWrapper(_Source[T]):
    """The elements of an iterable.

    One with `state_dict` and `load_state_dict`, itself or its iterator, is put back by them;
    another is read again up to where it was.

    Args:
        iterable: is read from its start in each pass.

    Example:
        >>> from flambeau.utils.data.nodes import IterableWrapper
        >>> node = IterableWrapper("abc")
        >>> _ = next(node)
        >>> state = node.state_dict()
        >>> list(node)
        ['b', 'c']
        >>> node.reset(state)
        >>> next(node)
        'b'
    """

    ITERABLE_KEY = "iterable"
    ITERATOR_KEY = "iterator"

    def __init__(self, iterable: Iterable[T]) -> None:
        super().__init__(iterable)
        self.iterable = iterable

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        if initial_state is None:
            self._begin()
        else:
            self._go_on(initial_state, self.ITERABLE_KEY, self.ITERATOR_KEY)

    def get_state(self) -> dict[str, Any]:
        return self._state(self.ITERABLE_KEY, self.ITERATOR_KEY)


class SamplerWrapper(_Source[T]):
    """The keys of a sampler, another order in each epoch if it has `set_epoch`.

    Args:
        sampler: what is read.
        initial_epoch: of the first pass.
        epoch_updater: the epoch after a given one; by default the next number.

    Example:
        >>> from flambeau.utils.data import DistributedSampler
        >>> from flambeau.utils.data.nodes import SamplerWrapper
        >>> node = SamplerWrapper(DistributedSampler(range(6), 2, 0))
        >>> first = list(node)
        >>> node.reset()
        >>> len(first), first == list(node)
        (3, False)
    """

    EPOCH_KEY = "_epoch"
    SAMPLER_KEY = "_sampler"
    ITERATOR_KEY = "_iterator"

    def __init__(
        self,
        sampler: Iterable[T],
        initial_epoch: int = 0,
        epoch_updater: Callable[[int], int] | None = None,
    ) -> None:
        super().__init__(sampler)
        self.sampler = sampler
        self.epoch = initial_epoch
        self.epoch_updater = epoch_updater or (lambda epoch: epoch + 1)
        self._started = False

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        if initial_state is not None:
            self.epoch = initial_state[self.EPOCH_KEY]
            self._started = initial_state.get("started", initial_state[self.NUM_YIELDED_KEY] > 0)
        elif self._started:
            self.epoch = self.epoch_updater(self.epoch)
        if hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(self.epoch)
        if initial_state is None:
            self._started = False
            self._begin()
        else:
            self._go_on(initial_state, self.SAMPLER_KEY, self.ITERATOR_KEY)

    def next(self) -> T:
        self._started = True
        return super().next()

    def get_state(self) -> dict[str, Any]:
        state = self._state(self.SAMPLER_KEY, self.ITERATOR_KEY)
        return {**state, self.EPOCH_KEY: self.epoch, "started": self._started}


def MapStyleWrapper(map_dataset: Any, sampler: Iterable[Any]) -> BaseNode[Any]:  # noqa: N802
    """The samples of a dataset by the keys of a sampler.

    Args:
        map_dataset: has `__getitem__`.
        sampler: the order of the keys.

    Example:
        >>> from flambeau.utils.data.nodes import MapStyleWrapper
        >>> list(MapStyleWrapper({"a": 1, "b": 2}, ["b", "a"]))
        [2, 1]
    """
    return Mapper(SamplerWrapper(sampler), map_dataset.__getitem__)
