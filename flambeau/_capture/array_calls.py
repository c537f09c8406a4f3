"""Where a followed program meets arrays of NumPy: what makes an `Array`, which functions of NumPy
are followed as tensors, and how an array becomes a tensor or NumPy's own again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau._trace.tensor import FakeTensor

from . import arrays, c_code, calls, kinds
from .arrays import Array
from .builtin_calls import means
from .errors import Break
from .interpreter import Frame

_TO_TENSOR = ("from_numpy", "as_tensor", "asarray", "tensor")


def _runs(function: Any) -> None:
    """A function of `arrays` that answers from constants."""

    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        try:
            return function(*args)
        except (NotImplementedError, TypeError) as e:
            raise Break(f"NumPy: {e}") from None

    means(function)(special)


for _asked in (arrays.unsupported, arrays.tensor_dtype, arrays.array_dtype, arrays.resolved):
    _runs(_asked)


@means(arrays.number)
def _number(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    value, dtype = args
    if (
        f.interpreter.tensors.is_symbol(value)
        or type(value) not in kinds.CONSTANT_TYPES
        and (not isinstance(value, np.generic))
    ):
        raise Break("NumPy: a number that varies beside an array")
    try:
        return arrays.number(value, dtype)
    except (TypeError, ValueError, OverflowError) as e:
        raise Break(f"NumPy: {e}") from None


def holds_array(value: Any) -> bool:
    """Whether an array is among arguments."""
    if type(value) in (list, tuple):
        return any(map(holds_array, value))
    if type(value) is dict:
        return any(map(holds_array, value.values()))
    return type(value) is Array


def call(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy. On numbers it runs, and what it gives is a constant of the graph."""
    if not holds_array([args, kwargs]):
        return _of_numbers(f, function, args, kwargs)
    if isinstance(function, np.ufunc):
        if kwargs or function.nin != len(args) or function.nout != 1:
            raise Break(f"a call of numpy.{function.__name__} with these options")
        return f.call(arrays.apply, [function, *args], {})
    found = arrays.FUNCTIONS.get(function)
    if found is None:
        raise Break(f"a call of {kinds.describe(function)} on arrays")
    return f.call(found, args, kwargs)


calls.BY_KIND[np.ufunc] = calls.BY_KIND[type(np.prod)] = call


def _of_numbers(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    args = [c_code.specialised(f, a) for a in args]
    if not all(map(_numbers_alone, (*args, *kwargs.values()))):
        raise Break(f"a call of {kinds.describe(function)} on arrays or tensors")
    made = f.interpreter.direct(function, *args, **kwargs)
    return made if _numbers_alone(made) else _made(f, made)


def _numbers_alone(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_numbers_alone, value))
    return isinstance(value, (np.generic, np.dtype)) or type(value) in kinds.CONSTANT_TYPES


def _makes_array(function: Any) -> None:
    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        kwargs = {k: v for k, v in kwargs.items() if not (k == "dtype" and isinstance(v, type))} | {
            k: np.dtype(v) for k, v in kwargs.items() if k == "dtype" and isinstance(v, type)
        }
        of_one = function in (np.array, np.asarray) and len(args) == 1 and not kwargs
        if of_one and kinds.is_tensor(args[0]):
            return f.call(arrays.FUNCTIONS[function], args, {})
        return call(f, function, args, kwargs)

    means(function)(special)


for _function in (np.array, np.asarray, np.zeros, np.ones, np.full, np.arange, np.linspace, np.eye):
    _makes_array(_function)


def array_of(f: Frame, x: FakeTensor) -> Any:
    """`x.numpy()`"""
    if x.requires_grad or x.dtype not in arrays.DTYPES:
        raise Break("a call of Tensor.numpy that is refused")
    return f.shadow_state.create(Array(x))


def _made(f: Frame, made: Any) -> Any:
    """An array that a function of NumPy made of numbers: new in each call."""
    if type(made) is not np.ndarray or made.dtype not in arrays.TENSOR_DTYPES:
        raise Break("an array of such a dtype is made")
    whole = flambeau.from_numpy(np.ascontiguousarray(made).reshape(made.shape))
    fake = f.interpreter.tensors.session.attach(whole)
    return f.shadow_state.create(Array(f.interpreter.direct(flambeau.clone, fake)))


def as_tensor(f: Frame, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A function of the core on arrays."""
    if name not in _TO_TENSOR or len(args) != 1 or type(args[0]) is not Array or kwargs:
        raise Break(f"a call of {name} with an array of NumPy")
    if args[0]._scalar and name != "tensor":
        raise Break(f"a call of {name} with a number of NumPy")
    x = args[0]._tensor
    return f.interpreter.direct(flambeau.clone, x) if name == "tensor" else x
