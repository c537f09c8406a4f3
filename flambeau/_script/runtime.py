"""What the code of scripts calls besides the table, and checks of what comes in from Python.

Owns the helpers (`script.NAME`), tests of types at run time, and the classes of exceptions. Knows
nothing of how code is made.
"""

from __future__ import annotations

import ast
import builtins
import enum
import string
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flambeau
from flambeau.futures import Future

from .._ir.types import Type
from .annotations import parse_type
from .unit import Class

#: traces that are being recorded, innermost last; `objects` tells them of calls of scripts
TRACERS: list[Any] = []


def tracer() -> Any:
    """The trace that this thread records; None where it records none."""
    me = threading.get_ident()
    return next((t for t in reversed(TRACERS) if t.thread == me), None)


class ScriptError(RuntimeError):
    """A program that is no script: what is wrong, in the user's own line."""


class ArgumentError(TypeError, RuntimeError):
    """An argument of a script that is of another type than declared."""


CONSTANTS = {
    "contiguous_format": flambeau.contiguous_format, "preserve_format": flambeau.preserve_format,
    "channels_last": flambeau.channels_last, "channels_last_3d": flambeau.channels_last_3d,
    "strided_layout": flambeau.strided, "bool_": flambeau.bool,
    **{n: getattr(flambeau, n) for n in (
        "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
    ).split()},
}  # fmt: skip


def is_plain_format(text: str) -> bool:
    """A format whose fields are arguments in order, nothing of them."""
    try:
        return all(not name for _, name, _, _ in string.Formatter().parse(text) if name is not None)
    except ValueError:
        return False


def _format(text: str, *args: Any) -> str:
    for _, name, _, _ in string.Formatter().parse(text):
        if name and not name.isdigit():
            raise ValueError(f"format: a script shows arguments, not {name!r} of them")
    return text.format(*args)


def _not_none(x: Any) -> Any:
    if x is None:
        raise RuntimeError("Unwrapping null optional")
    return x


def _of_length(xs: Any, n: int) -> Any:
    if len(xs) != n:
        raise ValueError(f"zip: strict=True, and lengths {n} and {len(xs)}")
    return xs


def _tensor(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Any:
    if isinstance(data, flambeau.Tensor):
        return data.detach().clone().to(dtype=dtype or data.dtype, device=device or data.device)
    return flambeau.tensor(data, dtype=dtype, device=device, requires_grad=bool(requires_grad))


def _meshgrid(xs: Sequence[Any], indexing: str | None) -> list[Any]:
    return list(flambeau.meshgrid(*xs, indexing=indexing or "ij"))


def _unique(x: Any, sorted: bool, inverse: bool, counts: bool, dim: int | None) -> Any:
    return flambeau.unique(x, sorted, inverse, counts, dim)


def _fork(function: Callable[..., Any], *args: Any) -> Future[Any]:
    from .forks import fork  # threads are for those who fork

    return fork(function, *args)


class _Entering:
    """`with` over an object of a script: its methods are functions."""

    def __init__(self, obj: Any, enter: Any, leave: Any) -> None:
        self.obj, self.enter, self.leave = obj, enter, leave

    def __enter__(self) -> Any:
        return self.enter(self.obj)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.leave(self.obj, None, None, None)


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _call_module(m: Any, *args: Any) -> Any:
    if not isinstance(m, flambeau.nn.Module):
        raise TypeError(f"a script called a {type(m).__name__}, which is no module")
    return m(*args)


def _invoke(name: str, m: Any, *args: Any) -> Any:
    """A method of whatever scripted module stands where an interface is declared."""
    record = getattr(m, "_script_record", None)
    if not isinstance(record, Class) or name not in record.methods:
        raise TypeError(f"a {type(m).__name__} has no method {name!r} for scripts")
    return m._script_program.entry(record.methods[name])(m, *args)


def _holder(x: Any, name: str) -> Any:
    """The object, if its class says that it has the attribute."""
    record = getattr(x, "_script_record", None)
    if not isinstance(record, Class) or (
        name not in record.attributes and name not in record.places
    ):
        raise TypeError(f"a {type(x).__name__} has no attribute {name!r} for scripts")
    return x


#: what code of scripts finds without saying where
BUILTINS: dict[str, Any] = {
    n: getattr(builtins, n)
    for n in (
        "abs all any bin bool chr complex dict divmod enumerate float hash hex id int len list "
        "max min oct ord print range reversed round slice sorted str sum zip"
    ).split()
}


def _into(value: Any, out: Any) -> Any:
    """The result of a call with `out=`, copied there."""
    if flambeau.is_grad_enabled() and (value.requires_grad or out.requires_grad):
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of "
            "the arguments requires grad."
        )
    if not flambeau.can_cast(value.dtype, out.dtype):
        raise RuntimeError(
            f"result type {value.dtype} can't be cast to the desired output type {out.dtype}"
        )
    if out.shape != value.shape:
        out.resize_(value.shape)
    return out.copy_(value)


SPACE: dict[str, Any] = {
    "script.format": _format, "script.not_none": _not_none,
    "script.of_length": _of_length, "script.tensor": _tensor,
    "script.einsum": lambda equation, xs: flambeau.einsum(equation, *xs),
    "script.meshgrid": _meshgrid, "script.unique": _unique, "script.fork": _fork,
    "script.warn": lambda text: warnings.warn(text, stacklevel=2),
    "script.check": _check, "script.call": _call_module, "script.holder": _holder,
    "script.device": flambeau.device, "script.entering": _Entering,
    "script.into": _into, "script.invoke": _invoke,
}  # fmt: skip


def maker(cls: type) -> Callable[[], Any]:
    """Makes an object of a class without its `__init__`."""
    return lambda: object.__new__(cls)


def error_class(name: str, errors: Mapping[str, type[BaseException]]) -> type[BaseException]:
    """The class of an exception that a script raises."""
    found = errors.get(name) or getattr(builtins, name, None)
    if found is None and "." in name:  # of a file: its module is not imported by the file's word
        return type(name.rpartition(".")[2], (RuntimeError,), {})
    if not (isinstance(found, type) and issubclass(found, Exception)):
        raise ValueError(f"raise: {name!r} is no exception")
    return found


# -- types at run time ----------------------------------------------------------------------------

_KINDS: dict[str, Any] = {
    "Tensor": flambeau.Tensor, "str": str, "float": float, "complex": complex, "bool": bool,
    "DType": flambeau.dtype, "Device": flambeau.device, "Layout": flambeau.layout,
    "MemoryFormat": flambeau.memory_format, "Generator": flambeau.Generator, "Future": Future,
}  # fmt: skip


def holds(x: Any, t: Type, python: Mapping[str, type]) -> bool:
    """A value is of a type, with all that it holds."""
    if x is None:
        return t.optional or t.base in ("None", "Any")
    base = t.base
    if base == "Any":
        return True
    if base == "int":
        return isinstance(x, int) and not isinstance(x, bool)
    if base == "Number":
        return isinstance(x, (int, float, complex))
    if base in _KINDS:
        return isinstance(x, _KINDS[base])
    if base == "Union":
        return any(holds(x, m, python) for m in t.items)
    if base == "Tuple":
        return (
            isinstance(x, tuple)
            and len(x) == len(t.items)
            and all(holds(y, m, python) for y, m in zip(x, t.items, strict=True))
        )
    if base == "Dict":
        key, item = t.items
        return isinstance(x, dict) and all(
            holds(k, key, python) and holds(v, item, python) for k, v in x.items()
        )
    if t.is_list:
        return isinstance(x, list) and all(holds(y, t.element, python) for y in x)
    found = python.get(base)
    return found is not None and (isinstance(x, found) or hasattr(x, "_script_record")
                                  and x._script_record.name == base)  # fmt: skip


def predicate(text: str, python: Mapping[str, type]) -> Callable[[Any], bool]:
    """The test for one of the types of a text `A or B`."""
    asked = [parse_type(ast.parse(part, mode="eval").body) for part in text.split(" or ")]
    return lambda x: any(holds(x, t, python) for t in asked)


def taken(x: Any, t: Type, python: Mapping[str, type]) -> Any:
    """An argument as the declared type has it: a float for an int, a list for a tuple of ints.

    Raises:
        TypeError: it is of no such type.
    """
    if holds(x, t, python):
        return x
    base = t.base
    if base == "int" and not isinstance(x, float) and hasattr(x, "__index__"):
        if not isinstance(x, flambeau.Tensor) or x.numel() == 1:
            return int(x)
    if base == "float" and isinstance(x, (int, float)):
        return float(x)
    if base == "complex" and isinstance(x, (int, float)):
        return complex(x)
    if (
        base in ("float", "int")
        and isinstance(x, flambeau.Tensor)
        and x.numel() == 1
        and (not x.requires_grad)
    ):
        return float(x) if base == "float" else int(x)
    if t.is_list and isinstance(x, (list, tuple)):
        return [taken(y, t.element, python) for y in x]
    if base == "Tuple" and isinstance(x, (tuple, list)) and len(x) == len(t.items):
        return tuple(taken(y, m, python) for y, m in zip(x, t.items, strict=True))
    if base == "Dict" and isinstance(x, dict):
        key, item = t.items
        return {taken(k, key, python): taken(v, item, python) for k, v in x.items()}
    if base == "Union":
        for m in t.items:
            try:
                return taken(x, m, python)
            except TypeError:
                continue
    if base == "Device" and isinstance(x, str):
        return flambeau.device(x)
    if base == "Any":
        return x
    known: Any = python.get(base)
    if known is not None and type(x).__name__ == base.rpartition(".")[2]:
        if isinstance(x, tuple) and getattr(known, "_fields", ()) == getattr(x, "_fields", None):
            return known(*x)  # a NamedTuple of the program for that of a file
        if isinstance(x, enum.Enum) and issubclass(known, enum.Enum):
            return known[x.name]
    raise TypeError


def shown(x: Any) -> str:
    """The type of a value, for messages."""
    if isinstance(x, list):
        return f"List[{shown(x[0])}]" if x else "list"
    if isinstance(x, tuple) and type(x) is tuple:
        return f"Tuple[{', '.join(map(shown, x))}]"
    if isinstance(x, dict):
        return "dict"
    return "NoneType" if x is None else type(x).__name__
