"""Checks that programs state as calls: `_assert`, and the `_check` family with its exceptions.

Owns which exception each raises. A message may be a function, called only when it is needed.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "_assert",
    "_assert_async",
    "_assert_scalar",
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_type",
    "_check_value",
    "_check_with",
]


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError unless the condition holds."""
    assert condition, message


def _assert_async(self: Any, assert_msg: str = "") -> None:
    """Raise RuntimeError unless the one entry of a tensor is true, at once on the CPU.

    >>> torch._assert_async(torch.tensor(True), "never said")
    """
    if self.numel() != 1:
        raise RuntimeError(f"_assert_async: expected a tensor of one entry, got {self.numel()}")
    if not bool(self):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _assert_scalar(self: Any, assert_msg: str) -> None:
    """Raise RuntimeError unless a number is true."""
    if not self:
        raise RuntimeError(assert_msg)


def _check_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """Raise `error_type` unless `cond`, a bool, holds.

    >>> torch._check(1 < 2, lambda: "never asked for")
    """
    if not isinstance(cond, bool) and not hasattr(cond, "expr"):  # a symbolic comparison
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        text = "Expected cond to be True, but got False."
    else:
        text = str(message() if callable(message) else message)
    raise error_type(text)


def _check(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError unless `cond` holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Any = None) -> None:
    """Raise IndexError unless `cond` holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """Raise ValueError unless `cond` holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """Raise TypeError unless `cond` holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """Raise NotImplementedError unless `cond` holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """Raise RuntimeError unless a number can be a size: from 0, and below `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError unless all elements of a tensor of bool hold."""
    if not hasattr(cond, "all"):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    _check(bool(cond.all().item()), message)
