"""Times and sizes as text, with units that fit."""

from __future__ import annotations


def time_text(us: float) -> str:
    """A time with a fitting unit.

    >>> time_text(1500.0)
    '1.500ms'
    """
    if abs(us) >= 1e6:
        return f"{us / 1e6:.3f}s"
    if abs(us) >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def memory_text(bytes: int) -> str:
    """Bytes with a fitting unit.

    >>> memory_text(2048)
    '2.00 KB'
    """
    for power, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if abs(bytes) >= 1 << power:
            return f"{bytes / (1 << power):.2f} {unit}"
    return f"{bytes} B"
