"""`torch.__version__`: text that compares as versions do.

Owns the comparison alone, after PEP 440 as far as a release, what precedes it and a local label
go. Written in plain string methods, which the compiler follows. Must not know which version it is.
"""

from __future__ import annotations

from typing import Any

#: what may follow the numbers of a release, in the order of versions
_ORDER = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1, "c": -1, "post": 1}


def _key(value: Any) -> tuple[Any, ...] | None:
    """What a version is ordered by; None for what is none."""
    if isinstance(value, (tuple, list)):
        value = ".".join([str(v) for v in value])
    release, _, local = str(value).strip().lower().partition("+")
    release = release.removeprefix("v").replace("-", ".").replace("_", ".")
    numbers: list[int] = []
    order, count = 0, 0
    for part in release.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        word = part[len(digits) :].rstrip("0123456789")
        if digits:
            numbers.append(int(digits))
        if word:
            if word not in _ORDER:
                return None
            order = _ORDER[word]
            count = int(part[len(digits) + len(word) :] or 0)
            break
        if not digits:
            return None
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return (tuple(numbers), order, count, local) if numbers else None


class TorchVersion(str):
    """A version that is a str, ordered as versions are and not as text.

    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 13)
    (True, True)
    """

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:
        mine, theirs = _key(self), _key(other)
        return str.__lt__(self, other) if mine is None or theirs is None else mine < theirs

    def __le__(self, other: Any) -> bool:
        mine, theirs = _key(self), _key(other)
        return str.__le__(self, other) if mine is None or theirs is None else mine <= theirs

    def __gt__(self, other: Any) -> bool:
        mine, theirs = _key(self), _key(other)
        return str.__gt__(self, other) if mine is None or theirs is None else mine > theirs

    def __ge__(self, other: Any) -> bool:
        mine, theirs = _key(self), _key(other)
        return str.__ge__(self, other) if mine is None or theirs is None else mine >= theirs

    def __eq__(self, other: Any) -> bool:
        mine, theirs = _key(self), _key(other)
        return str.__eq__(self, other) if mine is None or theirs is None else mine == theirs

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)
