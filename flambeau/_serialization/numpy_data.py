"""NumPy's arrays, scalars and dtypes in pickles.

Owns what of NumPy a file may name. Invariant: an array is made only from a plain dtype, a shape
and exactly as many bytes as these need; arrays of objects and records are refused. It knows
nothing of tensors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

_CODE = re.compile(r"(b1|[iuf][1248]|f16|c8|c16|c32|[SUV]\d{1,9}|\?)\Z")
_SCALARS = (
    "bool_ bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128 str_ bytes_ longlong ulonglong"
).split()


def names(charge: Callable[[int], None]) -> tuple[dict[str, Any], dict[int, Callable[..., Any]]]:
    """The names a file may use, and how those that are called are called.

    Args:
        charge: notes how many bytes a call copies.
    """

    def scalar(dtype: Any, data: Any) -> Any:
        array = _from_bytes(data, _plain(dtype), ())
        return array[()]

    def from_buffer(data: Any, dtype: Any, shape: Any, order: Any, *_: Any) -> Any:
        if order not in ("C", "F"):
            raise ValueError(f"an array of order {order!r}")
        charge(len(data))
        return _from_bytes(data, _plain(dtype), shape, order)

    found: dict[str, Any] = {"numpy.ndarray": np.ndarray, "numpy.dtype": np.dtype}
    calls: dict[int, Callable[..., Any]] = {id(np.dtype): _dtype}
    for name in _SCALARS:
        if hasattr(np, name):
            found[f"numpy.{name}"] = getattr(np, name)
    for name in dir(np.dtypes):
        if name.endswith("DType"):
            found[f"numpy.dtypes.{name}"] = getattr(np.dtypes, name)
    for package in ("numpy.core", "numpy._core"):
        for module, name, call in (
            ("multiarray", "_reconstruct", _reconstruct),
            ("multiarray", "scalar", scalar),
            ("numeric", "_frombuffer", from_buffer),
        ):
            found[f"{package}.{module}.{name}"] = call
            calls[id(call)] = call
    return found, calls


def _dtype(code: Any, *_: Any) -> Any:
    if type(code) is type and issubclass(code, np.generic):
        return np.dtype(code)
    if type(code) is not str or not _CODE.match(code):
        raise ValueError(f"load: NumPy dtype {str(code)[:40]!r} is not plain numbers or text")
    return np.dtype(code, copy=True)


def _plain(dtype: Any) -> Any:
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biufcSUV" or dtype.names is not None:
        raise ValueError(f"load: NumPy dtype {str(dtype)[:40]!r} is not plain numbers or text")
    return dtype


def set_dtype_state(dtype: Any, state: Any) -> None:
    """Gives a new dtype its byte order, the only part of its state that plain dtypes need."""
    if type(state) is not tuple or len(state) < 5 or state[0] not in (3, 4):
        raise ValueError("the state of a NumPy dtype is malformed")
    if state[2:5] != (None, None, None) or state[1] not in ("<", ">", "|", "="):
        raise ValueError("load: NumPy dtypes with fields or sub-arrays are not plain numbers")
    size = dtype.itemsize if dtype.kind in "SUV" else -1
    align = {"U": 4, "S": 1, "V": 1}.get(dtype.kind, -1)
    flags = 8 if dtype.kind == "U" else 0
    dtype.__setstate__((3, state[1], None, None, None, size, align, flags))


def _reconstruct(kind: Any, shape: Any, code: Any) -> Any:
    if kind is not np.ndarray:
        raise ValueError("load: only plain NumPy arrays are read, no subclasses")
    return np.empty(0, np.int8)


def set_array_state(array: Any, state: Any) -> None:
    """Gives an empty array its shape, dtype and bytes."""
    if type(state) is not tuple or len(state) != 5:
        raise ValueError("the state of a NumPy array is malformed")
    _, shape, dtype, fortran, data = state
    if type(data) is str:  # what Python 2 wrote
        data = data.encode("latin-1")
    _from_bytes(data, _plain(dtype), shape)
    array.__setstate__((1, shape, dtype, bool(fortran), bytes(data)))


def _from_bytes(data: Any, dtype: Any, shape: Any, order: Any = "C") -> Any:
    if type(shape) is not tuple or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError("the shape of a NumPy array is malformed")
    if type(data) not in (bytes, bytearray):
        raise ValueError("the values of a NumPy array are not bytes")
    if len(shape) > 32 or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(
            f"load: NumPy array of shape {shape} and dtype {dtype} has {len(data)} bytes"
        )
    if dtype.kind == "b" and max(data, default=0) > 1:
        raise ValueError("load: a NumPy array of bool holds bytes other than 0 and 1")
    return np.ndarray(shape, dtype, bytearray(data), order=order)
