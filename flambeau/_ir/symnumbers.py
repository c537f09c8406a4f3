"""Arithmetic that is written alike for numbers and for the symbols that stand for them.

Owns the public functions `sym_...`. A plain number gives the plain result; a symbol keeps what its
own operators keep.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from . import symscalar

__all__ = ["sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sum"]


def sym_float(a: Any) -> Any:
    """The number as a float; a symbol as a symbolic one.

    >>> torch.sym_float(3)
    3.0
    """
    return a / 1 if isinstance(a, symscalar.SymInt) else float(a)


def sym_int(a: Any) -> Any:
    """The number without its fraction, toward zero.

    >>> torch.sym_int(-2.7)
    -2
    """
    if isinstance(a, symscalar.SymInt):
        return a
    return math.ceil(a) if a < 0 else math.floor(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger number; a float where one of both is.

    >>> torch.sym_max(2, 1.5)
    2.0
    """
    return _pick(max, symscalar.sym_max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float where one of both is.

    >>> torch.sym_min(2, 3)
    2
    """
    return _pick(min, symscalar.sym_min, a, b)


def _pick(plain: Any, symbolic: Any, a: Any, b: Any) -> Any:
    if isinstance(a, symscalar.SymInt) or isinstance(b, symscalar.SymInt):
        return symbolic(a, b)
    found = plain(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_not(a: Any) -> bool:
    """`not a`.

    >>> torch.sym_not(False)
    True
    """
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` where `b` is true, else `f`, which is of the same type.

    >>> torch.sym_ite(2 > 1, 4, 5)
    4
    """
    if type(t) is not type(f):
        raise TypeError(
            f"sym_ite: expected two of one type, got {type(t).__name__} and {type(f).__name__}"
        )
    return t if b else f


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers.

    >>> torch.sym_sum([1, 2, 3])
    6
    """
    return sum(args)
