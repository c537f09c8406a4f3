"""Numerical limits of element types: `finfo` and `iinfo`.

Everything follows from the layout of the type: bits of exponent and of mantissa. Must not need
NumPy, which has no bfloat16.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from . import _C

#: real floating-point types: (bits, bits of exponent, bits of stored mantissa, decimal digits)
_FLOATS = {
    "float16": (16, 5, 10, 3),
    "bfloat16": (16, 8, 7, 2),
    "float32": (32, 8, 23, 6),
    "float64": (64, 11, 52, 15),
}

#: formats of eight bits and less: (eps, largest, smallest of full precision, smallest of all)
_SMALL = {
    "float8_e4m3fn": (2**-3, 448.0, 2**-6, -448.0),
    "float8_e4m3fnuz": (2**-3, 240.0, 2**-7, -240.0),
    "float8_e5m2": (2**-2, 57344.0, 2**-14, -57344.0),
    "float8_e5m2fnuz": (2**-3, 57344.0, 2**-15, -57344.0),
    "float8_e8m0fnu": (1.0, 2.0**127, 2**-127, 2.0**-127),
    "float4_e2m1fn_x2": None,
}


class AbsentDtype:
    """A number format that tensors cannot have yet; what is known of it is its limits.

    Operations refuse it, as they do anything that is not a dtype.
    """

    __slots__ = ("_name",)
    is_floating_point, is_complex, itemsize = True, False, 1

    def __init__(self, name: str) -> None:
        if name not in _SMALL:
            raise ValueError(f"expected one of {sorted(_SMALL)}, got {name!r}")
        self._name = name

    @property
    def is_signed(self) -> bool:
        return self._name != "float8_e8m0fnu"

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> Any:
        return absent_dtype, (self._name,)


@functools.cache
def absent_dtype(name: str) -> AbsentDtype:
    """The one object for a format."""
    return AbsentDtype(name)


def _short(value: float) -> str:
    return f"{value:g}"


def _name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


class finfo:
    """Limits of a floating-point type; of the parts, for a complex one.

    Attributes:
        bits: size of a number.
        eps: distance from 1 to the next number.
        max, min: largest and smallest number.
        tiny, smallest_normal: smallest positive number of full precision.
        resolution: 10 ** -digits that survive in decimal.
        dtype: name of the type.

    >>> torch.finfo(torch.float32).eps == 2**-23
    True
    """

    __module__ = "flambeau"  # where it is public, and read by pickle
    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: Any = None) -> None:
        dtype = _C.get_default_dtype() if type is None else type
        if isinstance(dtype, AbsentDtype) and (small := _SMALL[_name(dtype)]):
            self.dtype, self.bits, self.resolution = _name(dtype), 8, 1.0
            self.eps, self.max, self.tiny, self.min = small
            self.smallest_normal = self.tiny
            return
        if not isinstance(dtype, _C.dtype):
            raise TypeError(
                f"finfo(): argument 'type' (position 1) must be torch.dtype, not "
                f"{dtype.__class__.__name__}"
            )
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                "'torch.finfo'"
            )
        self.dtype = _name(dtype.to_real() if dtype.is_complex else dtype)
        self.bits, exponent, mantissa, digits = _FLOATS[self.dtype]
        bias = 2 ** (exponent - 1) - 1
        self.eps = math.ldexp(1.0, -mantissa)
        self.max = math.ldexp(2.0 - self.eps, bias)
        self.min = -self.max
        self.tiny = self.smallest_normal = math.ldexp(1.0, 1 - bias)
        self.resolution = float(f"1e-{digits}")

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        values = ", ".join(f"{n}={_short(getattr(self, n))}" for n in names)
        return f"finfo({values}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer type.

    Attributes:
        bits: size of a number.
        max, min: largest and smallest number.
        dtype: name of the type.

    >>> torch.iinfo(torch.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __module__ = "flambeau"  # where it is public, and read by pickle
    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: Any) -> None:
        if not isinstance(type, _C.dtype):
            raise TypeError(
                f"iinfo(): argument 'type' (position 1) must be torch.dtype, not "
                f"{type.__class__.__name__}"
            )
        if type.is_floating_point or type.is_complex:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        if type is vars(_C)["bool"]:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        self.dtype = _name(type)
        self.bits = 8 * type.itemsize
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.min = -self.max - 1 if type.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
