"""Operations whose arguments are functions: branches, loops and scans over tensors.

Owns what they compute in plain Python, each in a file of its own name. They are ordinary code over
other operations, so that gradients, transforms and the compiler follow them without a rule.
"""

from __future__ import annotations

from .associative_scan import associative_scan
from .cond import cond
from .scan import scan
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "scan", "while_loop"]
