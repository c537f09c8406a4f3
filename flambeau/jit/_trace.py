"""`jit.trace`: scripts of what a program did with an example.

Owns the public functions, names of inputs and the check of a trace against its program; the
recording is `flambeau._script.traced`'s.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flambeau.compiler._marks import records_trace
from flambeau.nn.modules.module import Module

from ._marks import enabled


def _made() -> Any:
    return importlib.import_module("flambeau._script.traced")


def _positional(example: Any) -> tuple[Any, ...]:
    """The arguments of a call."""
    return tuple(example) if isinstance(example, (tuple, list)) else (example,)


def _names(f: Callable[..., Any], n: int) -> list[str]:
    """Names of the first `n` parameters, as far as they have some."""
    try:
        params = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        params = []
    known = [p.name for p in params if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
    return [known[i] if i < len(known) else f"argument_{i + 1}" for i in range(n)]


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Mapping[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """The script of what a function or module does with an example.

    The program runs once; its calls are put down in order. Sizes that it asks for are asked for in
    every run, so that the trace holds for other batch sizes. What it decides by values or sizes is
    decided once: a `TracerWarning` shows the line.

    Args:
        func: a function of tensors, or a module; its mode (train or eval) is the trace's.
        example_inputs: its argument, or the tuple or list of its arguments.
        check_trace: run the trace on the example and hold it to the program.
        check_inputs: further examples to hold it to.
        check_tolerance: the largest relative and absolute difference.
        strict: refuse results that are lists or dicts.
        example_kwarg_inputs: arguments by name, in the place of `example_inputs`.

    Returns:
        A `ScriptFunction`, or a `RecursiveScriptModule` that shares the module's tensors.

    >>> def f(x): return x.reshape(x.size(0), -1) * 2
    >>> traced = torch.jit.trace(f, torch.ones(2, 3, 4))
    >>> traced(torch.ones(5, 2, 2)).shape
    torch.Size([5, 4])
    """
    if not enabled():
        return func
    traced = _made()
    if hasattr(func, "_script_record") or hasattr(func, "_function_name"):
        return func
    inner = func.forward if isinstance(func, Module) else func
    if example_kwarg_inputs is not None:
        names = list(example_kwarg_inputs)
        given = tuple(example_kwarg_inputs.values())
        call: Any = lambda *args: func(**dict(zip(names, args, strict=True)))  # noqa: E731
        call.__qualname__ = getattr(func, "__qualname__", type(func).__name__)
    else:
        if example_inputs is None:
            raise RuntimeError("jit.trace: expected example_inputs or example_kwarg_inputs")
        given = _positional(example_inputs)
        names, call = _names(inner, len(given)), func
    if isinstance(func, Module):
        if example_kwarg_inputs is not None:
            raise RuntimeError("jit.trace: example_kwarg_inputs is for functions")
        made = traced.trace_methods(func, {"forward": given}, lambda m, n: names, strict)
    else:
        made = traced.trace_function(call, given, names, strict)
    if check_trace:
        examples = [given, *(_positional(x) for x in check_inputs or ())]
        for example in examples:
            _check(call, made, example, check_tolerance, traced)
    return made


def trace_module(
    mod: Any,
    inputs: Mapping[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """The trace of several methods of a module: `inputs` has an example for each name."""
    if not enabled():
        return mod
    traced = _made()
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    given = {name: _positional(x) for name, x in inputs.items()}
    made = traced.trace_methods(
        mod, given, lambda method, n: _names(getattr(mod, method), n), strict
    )
    if check_trace:
        for name, example in given.items():
            _check(getattr(mod, name), getattr(made, name), example, check_tolerance, traced)
    return made


def script_if_tracing(fn: Any) -> Any:
    """A function that is scripted when a trace calls it, so that its decisions stay."""
    if not enabled():
        return fn
    import functools

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return fn(*args, **kwargs)
        script = wrapper.__dict__.get("_script")
        if script is None:
            script = importlib.import_module("flambeau._script.objects").script_function(fn)
            wrapper.__dict__["_script"] = script
        return script(*args, **kwargs)

    return wrapper


def is_tracing() -> bool:
    """Whether a trace is recorded."""
    return records_trace()


def _check(f: Any, made: Any, example: Sequence[Any], tolerance: float, traced: Any) -> None:
    """Holds a trace to its program, from the same state of the generators."""
    import flambeau

    copied = [[_copy(x) for x in example] for _ in range(2)]
    results = []
    for call, args in zip((f, made), copied, strict=True):
        with flambeau.random.fork_rng(devices=[]), flambeau.no_grad():
            flambeau.manual_seed(0)
            results.append(call(*args))
    why = _difference(results[0], results[1], tolerance, "result")
    if why:
        raise traced.TracingCheckError(
            f"jit.trace: the trace gives another {why} than the program for the example; does the "
            "program keep state, or draw random numbers by other means? (check_trace=False goes on)"
        )


def _copy(x: Any) -> Any:
    import flambeau

    if isinstance(x, flambeau.Tensor):
        return x.detach().clone()
    if isinstance(x, (list, tuple)):
        return type(x)(map(_copy, x))
    return {k: _copy(v) for k, v in x.items()} if isinstance(x, dict) else x


def _difference(a: Any, b: Any, tolerance: float, what: str) -> str:
    import flambeau

    if isinstance(a, flambeau.Tensor):
        fine = isinstance(b, flambeau.Tensor) and a.shape == b.shape and a.dtype == b.dtype
        exact = not (a.is_floating_point() or a.is_complex())
        if fine and exact:
            return "" if flambeau.equal(a, b) else what
        fine = fine and flambeau.allclose(a, b, tolerance, tolerance, equal_nan=True)
        return "" if fine else what
    if isinstance(a, (list, tuple)):
        if not isinstance(b, (list, tuple)) or len(a) != len(b):
            return what
        found = (
            _difference(x, y, tolerance, f"{what}[{i}]")
            for i, (x, y) in enumerate(zip(a, b, strict=True))
        )
        return next((f for f in found if f), "")
    if isinstance(a, dict):
        found = (_difference(a[k], b[k], tolerance, f"{what}[{k!r}]") for k in a)
        return next((f for f in found if f), "")
    return "" if a == b else what
