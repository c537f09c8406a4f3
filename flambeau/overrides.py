"""`__torch_function__`: objects that answer for themselves when they are given to a function.

Owns the protocol as functions of Python follow it (who is asked, in which order, and the error when
all decline) and modes, which see all calls of a block; what the core asks is csrc/python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from flambeau import _C, Tensor

__all__ = [
    "TorchFunctionMode",
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
    """Whether one of the arguments has a `__torch_function__` of its own, or a mode is entered.

    >>> torch.overrides.has_torch_function([torch.ones(2), 1])
    False
    """
    if _C._function_modes():
        return True
    return _C._is_torch_function_enabled() and any(_answers(a) for a in relevant_args)


def has_torch_function_unary(tensor: Any) -> bool:
    """The same for one argument."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """The same for several."""
    return has_torch_function(relevant_args)


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
    """Ask the innermost mode, else the arguments' `__torch_function__`, for the result of a call.

    Args:
        public_api: the function that was called.
        relevant_args: the arguments that may answer.
        args, kwargs: all arguments of the call.

    Raises:
        TypeError: all of them return NotImplemented.
    """
    asked = _asked(relevant_args)
    types = tuple(type(a) for a in asked)
    if _C._function_modes():
        return _C._ask_function_mode(public_api, types, args, kwargs)
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


class TorchFunctionMode:
    """A context manager that sees the calls of functions and methods of tensors in its block.

    Each call of the thread goes to `__torch_function__(func, types, args, kwargs)` of the innermost
    mode. What the mode calls itself goes to the mode around it, if there is one. `types` are the
    classes among the arguments that have a `__torch_function__` of their own. Calls that are made
    in C++ alone, and what a `torch.compile` of earlier would run as one, are seen as the calls that
    the program writes: nothing runs compiled in the block.

    >>> class Counts(torch.overrides.TorchFunctionMode):
    ...     seen = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.seen += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Counts() as counts:
    ...     y = torch.ones(2) + 1
    >>> counts.seen
    2
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} needs a method __torch_function__(func, types, args, kwargs)"
        )

    def __enter__(self) -> Any:
        _C._enter_function_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        left = _C._leave_function_mode()
        if left is not self:
            _C._enter_function_mode(left)
            raise RuntimeError(
                f"{type(self).__name__}: expected the innermost mode to be left first, that is "
                f"{type(left).__name__}"
            )


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls what it sees."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of tensors, or reads or sets a property of theirs.

    >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
    True
    >>> torch.overrides.is_tensor_method_or_property(torch.add)
    False
    """
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        return True
    return getattr(Tensor, name, None) == func


def resolve_name(f: Callable[..., Any]) -> str | None:
    """What a program writes for a function that a mode or subclass is given; None: not known.

    >>> torch.overrides.resolve_name(torch.Tensor.add), torch.overrides.resolve_name(torch.sum)
    ('torch.Tensor.add', 'torch.sum')
    """
    name = getattr(f, "__name__", "")
    if name in ("__get__", "__set__"):
        of = getattr(f, "__self__", None)
        return f"torch.Tensor.{getattr(of, '__name__', '')}.{name}"
    if getattr(Tensor, name, None) == f:
        return f"torch.Tensor.{name}"
    home = (getattr(f, "__module__", None) or "").replace("flambeau", "torch", 1)
    if home.partition(".")[0] != "torch":
        return None
    return f"{home.removesuffix('._C')}.{name}"
