"""What makes an iterable of the last node: passes one after another, and their state.

Owns where a pass begins. It reads nothing ahead, except to find out whether a pass that was put
back is at its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .base_node import BaseNode, T

__all__ = ["Loader"]

_NOTHING: Any = object()


class Loader(Iterable[T]):
    """An iterable over a node: each `iter` begins a pass.

    Args:
        root: the last node.
        restart_on_stop_iteration: a pass that is put back at its very end begins the next one;
            otherwise it is empty.

    Example:
        >>> from flambeau.utils.data.nodes import Batcher, IterableWrapper, Loader
        >>> loader = Loader(Batcher(IterableWrapper(range(6)), 2))
        >>> for batch in loader:
        ...     if batch == [0, 1]:
        ...         break
        >>> other = Loader(Batcher(IterableWrapper(range(6)), 2))
        >>> other.load_state_dict(loader.state_dict())
        >>> list(other), list(other)
        ([[2, 3], [4, 5]], [[0, 1], [2, 3], [4, 5]])
    """

    def __init__(self, root: BaseNode[T], restart_on_stop_iteration: bool = True) -> None:
        self.root = root
        self.restart_on_stop_iteration = restart_on_stop_iteration
        self._next_iter_state_dict: dict[str, Any] | None = None
        self._it: LoaderIterator[T] | None = None
        self._begun_for_state = False  # a state was asked for before any pass

    def __iter__(self) -> LoaderIterator[T]:
        it, state = self._it, self._next_iter_state_dict
        if it is not None and self._begun_for_state and state is None:
            self._begun_for_state = False
            return it
        self._begun_for_state, self._next_iter_state_dict = False, None
        it = self._it = LoaderIterator(self)
        it.reset(state)
        if state is not None and self.restart_on_stop_iteration and not it.has_next():
            it.reset(None)
        return it

    def state_dict(self) -> dict[str, Any]:
        """Where the pass stands; begins the first one if none has begun."""
        if self._next_iter_state_dict is not None:
            return self._next_iter_state_dict
        if self._it is None:
            iter(self)
            self._begun_for_state = True
        assert self._it is not None
        return self._it.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next pass go on where the state was taken."""
        self._next_iter_state_dict = state_dict


class LoaderIterator(BaseNode[T]):
    """One pass of a loader."""

    NUM_YIELDED_KEY = "_num_yielded"
    ROOT_KEY = "root"

    def __init__(self, loader: Loader[T]) -> None:
        super().__init__()
        self.loader, self.root = loader, loader.root
        self._num_yielded = 0
        self._waiting: Any = _NOTHING
        self._before: dict[str, Any] | None = None  # the state before what waits

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        self._waiting, self._before = _NOTHING, None
        self.root.reset(None if initial_state is None else initial_state[self.ROOT_KEY])
        self._num_yielded = 0 if initial_state is None else initial_state[self.NUM_YIELDED_KEY]

    def has_next(self) -> bool:
        """Whether an element is left; it is read, and waits."""
        if self._waiting is _NOTHING:
            before = self.get_state()
            try:
                self._waiting = next(self.root)
            except StopIteration:
                return False
            self._before = before
        return True

    def next(self) -> T:
        item, self._waiting, self._before = self._waiting, _NOTHING, None
        if item is _NOTHING:
            item = next(self.root)
        self._num_yielded += 1
        return item

    def get_state(self) -> dict[str, Any]:
        if self._before is not None:
            return self._before
        return {self.ROOT_KEY: self.root.state_dict(), self.NUM_YIELDED_KEY: self._num_yielded}
