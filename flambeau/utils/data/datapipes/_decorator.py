"""Decorators of pipes: a functional name, a promise of determinism, checks of types.

Owns what they check and say. Determinism and checks are switched per context, as the context
managers say: threads and tasks do not disturb one another.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar, get_origin, get_type_hints

from ._typing import element_type, is_subtype, matches, parameter, shown
from .datapipe import IterDataPipe, MapDataPipe

__all__ = [
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]

_C = TypeVar("_C")
_F = TypeVar("_F", bound=Callable[..., Any])
_determinism: ContextVar[bool] = ContextVar("datapipes_determinism", default=False)
_validation: ContextVar[bool] = ContextVar("datapipes_runtime_validation", default=True)


class functional_datapipe:
    """Give a class of pipes a functional name: `pipe.name(...)` then makes one.

    Args:
        name: the name, free in the registry of the class's kind.
        enable_df_api_tracing: refused if true.

    Raises:
        TypeError: what is decorated is no class of pipes.
        Exception: another class has the name.

    Example:
        >>> from flambeau.utils.data import IterDataPipe, functional_datapipe
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> @functional_datapipe("twice")
        ... class Twice(IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         for x in self.source:
        ...             yield 2 * x
        >>> list(IterableWrapper([1, 2]).twice())
        [2, 4]
    """

    name: str

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: _C) -> _C:
        if isinstance(cls, type) and issubclass(cls, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(
                self.name, cls, enable_df_api_tracing=self.enable_df_api_tracing
            )
        elif isinstance(cls, type) and issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(
                self.name, cls, enable_df_api_tracing=self.enable_df_api_tracing
            )
        else:
            raise TypeError(
                "`functional_datapipe` can only decorate IterDataPipe or MapDataPipe, but "
                f"{cls!r} is found"
            )
        return cls


class guaranteed_datapipes_determinism:
    """In this context, pipes that are marked `non_deterministic` cannot be made.

    Example:
        >>> from flambeau.utils.data import (
        ...     IterDataPipe, guaranteed_datapipes_determinism, non_deterministic)
        >>> @non_deterministic
        ... class Clock(IterDataPipe):
        ...     pass
        >>> with guaranteed_datapipes_determinism():
        ...     Clock()
        Traceback (most recent call last):
        ...
        TypeError: Clock is non-deterministic, but you set 'guaranteed_datapipes_determinism'...
    """

    prev: bool

    def __init__(self) -> None:
        self.prev = _determinism.get()
        _determinism.set(True)

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _determinism.set(self.prev)


class non_deterministic:
    """Mark a class of pipes whose elements or order may differ from pass to pass.

    Args:
        arg: the class; or a function of the constructor's arguments that says whether the pipe
            made with them is non-deterministic (the class is then decorated by the result).

    The class stays a class: it can be subclassed, pickled and asked for by `isinstance`.

    Raises:
        TypeError: something else is decorated; a marked pipe is made where determinism is
            guaranteed; the function does not return a bool.

    Example:
        >>> from flambeau.utils.data import IterDataPipe, non_deterministic
        >>> @non_deterministic(lambda shuffled: shuffled)
        ... class Files(IterDataPipe):
        ...     def __init__(self, shuffled):
        ...         self.shuffled = shuffled
        >>> isinstance(Files(False), Files)
        True
    """

    def __new__(cls, arg: Any) -> Any:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    "Only `IterDataPipe` can be decorated with `non_deterministic`, but "
                    f"{arg.__name__} is found"
                )
            return _guarded(arg, None)
        if not callable(arg):
            raise TypeError(f"{arg} can not be decorated by non_deterministic")
        self = super().__new__(cls)
        self.deterministic_fn = arg
        return self

    deterministic_fn: Callable[..., bool]

    def __call__(self, cls: Any) -> Any:
        if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
            name = getattr(cls, "__name__", cls)
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {name} is found")
        return _guarded(cls, self.deterministic_fn)


def _guarded(cls: Any, varies: Callable[..., bool] | None) -> Any:
    original = cls.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        how = ""
        says = True
        if varies is not None:
            says = varies(*args, **kwargs)
            if not isinstance(says, bool):
                raise TypeError(
                    "deterministic_fn of `non_deterministic` decorator is required to return a "
                    f"boolean value, but {type(says)} is found"
                )
            how = " with the inputs"
        if says and _determinism.get():
            raise TypeError(
                f"{cls.__name__} is non-deterministic{how}, but you set "
                "'guaranteed_datapipes_determinism'. You can turn off determinism for this "
                "DataPipe if that is acceptable for your application"
            )
        original(self, *args, **kwargs)

    cls.__init__ = __init__
    return cls


def argument_validation(f: _F) -> _F:
    """Check that arguments annotated `IterDataPipe[T]` are pipes, and of T where that is known.

    Raises:
        TypeError: when called with something else.

    Example:
        >>> from flambeau.utils.data import IterDataPipe, argument_validation
        >>> class Lengths(IterDataPipe[int]):
        ...     @argument_validation
        ...     def __init__(self, source: IterDataPipe[str]):
        ...         self.source = source
        >>> Lengths(["a"])
        Traceback (most recent call last):
        ...
        TypeError: Expected argument 'source' as a IterDataPipe, but found <class 'list'>
    """
    signature = inspect.signature(f)
    hints = {
        name: hint
        for name, hint in get_type_hints(f).items()
        if isinstance(get_origin(hint) or hint, type)
        and issubclass(get_origin(hint) or hint, IterDataPipe)
    }

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            if hint is None:
                continue
            if not isinstance(value, get_origin(hint) or hint):
                raise TypeError(
                    f"Expected argument '{name}' as a IterDataPipe, but found {type(value)}"
                )
            wanted, given = parameter(hint), element_type(type(value))
            if not is_subtype(given, wanted):
                raise TypeError(
                    f"Expected type of argument '{name}' as a subtype of hint {shown(wanted)}, "
                    f"but found {shown(given)}"
                )
        return f(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


class runtime_validation_disabled:
    """In this context, `runtime_validation` does not look at elements."""

    prev: bool

    def __init__(self) -> None:
        self.prev = _validation.get()
        _validation.set(False)

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _validation.set(self.prev)


def runtime_validation(f: _F) -> _F:
    """Check each element that `__iter__` yields against its annotation.

    That is T of `-> Iterator[T]`, or of the class's `IterDataPipe[T]`.

    Raises:
        TypeError: another function is decorated.
        RuntimeError: while iterating, an element of another type.

    Example:
        >>> from collections.abc import Iterator
        >>> from flambeau.utils.data import IterDataPipe, runtime_validation
        >>> class Numbers(IterDataPipe[int]):
        ...     @runtime_validation
        ...     def __iter__(self) -> Iterator[int]:
        ...         yield 1
        ...         yield "2"
        >>> list(Numbers())
        Traceback (most recent call last):
        ...
        RuntimeError: Expected an instance as subtype of int, but found 2(<class 'str'>)...
    """
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @functools.wraps(f)
    def wrapper(self: Any) -> Iterator[Any]:
        if not _validation.get():
            yield from f(self)
            return
        wanted = element_type(type(self))
        for element in f(self):
            if not matches(element, wanted):
                raise RuntimeError(
                    f"Expected an instance as subtype of {shown(wanted)}, but found "
                    f"{element}({type(element)})"
                )
            yield element

    return wrapper  # type: ignore[return-value]
