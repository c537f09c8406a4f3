"""What programs ask the compiler about itself."""

from __future__ import annotations

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Whether code for a kind of device is compiled: the CPU's.

    >>> torch._dynamo.utils.is_compile_supported("cpu")
    True
    """
    return device_type == "cpu"
