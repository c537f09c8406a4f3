"""The former names of mixed precision on the CPU, each the general one with ``device="cpu"``."""

from __future__ import annotations

import warnings
from typing import Any

import flambeau as fb
from flambeau import amp as _amp

__all__ = ["GradScaler", "autocast"]


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`flambeau.cpu.amp.{name}(args...)` is deprecated. "
        f"Please use `flambeau.amp.{name}('cpu', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(_amp.autocast):
    """``flambeau.amp.autocast("cpu", ...)``."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        _deprecated("autocast")
        dtype = fb.bfloat16 if dtype is None else dtype
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(_amp.GradScaler):
    """``flambeau.amp.GradScaler("cpu", ...)``."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _deprecated("GradScaler")
        super().__init__(
            "cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
