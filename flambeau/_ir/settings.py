"""What a compilation was told: the settings that passes and code generation obey.

Owns the settings in force on this thread; `flambeau._inductor.config` owns their public names and
defaults. Invariant: a pass that reads a setting finds it among the fields of `Settings`, all of
which are part of the name under which what was compiled is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Settings of one compilation.

    Attributes:
        fusion: loop nests over the same points become one.
        layouts: convolutions that gain run with their channels last.
        padding: matrix products run over sizes that are multiples of eight.
    """

    fusion: bool = True
    layouts: bool = True
    padding: bool = False


class _Local(threading.local):
    settings = Settings()


_local = _Local()


def current() -> Settings:
    """The settings in force."""
    return _local.settings


@contextmanager
def using(settings: Settings) -> Iterator[None]:
    """Inside, these are in force."""
    before, _local.settings = _local.settings, settings
    try:
        yield
    finally:
        _local.settings = before
