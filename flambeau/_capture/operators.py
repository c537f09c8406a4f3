"""Operators that programs add (`flambeau.library`) in a followed program: the graph ends there."""

from __future__ import annotations

from typing import Any

from flambeau._library.operators import OpOverload

from . import objects
from .builtin_calls import means
from .errors import Break
from .interpreter import Frame


@means(OpOverload.__call__)
def operator(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`op(*args)`"""
    raise Break(f"a call of the operator {objects.load_attr(f, args[0], '_uid')}")
