"""Context managers as decorators.

Owns ``context_decorator``: every call of a decorated function, and every resumption of a decorated
generator, runs inside a fresh context. Must not know which contexts there are.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["context_decorator"]

Context = AbstractContextManager[Any]


def context_decorator(context: Any, func: Callable[..., Any]) -> Any:
    """`func` run inside a context.

    Args:
        context: a context manager with `clone()`, or a callable that makes context managers.
        func: a function, a generator function or (deprecated) a class.
    """
    make: Callable[[], Context] = context.clone if hasattr(context, "__enter__") else context
    if inspect.isclass(func):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should "
            "only decorate functions or methods. To preserve the current behavior of class "
            "decoration, you can directly decorate the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=2,
        )
        setattr(func, "__init__", context_decorator(context, func.__init__))  # noqa: B010
        return func
    if inspect.isgeneratorfunction(func):
        return _generator(make, func)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return wrapper


def _generator(make: Callable[[], Context], func: Callable[..., Any]) -> Callable[..., Any]:
    """The context holds while the generator runs, and not while its consumer does."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        generator = func(*args, **kwargs)
        try:
            with make():
                item = generator.send(None)
            while True:
                try:
                    received = yield item
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:
                    with make():
                        item = generator.throw(error)
                else:
                    with make():
                        item = generator.send(received)
        except StopIteration as stop:
            return stop.value

    return wrapper


class _DecoratorContextManager:
    """A context manager that decorates functions too, each call in a copy of it (`clone`)."""

    def __call__(self, orig_func: Callable[..., Any]) -> Any:
        return context_decorator(self, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """A context manager like this one, made without arguments."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that is a decorator without being called first: ``@context``."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
