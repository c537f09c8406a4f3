"""PyTorch's name of the native back end: which options and modes it takes.

`config` holds the defaults; `compile(options=...)` and `compile(mode=...)` set them for one
compilation.
"""

from __future__ import annotations

from typing import Any

from . import config
from .package import aoti_compile_and_package, aoti_load_package

_MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {},
    "max-autotune-no-cudagraphs": {"max_autotune": True},
    "max-autotune": {"max_autotune": True},
}


def list_options() -> list[str]:
    """Names that `compile(options=...)` takes.

    >>> "epilogue_fusion" in torch._inductor.list_options()
    True
    """
    return sorted(config.DEFAULTS)


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """What each mode sets, or what one sets.

    Args:
        mode: one of the modes; None: a dictionary of all of them.
        dynamic: of no influence.

    Raises:
        RuntimeError: there is no such mode.

    >>> torch._inductor.list_mode_options("max-autotune")
    {'max_autotune': True}
    """
    if mode is None:
        return {name: dict(options) for name, options in _MODES.items()}
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    return dict(_MODES[mode])


__all__ = [
    "aoti_compile_and_package",
    "aoti_load_package",
    "config",
    "list_mode_options",
    "list_options",
]
