"""Checks that programs make of their own values: `_check` and its kin, `_assert`, `_assert_async`.

Each raises one kind of error unless a condition holds; the message is made only then. They look
at Python values and at tensors of truth values, and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import _C

__all__ = [
    "_assert",
    "_assert_async",
    "_assert_scalar",
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_tensor_all_with",
    "_check_type",
    "_check_value",
    "_check_with",
]

Message = Callable[[], Any] | None


def _assert_scalar(self: Any, assert_msg: str) -> None:
    """Raise RuntimeError unless a number is true."""
    if not self:
        raise RuntimeError(assert_msg)


def _check_with(error_type: type[Exception], cond: Any, message: Message) -> None:
    """Raises `error_type` with the text that `message()` gives unless `cond` is true.

    Raises:
        TypeError: `cond` is no bool, or `message` cannot be called.

    >>> torch._check_with(KeyError, 1 < 2, lambda: "two is greater")
    """
    if not isinstance(cond, bool) and not hasattr(cond, "expr"):  # a symbolic comparison
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise _failure(error_type, message)


def _failure(error_type: type[Exception], message: Message) -> Exception:
    """The error of a check that does not hold."""
    if message is None:
        return error_type("Expected cond to be True, but got False.")
    if not callable(message):
        return TypeError("message must be a callable")
    return error_type(str(message()))


def _check(cond: Any, message: Message = None) -> None:
    """RuntimeError unless `cond`.

    >>> torch._check(1 < 2, lambda: "two is greater")
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """IndexError unless `cond`.

    >>> torch._check_index(0 < 2)
    """
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """ValueError unless `cond`.

    >>> torch._check_value(0 < 2)
    """
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """TypeError unless `cond`.

    >>> torch._check_type(isinstance(2, int))
    """
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """NotImplementedError unless `cond`.

    >>> torch._check_not_implemented(True)
    """
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raises `error_type` unless every entry of the bool tensor `cond` is true.

    Raises:
        TypeError: `cond` is no tensor of dtype bool.

    >>> torch._check_tensor_all_with(ValueError, torch.tensor([1, 2]) > 0)
    """
    if not isinstance(cond, _C.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != _C.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    if not cond.all():
        raise _failure(error_type, message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """RuntimeError unless every entry of the bool tensor `cond` is true.

    Raises:
        TypeError: `cond` is no tensor of dtype bool.

    >>> torch._check_tensor_all(torch.tensor([1, 2]) > 0)
    """
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """RuntimeError unless `i` is no less than 0, and no more than `max` if that is given.

    >>> torch._check(3 >= 0)
    """
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _assert(condition: Any, message: str) -> None:
    """AssertionError with `message` unless `condition`.

    >>> torch._assert(1 < 2, "two is greater")
    """
    if not bool(condition):
        raise AssertionError(message)


def _assert_async(input: Any, assert_msg: str | None = None) -> None:
    """RuntimeError unless the only entry of `input` is not zero. On the CPU at once.

    >>> torch._assert_async(torch.tensor(True))
    """
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")
