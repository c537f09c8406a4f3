"""Types of results: promotion as csrc/core/promotion.cpp has it, on fakes and numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import flambeau

from .._ir.symscalar import SymFloat, SymInt
from .fake import Fake

#: what Python's number types name as dtypes
PYTHON_DTYPES = {
    float: flambeau.float64, int: flambeau.int64, bool: flambeau.bool,
    complex: flambeau.complex128,
}  # fmt: skip
_COMPLEX = {
    flambeau.float16: flambeau.complex64, flambeau.bfloat16: flambeau.complex64,
    flambeau.float32: flambeau.complex64, flambeau.float64: flambeau.complex128,
}  # fmt: skip
_REAL = {flambeau.complex64: flambeau.float32, flambeau.complex128: flambeau.float64}


@cache
def promote(a: Any, b: Any) -> Any:
    return flambeau.promote_types(a, b)


def is_integral(d: Any, with_bool: bool = False) -> bool:
    if d is flambeau.bool:
        return with_bool
    return not d.is_floating_point and not d.is_complex


def to_real(d: Any) -> Any:
    return _REAL.get(d, d)


def to_complex(d: Any) -> Any:
    return d if d.is_complex else _COMPLEX.get(d, flambeau.complex64)


def dtype_of(x: Any) -> Any:
    """Type that a Python number has in promotion."""
    if isinstance(x, bool):
        return flambeau.bool
    if isinstance(x, (int, SymInt)):
        return flambeau.int64
    if isinstance(x, (float, SymFloat)):
        return flambeau.get_default_dtype()
    return to_complex(flambeau.get_default_dtype())


def wrapped_dtype(x: Any) -> Any:
    """Type in which a wrapped number is held."""
    if isinstance(x, (bool, int, SymInt)):
        return dtype_of(x)
    return flambeau.complex128 if isinstance(x, complex) else flambeau.float64


def class_of(d: Any) -> int:
    """bool, integer, float, complex."""
    if d is flambeau.bool:
        return 0
    return 3 if d.is_complex else 2 if d.is_floating_point else 1


def result_type(*operands: Any) -> Any:
    """Type of a result: tensors with dims before 0-d ones before numbers."""
    best: list[Any] = [None, None, None]
    for x in operands:
        if isinstance(x, Fake) and not x.wrapped:
            rank, d = (0 if x.ndim > 0 else 1), x.dtype
        else:
            rank, d = 2, dtype_of(x.number if isinstance(x, Fake) else x)
        best[rank] = d if best[rank] is None else promote(best[rank], d)
    out = None
    for d in best:
        if d is None:
            continue
        if out is None:
            out = d
        elif class_of(d) > class_of(out):
            out = promote(out, d)
    return flambeau.bool if out is None else out


def can_cast(a: Any, b: Any) -> bool:
    """May values of one type be stored in another in place?"""
    if a.is_complex and not b.is_complex:
        return False
    if a.is_floating_point and is_integral(b, True):
        return False
    return a is flambeau.bool or b is not flambeau.bool
