"""Modules of the standard library that are slow to import and that few pipes need.

Owns the stand-in: it imports the module when something of it is asked for. Loading the pipes, which
each spawned worker of a loader does, would take several times as long without it.
"""

from __future__ import annotations

import importlib
from typing import Any


class Late:
    """Stands for a module until an attribute of it is read.

    >>> from flambeau.utils.data.datapipes._late import Late
    >>> Late("math").gcd(12, 18)
    6
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
