"""The stance: what calls of compiled functions do, for the whole program or for a block.

Owns the stance in force. Invariant: under "default" a call costs nothing more than without stances.
Knows no capture: what it steers are the calls that compiled functions make (`_Force.call`).
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import flambeau as fb
from flambeau import _C

STANCES = (
    "default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile",
    "aot_eager_then_compile",
)  # fmt: skip
Call = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]


class _Force:
    """What is in force."""

    name = "default"
    backend: Any = None
    call: Call = _C._call_captured


class set_stance:  # noqa: N801  (PyTorch's name)
    """Sets what compiled functions do when they are called; also a decorator, and a block.

    Args:
        stance: "default": compile; "force_eager": run as if nothing was compiled;
            "eager_on_recompile": use what was compiled, and run other calls in plain Python;
            "fail_on_recompile": raise where something would be compiled; "eager_then_compile": run
            the first call of each function in plain Python and note its sizes, so that those that
            vary by the second are symbols at once; "aot_eager_then_compile": the same, but the
            first call runs captured, by the back end "aot_eager".
        force_backend: the back end of all that is compiled meanwhile, by name or as a function.
        skip_guard_eval_unsafe: refused: guards are always evaluated.

    Raises:
        RuntimeError: an unknown stance, or a back end together with one that is not "default".
        NotImplementedError: guards are to be skipped.

    >>> f = torch.compile(lambda x: x + 1, backend="eager")
    >>> with torch.compiler.set_stance("force_eager"):
    ...     f(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        if stance not in STANCES:
            raise RuntimeError(f"set_stance: expected one of {STANCES}, got {stance!r}")
        if force_backend is not None and stance != "default":
            raise RuntimeError(
                f"set_stance: force_backend needs the stance 'default', got {stance!r}"
            )
        if skip_guard_eval_unsafe:
            raise NotImplementedError(
                "set_stance: skip_guard_eval_unsafe: guards are always evaluated; they cost less "
                "than a microsecond for most functions"
            )
        self.stance, self.force_backend = stance, force_backend
        self._before = (_Force.name, _Force.backend)
        _put(stance, force_backend)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _put(*self._before)

        @functools.wraps(function)
        def under_stance(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance, force_backend=self.force_backend):
                return function(*args, **kwargs)

        return under_stance

    def __enter__(self) -> None:
        _put(self.stance, self.force_backend)

    def __exit__(self, *exc: object) -> None:
        _put(*self._before)


def _put(name: str, backend: Any) -> None:
    _Force.name, _Force.backend = name, backend
    _Force.call = _C._call_captured if name == "default" and backend is None else _steered


def may_compile(name: str) -> bool:
    """Whether something (of this name) that was not compiled yet may be.

    Raises:
        RuntimeError: the stance forbids it.
    """
    if _Force.name == "fail_on_recompile":
        raise RuntimeError(
            f"compile: {name} would be compiled, and the stance is 'fail_on_recompile'; "
            "FLAMBEAU_LOGS=recompiles says why"
        )
    return _Force.name != "eager_on_recompile"


#: (config, back end) -> the config of the same model with the other back end
_others: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def _steered(config: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = _Force.name
    if name == "force_eager":
        return _C._call_captured(None, model, args, kwargs)
    if _Force.backend is not None:
        config = _with_backend(config, _Force.backend)
    elif name.endswith("_then_compile") and not config.parts and not config.was_observed:
        config.was_observed = True
        _observe(config, model, args, kwargs)
        config = None if name == "eager_then_compile" else _with_backend(config, "aot_eager")
    return _C._call_captured(config, model, args, kwargs)


def _with_backend(config: Any, backend: Any) -> Any:
    from ._backends import find

    known = _others.setdefault(config, {})
    if backend not in known:
        name = backend if isinstance(backend, str) else None
        made = config.with_backend(find(backend, None, None), name)
        weakref.finalize(config, made.forget)
        known[backend] = made
    return known[backend]


def _observe(config: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Notes sizes and integers of arguments, as a capture would have."""
    function = model.forward if isinstance(model, fb.nn.Module) else model
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return  # the call itself will raise
    seen = config.dynamic_shapes(code)
    for name, value in given.items():
        source = SimpleNamespace(name=name, access=0)
        if isinstance(value, fb.Tensor):
            seen.dims(value, source)
            seen.strides(value, source)
        elif type(value) is int:
            seen.integer(value, source)
        elif type(value) is float:
            seen.floating(value, source)
