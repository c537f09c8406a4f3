"""The base of all nodes: an iterator that is begun when it is first asked, and knows its state.

Owns when a node begins. A subclass writes `reset`, `next` and `get_state`, and owns its source: one
node reads a source.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

T = TypeVar("T", covariant=True)


class BaseNode(Iterator[T]):
    """An iterator with a state; a `Loader` makes an iterable of it.

    A subclass calls `super().__init__()`, and `super().reset(initial_state)` in its `reset`.

    Example:
        >>> from flambeau.utils.data.nodes import BaseNode
        >>> class Count(BaseNode):
        ...     def reset(self, initial_state=None):
        ...         super().reset(initial_state)
        ...         self.n = initial_state["n"] if initial_state else 0
        ...     def next(self):
        ...         self.n += 1
        ...         return self.n
        ...     def get_state(self):
        ...         return {"n": self.n}
        >>> count = Count()
        >>> next(count), next(count), count.state_dict()
        (1, 2, {'n': 2})
        >>> count.reset({"n": 7})
        >>> next(count)
        8
    """

    __begun: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__begun = False

    def __iter__(self) -> BaseNode[T]:
        return self

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Begin from the start, or where a state was taken.

        Args:
            initial_state: what `state_dict` returned; None for the start.
        """
        self.__begun = True

    def next(self) -> T:
        """The next element; for subclasses to write, callers use `next(node)`.

        Raises:
            StopIteration: there is none.
        """
        raise NotImplementedError(type(self))

    def get_state(self) -> dict[str, Any]:
        """The state; for subclasses to write, callers use `state_dict`."""
        raise NotImplementedError(type(self))

    def __next__(self) -> T:
        self.__begin()
        return self.next()

    def state_dict(self) -> dict[str, Any]:
        """Where the node stands, for `reset`. Begins the node if it has not begun."""
        self.__begin()
        return self.get_state()

    def __begin(self) -> None:
        try:
            begun = self.__begun
        except AttributeError:
            raise NotImplementedError(
                f"{type(self).__name__}: expected super().__init__() to be called in __init__"
            ) from None
        if not begun:
            self.reset(None)
            if not self.__begun:
                raise NotImplementedError(
                    f"{type(self).__name__}: expected super().reset(initial_state) to be called "
                    "in reset"
                )
