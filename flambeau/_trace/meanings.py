"""What the intrinsics of `_ir/intrinsics.py` mean over fakes, numbers and symbolic ints.

One function for each name that the front end emits as `core`; lists are Python lists. `OPERATIONS`
holds those that call operations of the table.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import flambeau

from .._ir.intrinsics import DTYPES
from .._ir.symbols import UnbackedError
from .._ir.symscalar import SymFloat, SymInt, sym_max, sym_min
from . import geometry
from .dtypes import (
    dtype_of,
    is_integral,
    promote,
    result_type,
    to_complex,
    to_real,
    wrapped_dtype,
)
from .fake import Fake, new

_CPU = flambeau.device("cpu")


class DataDependent(RuntimeError):
    """The values of a tensor without data were asked for."""


def format_name(f: Any) -> str:
    """Name of a memory format, whichever way it is given."""
    if f is None or isinstance(f, str):
        return f or "contiguous_format"
    return next(n for n in _FORMATS if getattr(flambeau, n) is f)


_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


# New tensors ------------------------------------------------------------------------------------


def empty(shape: Any, dtype: Any, like: Fake | None, device: Any, memory_format: Any) -> Fake:
    dtype = dtype or (like.dtype if like else flambeau.get_default_dtype())
    device = device or (like.device if like else _CPU)
    name = format_name(memory_format)
    name = "contiguous_format" if name == "preserve_format" else name
    return new(shape, dtype, device, geometry.format_strides(shape, name))


def empty_as(like: Fake, dtype: Any, memory_format: Any, device: Any) -> Fake:
    name = format_name(memory_format or "preserve_format")
    if name == "preserve_format":
        strides = geometry.empty_like_strides(like.shape, like.strides)
    else:
        strides = geometry.format_strides(like.shape, name)
    return new(like.shape, dtype or like.dtype, device or like.device, strides)


def empty_strided_as(shape: Any, strides: Any, dtype: Any, like: Fake | None, device: Any) -> Fake:
    dtype = dtype or (like.dtype if like else flambeau.get_default_dtype())
    return new(shape, dtype, device or (like.device if like else _CPU), tuple(strides))


def strided(x: Fake, shape: Any, stride: Any, offset: Any, dtype: Any) -> Fake:
    return Fake(dtype or x.dtype, shape, stride, x.device, offset, memory=x.memory)


def alias_of(x: Fake, dtype: Any) -> Fake:
    return Fake(
        dtype or x.dtype, x.shape, x.strides, x.device, x.offset, x.number, x.typed, x.memory
    )


def wrapped(x: Any) -> Fake:
    return new((), wrapped_dtype(x), number=x)


def device_of(*operands: Any) -> Any:
    """The first device that is not the CPU, else the CPU."""
    for x in operands:
        for t in x if isinstance(x, (list, tuple)) else [x]:
            if t is not None and t.device.type != "cpu":
                return t.device
    return _CPU


# Geometry ---------------------------------------------------------------------------------------


def size(x: Fake, dim: int | None = None) -> Any:
    return list(x.shape) if dim is None else x.shape[_dim(dim, x.ndim)]


def stride(x: Fake, dim: int | None = None) -> Any:
    return list(x.strides) if dim is None else x.strides[_dim(dim, x.ndim)]


def _dim(dim: int, ndim: int) -> int:
    if ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return geometry.wrap_dim(dim, ndim)


def _listed(xs: Any) -> Any:
    return None if xs is None else list(xs)


# Numbers ----------------------------------------------------------------------------------------


def item(x: Fake) -> Any:
    if x.number is not None:
        return x.number
    raise DataDependent("item(): the value of a traced tensor is known only when it runs")


def _extreme(pick: Callable[..., Any], symbolic: Callable[..., Any]) -> Callable[..., Any]:
    def apply(a: Any, b: Any) -> Any:
        try:
            return pick(a, b)
        except UnbackedError:
            return symbolic(a, b)

    return apply


def _sum(xs: Any) -> Any:
    total: Any = 0
    for x in xs:
        total = total + x
    return total


def _function(name: str) -> Callable[[Any], Any]:
    plain = getattr(math, name)

    def apply(x: Any) -> Any:
        if isinstance(x, SymInt):
            x = SymFloat.of(x)
        if isinstance(x, SymFloat):
            return x.apply(name)
        try:
            return plain(x)
        except ValueError:  # C's functions give these
            return -math.inf if name == "log" and x == 0 else math.nan
        except OverflowError:
            return math.inf

    return apply


def _divide(a: Any, b: Any) -> Any:
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0 else math.copysign(math.inf, a)


_KINDS = {bool: "bool", int: "integral", SymInt: "integral", complex: "complex"}


def _info(d: Any) -> Any:
    floating = d.is_floating_point or d.is_complex
    return flambeau.finfo(to_real(d)) if floating else flambeau.iinfo(d)


def _smallest(d: Any) -> float:
    return 0.0 if d is flambeau.bool else float(_info(d).min)


def _largest(d: Any) -> float:
    return 1.0 if d is flambeau.bool else float(_info(d).max)


def _epsilon(d: Any) -> float:
    inexact = d.is_floating_point or d.is_complex
    return float(flambeau.finfo(to_real(d)).eps) if inexact else 0.0


def fits(x: Any, d: Any) -> Any:
    """Can a dtype hold a number? Symbols are asked beside integers of less than 64 bits alone."""
    if isinstance(x, complex):
        if d.is_complex:
            return fits(x.real, to_real(d)) and fits(x.imag, to_real(d))
        return x.imag == 0 and fits(x.real, d)
    if d is flambeau.bool or isinstance(x, SymFloat):
        return True
    top, bottom, wide = _largest(d), _smallest(d), d.itemsize == 8
    if d.is_floating_point or d.is_complex:
        return isinstance(x, SymInt) or not math.isfinite(x) or bottom <= x <= top
    if isinstance(x, float):
        return x >= bottom and (x < top if wide else x <= top)
    if wide:
        return isinstance(x, SymInt) or x < 2**63 or d is flambeau.uint64
    return (bottom if d.is_signed else -top) <= x <= top


# Properties that both tensors and dtypes, or tensors and numbers, have --------------------------


def _dtype(x: Any) -> Any:
    if isinstance(x, Fake):
        return x.dtype
    return x if isinstance(x, flambeau.dtype) else dtype_of(x)


def is_floating_point(x: Any) -> bool:
    return bool(_dtype(x).is_floating_point)


def is_complex(x: Any) -> bool:
    return bool(_dtype(x).is_complex)


def integral(x: Any) -> bool:
    return is_integral(_dtype(x))


def text(x: Any) -> str:
    """A value inside of a message."""
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(text, x))}]"
    if isinstance(x, flambeau.dtype):
        return str(x).rpartition(".")[2]
    return str(x)


def _scalar_type_name(d: Any) -> str:
    special = {
        "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int",
        "int64": "Long", "float16": "Half", "float32": "Float", "float64": "Double",
        "bfloat16": "BFloat16", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    }  # fmt: skip
    name = text(d)
    return special.get(name, name.replace("uint", "UInt"))


def _opmath(d: Any) -> Any:
    return flambeau.float32 if d in (flambeau.float16, flambeau.bfloat16) else d


def _attention_place(backend: int) -> int:
    """Place of an implementation in the thread's order of preference; negative: not allowed."""
    order = flambeau._C._attention_backends()
    return order.index(backend) if backend in order else -1


def _result_type(*xs: Any) -> Any:
    return result_type(*(xs[0] if isinstance(xs[0], list) else xs))


CORE: dict[str, Callable[..., Any]] = {
    "device_of": device_of,
    "warn": lambda message: warnings.warn(message, stacklevel=2),
    "wrap_dim": geometry.wrap_dim,
    "wrap_dims": geometry.wrap_dims,
    "broadcast_shapes": lambda a, b: list(geometry.broadcast_shapes(a, b)),
    "contiguous_strides": lambda shape: list(geometry.contiguous_strides(shape)),
    "view_strides": lambda a, b, c: _listed(geometry.view_strides(tuple(a), tuple(b), c)),
    "infer_size": geometry.infer_size,
    "empty": empty,
    "empty_as": empty_as,
    "empty_strided_as": empty_strided_as,
    "strided": strided,
    "alias_of": alias_of,
    "undefined": lambda: None,
    "defined": lambda x: x is not None,
    "is_wrapped": lambda x: x.number is not None,
    "wrapped": wrapped,
    # What depends on values, of which there are none yet.
    "truth": lambda x, otherwise: otherwise,
    "underivable": lambda g, op: g,
    "multi_views": lambda xs, function: xs,
    "traced": lambda: True,
    "differentiated": lambda: flambeau.is_grad_enabled(),
    "is_differentiated": lambda x: x.requires_grad and flambeau.is_grad_enabled(),
    "attention_place": _attention_place,
    "alike": lambda a, b, c: False,  # the loops over lists are for eager calls
    "to_real": to_real,
    "to_complex": to_complex,
    "opmath": _opmath,
    "promote": promote,
    "default_dtype": flambeau.get_default_dtype,
    "result_type": _result_type,
    "dtype_of": dtype_of,
    "dtype_name": text,
    "scalar_type_name": _scalar_type_name,
    "smallest": _smallest,
    "largest": _largest,
    "epsilon": _epsilon,
    "device_or": lambda x, default: default if x is None else x,
    "prod": geometry.prod,
    "contains": lambda xs, x: any(x == y for y in xs) if isinstance(xs, list) else x in xs,
    "sum": _sum,
    "len": len,
    "sorted": sorted,
    "abs": lambda x: x if x >= 0 else -x,
    "all": all,
    "any": any,
    "sqrt": _function("sqrt"),
    "exp": _function("exp"),
    "log": _function("log"),
    "cos": _function("cos"),
    "sin": _function("sin"),
    "isnan": math.isnan,
    "isinf": math.isinf,
    "ceil": math.ceil,
    "floor": math.floor,
    "str": str,
    "ord": ord,
    "dim": lambda x: x.ndim,
    "ndim": lambda x: x.ndim,
    "size": size,
    "stride": stride,
    "shape": lambda x: list(x.shape),
    "strides": lambda x: list(x.strides),
    "offset": lambda x: x.offset,
    "storage_offset": lambda x: x.offset,
    "numel": lambda x: x.numel(),
    "itemsize": lambda d: d.itemsize,
    "dtype": lambda x: x.dtype,
    "device": lambda x: x.device,
    "layout": lambda x: flambeau.strided,
    "requires_grad": lambda x: x.requires_grad,
    "is_cuda": lambda x: x.device.type == "cuda",
    "is_meta": lambda x: x.device.type == "meta",
    "is_floating_point": is_floating_point,
    "is_complex": is_complex,
    "is_integral": integral,
    "is_bool": lambda x: _dtype(x) is flambeau.bool,
    "fits": fits,
    "conj": lambda x: x.conjugate() if isinstance(x, complex) else x,
    "is_inexact": lambda d: d.is_floating_point or d.is_complex,
    "is_contiguous": lambda x, f=None: x.is_contiguous(format_name(f)),
    "suggest_memory_format": lambda x: getattr(
        flambeau, geometry.suggest_memory_format(x.shape, x.strides)
    ),
    "item": item,
    "index": lambda xs, x: xs.index(x),
    "replace": lambda s, a, b: s.replace(a, b),
    "concat_lists": lambda a, b: [*a, *b],
    "repeat_list": lambda a, n: list(a) * n.__index__(),
    "reversed_list": lambda a: list(a)[::-1],
    "min_of": lambda xs: min(xs),
    "max_of": lambda xs: max(xs),
    "min": _extreme(min, sym_min),
    "max": _extreme(max, sym_max),
    "number_add": lambda a, b: a + b,
    "number_sub": lambda a, b: a - b,
    "number_mul": lambda a, b: a * b,
    "number_div": _divide,
    "strided_layout": lambda: flambeau.strided,
    "sparse_coo": lambda: flambeau.sparse_coo,
    "sparse_csr": lambda: flambeau.sparse_csr,
}
for _name in (*DTYPES, *_FORMATS):
    CORE[_name] = partial(getattr, flambeau, _name.removesuffix("_"))

#: intrinsics made of operations: called with the interpreter's `call` first
OPERATIONS: dict[str, Callable[..., Any]] = {}
