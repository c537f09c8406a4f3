"""`compile` in its forms, and the switches around it."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import _C

from . import _backends, _wrappers

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_local = threading.local()


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A function or module that runs compiled.

    The first call follows the Python code, turns what it does with tensors into graphs and compiles
    them; later calls check that what was relied on still holds and run what was compiled.

    Args:
        model: a function or module; None makes a decorator.
        fullgraph: raise instead of ending a graph before something that cannot be captured.
        dynamic: True makes sizes symbols from the start, False never, None those that are seen to
            vary.
        backend: a name of `flambeau.compiler.list_backends()`, or a function of (graph,
            example_inputs); None is that of `get_default_backend`.
        mode: "default", "reduce-overhead" or "max-autotune"; for the back end.
        options: settings of the back end.
        disable: return the model as it is.

    Raises:
        ValueError: an unknown back end or mode.
        RuntimeError: mode and options together; Python that is not supported.

    >>> f = torch.compile(lambda x: torch.sin(x) + torch.cos(x), backend="eager")
    >>> f(torch.zeros(2))
    tensor([1., 1.])
    """
    if mode is not None and options is not None:
        raise RuntimeError("compile: expected mode or options, got both")
    if mode not in _MODES:
        raise ValueError(f"compile: expected mode to be one of {_MODES[1:]}, got {mode!r}")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
            options=options, disable=disable,
        )  # fmt: skip
    if disable:
        return model
    if not callable(model):
        raise TypeError(f"compile: expected a function or a module, got {type(model).__name__}")
    _check_python()
    if backend is None:
        backend = _backends.get_default_backend()
    found = _backends.find(backend, mode, options)
    name = backend if isinstance(backend, str) else None
    return compiled_form(model, found, fullgraph, dynamic, name=name)


def _check_python() -> None:
    """Capture knows bytecode and frames of these versions alone."""
    if not (3, 11) <= tuple(sys.version_info[:2]) <= (3, 12):
        version = ".".join(map(str, sys.version_info[:3]))
        raise RuntimeError(
            f"compile: capture is supported on CPython 3.11 and 3.12, this is {version}; use the "
            "model without compile (disable=True), or another Python"
        )


def compiled_form(
    model: Any,
    backend: Callable[..., Any],
    fullgraph: bool = False,
    dynamic: bool | None = None,
    **more: Any,
) -> Any:
    """The wrapper of a model; its `_flambeau_config` tells what became of it."""
    from flambeau._capture.config import Config
    from flambeau._ir.logs import enabled

    enabled("all")  # tells of names that are wrong before anything runs
    config = Config(backend, fullgraph, dynamic, **more)
    if isinstance(model, fb.nn.Module):
        from ._module import OptimizedModule

        code = _code_of(type(model).forward)
        if code is not None:
            config.roots.append(code)
        made = OptimizedModule(model, config)
        weakref.finalize(made, config.forget)
        return made
    if isinstance(model, type):
        raise TypeError(f"compile: expected a function or a module, got the class {model.__name__}")
    model = _wrappers.compiled_model(model)
    code = _code_of(model)
    if code is not None:
        config.roots.append(code)
    compiled = _wrappers.compiled(config, model)
    compiled._flambeau_config = config
    weakref.finalize(compiled, config.forget)
    return compiled


def _code_of(model: Any) -> types.CodeType | None:
    function = getattr(model, "__func__", model)
    code = getattr(function, "__code__", None)
    if code is None:
        method = getattr(type(model), "__call__", None)  # noqa: B004
        code = getattr(method, "__code__", None)
    return code


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is never captured, nor what it calls; also a decorator.

    Args:
        fn: the function; None makes a decorator.
        recursive: False lets the functions that it calls be captured.
        reason: shown where a graph ends because of it.

    >>> @torch.compiler.disable
    ... def show(x):
    ...     print(float(x))
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, fb.nn.Module):
        fn.__dict__["forward"] = disable(fn.forward, recursive, reason=reason)
        return fn
    if not recursive:
        _C._skip_code(fn.__code__)
    return _wrappers.disabled(fn, recursive, reason or "disabled")


def reset() -> None:
    """Forgets all that was compiled, and what was learned about sizes that vary."""
    _C._reset_captures()
    resume = sys.modules.get("flambeau._capture.resume")
    if resume is not None:
        resume.forget()
    config = sys.modules.get("flambeau._capture.config")
    if config is not None:
        config.forget_all()


def allow_in_graph(fn: Any) -> Any:
    """Calls `fn` on traced tensors instead of following its Python code.

    It must compute from its arguments alone; also a decorator, and it takes lists.
    """
    from flambeau._capture.calls import ALLOWED

    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(f) for f in fn]
    if not callable(fn):
        raise TypeError(f"allow_in_graph: expected a function, got {type(fn).__name__}")
    ALLOWED.add(fn)
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of a Python function that compiled code follows in the place of another.

    For functions of C code, which cannot be followed, and others that break a graph. Where they run
    uncompiled, nothing changes. Say so before what calls them is compiled.

    Args:
        original_fn: the function that programs call.
        can_constant_fold_through: of arguments that are constants the original may be called while
            the graph is made.
        skip_signature_check: do not compare the parameters of both.

    Raises:
        TypeError: one of both is no function, or their parameters differ.
        ValueError: the original has a substitute.

    >>> import operator
    >>> @torch.compiler.substitute_in_graph(operator.countOf)
    ... def count_of(a, b, /):
    ...     return sum(1 for x in a if x is b or x == b)
    >>> f = torch.compile(lambda x: x + operator.countOf([1, 2, 2], 2), fullgraph=True)
    >>> f(torch.zeros(1))
    tensor([2.])
    """
    from flambeau._capture import calls

    if not callable(original_fn) or isinstance(original_fn, type):
        raise TypeError(
            f"substitute_in_graph: expected a function, got {type(original_fn).__name__}"
        )
    if original_fn in calls.SPECIAL:
        raise ValueError(f"substitute_in_graph: {original_fn!r} has a substitute, or is known")

    def decorate(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
        if not isinstance(traceable_fn, types.FunctionType):
            raise TypeError(
                "substitute_in_graph: expected a function of Python, got "
                f"{type(traceable_fn).__name__}"
            )
        if not skip_signature_check:
            _same_parameters(original_fn, traceable_fn)
        calls.SPECIAL[original_fn] = calls.substitute(
            original_fn, traceable_fn, can_constant_fold_through
        )
        return traceable_fn

    return decorate


def _same_parameters(original: Callable[..., Any], other: Callable[..., Any]) -> None:
    """Both take the same parameters, as far as C code tells."""
    try:
        wanted = inspect.signature(original)
    except ValueError:
        return
    given = inspect.signature(other)
    pairs = [[(p.name, p.kind, p.default) for p in s.parameters.values()] for s in (wanted, given)]
    if pairs[0] != pairs[1]:
        raise TypeError(
            f"substitute_in_graph: expected the parameters {wanted} of the original, got {given}; "
            "skip_signature_check=True takes others"
        )


def mark_dynamic(t: Any, index: int | tuple[int, ...] | list[int]) -> None:
    """Says that a dim of an input varies, so that its size is a symbol from the first capture on.

    Args:
        t: the tensor that will be passed.
        index: a dim, or several.

    Raises:
        IndexError: there is no such dim.
    """
    _mark("mark_dynamic", "_flambeau_dynamic_dims", t, index)


def maybe_mark_dynamic(t: Any, index: int | tuple[int, ...] | list[int]) -> None:
    """As `mark_dynamic`, but a program that works for one size alone is compiled for that size
    instead of raising.

    >>> torch._dynamo.maybe_mark_dynamic(torch.ones(2, 3), 0)
    """
    _mark("maybe_mark_dynamic", "_flambeau_maybe_dynamic_dims", t, index)


def mark_static(t: Any, index: int | tuple[int, ...] | list[int] | None = None) -> None:
    """Says that a dim of an input is to be a constant: each size is compiled apart, also under
    `compile(dynamic=True)`.

    Args:
        t: the tensor that will be passed.
        index: a dim, or several; None: all.

    Raises:
        TypeError: no tensor.
        IndexError: there is no such dim.

    >>> torch._dynamo.mark_static(torch.ones(2, 3), 1)
    """
    if not isinstance(t, fb.Tensor):
        raise TypeError(f"mark_static: expected a tensor, got {type(t).__name__}")
    _mark("mark_static", "_flambeau_static_dims", t, range(t.dim()) if index is None else index)


def _mark(op: str, name: str, t: Any, index: Any) -> None:
    dims = (index,) if isinstance(index, int) else index
    for d in dims:
        if not -t.dim() <= d < t.dim():
            raise IndexError(f"{op}: expected a dim in [{-t.dim()}, {t.dim() - 1}], got {d}")
    setattr(t, name, {d % t.dim() for d in dims} | getattr(t, name, set()))


def assume_constant_result(fn: Any) -> Any:
    """Calls `fn` once, when its caller is compiled, and takes what it gave for a constant; also a
    decorator.

    Its arguments must be constants of the program or objects, not tensors that the program
    computed.

    Raises:
        TypeError: no function.

    >>> @torch.compiler.assume_constant_result
    ... def width():
    ...     return 3
    """
    from flambeau._capture.calls import CONSTANT

    if not callable(fn):
        raise TypeError(f"assume_constant_result: expected a function, got {type(fn).__name__}")
    CONSTANT.add(fn)
    return fn


def nested_compile_region(fn: Any = None, *, options: Any = None) -> Any:
    """Says that a function is called many times in what is compiled, as the layers of a model are;
    also a decorator.

    Graphs here hold each call anyway, and equal generated code is compiled once, so the function is
    given back as it is.

    Raises:
        NotImplementedError: options: a region has none of its own.
    """
    if options is not None:
        raise NotImplementedError("nested_compile_region: a region has no options of its own")
    return nested_compile_region if fn is None else fn


def _disable_dynamo(fn: Any = None, recursive: bool = True) -> Any:
    """`disable`, by the name that packages import."""
    return disable(fn, recursive)
