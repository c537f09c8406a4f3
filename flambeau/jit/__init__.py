"""`jit`: programs that are typed, shown, saved, and run without their source.

`script` makes them from functions, modules and classes; `save` and `load` write and read them. How
that is done is `flambeau._script`'s, which is loaded when it is first needed. Under `PYTORCH_JIT=0`
decorators hand back what they are given, and nothing is scripted.
"""

from __future__ import annotations

import builtins
import importlib
import types
from typing import Any, Final

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
    "run_frozen_optimizations",
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


def _frozen_input(mod: Any, what: str) -> Any:
    made = importlib.import_module("flambeau._script.objects")
    if not builtins.isinstance(mod, made.RecursiveScriptModule):
        raise RuntimeError(
            f"jit.{what}: expected a scripted module, got {type(mod).__name__}; make one with "
            "jit.script or jit.trace"
        )
    return importlib.import_module("flambeau._script.freezing")


def freeze(
    mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> Any:
    """A scripted module with its attributes as constants, and what it calls written out.

    Args:
        mod: a scripted module in evaluation mode; stays as it is. The result shares its tensors.
        preserved_attrs: names of methods besides `forward`, and of attributes, that stay.
        optimize_numerics: put batch normalisation into the convolution or the linear layer before
            it; values may differ by rounding. Without it they are the same to the bit.

    Returns:
        A `RecursiveScriptModule` without parameters, buffers and submodules.

    Raises:
        RuntimeError: `mod` is no script, is in training mode, or holds a module that runs as it is.
        ValueError: `preserved_attrs` names what is not there.

    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Dropout())
    >>> frozen = torch.jit.freeze(torch.jit.script(net.eval()))
    >>> len(list(frozen.parameters())), "dropout" in str(frozen.graph)
    (0, False)
    """
    freezing = _frozen_input(mod, "freeze")
    if mod.training:
        raise RuntimeError("jit.freeze: the module is in training mode; call eval() before")
    preserved = list(preserved_attrs) if preserved_attrs is not None else []
    try:
        return freezing.freeze(mod, preserved, optimize_numerics)
    except freezing.CompileError as error:
        raise RuntimeError(f"jit.freeze: {error.reason}") from None


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Run over a frozen module, in place, what `freeze` does after freezing.

    Args:
        mod: what `freeze` gave.
        optimize_numerics: as for `freeze`.
        preserved_methods: names of methods that it must have.
    """
    freezing = _frozen_input(mod, "run_frozen_optimizations")
    for name in preserved_methods or []:
        if name not in mod._script_record.methods:
            raise ValueError(f"jit.run_frozen_optimizations: there is no method {name!r}")
    freezing.run_frozen_optimizations(mod, optimize_numerics)


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """A frozen module for evaluation: `freeze` of `mod.eval()`, with all of its optimisations.

    Args:
        mod: a scripted module; one that is frozen already is optimised as it is.
        other_methods: names of methods besides `forward` that stay.

    >>> net = torch.jit.script(torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)))
    >>> "batch_norm" in str(torch.jit.optimize_for_inference(net).graph)
    False
    """
    _frozen_input(mod, "optimize_for_inference")
    return freeze(mod.eval(), other_methods)
