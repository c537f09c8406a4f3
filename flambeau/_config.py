"""Switches of the process that programs set and read: determinism, precision, warnings.

CPU kernels here give the same numbers run after run, so the switches for determinism change only
what memory holds that nobody has set. The precision of products is that of 3 x 3 convolutions.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from . import _C

_MODES = {"default": 0, "warn": 1, "error": 2}
_PRECISIONS = ("highest", "high", "medium")


class _Switches:
    """What was asked; one instance per process."""

    deterministic = False
    fills = True
    warn_only = False
    warn_always = False
    precision = "highest"


_switches = _Switches()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for algorithms whose results repeat exactly. All of this build's do."""
    _switches.deterministic, _switches.warn_only = bool(mode), bool(warn_only)
    _C._set_fills_new_memory(_switches.deterministic and _switches.fills)


def fills_uninitialized_memory() -> bool:
    """What `utils.deterministic.fill_uninitialized_memory` says."""
    return _switches.fills


def set_fills_uninitialized_memory(mode: bool) -> None:
    """Whether `empty` fills its memory while deterministic algorithms are asked for."""
    _switches.fills = mode
    _C._set_fills_new_memory(_switches.deterministic and mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Was `use_deterministic_algorithms(True)` called?"""
    return _switches.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Was it called with `warn_only=True`?"""
    return _switches.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same switch as "default" (0), "warn" (1) or "error" (2)."""
    mode = _MODES.get(debug_mode, debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
            f"{debug_mode}"
        )
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, see `set_deterministic_debug_mode`."""
    return 0 if not _switches.deterministic else 1 if _switches.warn_only else 2


def set_float32_matmul_precision(precision: str) -> None:
    """How far matrix products of float32 may round: "highest", "high" or "medium".

    A permission, not an order: products and convolutions on the CPU are always of the highest.
    """
    if precision not in _PRECISIONS:
        raise RuntimeError(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setting stays"
        )
    _switches.precision = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` set."""
    return _switches.precision


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that show once per process show every time."""
    _switches.warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` set."""
    return _switches.warn_always


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers become zero. Not supported: returns False."""
    return False


def on_device(device: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with `device` as the default device of its factories: `@torch.device("meta")`."""

    @functools.wraps(function)
    def placed(*args: Any, **kwargs: Any) -> Any:
        with device:
            return function(*args, **kwargs)

    return placed


def set_default_tensor_type(t: Any, /) -> None:
    """The default dtype, given as a legacy type such as `FloatTensor` or its name."""
    warnings.warn(
        "torch.set_default_tensor_type is deprecated: use torch.set_default_dtype and "
        "torch.set_default_device",
        stacklevel=2,
    )
    dtype = getattr(t, "dtype", None)
    if isinstance(t, str):
        import flambeau

        dtype = getattr(flambeau, t.rpartition(".")[2]).dtype
    _C.set_default_dtype(dtype if isinstance(dtype, _C.dtype) else t)


def is_storage(obj: object, /) -> bool:
    """Is the object a storage?"""
    from .storage import TypedStorage

    return isinstance(obj, (_C.UntypedStorage, TypedStorage))


def typename(obj: Any, /) -> str:
    """Full name of the type of `obj`; of a tensor, its legacy type."""
    if isinstance(obj, _C.Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) or hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", None)
    name = kind.__qualname__
    return name if module in (None, "builtins") else f"{module}.{name}"


def compiled_with_cxx11_abi() -> bool:
    """Always True."""
    return True
