"""`__torch_function__`: objects that answer for themselves when they are given to a function.

Owns the protocol: who is asked, in which order, and the error when all decline. Functions of ours
do not ask yet; libraries that follow the protocol in their own functions can.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from flambeau import Tensor

__all__ = [
    "get_default_nowrap_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "wrap_torch_function",
]

_plain = getattr(Tensor, "__torch_function__", None)


def _answers(value: Any) -> bool:
    kind = type(value)
    method = getattr(kind, "__torch_function__", None)
    return kind is not Tensor and method is not None and _function(method) is not _function(_plain)


def _function(method: Any) -> Any:
    return getattr(method, "__func__", method)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments has a `__torch_function__` of its own.

    >>> torch.overrides.has_torch_function([torch.ones(2), 1])
    False
    """
    return any(_answers(a) for a in relevant_args)


def has_torch_function_unary(tensor: Any) -> bool:
    """The same for one argument."""
    return _answers(tensor)


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """The same for several."""
    return any(_answers(a) for a in relevant_args)


def _asked(relevant_args: Iterable[Any]) -> list[Any]:
    """One argument of each type that answers: subclasses before their bases, else from the left."""
    out: list[Any] = []
    for value in relevant_args:
        kind = type(value)
        if not _answers(value) or any(type(o) is kind for o in out):
            continue
        at = next((i for i, o in enumerate(out) if issubclass(kind, type(o))), len(out))
        out.insert(at, value)
    return out


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Ask the arguments' `__torch_function__` for the result of a call.

    Args:
        public_api: the function that was called.
        relevant_args: the arguments that may answer.
        args, kwargs: all arguments of the call.

    Raises:
        TypeError: all of them return NotImplemented.
    """
    asked = _asked(relevant_args)
    types = tuple(type(a) for a in asked)
    for value in asked:
        result = type(value).__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(
        f"no implementation found for {name!r} on types that implement __torch_function__: "
        f"{list(types)}"
    )


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function ask the arguments that `dispatcher` picks.

    Args:
        dispatcher: takes the call's arguments and returns those that may answer.
    """

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or answers as one.

    >>> torch.overrides.is_tensor_like(torch.ones(2)), torch.overrides.is_tensor_like(3)
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results are not made subclasses: none by themselves.

    >>> len(torch.overrides.get_default_nowrap_functions())
    0
    """
    return set()
