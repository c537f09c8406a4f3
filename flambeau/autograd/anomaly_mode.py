"""Anomaly detection: which forward operation made the backward that fails, or gives NaN.

Owns the two context managers; the work is done by the engine.
"""

from __future__ import annotations

import warnings
from typing import Any

from flambeau import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Turns anomaly detection on or off: a function and a context manager.

    Args:
        mode: whether operations remember where they were called.
        check_nan: whether backward raises when a gradient becomes NaN.

    >>> with torch.autograd.set_detect_anomaly(True):
    ...     torch.ones(1, requires_grad=True).sum().backward()
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)


class detect_anomaly:
    """Turns anomaly detection on for a block; slow, for debugging.

    A failing backward is reported together with the forward call that recorded it.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exception: Any) -> None:
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)
