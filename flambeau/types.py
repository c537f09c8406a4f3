"""Names of types for annotations.

Owns nothing that runs: each is a type or a union of types.
"""

from __future__ import annotations

import os
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex  # noqa: F401
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from flambeau import Size, Tensor, UntypedStorage
from flambeau import device as _device
from flambeau import dtype as _dtype  # noqa: F401
from flambeau import layout as _layout  # noqa: F401

__all__ = ["Device", "FileLike", "Number", "Storage"]

_size: TypeAlias = Size | list[_int] | tuple[_int, ...]
_symsize: TypeAlias = Size | Sequence[_int]
_dispatchkey: TypeAlias = _str
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = Tensor | Sequence[Tensor] | Any
_qscheme: TypeAlias = Any

Number: TypeAlias = _int | _float | _bool
Device: TypeAlias = _device | _str | _int | None
FileLike: TypeAlias = _str | os.PathLike[_str] | IO[_bytes]
IntLikeType: TypeAlias = _int
FloatLikeType: TypeAlias = _float
BoolLikeType: TypeAlias = _bool
py_sym_types: tuple[type, ...] = ()
PySymType: TypeAlias = Any
Storage = UntypedStorage

_Number = (_bool, _int, _float)
__all__ += ["IntLikeType", "FloatLikeType", "BoolLikeType", "PySymType", "py_sym_types"]
