"""Nodes that are sources: of iterables, of samplers, of datasets with keys.

Owns how something that is no node is put back: by its own state where it knows it, else by reading
again. What it drew from generators at the start of the pass is drawn again then.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from .._utils import snapshot as _snapshot
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

    def __init__(self, iterable: Iterable[T]) -> None:
        super().__init__()
        self._read: Any = iterable
        self._num_yielded = 0
        self._it: Iterator[T] = iter(())
        self._start: dict[str, Any] | None = None

    def _begin(self) -> None:
        """Start a pass from its beginning."""
        generators = _snapshot.generators_of(self._read, None)
        self._start = {
            "global": _snapshot.read_global(),
            "generators": {k: _snapshot.read_generator(g) for k, g in generators.items()},
        }
        self._num_yielded = 0
        self._it = self._drawn(iter(self._read))

    def _drawn(self, iterator: Iterator[T]) -> Iterator[T]:
        """An iterator that has drawn what it draws at its start."""
        return iterator

    def _go_on(self, state: dict[str, Any], own_key: str, iterator_key: str) -> None:
        """Start a pass where a state was taken."""
        self._num_yielded, self._start = state[self.NUM_YIELDED_KEY], state.get(self.START_KEY)
        if state.get(own_key) is not None:
            self._read.load_state_dict(state[own_key])
            self._it = iter(self._read)
            return
        start = self._start or {"global": None, "generators": {}}
        for path, generator in _snapshot.generators_of(self._read, None).items():
            if path in start["generators"]:
                _snapshot.write_generator(generator, start["generators"][path])
        with _snapshot.global_as(start["global"]):
            self._it = iter(self._read)
            if state.get(iterator_key) is not None:
                self._it.load_state_dict(state[iterator_key])  # type: ignore[attr-defined]
                return
            passed = sum(1 for _ in islice(self._it, self._num_yielded))
            self._it = self._drawn(self._it)
        if passed < self._num_yielded:
            raise RuntimeError(
                f"{type(self).__name__}.reset: expected at least {self._num_yielded} elements, "
                f"which the state has handed out, got {passed}"
            )

    def next(self) -> T:
        item = next(self._it)
        self._num_yielded += 1
        return item

    def _state(self, own_key: str, iterator_key: str) -> dict[str, Any]:
        state: dict[str, Any] = {self.NUM_YIELDED_KEY: self._num_yielded}
        if _knows(self._read):
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

    def _drawn(self, iterator: Iterator[T]) -> Iterator[T]:
        # Here rather than in a thread that reads ahead, beside which the program draws as well.
        return iterator if _knows(self._read) else chain(list(islice(iterator, 1)), iterator)

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
