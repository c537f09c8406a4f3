"""`torch.__version__`: text that compares as versions do.

Owns the comparison alone, after PEP 440 as far as a release and a local label go; where
`packaging` is installed it is not needed. Must not know which version it is.
"""

from __future__ import annotations

import re
from typing import Any

_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)\s*(?:[-_.]?(a|b|rc|dev|post)[a-z]*[-_.]?(\d*))?", re.I)
_ORDER = {"dev": -4, "a": -3, "b": -2, "rc": -1, "": 0, "post": 1}


def _key(value: Any) -> tuple[Any, ...] | None:
    """What a version is ordered by; None for what is none."""
    if isinstance(value, tuple | list):
        value = ".".join(map(str, value))
    value = str(value)
    release, _, local = value.partition("+")
    found = _RELEASE.match(release.strip())
    if found is None:
        return None
    numbers = [int(n) for n in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), _ORDER[(found[2] or "").lower()], int(found[3] or 0), local


class TorchVersion(str):
    """A version that is a str, ordered as versions are and not as text.

    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 13)
    (True, True)
    """

    __slots__ = ()

    def _keys(self, other: Any) -> tuple[Any, Any] | None:
        mine, theirs = _key(str.__str__(self)), _key(other)
        return None if mine is None or theirs is None else (mine, theirs)

    def __lt__(self, other: Any) -> bool:
        keys = self._keys(other)
        return keys[0] < keys[1] if keys else str.__lt__(self, other)

    def __le__(self, other: Any) -> bool:
        keys = self._keys(other)
        return keys[0] <= keys[1] if keys else str.__le__(self, other)

    def __gt__(self, other: Any) -> bool:
        keys = self._keys(other)
        return keys[0] > keys[1] if keys else str.__gt__(self, other)

    def __ge__(self, other: Any) -> bool:
        keys = self._keys(other)
        return keys[0] >= keys[1] if keys else str.__ge__(self, other)

    def __eq__(self, other: Any) -> bool:
        keys = self._keys(other)
        return keys[0] == keys[1] if keys else str.__eq__(self, other)

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)
