"""Helps to write an operator as ONNX: what its arguments are.

Owns the note alone, which an exporter would read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["parse_args"]


def parse_args(*arg_descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say what the arguments of a symbolic function are: "v" a value, "i" an int, and so on."""

    def note(fn: Callable[..., Any]) -> Callable[..., Any]:
        fn._arg_descriptors = arg_descriptors  # type: ignore[attr-defined]
        return fn

    return note
