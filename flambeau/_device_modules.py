"""Modules of devices and the errors that devices raise."""

from __future__ import annotations

import importlib
from typing import Any

import flambeau as fb

__all__ = [
    "AcceleratorError",
    "OutOfMemoryError",
    "get_autocast_gpu_dtype",
    "get_device_module",
    "set_autocast_gpu_dtype",
]


class OutOfMemoryError(RuntimeError):
    """A device has no memory left. No device of this build raises it; memory of the CPU that
    cannot be had is a RuntimeError, as in PyTorch."""


class AcceleratorError(RuntimeError):
    """An accelerator failed. No device of this build raises it."""


def get_device_module(device: Any = None) -> Any:
    """The module of a kind of device: `torch.cpu`, `torch.cuda`.

    Args:
        device: a device or its name; None: the accelerator, where there is none the CPU.

    Raises:
        RuntimeError: that kind of device has no module.

    Source: PyTorch's documentation.

    >>> torch.get_device_module("cpu").is_available()
    True
    """
    kind = "cpu" if device is None else fb.device(device).type
    try:
        return importlib.import_module(f"flambeau.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"get_device_module: expected a kind of device that has a module, got {kind!r}"
        ) from None


def get_autocast_gpu_dtype() -> Any:
    """The former name of ``get_autocast_dtype("cuda")``."""
    return fb.get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """The former name of ``set_autocast_dtype("cuda", dtype)``. Without a GPU its dtype stays."""
    fb.set_autocast_dtype("cuda", dtype)
