"""Every module class, one file per family.

Owns the list of families. Invariant: a public class is named in its family's `__all__`, nowhere else.
"""

from __future__ import annotations

from . import container, linear, module
from .container import *  # noqa: F403
from .linear import *  # noqa: F403
from .module import Module

__all__ = ["Module"]
for _family in (linear, container):
    __all__ += _family.__all__
