"""Whether memory that nobody has set is filled, where programs ask for results that repeat.

A module whose one attribute acts when it is set: `fill_uninitialized_memory`. The fill itself is
the core's; this knows only when it is wanted.
"""

from __future__ import annotations

import sys
from types import ModuleType

from flambeau import _config


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Do `empty` and its kin hold NaN, the greatest whole number or True while
        `use_deterministic_algorithms(True)` holds? True unless set.

        >>> torch.utils.deterministic.fill_uninitialized_memory
        True
        """
        return _config.fills_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"fill_uninitialized_memory: expected a bool, got {type(mode)}")
        _config.set_fills_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
