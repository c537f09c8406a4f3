"""`jit` with scripting switched off, as PyTorch has it under PYTORCH_JIT=0.

Decorators hand back what they are given, which then runs as plain Python and can be compiled with
`compile`. What needs a script (saving and loading one) is refused. Knows nothing of tensors.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, TypeVar

from flambeau.nn.modules.module import Module

from ._types import is_of

globals()["annotations"] = importlib.import_module(f"{__name__}.annotations")  # not __future__'s

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "ScriptModule",
    "annotate",
    "annotations",
    "export",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
]

_T = TypeVar("_T")


class Error(RuntimeError):
    """What a script raises."""


class ScriptModule(Module):
    """A module written to be scripted: with scripting off, a module like others."""

    def __init__(self, arg: Any = None) -> None:
        super().__init__()


RecursiveScriptModule = ScriptModule


def _refuse(what: str, instead: str) -> NoReturn:
    raise RuntimeError(f"jit.{what}: scripts are not built yet; {instead}")


def script(
    obj: _T,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> _T:
    """Return `obj` itself: scripting is off.

    Args:
        obj: a function, module or class.
        optimize, _frames_up, _rcb, example_inputs: not read, as with PyTorch's scripting off.

    >>> torch.jit.script(abs) is abs
    True
    """
    return obj


def trace(func: _T, example_inputs: Any = None, *args: Any, **kwargs: Any) -> _T:
    """Return `func` itself: scripting is off.

    >>> torch.jit.trace(torch.relu, torch.ones(2)) is torch.relu
    True
    """
    return func


def trace_module(mod: _T, inputs: Any = None, *args: Any, **kwargs: Any) -> _T:
    """Return `mod` itself: scripting is off."""
    return mod


def script_method(fn: _T) -> _T:
    """Return the method itself."""
    return fn


def script_if_tracing(fn: _T) -> _T:
    """Return the function itself: nothing is ever traced."""
    return fn


_script_if_tracing = script_if_tracing


def export(fn: _T) -> _T:
    """Mark a method for scripting: returns it."""
    return fn


def unused(fn: _T) -> _T:
    """Mark a method as left out of scripts: returns it."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a method as left to Python: returns it, or a decorator that does.

    >>> @torch.jit.ignore
    ... def f(x): return x
    >>> f(3)
    3
    """
    return drop if callable(drop) else lambda fn: fn


def interface(obj: _T) -> _T:
    """Declare an interface: returns the class."""
    return obj


def _overload(fn: _T) -> _T:
    return fn


def _overload_method(fn: _T) -> _T:
    return fn


def annotate(the_type: Any, the_value: _T) -> _T:
    """Return the value, said to be of a type."""
    return the_value


def Attribute(value: _T, type: Any) -> _T:
    """Return the value of an attribute that is said to be of a type."""
    return value


def is_scripting() -> bool:
    """Whether a script runs: never."""
    return False


def is_tracing() -> bool:
    """Whether a trace is recorded: never."""
    return False


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether `obj` is of a type, containers with what they hold.

    >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    return is_of(obj, target_type)


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Scripts inside are optimised or not; there are none."""
    yield


def onednn_fusion_enabled() -> bool:
    """Whether scripts are fused by oneDNN: no."""
    return False


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> NoReturn:
    """Refuse: only a script can be frozen."""
    _refuse("freeze", "use the module as it is, or torch.compile")


def optimize_for_inference(mod: Any, other_methods: Any = None) -> NoReturn:
    """Refuse: only a script can be optimised."""
    _refuse("optimize_for_inference", "use torch.compile")


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Refuse: there is no script that could be saved."""
    _refuse("save", "save the module's state_dict() with torch.save")


def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: scripts cannot be run yet."""
    _refuse("load", "build the module in Python and load its state_dict()")


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: tasks of scripts are not there."""
    _refuse("fork", "call the function, or use threads")


def wait(future: Any) -> NoReturn:
    """Refuse, as `fork` does."""
    _refuse("wait", "call the function, or use threads")
