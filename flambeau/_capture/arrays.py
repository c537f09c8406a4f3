"""What stands for an array of NumPy in a followed program: a tensor, under NumPy's rules.

The tracer makes an `Array` of what `Tensor.numpy()` gives and follows its methods as those of any
class, so that they become operations of the graph on memory that is shared as NumPy shares it.
Dtypes are those that NumPy's own functions resolve. What is not written here ends the graph
(`unsupported`), and where it ends the array is one of NumPy again. Knows nothing of capture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

import flambeau as fb

DTYPES = {
    fb.bool: np.dtype("bool"),
    **{getattr(fb, n): np.dtype(n) for n in "uint8 int8 int16 int32 int64".split()},
    **{getattr(fb, n): np.dtype(n) for n in "float16 float32 float64".split()},
    fb.complex64: np.dtype("complex64"),
    fb.complex128: np.dtype("complex128"),
}
TENSOR_DTYPES = {v: k for k, v in DTYPES.items()}


def unsupported(what: str) -> NoReturn:
    """Ends the graph. The tracer runs the functions from here to `number` and follows the rest."""
    raise NotImplementedError(what)


def tensor_dtype(dtype: Any) -> Any:
    """That of a tensor for one of NumPy, or for what NumPy takes for one."""
    found = TENSOR_DTYPES.get(np.dtype(dtype))
    return unsupported(f"an array of {dtype}") if found is None else found


def array_dtype(dtype: Any) -> Any:
    """That of an array for a tensor's."""
    found = DTYPES.get(dtype)
    return unsupported(f"an array of {dtype}") if found is None else found


def resolved(function: Any, types: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The operation on tensors for a ufunc, and the dtypes in which it computes, the result's last;
    a type of Python's is a number that gives way."""
    found = UFUNCS.get(function)
    dtypes = function.resolve_dtypes((*types, None))
    whole, complex = dtypes[0].kind not in "fc", dtypes[0].kind == "c"
    if (
        found is None
        or (whole and function in WHOLE_DIFFER)
        or (complex and function in COMPLEX_DIFFER)
    ):
        unsupported(f"numpy.{function.__name__} of {dtypes[0]}")
    return found, dtypes


def number(value: Any, dtype: Any) -> Any:
    """A number as the dtype holds it."""
    return np.asarray(value, dtype).item()


class Array:
    """A tensor that behaves as an array; `scalar`: as the number of NumPy that a result without
    dims is."""

    __slots__ = ("_scalar", "_tensor")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tensor: Any, scalar: bool = False) -> None:
        self._tensor = tensor
        self._scalar = scalar

    def __getattr__(self, name: str) -> Any:
        unsupported(f"the attribute {name} of an array")

    # -- facts -------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        return array_dtype(self._tensor.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._tensor.shape)

    @property
    def ndim(self) -> int:
        return int(self._tensor.ndim)

    @property
    def size(self) -> int:
        return self._tensor.numel()

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    def __len__(self) -> int:
        if self._tensor.ndim == 0:
            raise TypeError("len() of unsized object")
        return self._tensor.shape[0]

    def __bool__(self) -> bool:
        if self._tensor.numel() != 1:
            unsupported("the truth of an array of several elements")
        return bool(self._tensor)

    def __float__(self) -> float:
        return float(self._tensor)

    def __int__(self) -> int:
        return int(self._tensor)

    def item(self) -> Any:
        return self._tensor.item()

    def tolist(self) -> Any:
        return self._tensor.tolist()

    # -- elements ----------------------------------------------------------------------------------

    def __iter__(self) -> Any:
        for i in range(len(self)):
            yield self[i]

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        found = self._tensor[_index(parts)]
        whole = len(parts) == self._tensor.ndim and all(isinstance(p, int) for p in parts)
        return Array(found, whole)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._scalar:
            raise TypeError("object does not support item assignment")
        given = value._tensor if isinstance(value, Array) else _as_tensor(value, self.dtype)
        if given.dtype.is_complex and not self._tensor.dtype.is_complex:
            unsupported("an assignment of complex numbers to real ones")
        if given.dtype.is_floating_point and not self._tensor.dtype.is_floating_point:
            unsupported("an assignment that drops fractions")
        self._tensor[_index(index if isinstance(index, tuple) else (index,))] = given

    def _updated(self, value: Any) -> Any:
        if self._scalar:
            return value
        if not np.can_cast(value.dtype, self.dtype, "same_kind") or value.shape != self.shape:
            unsupported("a change in place of another dtype or shape")
        self._tensor.copy_(value._tensor)
        return self

    # -- shapes ------------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Any:
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return Array(self._tensor.reshape(tuple(sizes)))

    def ravel(self) -> Any:
        return Array(self._tensor.reshape(-1))

    def flatten(self) -> Any:
        return Array(self._tensor.reshape(-1).clone())

    def copy(self) -> Any:
        return Array(self._tensor.clone(memory_format=fb.contiguous_format), self._scalar)

    def transpose(self, *axes: Any) -> Any:
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        if not order or order[0] is None:
            order = tuple(range(self._tensor.ndim - 1, -1, -1))
        return Array(self._tensor.permute(tuple(order)))

    @property
    def T(self) -> Any:  # noqa: N802
        return self.transpose()

    def swapaxes(self, a: int, b: int) -> Any:
        return Array(self._tensor.transpose(a, b))

    def squeeze(self, axis: Any = None) -> Any:
        if axis is None:
            return Array(self._tensor.squeeze())
        if self._tensor.shape[axis] != 1:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
        return Array(self._tensor.squeeze(axis))

    def astype(self, dtype: Any) -> Any:
        kind = array_dtype(tensor_dtype(dtype))
        if self._tensor.is_floating_point() and kind.kind not in "fc":
            unsupported("astype, of fractions to whole numbers")
        if self._tensor.is_complex() and kind.kind != "c":
            unsupported("astype, of complex numbers to real ones")
        return Array(self._tensor.to(tensor_dtype(kind), copy=True), self._scalar)

    # -- reductions --------------------------------------------------------------------------------

    def _dims(self, axis: Any) -> Any:
        if axis is None:
            return tuple(range(self._tensor.ndim))
        return tuple(axis) if isinstance(axis, tuple) else (axis,)

    def _reduced(self, function: Any, axis: Any, keepdims: bool, *, wide: bool = False) -> Any:
        x = self._tensor
        if wide and x.dtype == fb.uint8:
            unsupported("a sum of unsigned numbers")
        if x.is_complex() and not wide:
            unsupported("an order of complex numbers")
        dims = self._dims(axis)
        if not dims:
            unsupported("a reduction of an array without dims")
        out = function(x, dims, keepdims)
        return Array(out, out.ndim == 0)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduced(fb.sum, axis, keepdims, wide=True)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        return _fractions(self)._reduced(fb.mean, axis, keepdims, wide=True)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduced(fb.amax, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduced(fb.amin, axis, keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self._truths()._reduced(fb.all, axis, keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self._truths()._reduced(fb.any, axis, keepdims)

    def _truths(self) -> Any:
        return Array(self._tensor != 0)

    def var(self, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
        dims = self._dims(axis)
        return _fractions(self)._reduced(
            lambda x, d, k: fb.var(x, dims, correction=ddof, keepdim=k), axis, keepdims
        )

    def std(self, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
        return apply(np.sqrt, self.var(axis, ddof, keepdims))

    def prod(self, axis: Any = None) -> Any:
        return self._along(fb.prod, axis)

    def argmax(self, axis: Any = None) -> Any:
        return self._along(fb.argmax, axis)

    def argmin(self, axis: Any = None) -> Any:
        return self._along(fb.argmin, axis)

    def _along(self, function: Any, axis: Any) -> Any:
        if self._tensor.dtype in (fb.uint8, fb.bool) or self._tensor.is_complex():
            unsupported(f"{function.__name__} of {self.dtype}")
        x = self._tensor.reshape(-1) if axis is None else self._tensor
        out = function(x, 0 if axis is None else axis)
        return Array(out, out.ndim == 0)

    def cumsum(self, axis: Any = None) -> Any:
        if self._tensor.dtype == fb.uint8:
            unsupported("a sum of unsigned numbers")
        x = self._tensor.reshape(-1) if axis is None else self._tensor
        return Array(x.cumsum(0 if axis is None else axis))

    def clip(self, min: Any = None, max: Any = None) -> Any:
        out = self if min is None else apply(np.maximum, self, min)
        return out if max is None else apply(np.minimum, out, max)

    def dot(self, other: Any) -> Any:
        if not isinstance(other, Array) or self.ndim > 2 or other.ndim > 2 or not other.ndim:
            unsupported("a dot product of these")
        return apply(np.matmul, self, other)

    def round(self, decimals: int = 0) -> Any:
        if decimals or not self._tensor.is_floating_point():
            unsupported("rounding to decimals, or of whole numbers")
        return Array(self._tensor.round(), self._scalar)


def class_of(value: Array) -> Any:
    """What the program takes it for."""
    return DTYPES[value._tensor.dtype].type if value._scalar else np.ndarray


def _index(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    found = []
    for p in parts:
        if isinstance(p, Array):
            p = p._tensor
        elif isinstance(p, slice):
            if isinstance(p.step, int) and p.step < 0:
                unsupported("a slice with a negative step")
        elif isinstance(p, bool) or not (p is None or p is ... or isinstance(p, int)):
            unsupported("such an index of an array")
        found.append(p)
    return tuple(found)


def _fractions(x: Any) -> Any:
    """What a mean is taken of."""
    if x._tensor.dtype == fb.float16 or x._tensor.is_complex():
        unsupported("a mean of such numbers")
    return x if x._tensor.is_floating_point() else Array(x._tensor.to(fb.float64))


def _as_tensor(value: Any, dtype: Any) -> Any:
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return fb.tensor(number(value, dtype), dtype=tensor_dtype(dtype))
    unsupported("an array beside such an object")


def apply(function: Any, *inputs: Any) -> Any:
    """A ufunc by tensors: of arrays and numbers."""
    types: list[Any] = []
    for x in inputs:
        if isinstance(x, (Array, np.generic)):
            types.append(x.dtype)
        elif isinstance(x, bool):
            types.append(np.dtype("bool"))
        elif isinstance(x, (int, float, complex)):
            types.append(type(x))
        else:
            unsupported("an array beside such an object")
    operation, kinds = resolved(function, tuple(types))
    tensors = []
    for x, kind in zip(inputs, kinds, strict=False):
        if isinstance(x, Array):
            t = x._tensor if x.dtype == kind else x._tensor.to(tensor_dtype(kind))
        else:
            t = _as_tensor(x, kind)
        tensors.append(t)
    if function is np.power and isinstance(inputs[1], (float, np.generic)) and inputs[1] == 0.5:
        if tensors[0].dtype not in (fb.float32, fb.float64):
            unsupported("a power of 0.5 of such numbers")
        out = tensors[0].sqrt()  # as in NumPy: they differ for infinities
    else:
        out = operation(*tensors)
    if out.dtype != tensor_dtype(kinds[-1]):
        out = out.to(tensor_dtype(kinds[-1]))
    return Array(out, out.ndim == 0)


_SAME = (
    "add subtract multiply divide remainder maximum minimum fmax fmin exp exp2 expm1 log log2 "
    "log10 log1p sqrt square reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
    "arccosh arctanh arctan2 hypot floor ceil trunc isnan isfinite isinf signbit negative absolute "
    "logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor "
    "not_equal less less_equal greater greater_equal matmul deg2rad rad2deg copysign "
    "logaddexp floor_divide"
).split()
UFUNCS: dict[Any, Callable[..., Any]] = {getattr(np, n): getattr(fb, n) for n in _SAME}
UFUNCS[np.equal] = fb.eq
UFUNCS[np.power] = fb.pow
UFUNCS[np.rint] = fb.round
UFUNCS[np.invert] = fb.bitwise_not
UFUNCS[np.conjugate] = fb.conj_physical
#: NumPy has results of its own for zero divisors, negative exponents and the like
WHOLE_DIFFER = {np.remainder, np.floor_divide, np.power, np.reciprocal, np.rint}
#: as it has an order of complex numbers, and infinities of its own
COMPLEX_DIFFER = {
    getattr(np, n)
    for n in (
        "maximum minimum fmax fmin less less_equal greater greater_equal power sqrt log log2 log10 "
        "log1p exp2 expm1 reciprocal divide tan tanh arcsin arccos arctan arcsinh arccosh arctanh "
        "rint logical_and logical_or logical_xor logical_not"
    ).split()
}


def _operator(function: Any, name: str) -> None:
    """Methods for an operator: of the array in front, behind, and changed in place."""

    def front(self: Any, other: Any) -> Any:
        return apply(function, self, other)

    def behind(self: Any, other: Any) -> Any:
        return apply(function, other, self)

    def source(self: Any, other: Any) -> Any:
        return self._updated(apply(function, self, other))

    for prefix, method in (("", front), ("r", behind), ("i", source)):
        setattr(Array, f"__{prefix}{name}__", method)


_BINARY: tuple[tuple[Any, str], ...] = (
    (np.add, "add"), (np.subtract, "sub"), (np.multiply, "mul"), (np.divide, "truediv"),
    (np.floor_divide, "floordiv"), (np.remainder, "mod"), (np.power, "pow"),
    (np.matmul, "matmul"), (np.bitwise_and, "and"), (np.bitwise_or, "or"),
    (np.bitwise_xor, "xor"),
)  # fmt: skip
for _function, _name in _BINARY:
    _operator(_function, _name)


def _plain(function: Any, name: str) -> None:
    def method(self: Any, *other: Any) -> Any:
        return apply(function, self, *other)

    setattr(Array, f"__{name}__", method)


_OTHER: tuple[tuple[Any, str], ...] = (
    (np.equal, "eq"), (np.not_equal, "ne"), (np.less, "lt"), (np.less_equal, "le"),
    (np.greater, "gt"), (np.greater_equal, "ge"), (np.negative, "neg"), (np.absolute, "abs"),
    (np.invert, "invert"),
)  # fmt: skip
for _function, _name in _OTHER:
    _plain(_function, _name)


# Functions ----------------------------------------------------------------------------------------


def _method(name: str) -> Callable[..., Any]:
    def function(a: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(a, Array):
            unsupported(f"numpy.{name} of this")
        return getattr(a, name)(*args, **kwargs)

    return function


def _join(arrays: Any) -> list[Any]:
    """Tensors of one dtype."""
    if not isinstance(arrays, (list, tuple)) or not all(isinstance(a, Array) for a in arrays):
        unsupported("arrays to join that are not a list of arrays")
    kind = np.result_type(*[a.dtype for a in arrays])
    return [a._tensor.to(tensor_dtype(kind)) for a in arrays]


def concatenate(arrays: Any, axis: int = 0) -> Any:
    return Array(fb.cat(_join(arrays), axis))


def stack(arrays: Any, axis: int = 0) -> Any:
    return Array(fb.stack(_join(arrays), axis))


def where(condition: Any, x: Any, y: Any) -> Any:
    if not isinstance(condition, Array) or condition._tensor.dtype != fb.bool:
        unsupported("numpy.where with a condition that is not an array of truths")
    # The two are of the dtype that they would be added in, but for truths.
    kinds = [a.dtype for a in (x, y) if isinstance(a, (Array, np.generic))]
    if len(kinds) != 2:
        unsupported("numpy.where of numbers of Python")
    kind = np.result_type(*kinds)
    parts = [
        a._tensor.to(tensor_dtype(kind)) if isinstance(a, Array) else _as_tensor(a, kind)
        for a in (x, y)
    ]
    return Array(fb.where(condition._tensor, *parts))


def expand_dims(a: Any, axis: int) -> Any:
    return Array(a._tensor.unsqueeze(axis))


def array(a: Any) -> Any:
    return a.copy() if isinstance(a, Array) else Array(_outside(a).clone())


def asarray(a: Any) -> Any:
    return a if isinstance(a, Array) else Array(_outside(a))


def _outside(a: Any) -> Any:
    if not isinstance(a, fb.Tensor) or a.requires_grad:
        unsupported("an array of this")
    array_dtype(a.dtype)
    return a


def _like(make: Any) -> Callable[..., Any]:
    return lambda a: Array(make(a._tensor, memory_format=fb.preserve_format))


def norm(x: Any) -> Any:
    if not isinstance(x, Array) or x._tensor.dtype not in (fb.float32, fb.float64):
        unsupported("numpy.linalg.norm of this")
    return apply(np.sqrt, apply(np.square, x).sum())


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{
        getattr(np, n): _method(n)
        for n in (
            "sum mean max min all any var std prod argmax argmin cumsum clip reshape ravel "
            "transpose swapaxes squeeze copy dot round"
        ).split()
    },
    np.amax: _method("max"),
    np.amin: _method("min"),
    np.concatenate: concatenate,
    np.stack: stack,
    np.where: where,
    np.expand_dims: expand_dims,
    np.array: array,
    np.asarray: asarray,
    np.zeros_like: _like(fb.zeros_like),
    np.ones_like: _like(fb.ones_like),
    np.linalg.norm: norm,
}
