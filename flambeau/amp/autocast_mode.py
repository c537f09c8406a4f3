"""``autocast``, as context manager and decorator, and its decorators for custom functions.

The state is the core's, per thread and device type; this file sets and restores it through
``is_autocast_enabled``, ``set_autocast_enabled``, ``get_autocast_dtype``, ``set_autocast_dtype``,
their two counterparts for the cache of casts, the two of the nesting count and
``clear_autocast_cache``. Invariant: leaving a context restores what entering it found. Must not
know any operation.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import flambeau as fb

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_AVAILABLE = ("cpu", "cuda", "xpu", "mps")


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast is defined for a device type.

    Raises:
        RuntimeError: there is no such device type.
    """
    return fb.device(device_type).type in _AVAILABLE


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """``func`` run inside ``autocast_instance``."""

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorated


class autocast:
    """Run matrix products and convolutions in a fast dtype, and what needs range in float32.

    Args:
        device_type: ``"cpu"``, ``"cuda"``, …
        dtype: the fast dtype; None asks ``get_autocast_dtype(device_type)``.
        enabled: False switches an outer autocast off.
        cache_enabled: keep casts of parameters until the outermost context is left.

    Raises:
        ValueError: ``device_type`` is not a string.
        RuntimeError: there is no such device type.
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"autocast: expected device_type to be one of {_AVAILABLE}, got '{device_type}'"
            )
        self.device = device_type
        self.fast_dtype = fb.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            fb.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        self._enabled = bool(enabled) and self._supported()
        # An instance may be entered again while it is active: one saved state per entry.
        self._saved: list[tuple[bool, Any, bool]] = []

    def _supported(self) -> bool:
        if self.device == "cpu":
            if self.fast_dtype in (fb.bfloat16, fb.float16):
                return True
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of bfloat16, float16, "
                f"got {self.fast_dtype}.",
                UserWarning,
                stacklevel=3,
            )
            return False
        if self.device == "cuda" and not fb.cuda.is_available():
            warnings.warn(
                "autocast: CUDA is not available. Disabling autocast.", UserWarning, stacklevel=3
            )
            return False
        return True

    def __enter__(self) -> autocast:
        device = self.device
        self._saved.append(
            (
                fb.is_autocast_enabled(device),
                fb.get_autocast_dtype(device),
                fb.is_autocast_cache_enabled(),
            )
        )
        fb.set_autocast_enabled(device, self._enabled)
        fb.set_autocast_dtype(device, self.fast_dtype)
        fb.autocast_increment_nesting()
        fb.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *exc: object) -> None:
        if fb.autocast_decrement_nesting() == 0:
            fb.clear_autocast_cache()
        enabled, dtype, cache = self._saved.pop()
        fb.set_autocast_enabled(self.device, enabled)
        fb.set_autocast_dtype(self.device, dtype)
        fb.set_autocast_cache_enabled(cache)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return autocast_decorator(self, func)


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """``value`` with all floating tensors of the device in ``dtype``; float64 stays."""
    if isinstance(value, fb.Tensor):
        eligible = (
            value.is_floating_point()
            and value.device.type == device_type
            and value.dtype != fb.float64
        )
        return value.to(dtype) if eligible else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        return {k: _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_cast(v, device_type, dtype) for v in value]
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return type(value)(items)
    return value


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Callable[..., Any]:
    """Decorator of a custom function's ``forward`` (the one that takes ``ctx``).

    Args:
        fwd: the static method.
        device_type: whose autocast it takes part in.
        cast_inputs: dtype that inputs are cast to; the body then runs without autocast. None leaves
            both as they are.
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = fb.get_autocast_dtype(device_type)
        active = fb.is_autocast_enabled(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = active
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        if not active:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(
                *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs)
            )

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorator of a custom function's ``backward``: autocast as it was in ``forward``.

    Args:
        bwd: the static method.
        device_type: the one given to ``custom_fwd``.
    """
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type=device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return backward
