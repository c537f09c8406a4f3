"""`jit`: programs that are typed, shown, saved, and run without their source.

`script` makes them from functions, modules and classes; `save` and `load` write and read them. How
that is done is `flambeau._script`'s, which is loaded when it is first needed. Under `PYTORCH_JIT=0`
decorators hand back what they are given, and nothing is scripted.
"""

from __future__ import annotations

import builtins
import importlib
import types
from typing import Any, Final, NoReturn

from flambeau.futures import Future
from flambeau.nn.modules.module import Module

from ._marks import (
    Attribute,
    annotate,
    enabled,
    export,
    fork,
    ignore,
    interface,
    is_scripting,
    isinstance,
    onednn_fusion_enabled,
    optimized_execution,
    script_method,
    unused,
    wait,
)
from ._marks import _overload as _overload
from ._marks import _overload_method as _overload_method
from ._module import ScriptModule
from ._trace import is_tracing, script_if_tracing, trace, trace_module

globals()["annotations"] = importlib.import_module(f"{__name__}.annotations")  # not __future__'s

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "TracingCheckError",
    "annotate",
    "annotations",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


class Error(RuntimeError):
    """What a script raises."""


def __getattr__(name: str) -> Any:
    if name in ("RecursiveScriptModule", "ScriptFunction", "ScriptMethod"):
        return getattr(importlib.import_module("flambeau._script.objects"), name)
    if name in ("TracerWarning", "TracingCheckError"):
        return getattr(importlib.import_module("flambeau._script.traced"), name)
    if name == "TopLevelTracedModule":
        return importlib.import_module("flambeau._script.objects").RecursiveScriptModule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _refuse(what: str, instead: str) -> NoReturn:
    raise RuntimeError(f"jit.{what} is not built yet; {instead}")


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """The script of a function, module or class: typed, savable, run without its source.

    Args:
        obj: a function (parameters without annotation are Tensors), a module, whose `forward` and
            exported methods are typed with what they call, or a class, which scripts can then use.
        optimize, _frames_up, _rcb, example_inputs: not read.

    Returns:
        A `ScriptFunction`, a `RecursiveScriptModule` that shares the module's tensors, or the
        class.

    Raises:
        RuntimeError: something is not in the language; the message shows the line.

    >>> @torch.jit.script
    ... def largest(xs: list[int]) -> int:
    ...     best = xs[0]
    ...     for x in xs:
    ...         if x > best:
    ...             best = x
    ...     return best
    >>> largest([1, 3, 2])
    3
    """
    if not enabled():
        return obj
    made = importlib.import_module("flambeau._script.objects")
    kept = (dict, list, types.BuiltinFunctionType)
    if made.is_scripted(obj) or builtins.isinstance(obj, kept):
        return obj
    if type(obj) is types.FunctionType:
        return made.script_function(obj)
    if builtins.isinstance(obj, Module):
        return made.script_module(obj)
    if builtins.isinstance(obj, type):
        return made.script_class(obj)
    if type(obj) is types.MethodType and builtins.isinstance(obj.__self__, Module):
        raise RuntimeError(
            f"jit.script: {obj.__qualname__} is a method; script the module, and mark the method "
            "@torch.jit.export"
        )
    raise RuntimeError(
        f"jit.script: expected a function, a module or a class, got {type(obj).__name__}"
    )


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Write a scripted function or module to a file.

    Args:
        m: what `script` or `trace` gave.
        f: a path, or an open binary file.
        _extra_files: names and contents of files to add.

    Raises:
        RuntimeError: `m` is no script, or calls what is left to Python (`@jit.ignore`).
    """
    if not hasattr(m, "save_to_buffer") and not builtins.isinstance(m, ScriptModule):
        raise RuntimeError(
            f"jit.save: expected a script, got {type(m).__name__}; make one with jit.script or "
            "jit.trace, or save its state_dict() with torch.save"
        )
    m.save(f, _extra_files)


def load(
    f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False
) -> Any:
    """The function or module that `save` wrote. No code of the file is run by Python.

    Args:
        f: a path, or an open binary file.
        map_location: the device for its tensors, as in `torch.load`.
        _extra_files: a dict, whose keys get the contents (bytes) of added files of their names.

    Raises:
        RuntimeError: the file is not a sound one of `jit.save`.
    """
    archive = importlib.import_module("flambeau._script.archive")
    return archive.load(f, map_location, _extra_files)


_script_if_tracing = script_if_tracing


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> NoReturn:
    """Refuse: scripts are not frozen yet."""
    _refuse("freeze", "use the module as it is, or torch.compile")


def optimize_for_inference(mod: Any, other_methods: Any = None) -> NoReturn:
    """Refuse: scripts are not optimised yet."""
    _refuse("optimize_for_inference", "use torch.compile")
