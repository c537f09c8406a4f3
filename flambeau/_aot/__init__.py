"""Ahead-of-time autograd: a captured graph to functional forward and backward graphs.

`pipeline` is the way through it: changes in place become values, derivatives of the table make a
joint graph, a minimum cut parts it. `runtime` ties the two callables to the user's tensors. Knows
neither frames nor native code.
"""

from __future__ import annotations

from .._trace.functional import NotFunctional
from .again import NotAgain
from .metadata import Metadata
from .pipeline import Compiled, aot
from .recorded import recorded
from .runtime import callable_of, described, part_of

__all__ = [
    "Compiled", "Metadata", "NotAgain", "NotFunctional", "aot", "callable_of", "described",
    "part_of", "recorded",
]  # fmt: skip
