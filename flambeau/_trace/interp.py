"""Runs typed functions of the table over fakes, numbers and symbolic ints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._ir import interp
from .._ir.symscalar import SymFloat, SymInt
from .._table.model import Op
from . import meanings
from .dtypes import wrapped_dtype
from .fake import Fake, new

Call = Callable[[Op, bool, list[Any]], Any]
NUMBERS = (bool, int, float, complex, SymInt, SymFloat)  # what may stand for a 0-d tensor


def wrapped(x: Any) -> Fake:
    """The 0-d tensor that a number is in a call."""
    if isinstance(x, Fake):
        return x
    if isinstance(x, int) and not -(2**63) <= x < 2**64:
        raise OverflowError("Overflow when unpacking long long: int too big to convert")
    return new((), wrapped_dtype(x), number=x)


class Interpreter(interp.Interpreter):
    """One run over fakes."""

    core = {**meanings.CORE, "wrap": wrapped, "format": lambda *xs: "".join(map(meanings.text, xs))}
    operations = meanings.OPERATIONS
