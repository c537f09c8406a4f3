"""Marks that programs leave for `jit.script`, and what they mean where nothing is scripted.

Owns the decorators and the functions that a script reads while it is typed. Must not know of
tensors or of how scripts are made.
"""

from __future__ import annotations

import builtins
import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from flambeau.futures import Future

from ._types import is_of

_T = TypeVar("_T")


def enabled() -> bool:
    """Scripts are made; under `PYTORCH_JIT=0` programs run as plain Python."""
    return os.environ.get("PYTORCH_JIT", "1") not in ("0", "false", "False", "")


def _marked(fn: _T, kind: str) -> _T:
    if enabled() and callable(fn):
        fn._script_modifier = kind  # type: ignore[attr-defined]
    return fn


def script_method(fn: _T) -> _T:
    """Mark a method of a `ScriptModule` as a part of its script."""
    return _marked(fn, "export")


def export(fn: _T) -> _T:
    """Mark a method that scripts of its module have, besides what `forward` calls.

    >>> class Net(torch.nn.Module):
    ...     @torch.jit.export
    ...     def double(self, x: torch.Tensor) -> torch.Tensor:
    ...         return 2 * x
    >>> torch.jit.script(Net()).double(torch.ones(1))
    tensor([2.])
    """
    return _marked(fn, "export")


def unused(fn: _T) -> _T:
    """Mark a function that scripts do not look into; a script that calls it raises."""
    return _marked(fn, "unused")


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function that scripts leave to Python: they call it, and cannot be saved then.

    Args:
        drop: the function; or True, which means `unused`.

    >>> @torch.jit.ignore
    ... def shown(x: torch.Tensor) -> torch.Tensor:
    ...     return x
    """
    if callable(drop):
        return _marked(drop, "ignore")
    kind = "unused" if drop else "ignore"
    return lambda fn: _marked(fn, kind)


def interface(obj: _T) -> _T:
    """Declare the methods that a module has, whatever its class.

    An attribute annotated with it holds any scripted module whose methods have these signatures, and
    gets another one by assignment after scripting.

    Raises:
        RuntimeError: `obj` is no class.

    >>> @torch.jit.interface
    ... class Head(torch.nn.Module):
    ...     def forward(self, x: torch.Tensor) -> torch.Tensor: ...
    """
    if not builtins.isinstance(obj, type):
        raise RuntimeError(f"jit.interface: expected a class, got {type(obj).__name__}")
    if enabled():
        obj._script_interface = obj  # type: ignore[attr-defined]
    return obj


class _Declared:
    """Declarations of one name by the places where they stand."""

    def __init__(self) -> None:
        self.by_place: dict[tuple[str, int], Any] = {}
        self.read = False  # another one after that, elsewhere, begins a new function


_overloads: dict[str, _Declared] = {}


def _overload(fn: _T) -> _T:
    """Declare one of several signatures of the function that follows under the same name.

    Scripts that call it take the one that fits the arguments, and type the function for it.
    Defaults are those of the function.

    >>> @torch.jit._overload
    ... def twice(x: int) -> int: ...
    >>> @torch.jit._overload
    ... def twice(x: str) -> str: ...
    >>> def twice(x):
    ...     return x + x
    """
    f: Any = fn
    if enabled():
        place = (f.__code__.co_filename, f.__code__.co_firstlineno)
        known = _overloads.setdefault(_qualified(f), _Declared())
        if known.read and place not in known.by_place:
            known = _overloads[_qualified(f)] = _Declared()
        known.by_place[place] = f
    return fn


def _qualified(fn: Any) -> str:
    return f"{fn.__module__}.{fn.__qualname__}"


def _overload_method(fn: _T) -> _T:
    """Declare one of several signatures of the method that follows, as `_overload` does."""
    return _overload(fn)


def overloads_of(fn: Any) -> list[Any]:
    """The declarations of a function, in order."""
    found = _overloads.get(_qualified(fn)) if hasattr(fn, "__code__") else None
    if found is None:
        return []
    found.read = True
    return list(found.by_place.values())


def annotate(the_type: Any, the_value: _T) -> _T:
    """Return the value, said to be of a type: `torch.jit.annotate(list[int], [])`."""
    return the_value


class AttributeValue(NamedTuple):
    """The value of an attribute, and the type it is said to be of."""

    value: Any
    type: Any


def Attribute(value: Any, type: Any) -> Any:
    """The value of an attribute of a `ScriptModule`, said to be of a type."""
    return AttributeValue(value, type) if enabled() else value


def is_scripting() -> bool:
    """Whether a script runs: False in Python, True in scripts."""
    return False


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether `obj` is of a type, containers with what they hold.

    >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    return is_of(obj, target_type)


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Scripts inside are run as they are, whatever is asked."""
    yield


def onednn_fusion_enabled() -> bool:
    """Whether scripts are fused by oneDNN: no."""
    return False


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Start a task; `wait` gives its value. In Python it runs at once, as PyTorch's does.

    Returns:
        A `torch.futures.Future`; an error of the task is raised by `wait`.

    >>> future = torch.jit.fork(torch.neg, torch.ones(1))
    >>> torch.jit.wait(future)
    tensor([-1.])
    """
    out: Future[Any] = Future()
    try:
        value = func(*args, **kwargs)
    except Exception as error:
        out.set_exception(error)
    else:
        out.set_result(value)
    return out


def wait(future: Any) -> Any:
    """The value of a task, or its error."""
    return future.wait()
