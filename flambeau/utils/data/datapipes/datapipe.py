"""The two kinds of pipe, iterable and map style, and the list that batches are made of.

Owns chaining by functional names: `pipe.map(f)` looks `map` up in the registry of its kind, a
dictionary of the class. A pipe holds what it was made with; what a pass needs lives in the pass,
so that a pipe may be iterated again, pickled and copied. It knows no pipe in particular.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Self, TypeVar

from ..dataset import Dataset, IterableDataset
from ._hook_iterator import _invalidated, _Pass, _SnapshotState, begin_pass, hooked
from ._notes import creation_site
from ._snapshots import put_back, state_of

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_Hook = Callable[[Any], Any]
_OF_AN_ITERATOR = (
    "_run",
    "_watch",
    "_drawn",
    "_valid_iterator_id",
    "_snapshot_state",
    "_fast_forward_iterator",
)


class DataChunk(list[_T]):
    """A list of samples: what `batch` and `groupby` hand out.

    >>> from flambeau.utils.data import DataChunk
    >>> chunk = DataChunk([1, 2])
    >>> chunk, chunk.items, chunk.as_str("  ")
    ([1, 2], [1, 2], '  [1, 2]')
    """

    def __init__(self, items: Iterable[_T]) -> None:
        super().__init__(items)

    @property
    def items(self) -> list[_T]:
        """The samples as a plain list."""
        return list(self)

    def as_str(self, indent: str = "") -> str:
        """The samples' own texts, one after another."""
        return indent + "[" + ", ".join(str(item) for item in self) + "]"

    def raw_iterator(self) -> Iterator[_T]:
        """The samples, not converted by a subclass."""
        return list.__iter__(self)


class _Chaining:
    """What both kinds share: the registry of functional names, hooks of pickling, printing."""

    functions: ClassVar[dict[str, Callable[..., Any]]]
    reduce_ex_hook: ClassVar[_Hook | None] = None
    getstate_hook: ClassVar[_Hook | None] = None
    str_hook: ClassVar[_Hook | None] = None
    repr_hook: ClassVar[_Hook | None] = None
    _kind: ClassVar[type[_Chaining]]
    _is_datapipe: ClassVar[bool] = True
    #: attributes that hold given elements, which a pass does not change
    _sources: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        self.__dict__["_made_at"] = creation_site()
        return self

    def __getattr__(self, attribute_name: str) -> Any:
        function = self._kind.functions.get(attribute_name)
        if function is None:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{attribute_name}'"
            )
        bound = functools.partial(function, self)
        bound.__doc__ = function.__doc__
        return bound

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make `pipe.function_name(...)` call `function(pipe, ...)`."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Make `pipe.function_name(...)` return `cls_to_register(pipe, ...)`.

        A class may take the name again that a class of the same name has: cells of a notebook are
        run twice.

        Raises:
            Exception: another class has the name.
            NotImplementedError: `enable_df_api_tracing`.
        """
        if enable_df_api_tracing:
            raise NotImplementedError(
                f"functional_datapipe({function_name!r}): expected enable_df_api_tracing=False; "
                "pipes over data frames are not supported"
            )
        taken = cls.functions.get(function_name)
        if taken is not None and _registered_name(taken) != cls_to_register.__name__:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        function = functools.partial(_made_from, cls_to_register)
        function.__doc__ = cls_to_register.__doc__
        cls.functions[function_name] = function

    def __getstate__(self) -> Any:
        """The attributes, or what the hook makes of them; a copy is not in the middle of a pass."""
        state = {k: v for k, v in self.__dict__.items() if k not in _OF_AN_ITERATOR}
        hook = self._kind.getstate_hook
        return state if hook is None else hook(state)

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = self._kind.reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    @classmethod
    def set_getstate_hook(cls, hook_fn: _Hook | None) -> None:
        """Let `hook_fn(state)` decide what is pickled; None to end that."""
        if cls._kind.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls._kind.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: _Hook | None) -> None:
        """Let `hook_fn(pipe)` pickle pipes, or raise NotImplementedError; None to end that."""
        if cls._kind.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls._kind.reduce_ex_hook = hook_fn

    def __repr__(self) -> str:
        hook: Any = type(self).repr_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __str__(self) -> str:
        hook: Any = type(self).str_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._kind.functions]


def _made_from(cls: Any, source: Any, /, *args: Any, **kwargs: Any) -> Any:
    return cls(source, *args, **kwargs)


def _registered_name(function: Any) -> str | None:
    if isinstance(function, functools.partial) and function.func is _made_from:
        name: str = function.args[0].__name__
        return name
    return None


class IterDataPipe(_Chaining, IterableDataset[_T_co]):
    """A stream of samples that others can be made from by name: `pipe.shuffle().batch(4)`.

    A subclass writes `__iter__`, and `__len__` where the length is known. Nothing is computed
    before an element is asked for. A pipe may be iterated any number of times, one iterator at a
    time: a new one invalidates the one before it, for pipes hold buffers. Before each pass
    `reset()` is called; a subclass that keeps state clears it there.

    Example:
        >>> from flambeau.utils.data import IterDataPipe
        >>> class Count(IterDataPipe):
        ...     def __init__(self, n):
        ...         self.n = n
        ...     def __iter__(self):
        ...         yield from range(self.n)
        >>> pipe = Count(4).filter(lambda n: n != 2).map(lambda n: n * 10)
        >>> list(pipe), list(pipe)
        ([0, 10, 30], [0, 10, 30])
        >>> first = iter(pipe)
        >>> next(first), next(iter(pipe))
        (0, 0)
        >>> next(first)
        Traceback (most recent call last):
        ...
        RuntimeError: This iterator has been invalidated because another iterator has been ...
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _valid_iterator_id: int | None = None
    _snapshot_state: _SnapshotState = _SnapshotState.NotStarted
    _fast_forward_iterator: Iterator[Any] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        iterate = cls.__dict__.get("__iter__")
        if iterate is not None:
            cls.__iter__ = hooked(iterate)  # type: ignore[method-assign]

    def __iter__(self) -> Iterator[_T_co]:
        return self

    def reset(self) -> None:
        """Called before each pass: a pipe that keeps state clears it here."""

    def state_dict(self) -> dict[str, Any]:
        """Where the pass over this pipe stands: plain data, as JSON can hold it.

        Call it on the last pipe of a graph. The state holds how many elements were handed out and
        the seeds that the random pipes of the graph have drawn for this pass. Seeds that they draw
        later in it (`cycle` over a shuffle) are of the global generator, whose state is saved apart
        (`torch.get_rng_state`). After the end of a pass it is a state of the next one. What an
        `in_memory_cache` holds is not part of it, and is read again.

        Example:
            >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
            >>> def graph():
            ...     return IterableWrapper(range(6)).shuffle().batch(2)
            >>> pipe = graph()
            >>> elements = iter(pipe)
            >>> _ = next(elements)
            >>> state = pipe.state_dict()
            >>> other = graph()
            >>> other.load_state_dict(state)
            >>> list(other) == list(elements)
            True
        """
        return state_of(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iterator go on where the state was taken, in a graph of the same pipes.

        It passes over the elements that were handed out, making them again: functions and sources
        must give the same again. The pass after that begins from the start.

        Args:
            state: what `state_dict` returned.

        Raises:
            RuntimeError: the graph has other pipes; while iterating, the source has too few
                elements.
        """
        put_back(self, state)

    def _begin_pass(self) -> _Pass:
        return begin_pass(self)

    def _invalidated(self) -> RuntimeError:
        return _invalidated(self)

    @property
    def _number_of_samples_yielded(self) -> int:
        this = self.__dict__.get("_pass")
        return 0 if this is None else this.count

    @_number_of_samples_yielded.setter
    def _number_of_samples_yielded(self, count: int) -> None:
        self.__dict__["_pass"] = _Pass(count)


IterDataPipe._kind = IterDataPipe
IterDataPipe.__iter__ = hooked(IterDataPipe.__iter__)  # type: ignore[method-assign]


class DFIterDataPipe(IterDataPipe[_T_co]):
    """Pipes over data frames: there for `isinstance`, and refused when one is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        raise NotImplementedError(
            f"{cls.__name__}: pipes over data frames are not supported; map a function over "
            "batches of rows instead"
        )

    def _is_dfpipe(self) -> bool:
        return True


class MapDataPipe(_Chaining, Dataset[_T_co]):
    """A mapping from keys to samples that others can be made from by name.

    A subclass writes `__getitem__`, and `__len__` where the length is known.

    Example:
        >>> from flambeau.utils.data import MapDataPipe
        >>> class Squares(MapDataPipe):
        ...     def __getitem__(self, i):
        ...         return i * i
        ...     def __len__(self):
        ...         return 5
        >>> pipe = Squares().map(lambda x: x + 1)
        >>> pipe[3], len(pipe)
        (10, 5)
        >>> Squares().batch(2)[1]
        [4, 9]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


MapDataPipe._kind = MapDataPipe
